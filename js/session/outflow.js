/** The stream of a handler: a chunk is sent when the window has room for it. Until then the handler waits. */
import * as abp from '../driver/abp-boundary.js';
import { Collection, Iteration, chunkUnsent } from '../common/iteration.js';
import { transferOf } from '../common/transfer.js';
import { sizeOf } from '../common/value-size.js';
import { CHUNK } from '../wire/frame-kinds.js';

/** Microtasks for which the chunks of a stream wait for the next: a generator that awaits nothing needs fewer to make it. */
const MAX_TURNS_BETWEEN_CHUNKS = 24;
/** Chunks that come within this time of those that were sent, in ms, wait for others, up to so many bytes. */
const MAX_CHUNK_DELAY = 1;
const MAX_CHUNK_BYTES = 2 ** 16;

export class Outflow extends Iteration {
  #call;
  /** Tries the waiting chunk again. @type {undefined | (() => void)} */
  #retry;
  /** Why a chunk could not be sent. @type {import('../common/errors.js').AbpError | undefined} */
  #broken;

  /** @param {import('./call.js').Call} call @param {unknown} source what its handler returned */
  constructor(call, source) {
    super(source);
    this.#call = call;
  }

  /** Sends a chunk, if there is room for it. @param {unknown} chunk @param {number} size @returns {boolean} false if there is none */
  #isSent(chunk, size) {
    return (
      this.#call.tell((x, pointer, call) => x.chunk(pointer, call, size), chunk) !== abp.E_LIMIT
    );
  }

  /** @param {unknown} chunk @returns {Promise<void> | undefined} for what has to wait */
  offer(chunk) {
    const size = sizeOf(chunk);
    return this.#isSent(chunk, size) ? this.requireWhole() : this.#waitFor(chunk, size);
  }

  /** @param {unknown} chunk @param {number} size */
  async #waitFor(chunk, size) {
    do await new Promise((resolve) => (this.#retry = () => resolve(undefined)));
    while (!this.stopped && !this.#isSent(chunk, size));
    this.requireWhole();
  }

  /** Throws if a chunk could not be sent. @returns {undefined} */
  requireWhole() {
    if (this.#broken) throw this.#broken;
  }

  /**
   * Sends a chunk that the core lets pass. Those that follow one another without a pause are collected.
   * @param {unknown} chunk
   * @param {number} size its bytes
   * @param {import('../wire/frames.js').FrameWriter} [frames] collects them; without it, each goes in a message
   */
  send(chunk, size, frames) {
    const { endpoint, handle, key } = this.#call;
    const transfer = transferOf(chunk);
    if (!frames) {
      const message = endpoint.core.print({ value: chunk }, abp.CHUNK, handle, [0, size]);
      return void endpoint.say(message, { transfer, failed: (error) => this.fail(error) });
    }
    frames.add(CHUNK, key, size, chunk, transfer);
    const now = performance.now();
    frames.bytes += size;
    const waits = frames.bytes < MAX_CHUNK_BYTES && now - frames.sentAt < MAX_CHUNK_DELAY;
    if (frames.wait(MAX_TURNS_BETWEEN_CHUNKS) && waits) return;
    frames.flush();
    frames.sentAt = now;
    frames.bytes = 0;
  }

  /** There is room again. */
  resume() {
    this.#retry?.();
  }

  /** A chunk could not be sent. @param {unknown} error */
  fail(error) {
    this.#broken ??= chunkUnsent(error);
    this.resume();
  }

  /** @override @param {unknown} [reason] */
  stop(reason) {
    super.stop(reason);
    this.resume();
  }
}

/**
 * Streams what a handler has returned.
 * @param {import('./call.js').Call} call
 * @param {unknown} source
 * @returns {Promise<unknown>} the data of the response: what the source returned or, if that is nothing and the caller reads no
 *   chunks, a list of them; if it was stopped before all was sent, a response that says so
 */
export async function stream(call, source) {
  const { endpoint, handle, rare, reason } = call;
  const { core, machine, side } = endpoint;
  const { prepare } = side;
  const outflow = (rare.outflow = new Outflow(call, source));
  const isRead = !machine.failed && core.x.stream_wanted(core.pointer, handle);
  const collection = isRead ? undefined : new Collection();
  if (!call.beginWork()) outflow.stop(reason);
  const { returned, value, isPartial } = await outflow.run(
    collection
      ? (chunk) => collection.add(chunk)
      : prepare
        ? async (chunk) => outflow.offer(await prepare(chunk, call))
        : (chunk) => outflow.offer(chunk),
  );
  if (!returned) return { success: false, cancelled: true };
  if (isPartial) return { success: false, cancelled: true, metadata: { outcome: 'finished' } };
  // What cannot be sent is known now, before the call has an outcome.
  endpoint.flush();
  outflow.requireWhole();
  if (!collection || value !== undefined) return value;
  rare.collected = true;
  return collection.chunks;
}
