/** Writes what is said of streams: chunks, and how much of them was read. Loaded with the first stream. */
import { transferOf } from '../common/transfer.js';
import * as FrameKind from './frame-kinds.js';
import { EntryWriter } from './writers.js';

/** @import { Made, MessageWriter, Received } from './writers.js' */

/** Microtasks for which the chunks of a stream wait for the next: a generator that awaits nothing needs fewer to make it. */
const MAX_TURNS_BETWEEN_CHUNKS = 24;
/** Chunks that come within this time of those that were sent, in ms, wait for others, up to so many bytes. */
const MAX_CHUNK_DELAY = 1;
const MAX_CHUNK_BYTES = 2 ** 16;

/** @param {unknown} callId @param {number} size @param {unknown} chunk */
export const chunkMessage = (callId, size, chunk) => ({
  type: 'bridge/chunk',
  payload: { callId, size, chunk },
});

/** @param {unknown} callId @param {[number, number]} amount that was read: chunks and bytes */
export const creditMessage = (callId, [chunks, bytes]) => ({
  type: 'bridge/credit',
  payload: { callId, chunks, bytes },
});

/** When chunks were sent, and the bytes of those that were collected since, by the writer of their frames. @type {WeakMap<EntryWriter, { sentAt: number, bytes: number }>} */
const sent = new WeakMap();

/**
 * Writes a chunk of a stream. Those that follow one another without a pause are collected.
 * @param {EntryWriter | MessageWriter} writer
 * @param {MessageWriter} messages
 * @param {Received} call
 * @param {unknown} chunk
 * @param {number} size its bytes
 */
export function writeChunk(writer, messages, call, chunk, size) {
  const transfer = transferOf(chunk);
  if (call.message || !(writer instanceof EntryWriter)) {
    const message = chunkMessage(call.callId, size, chunk);
    return messages.send(message, transfer, (error) => call.chunkFailed(error));
  }
  const { frames } = writer;
  frames.add(FrameKind.CHUNK, call.request.key, size, chunk, transfer);
  const collects = frames.wait(MAX_TURNS_BETWEEN_CHUNKS);
  const now = performance.now();
  const { sentAt, bytes } = sent.get(writer) ?? { sentAt: 0, bytes: 0 };
  if (bytes + size < MAX_CHUNK_BYTES && now - sentAt < MAX_CHUNK_DELAY) {
    if (collects) return void sent.set(writer, { sentAt, bytes: bytes + size });
  } else frames.flush();
  sent.set(writer, { sentAt: now, bytes: 0 });
}

/**
 * Writes how much of a stream was read.
 * @param {EntryWriter | MessageWriter} writer
 * @param {Made} call
 * @param {[number, number]} amount chunks and bytes
 */
export function writeCredit(writer, call, amount) {
  if (call.key && writer instanceof EntryWriter) {
    writer.frames.add(FrameKind.CREDIT, call.key, ...amount);
  } else writer.message(creditMessage(call.id, amount));
}
