/** The caller's side of a request whose result comes in parts. */
import { Inflow, followSignal, sizeOf } from 'abp-bridge/driver';

/**
 * Bytes of parts that may wait to be read: the protocols have no flow control. Each part counts as
 * at least 64.
 */
const MAX_UNREAD = 2 ** 26;

/**
 * The parts of a result, in order. Without parts, the result is the only one. `next` rejects as the
 * request does, after the parts that came before; `return` cancels the request if it still runs.
 * @template [T=any] its parts
 * @extends {Inflow<T>}
 */
export class RequestStream extends Inflow {
  #controller;
  #count = 0;
  #unread = 0;

  /**
   * Use the peer's `stream`.
   * @param {(own: import('./peer.js').RequestOptions) => Promise<unknown>} begin makes the request
   * @param {AbortSignal} [signal]
   */
  constructor(begin, signal) {
    super();
    const { controller, release } = followSignal(signal);
    this.#controller = controller;
    /**
     * The result at the end, which is empty if parts came before it. Rejects as a request does,
     * which may be ignored.
     * @type {Promise<any>}
     */
    this.result = begin({
      signal: controller.signal,
      onPartialResult: (part) => this.#take(part),
    }).finally(release);
    this.result.then(
      (value) => {
        if (this.#count === 0 && value !== undefined && value !== null) this.push(value, 0);
        this.finish(() => ({ done: true, value }));
      },
      (error) =>
        this.finish(() => {
          throw error;
        }),
    );
  }

  /** @param {unknown} part */
  #take(part) {
    this.#count++;
    const size = Math.max(64, sizeOf(part));
    if (!this.left) this.#unread += size;
    this.push(part, size);
    const why = `More than ${MAX_UNREAD} bytes of partial results were not read`;
    if (this.#unread > MAX_UNREAD) this.#controller.abort(new RangeError(why));
  }

  /**
   * @override
   * @protected
   * @param {number} size
   */
  onRead(size) {
    this.#unread -= size;
  }

  /**
   * @override
   * @protected
   */
  onLeave() {
    this.#unread = 0;
    this.#controller.abort();
  }
}
