/**
 * The stream of a handler: a chunk is sent when the window has room for it. Until then the handler
 * waits.
 */
import * as abp from '../driver/abp-boundary.js';
import { Collection, Iteration, chunkUnsent } from '../common/iteration.js';
import { transferOf } from '../common/transfer.js';
import { sizeOf } from '../common/value-size.js';

/**
 * Microtasks that a chunk of a stream waits for the next one: a generator that awaits nothing
 * yields it in fewer.
 */
const MAX_TURNS_BETWEEN_CHUNKS = 24;
/** Chunks within this time after the last send, in ms, wait for others, up to `MAX_CHUNK_BYTES`. */
const MAX_CHUNK_DELAY = 1;
const MAX_CHUNK_BYTES = 2 ** 16;

export class Outflow extends Iteration {
  #call;
  /** Tries the waiting chunk again. @type {undefined | (() => void)} */
  #retry;
  /**
   * The error if a chunk could not be sent.
   * @type {import('../common/errors.js').AbpError | undefined}
   */
  #broken;

  /**
   * @param {import('./call.js').Call} call
   * @param {unknown} source the handler's return value
   */
  constructor(call, source) {
    super(source);
    this.#call = call;
  }

  /**
   * Sends a chunk, if there is room for it.
   * @param {unknown} chunk
   * @param {number} size
   * @returns {boolean} false if there is no room
   */
  #isSent(chunk, size) {
    const { endpoint, handle } = this.#call;
    return endpoint.feed(endpoint.core.x.chunk, chunk, handle, size) !== abp.E_LIMIT;
  }

  /**
   * @param {unknown} chunk
   * @returns {Promise<void> | undefined} undefined if the source need not wait
   */
  offer(chunk) {
    const size = sizeOf(chunk);
    return this.#isSent(chunk, size) ? this.requireWhole() : this.#waitFor(chunk, size);
  }

  /**
   * @param {unknown} chunk
   * @param {number} size
   */
  async #waitFor(chunk, size) {
    do await new Promise((resolve) => (this.#retry = () => resolve(undefined)));
    while (!this.stopped && !this.#isSent(chunk, size));
    this.requireWhole();
  }

  /**
   * Throws if a chunk could not be sent.
   * @returns {undefined}
   */
  requireWhole() {
    if (this.#broken) throw this.#broken;
  }

  /**
   * Sends a chunk that the core lets pass. Chunks that follow one another without a pause are
   * collected.
   * @param {unknown} chunk
   * @param {number} size in bytes
   */
  send(chunk, size) {
    const { line } = this.#call.endpoint;
    line.chunk(this.#call, chunk, size, transferOf(chunk));
    const { writer } = line;
    if (!writer) return;
    const now = performance.now();
    writer.bytes += size;
    const waits = writer.bytes < MAX_CHUNK_BYTES && now - writer.sentAt < MAX_CHUNK_DELAY;
    if (writer.wait(MAX_TURNS_BETWEEN_CHUNKS) && waits) return;
    writer.flush();
    writer.sentAt = now;
    writer.bytes = 0;
  }

  /** Called when the window has room again. */
  resume() {
    this.#retry?.();
  }

  /**
   * Called when a chunk could not be sent.
   * @param {unknown} error
   */
  fail(error) {
    this.#broken ??= chunkUnsent(error);
    this.resume();
  }

  /**
   * @override
   * @param {unknown} [reason]
   */
  stop(reason) {
    super.stop(reason);
    this.resume();
  }
}

/**
 * Streams a handler's return value.
 * @param {import('./call.js').Call} call
 * @param {unknown} source
 * @returns {Promise<unknown>} the data of the response: the return value of the source or, if that
 *   is undefined and the caller reads no chunks, a list of them; a cancelled response if it was
 *   stopped before all was sent
 */
export async function stream(call, source) {
  const { endpoint, handle, reason } = call;
  const { core, prepare } = endpoint;
  const extra = call.ensureExtra();
  const outflow = (extra.outflow = new Outflow(call, source));
  const isRead = !endpoint.failed && core.x.stream_wanted(core.pointer, handle);
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
  // If a chunk cannot be sent, that is known now, before the call has an outcome.
  endpoint.line.flush();
  outflow.requireWhole();
  if (!collection || value !== undefined) return value;
  extra.collected = true;
  return collection.chunks;
}
