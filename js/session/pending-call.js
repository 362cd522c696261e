/** The caller's side of a call: a promise, and the signal that may end it early. */
import * as abp from '../driver/abp-boundary.js';
import { Pending } from '../driver/pending.js';
import { isErrorObject, toErrorObject } from '../common/errors.js';
import { onAbort } from '../common/signals.js';
import { copyRecord, getOwn, milliseconds } from '../common/values.js';
import { outcomeOf } from '../wire/messages.js';
import { readError, readResponse } from '../wire/responses.js';
import { reasonUnsent } from '../wire/unsent.js';

/**
 * @typedef {object} RequestOptions How a call ends early, and what it reports.
 * @property {AbortSignal} [signal] cancels the call; the app decides how it ended
 * @property {number} [timeout] ms after which the call cancels itself; 0 or absent is never
 * @property {(info: import('../wire/messages.js').ProgressInfo) => void} [onProgress] called with each report of progress
 * @property {string} [callId] names the call, for `cancel`; minted when absent
 * @property {string | number} [progressToken] the token that the app reports progress with (the callId)
 * @property {Transferable[]} [transfer] objects in the params that are moved instead of copied
 * @property {string} [idempotencyKey] names the work: a call with the key of an earlier one, by the same agent, joins that or gets
 *   what became of it, and never runs twice as long as the same memory (`client.memory`) remembers. At most 256 characters. See
 *   docs/agents.md#again-safely
 */

/**
 * @typedef {RequestOptions & { about?: string }} AskOptions `about` is the callId on whose behalf a question is asked, or that of a call
 *   which may have run and is repeated
 */

/** A call that was made and has not settled. */
export class PendingCall extends Pending {
  /**
   * @param {import('./endpoint.js').Endpoint} endpoint
   * @param {(response: unknown) => void} resolve
   * @param {string} name
   * @param {unknown} params
   * @param {AskOptions} options
   */
  constructor(endpoint, resolve, name, params, options) {
    const { signal, timeout, onProgress, progressToken, callId, transfer, idempotencyKey, about } =
      options;
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
    this.idempotencyKey = idempotencyKey;
    this.about = about;
  }

  /** The id by which it can be cancelled. */
  get id() {
    return this.callId ?? this.endpoint.core.idText(this.handle);
  }

  /** Whether progress is wanted, or its token. */
  get progress() {
    return this.progressToken ?? this.onProgress !== undefined;
  }

  /** The bits that the core is given. @returns {number} */
  get flags() {
    return this.onProgress ? abp.WANTS_PROGRESS : 0;
  }

  /** Makes the call. @param {abp.Handle} [parent] the call on whose behalf this is made */
  begin(parent = 0) {
    const { endpoint, signal, timeout, callId, flags } = this;
    if (signal?.aborted) {
      return this.settle(abp.CANCELLED, undefined, undefined, abp.FATE_UNSTARTED);
    }
    // The core's clock stands still between inputs, and a deadline counts from now, or stands still from now on.
    if (timeout || parent) endpoint.machine.advance();
    onAbort(signal, this);
    endpoint.begin(this, parent, (x, pointer) => {
      const length = callId === undefined ? 0 : endpoint.core.writeId(callId);
      if (callId !== undefined && !length) return abp.E_ID;
      return x.request(pointer, length, timeout, flags, parent);
    });
  }

  /** It could not be sent. @param {unknown} error */
  unsent(error) {
    const { endpoint, params, handle } = this;
    if (isErrorObject(error)) {
      const response = { success: false, error: toErrorObject(error) };
      return endpoint.machine.sendFailed(handle, response);
    }
    const { resolve } = this;
    const response = endpoint.failure(abp.INVALID_PARAMS);
    // The call has ended. What it says of that waits for code that is loaded when it is needed.
    const explained = reasonUnsent('parameters', 'params', params, error).then((why) => {
      response.error.message = why;
    });
    this.resolve = (/** @type {any} */ settled) =>
      resolve(settled.error === response.error ? explained.then(() => settled) : settled);
    endpoint.machine.sendFailed(handle, response);
  }

  /**
   * @param {abp.Outcome} outcome
   * @param {unknown} response the peer's response, if it settles the call
   * @param {number | undefined} _limit
   * @param {abp.Fate} fate what became of its work, unless the response says it
   */
  settle(outcome, response, _limit, fate) {
    const { endpoint, signal } = this;
    /** @param {object} ended @param {boolean} [isPeers] whether its error is the peer's own */
    const became = (ended, isPeers = false) => {
      const { outgoing, side } = endpoint;
      const repeatable = isPeers || side.repeatable?.(this.name);
      const told = outgoing.became(ended, fate, repeatable, getOwn(response, 'metadata'));
      side.later?.(told, this);
      return told;
    };
    if (outcome === abp.COMPLETED) {
      const read = readResponse(response);
      this.#end(read.success ? read : became(read, true));
      if (read.error) endpoint.refused(read.error);
      return;
    }
    /** @type {any} */
    const ended = endpoint.ended(outcome, signal?.reason);
    // Why it ended is known here; what else there is to say of it, the peer says.
    const details = getOwn(getOwn(response, 'error'), 'details');
    if (details !== undefined) Object.assign(ended.error, { details });
    if (outcome !== abp.CANCELLED) return this.#end(became(ended));
    // The caller that aborted knows why. If it did not, the peer's error stands.
    const error = signal?.aborted ? undefined : getOwn(response, 'error');
    if (outcomeOf(response) === abp.CANCELLED) {
      const said = typeof getOwn(error, 'code') === 'string' && { error: readError(error) };
      return this.#end(became({ ...copyRecord(response), ...ended, ...said }, said !== false));
    }
    // The app accepted the cancel, and then answered something else: that is no more than words.
    if (error !== undefined) ended.error.message = readError(error).message;
    this.#end(became(ended));
  }

  /**
   * It has ended without the core: that refused it, or has failed.
   * @param {unknown} response
   * @param {abp.Fate} [fate]
   */
  fail(response, fate = abp.FATE_UNSTARTED) {
    this.#end(this.endpoint.outgoing.became(response, fate));
  }

  /** @param {unknown} response */
  #end(response) {
    this.unfollow();
    this.endpoint.machine.observe?.('end', this, response);
    this.resolve(response);
  }
}

/**
 * Makes a call, or asks a question.
 * @param {import('./endpoint.js').Endpoint} endpoint
 * @param {string} name
 * @param {unknown} params
 * @param {AskOptions} [options]
 * @param {abp.Handle} [parent] the call on whose behalf this is made
 * @returns {Promise<unknown>} the response: it never rejects
 */
export const makeCall = (endpoint, name, params, options = {}, parent = 0) =>
  new Promise((resolve) => new PendingCall(endpoint, resolve, name, params, options).begin(parent));
