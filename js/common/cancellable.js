/** The signals on both sides of a call: the caller's, which cancels it, and the one that its handler gets. */
import { reasonText } from './errors.js';
import { abortError, offAbort } from './signals.js';

/** A call or a request that was made here and has not settled. It is its own abort listener, so no closure is needed. */
export class Pending {
  /** The handle of the call in the core; 0 until it begins. */
  handle = 0;

  /**
   * @param {{ cancel(call: number, reason: string | undefined): void }} owner cancels the call, given its handle
   * @param {AbortSignal | undefined} signal the caller's
   */
  constructor(owner, signal) {
    this.owner = owner;
    this.signal = signal;
  }

  /** Why its signal fired, in the form that is sent to the other side. */
  get reason() {
    return reasonText(this.signal?.reason);
  }

  /** The signal has fired. */
  handleEvent() {
    this.owner.cancel(this.handle, this.reason);
  }

  /** Stops listening to the signal: the call has settled. */
  unfollow() {
    offAbort(this.signal, this);
  }
}

/** A call or a request that was received. Its signal is created when it is first read: most handlers never read it. */
export class Cancellable {
  /** The handle of the call in the core; 0 before it begins and after its handler has settled. */
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
