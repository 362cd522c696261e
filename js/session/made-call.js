/**
 * A call made here to the other side: an agent's call, or an app's question. An app loads this with
 * its first question.
 */
import * as abp from '../driver/abp-boundary.js';
import { isErrorObject } from '../common/errors.js';
import { onAbort } from '../common/signals.js';
import { limitOf, milliseconds } from '../common/values.js';
import { failedBy } from '../wire/messages.js';
import { reasonUnsent } from '../wire/unsent.js';
import { Call } from './call.js';

export class MadeCall extends Call {
  /**
   * Makes the call.
   * @param {abp.Handle} [parent] the call on whose behalf this one is made
   */
  begin(parent = 0) {
    const { endpoint, options } = this;
    const { signal, callId, stream } = options;
    this.callerSignal = signal;
    stream?.attach(this);
    if (signal?.aborted) return this.settle(abp.CANCELLED, undefined, abp.FATE_UNSTARTED);
    const timeout = options.timeout ? milliseconds(options.timeout) : 0;
    // The core's clock stands still between inputs. A deadline starts now, or its parents' stop.
    if (timeout || parent) endpoint.advance();
    if (signal) onAbort(signal, this);
    endpoint.observe?.('begin', this, parent);
    const { core } = endpoint;
    const length = callId === undefined ? 0 : core.writeId(callId);
    const flags = (options.onProgress ? abp.WANTS_PROGRESS : 0) | (stream ? abp.WANTS_STREAM : 0);
    const bytes = stream ? limitOf(options.highWaterMark) : 0;
    const status =
      callId !== undefined && !length
        ? abp.E_ID
        : endpoint.feed(core.x.request, this, length, timeout, flags, parent, bytes);
    if (status < 0) endpoint.reject(this, status, parent);
    this.params = undefined; // They were sent.
  }

  /**
   * Ends a call that could not be sent.
   * @param {unknown} error
   * @param {unknown} [params]
   */
  unsent(error, params = this.params) {
    const { endpoint, handle, resolve } = this;
    const isKnown = isErrorObject(error);
    const response = isKnown ? failedBy(error) : endpoint.refusal(abp.INVALID_PARAMS);
    // The call ends now. The message of its error waits for code that is loaded on demand.
    if (!isKnown)
      this.resolve = (/** @type {any} */ settled) =>
        void reasonUnsent('parameters', 'params', params, error).then((why) => {
          settled.error.message = why;
          resolve?.(settled);
        });
    endpoint.sendFailed(handle, { payload: response });
  }

  /**
   * @param {abp.Outcome} outcome
   * @param {any} context the received message, if one settles the call: `payload` is the response,
   *   `packed` its outcome as a number, `isChunk` is true for a chunk beyond the window
   * @param {abp.Fate} fate the fate of its work; `FATE_NONE` for a success
   */
  settle(outcome, context, fate) {
    const given = (context?.isChunk && this.options.stream?.overrun) || context?.payload;
    if (outcome === abp.COMPLETED && fate === abp.FATE_NONE) return this.end(given);
    const response = this.failure(abp.SETTLE, outcome, fate, given, context?.packed);
    this.endpoint.owner.finished(this, response);
    this.end(response);
  }
}

/**
 * Makes a call or asks a question.
 * @param {import('./endpoint.js').Endpoint} endpoint
 * @param {string} name
 * @param {unknown} params
 * @param {import('./call.js').MadeOptions} [options]
 * @param {abp.Handle} [parent] the call on whose behalf this one is made
 * @returns {Promise<any>} the response; it never rejects
 */
export const makeCall = (endpoint, name, params, options, parent = 0) =>
  new Promise((resolve) => {
    const call = new MadeCall(endpoint, name, params, options);
    call.resolve = resolve;
    call.begin(parent);
  });
