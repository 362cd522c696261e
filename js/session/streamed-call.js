/** The caller's side of a call that streams: its result, what is given to its handler, or both. Loaded with the first. */
import * as abp from '../driver/abp-boundary.js';
import { sizeOf } from '../common/value-size.js';
import { writeCredit } from '../wire/stream-writer.js';
import { PendingCall } from './pending-call.js';
import { CHUNK, RECORD } from './records.js';

/** What its caller is told when the other side has sent more than was agreed on. */
const OVERRUN = {
  code: 'OPERATION_FAILED',
  message: "The other side sent more than the stream's window allows, so the stream was ended",
  retryable: false,
};

/**
 * Reads the chunks of a call.
 * @typedef {object} ChunkReader
 * @property {(call: StreamedCall) => void} attach takes the call, as soon as it is made
 * @property {(value: unknown, size: number) => void} push takes a chunk
 */

/**
 * What is streamed: who reads the call's chunks, and what its handler reads.
 * @typedef {{ stream?: ChunkReader, input?: AsyncIterable<unknown> }} Flow
 */

export class StreamedCall extends PendingCall {
  /** @type {ChunkReader | undefined} */
  stream;
  /** @type {AsyncIterable<unknown> | undefined} */
  input;
  /** Of a stream that both sides agreed on: how many chunks and bytes may be under way. @type {[number, number] | undefined} */
  window;

  /** @override */
  get flags() {
    return super.flags | (this.stream ? abp.WANTS_STREAM : 0);
  }

  /** @override @param {abp.Handle} [parent] */
  begin(parent) {
    const { endpoint, input, stream, signal } = this;
    stream?.attach(this);
    // 32 bits are enough: a window has no more.
    endpoint.measure = (chunk) => Math.min(sizeOf(chunk), 2 ** 32 - 1);
    if (input && !signal?.aborted && endpoint.ready && !endpoint.has(abp.STREAMS)) {
      const why = 'The app does not support input streams (docs/streams.md#input)';
      return this.fail(endpoint.failure(abp.NOT_SUPPORTED, why));
    }
    super.begin(parent);
  }

  /** A chunk has come. @param {{ value: unknown }} context @param {number} size */
  chunk({ value }, size) {
    this.stream?.push(value, size);
  }

  /**
   * @override
   * @param {abp.Outcome} outcome
   * @param {any} response the peer's, or the chunk that was too much
   * @param {number | undefined} limit
   * @param {abp.Fate} fate
   */
  settle(outcome, response, limit, fate) {
    const isChunk = response?.[RECORD] === CHUNK;
    super.settle(outcome, isChunk ? { success: false, error: OVERRUN } : response, limit, fate);
  }

  /** A chunk was read. @param {number} size */
  read(size) {
    this.endpoint.machine.feed((x, pointer) => x.chunk_read(pointer, this.handle, size), this);
  }

  /** @param {[number, number]} amount that was read */
  credit(amount) {
    writeCredit(this.endpoint.writer, this, amount);
  }

  /** The reader wants no more. */
  leave() {
    this.owner.cancel(this.handle, 'The reader stopped reading the stream');
  }
}

/**
 * Makes a call, as `makeCall` does.
 * @param {import('./endpoint.js').Endpoint} endpoint
 * @param {string} name
 * @param {unknown} params
 * @param {import('./pending-call.js').RequestOptions} options
 * @param {Flow} flow
 * @param {abp.Handle} [parent] the call on whose behalf this is made
 * @returns {Promise<unknown>} the response: it never rejects
 */
export const makeStreamedCall = (endpoint, name, params, options, flow, parent = 0) =>
  new Promise((resolve) => {
    const call = new StreamedCall(endpoint, resolve, name, params, options);
    Object.assign(call, flow).begin(parent);
  });
