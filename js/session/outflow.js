/** The stream of a handler: a chunk is sent when the window has room for it. Until then the handler waits. */
import * as abp from '../driver/abp-boundary.js';
import { Collection, Iteration, chunkUnsent } from '../common/iteration.js';
import { sizeOf } from '../common/value-size.js';

export class Outflow {
  #call;
  #iteration;
  /** Tries the waiting chunk again. @type {undefined | (() => void)} */
  #retry;
  /** Why a chunk could not be sent. @type {import('../common/errors.js').AbpError | undefined} */
  #broken;

  /**
   * @param {import('./call.js').Call} call
   * @param {unknown} source what its handler returned
   */
  constructor(call, source) {
    this.#call = call;
    this.#iteration = new Iteration(source);
  }

  /** Whether the caller reads chunks. */
  get #isRead() {
    const { endpoint, handle } = this.#call;
    const { core, machine } = endpoint;
    return !machine.failed && core.x.stream_wanted(core.pointer, handle) === 1;
  }

  /**
   * Offers a chunk, which is sent if there is room for it.
   * @param {unknown} chunk
   * @param {number} size
   * @returns {boolean} false if there is none
   */
  #offered(chunk, size) {
    const { endpoint, handle } = this.#call;
    const status = endpoint.machine.feed((x, pointer) => x.chunk(pointer, handle, size), chunk);
    return status !== abp.E_LIMIT;
  }

  /**
   * Streams everything.
   * @returns {Promise<{ data: unknown, collected: boolean } | undefined>} the data of the result: what the handler returned or, if
   *   that is nothing and the caller reads no chunks, a list of them; undefined if it was stopped before its end
   */
  async run() {
    const collection = this.#isRead ? undefined : new Collection();
    if (!this.#call.beginWork()) this.stop(this.#call.reason);
    const { returned, value } = await this.#iteration.run((chunk) =>
      collection ? collection.add(chunk) : this.#send(chunk),
    );
    if (!returned) return undefined;
    // What cannot be sent is known now, before the call has an outcome.
    this.#call.endpoint.flush();
    this.#requireWhole();
    const all = collection !== undefined && value === undefined;
    return { data: all ? collection.chunks : value, collected: all };
  }

  /** @param {unknown} value @returns {Promise<void> | undefined} for what has to wait */
  #send(value) {
    const { prepare } = this.#call.endpoint.side;
    if (prepare) return this.#prepared(prepare(value, this.#call));
    return this.#offer(value);
  }

  /** @param {unknown} preparing */
  async #prepared(preparing) {
    await this.#offer(await preparing);
  }

  /** @param {unknown} chunk */
  #offer(chunk) {
    const size = sizeOf(chunk);
    return this.#offered(chunk, size) ? this.#requireWhole() : this.#waitFor(chunk, size);
  }

  /** @param {unknown} chunk @param {number} size */
  async #waitFor(chunk, size) {
    do await new Promise((resolve) => (this.#retry = () => resolve(undefined)));
    while (!this.#iteration.stopped && !this.#offered(chunk, size));
    this.#requireWhole();
  }

  /** @returns {undefined} */
  #requireWhole() {
    if (this.#broken) throw this.#broken;
  }

  /** There is room again. */
  resume() {
    this.#retry?.();
    this.#retry = undefined;
  }

  /** A chunk could not be sent. @param {unknown} error */
  fail(error) {
    this.#broken ??= chunkUnsent(error);
    this.resume();
  }

  /** Nobody waits for chunks any more: the handler ends where it waits. @param {unknown} [reason] */
  stop(reason) {
    this.#iteration.stop(reason);
    this.resume();
  }
}
