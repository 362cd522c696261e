/** The caller's side of a call: a promise, and the signal that may end it early. */
import * as abp from '../dist/abp-constants.js';
import { isObject, milliseconds, own } from './messages.js';
import { unlisten } from './signals.js';

/** A call that was made and has not settled. It is its own abort listener, so none is allocated. */
export class PendingCall {
  /**
   * @param {import('./endpoint.js').Endpoint} endpoint
   * @param {(response: any) => void} resolve
   * @param {string} name
   * @param {any} params
   * @param {import('./client.js').CallOptions} options
   */
  constructor(endpoint, resolve, name, params, { signal, timeout, onProgress, callId, transfer }) {
    this.handle = 0;
    /** How frames name it; 0 if it went out in a message. @type {string | number} */
    this.key = 0;
    this.endpoint = endpoint;
    this.resolve = resolve;
    this.name = name;
    this.params = params;
    this.signal = signal;
    this.timeout = milliseconds(timeout);
    this.onProgress = onProgress;
    this.callId = callId;
    this.transfer = transfer;
  }

  handleEvent() {
    this.endpoint.cancel(this.handle, this.signal?.reason);
  }

  /**
   * @param {number} outcome
   * @param {any} [response] what the peer said, if that is what settles it
   */
  settle(outcome, response) {
    const { endpoint, signal } = this;
    if (outcome === abp.COMPLETED) {
      return this.fail(
        isObject(response)
          ? response
          : endpoint.failure(abp.INTERNAL_ERROR, 'The answer is no response'),
      );
    }
    const ended = endpoint.ended(outcome, signal?.reason);
    if (outcome !== abp.CANCELLED) return this.fail(ended);
    // Who aborted knows why; else the peer's own words stand.
    const error = signal?.aborted ? undefined : own(response, 'error');
    this.fail({ ...response, ...ended, ...(typeof own(error, 'code') === 'string' && { error }) });
  }

  /** @param {any} response */
  fail(response) {
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
    const { callId } = this;
    const said = own(message, 'payload');
    if (outcome === abp.COMPLETED) {
      this.resolve({ ...errorBeside(said), ...said, callId, cancelled: false });
    } else if (outcome === abp.CANCELLED && said) {
      this.resolve({ ...said, callId, cancelled: true });
    } else this.fail(this.endpoint.ended(outcome));
  }

  /**
   * Nobody knows: the call may or may not have been stopped.
   * @param {any} response
   */
  fail({ error }) {
    this.resolve({ callId: this.callId, cancelled: false, reason: error.message, error });
  }
}
