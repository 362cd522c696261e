/** The caller's signal, which cancels its call. */
import { reasonText } from '../common/errors.js';
import { offAbort } from '../common/signals.js';

/** @import { Handle } from './abp-boundary.js' */

/** A call or a request that was made here and has not settled. It is its own abort listener, so no closure is needed. */
export class Pending {
  /** The call in the core; 0 until it begins. @type {Handle} */
  handle = 0;

  /**
   * @param {{ cancel(call: Handle, reason: string | undefined): void }} owner cancels the call, given its handle
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
