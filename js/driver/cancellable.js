/** The signal that the handler of a call gets. */
import { abortError } from '../common/signals.js';

/** @import { Handle } from './abp-boundary.js' */

/** The handle of no call. It is not 0, which would mean: without a parent. */
export const ENDED = /** @type {Handle} */ (-1);

/** A call or a request that was received. Its signal is created when it is first read: most handlers never read it. */
export class Cancellable {
  /** The call in the core; 0 before it begins and after its handler has settled. @type {Handle} */
  handle = 0;
  aborted = false;
  /** The reason, as the other side gave it. @type {string | undefined} */
  reason = undefined;
  /** What ended the connection, if that is the reason. @type {unknown} */
  #cause;
  /** @type {AbortController | undefined} */
  #controller;

  /** Aborts when the call is cancelled, times out, or its caller is gone. The reason is an `AbortError`. */
  get signal() {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.aborted) this.#controller.abort(abortError(this.reason, this.#cause));
    }
    return this.#controller.signal;
  }

  /**
   * Marks it as aborted and fires its signal.
   * @param {string | undefined} reason as the other side gave it
   * @param {unknown} [cause] what ended the connection, if that is the reason
   */
  abort(reason, cause) {
    this.aborted = true;
    this.reason = reason;
    this.#cause = cause;
    this.#controller?.abort(abortError(reason, cause));
  }
}
