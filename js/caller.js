/** The caller's side of a call: a promise, and the signal that may end it early. */
import * as abp from '../dist/abp-constants.js';
import { reasonText } from './errors.js';
import { own } from './messages.js';
import { unlisten } from './signals.js';

/** A call that was made and has not settled. It is its own abort listener, so none is allocated. */
export class PendingCall {
  handle = 0;
  timeout = 0;
  /** @type {string | undefined} */
  callId;
  /** How frames name it. @type {string | number} */
  key = 0;

  /**
   * @param {import('./endpoint.js').Endpoint} endpoint
   * @param {(response: any) => void} resolve
   * @param {string} name
   * @param {any} params
   * @param {AbortSignal} [signal]
   * @param {(info: any) => void} [onProgress]
   * @param {Transferable[]} [transfer]
   */
  constructor(endpoint, resolve, name, params, signal, onProgress, transfer) {
    this.endpoint = endpoint;
    this.resolve = resolve;
    this.name = name;
    this.params = params;
    this.signal = signal;
    this.onProgress = onProgress;
    this.transfer = transfer;
  }

  handleEvent() {
    this.endpoint.cancel(this.handle, reasonText(this.signal?.reason));
  }

  /**
   * @param {number} outcome
   * @param {any} response what the peer said, if that is what settles it
   */
  settle(outcome, response) {
    unlisten(this.signal, this);
    switch (outcome) {
      case abp.COMPLETED:
        if (typeof response === 'object' && response !== null) return this.resolve(response);
        return this.resolve(this.endpoint.failure(abp.INTERNAL_ERROR, 'The answer is no response'));
      case abp.DISCONNECTED:
        return this.resolve(this.endpoint.failure(abp.DISCONNECTED_ERROR));
      case abp.TIMED_OUT:
        return this.resolve(this.endpoint.failure(abp.TIMEOUT_ERROR));
    }
    // Who aborted knows why; else the peer's own words stand.
    const error = this.signal?.aborted ? undefined : own(response, 'error');
    return this.resolve({
      ...response,
      ...this.cancelled(this.signal?.reason),
      ...(typeof own(error, 'code') === 'string' && { error }),
    });
  }

  /** @param {any} reason */
  cancelled(reason) {
    return this.endpoint.failure(abp.CANCELLED_ERROR, reasonText(reason));
  }

  /** @param {any} response */
  broken(response) {
    unlisten(this.signal, this);
    this.resolve(response);
  }
}

/**
 * The published answer to a cancel has no place for an error, so some apps put its code beside the rest.
 * @param {any} said
 */
function errorBeside(said) {
  const code = own(said, 'code');
  if (typeof code !== 'string') return undefined;
  const message = String(own(said, 'message') ?? own(said, 'reason') ?? code);
  return { error: { code, message, retryable: own(said, 'retryable') === true } };
}

/** A `capabilities/cancel` that waits for the app's word. */
export class PendingCancel {
  /**
   * @param {import('./endpoint.js').Endpoint} endpoint
   * @param {(response: any) => void} resolve
   * @param {string} callId
   */
  constructor(endpoint, resolve, callId) {
    this.endpoint = endpoint;
    this.resolve = resolve;
    this.callId = callId;
  }

  /**
   * @param {number} outcome
   * @param {any} message
   */
  settle(outcome, message) {
    const { callId, endpoint } = this;
    const said = own(message, 'payload');
    if (outcome === abp.CANCELLED && said) this.resolve({ ...said, callId, cancelled: true });
    else if (outcome === abp.COMPLETED)
      this.resolve({ ...errorBeside(said), ...said, callId, cancelled: false });
    else
      this.resolve(
        this.failed(
          endpoint.failure(
            outcome === abp.TIMED_OUT
              ? abp.TIMEOUT_ERROR
              : outcome === abp.DISCONNECTED
                ? abp.DISCONNECTED_ERROR
                : abp.CANCELLED_ERROR,
          ),
        ),
      );
  }

  /**
   * Nobody knows: the call may or may not have been stopped.
   * @param {any} response
   */
  failed({ error }) {
    return { callId: this.callId, cancelled: false, reason: error.message, error };
  }

  /** @param {any} response */
  broken(response) {
    this.resolve(this.failed(response));
  }
}
