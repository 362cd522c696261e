/** What an app asks its agent: questions, and the input of a call. Loaded with the first of them. */
import { CallStream } from '../agent/call-stream.js';
import { ENDING, requireOptions } from '../common/check-options.js';
import { getOwn, milliseconds } from '../common/values.js';
import * as abp from '../driver/abp-boundary.js';
import { ENDED } from '../driver/cancellable.js';
import { makeCall } from '../session/pending-call.js';
import { makeStreamedCall } from '../session/streamed-call.js';
import { INPUT, elicitationMethod } from '../wire/elicitations.js';

/** @import { Endpoint } from '../session/endpoint.js' */
/** @import { Invocation } from '../session/invocation.js' */

/** What an agent streams to the handler of a call. Once that is cancelled nothing more is read, not even chunks that had arrived. */
export class InputStream extends CallStream {
  #call;

  /**
   * @param {Endpoint} endpoint
   * @param {Invocation} call
   */
  constructor(endpoint, call) {
    const { callId, handle } = call;
    super((stream) =>
      makeStreamedCall(endpoint, INPUT, { callId }, {}, { stream }, handle || ENDED),
    );
    this.#call = call;
  }

  /** @override */
  async next() {
    const call = this.#call;
    if (call.aborted) throw call.signal.reason;
    try {
      return await super.next();
    } catch (error) {
      throw call.aborted ? call.signal.reason : error;
    }
  }
}

/**
 * Asks the agent a question.
 * @param {Endpoint} endpoint
 * @param {string[] | undefined} allowed the methods that the agent takes; all, if it lists none
 * @param {any} request
 * @param {abp.Handle} [parent] the call on whose behalf it is asked
 * @param {string} [about] the callId of the agent's call above it
 * @returns {Promise<unknown>} the response
 * @throws {TypeError} if that is no question
 */
export function ask(endpoint, allowed, request, parent, about) {
  const method = getOwn(request, 'method');
  if (typeof method !== 'string') throw new TypeError('elicit needs { method, params }');
  requireOptions('elicit', { timeout: request.timeout }, ENDING, true);
  if (endpoint.ready && !endpoint.has(abp.ELICITATION)) {
    const why = 'The agent does not support elicitation: ask the user in the app itself';
    return Promise.resolve(endpoint.failure(abp.NOT_SUPPORTED, why));
  }
  if (allowed && ![method, elicitationMethod(method)].some((name) => allowed.includes(name))) {
    const why = `The agent does not support ${method}`;
    return Promise.resolve(endpoint.failure(abp.NOT_SUPPORTED, why));
  }
  const timeout = milliseconds(request.timeout);
  return makeCall(endpoint, method, request.params, { timeout, about }, parent);
}
