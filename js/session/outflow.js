/** The stream of a handler: a chunk is sent when the window has room for it. Until then the handler waits. */
import * as abp from '../driver/abp-boundary.js';
import { Collection, Iteration, chunkUnsent } from '../common/iteration.js';
import { sizeOf } from '../common/value-size.js';

export class Outflow extends Iteration {
  #call;
  /** Tries the waiting chunk again. @type {undefined | (() => void)} */
  #retry;
  /** Why a chunk could not be sent. @type {import('../common/errors.js').AbpError | undefined} */
  #broken;

  /**
   * @param {import('./call.js').Call} call
   * @param {unknown} source what its handler returned
   */
  constructor(call, source) {
    super(source);
    this.#call = call;
  }

  /**
   * Streams everything.
   * @returns {Promise<{ data: unknown, collected: boolean } | undefined>} the data of the result: what the handler returned or, if
   *   that is nothing and the caller reads no chunks, a list of them; undefined if it was stopped before its end
   */
  async stream() {
    const call = this.#call;
    const { endpoint, handle } = call;
    const { core, machine, side } = endpoint;
    const { prepare } = side;
    const isRead = !machine.failed && core.x.stream_wanted(core.pointer, handle);
    const collection = isRead ? undefined : new Collection();
    if (!call.beginWork()) this.stop(call.reason);
    const { returned, value } = await this.run(
      collection
        ? (chunk) => collection.add(chunk)
        : prepare
          ? async (chunk) => this.#offer(await prepare(chunk, call))
          : (chunk) => this.#offer(chunk),
    );
    if (!returned) return undefined;
    // What cannot be sent is known now, before the call has an outcome.
    endpoint.flush();
    this.#requireWhole();
    return collection && value === undefined
      ? { data: collection.chunks, collected: true }
      : { data: value, collected: false };
  }

  /**
   * Sends a chunk, if there is room for it.
   * @param {unknown} chunk
   * @param {number} size
   * @returns {boolean} false if there is none
   */
  #isSent(chunk, size) {
    return (
      this.#call.tell((x, pointer, call) => x.chunk(pointer, call, size), chunk) !== abp.E_LIMIT
    );
  }

  /** @param {unknown} chunk @returns {Promise<void> | undefined} for what has to wait */
  #offer(chunk) {
    const size = sizeOf(chunk);
    return this.#isSent(chunk, size) ? this.#requireWhole() : this.#waitFor(chunk, size);
  }

  /** @param {unknown} chunk @param {number} size */
  async #waitFor(chunk, size) {
    do await new Promise((resolve) => (this.#retry = () => resolve(undefined)));
    while (!this.stopped && !this.#isSent(chunk, size));
    this.#requireWhole();
  }

  /** @returns {undefined} */
  #requireWhole() {
    if (this.#broken) throw this.#broken;
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
