/** The caller's side of a call: a promise, and the signal that may end it early. */
import * as abp from '../core/abp-boundary.js';
import { Pending } from '../common/cancellable.js';
import { copyRecord, getOwn, milliseconds } from '../common/values.js';
import { outcomeOf, readCancelAnswer, readError, readResponse } from '../wire/messages.js';

/** Codes with which an app refuses a call because it has no session any more. */
const SESSION_OVER = ['SESSION_EXPIRED', 'SESSION_INVALID', 'NOT_INITIALIZED'];

/** A call that was made and has not settled. */
export class PendingCall extends Pending {
  /**
   * @param {import('./endpoint.js').Endpoint} endpoint
   * @param {(response: unknown) => void} resolve
   * @param {string} name
   * @param {unknown} params
   * @param {import('../agent/client.js').CallOptions} options
   */
  constructor(endpoint, resolve, name, params, options) {
    const { signal, timeout, onProgress, progressToken, callId, transfer } = options;
    super(endpoint.machine, signal);
    /** Its key in frames; 0 if it was sent in a message. @type {string | number} */
    this.key = 0;
    this.endpoint = endpoint;
    this.resolve = resolve;
    this.name = name;
    this.params = params;
    this.timeout = milliseconds(timeout);
    this.onProgress = onProgress;
    this.progressToken = progressToken;
    this.callId = callId;
    this.transfer = transfer;
    /** What is streamed to its handler. @type {import('../agent/input.js').Input | undefined} */
    this.input = undefined;
    /** Who reads its chunks. @type {import('../agent/call-stream.js').CallStream | undefined} */
    this.stream = undefined;
    /** Of a stream that both sides agreed on: how many chunks and bytes may be under way. @type {[number, number]} */
    this.window = [0, 0];
  }

  /**
   * @param {number} outcome
   * @param {unknown} [response] the peer's response, if it settles the call
   */
  settle(outcome, response) {
    const { endpoint, signal } = this;
    if (outcome === abp.COMPLETED) {
      const read = readResponse(response);
      this.fail(read);
      if (read.error && SESSION_OVER.includes(read.error.code))
        endpoint.side.onExpired?.(read.error);
      return;
    }
    const ended = endpoint.ended(outcome, signal?.reason);
    // Why it ended is known here; what else there is to say of it, the peer says.
    const details = getOwn(getOwn(response, 'error'), 'details');
    if (details !== undefined) Object.assign(ended.error, { details });
    if (outcome !== abp.CANCELLED) return this.fail(ended);
    // The caller that aborted knows why. If it did not, the peer's error stands.
    const error = signal?.aborted ? undefined : getOwn(response, 'error');
    if (outcomeOf(response) === abp.CANCELLED) {
      const said = typeof getOwn(error, 'code') === 'string' && { error: readError(error) };
      return this.fail({ ...copyRecord(response), ...ended, ...said });
    }
    // The app accepted the cancel, and then answered something else: that is no more than words.
    if (error !== undefined) ended.error.message = readError(error).message;
    this.fail(ended);
  }

  /** @param {unknown} response */
  fail(response) {
    this.unfollow();
    this.endpoint.observer?.end(this, response);
    this.resolve(response);
  }

  /** A chunk has come. @param {{ value: unknown }} context @param {number} size */
  chunk({ value }, size) {
    this.stream?.push(value, size);
  }

  /** A chunk was read. @param {number} size */
  read(size) {
    this.endpoint.machine.feed((x, pointer) => x.chunk_read(pointer, this.handle, size), this);
  }

  /** @param {[number, number]} amount that was read */
  credit(amount) {
    this.endpoint.grant(this, amount);
  }

  /** The reader wants no more. */
  leave() {
    this.owner.cancel(this.handle, 'The reader has left the stream');
  }
}

/** A `capabilities/cancel` that waits for its answer. */
export class PendingCancel {
  handle = 0;

  /**
   * @param {import('./endpoint.js').Endpoint} endpoint
   * @param {(response: unknown) => void} resolve
   * @param {string} callId
   */
  constructor(endpoint, resolve, callId) {
    this.endpoint = endpoint;
    this.resolve = resolve;
    this.callId = callId;
  }

  /**
   * @param {number} outcome
   * @param {unknown} message
   */
  settle(outcome, message) {
    const { callId } = this;
    const said = getOwn(message, 'payload');
    if (outcome === abp.COMPLETED) {
      this.resolve({ ...readCancelAnswer(said), callId, cancelled: false });
    } else if (outcome === abp.CANCELLED && said) {
      this.resolve({ ...readCancelAnswer(said), callId, cancelled: true });
    } else this.fail(this.endpoint.ended(outcome));
  }

  /**
   * There was no answer: the call may or may not have been stopped.
   * @param {any} response
   */
  fail({ error }) {
    this.resolve({ callId: this.callId, cancelled: false, reason: error.message, error });
  }
}
