/** An app's questions to its agent. */
import { ENDING, requireOptions } from '../common/check-options.js';
import { getOwn, milliseconds } from '../common/values.js';
import * as abp from '../driver/abp-boundary.js';
import { makeCall } from '../session/made-call.js';
import { elicitationMethod } from '../wire/messages.js';

/** @import { Endpoint } from '../session/endpoint.js' */

/**
 * Asks the agent a question.
 * @param {Endpoint} endpoint
 * @param {string[] | undefined} allowed the methods that the agent accepts; all, if undefined
 * @param {any} request
 * @param {abp.Handle} [parent] the call on whose behalf it is asked
 * @param {string} [about] the callId of the agent's call above it
 * @returns {unknown} the response, or a promise of it
 * @throws {TypeError} if the request is not a question
 */
export function ask(endpoint, allowed, request, parent, about) {
  const method = getOwn(request, 'method');
  if (typeof method !== 'string') throw new TypeError('elicit needs { method, params }');
  requireOptions('elicit', { timeout: request.timeout }, ENDING, true);
  const isAllowed = [method, elicitationMethod(method)].some(
    (name) => allowed?.includes(name) ?? true,
  );
  const why =
    endpoint.ready && !endpoint.has(abp.ELICITATION)
      ? 'elicitation: ask the user in the app itself'
      : !isAllowed && method;
  if (why) return endpoint.refusal(abp.NOT_SUPPORTED, `The agent does not support ${why}`);
  const timeout = milliseconds(request.timeout);
  return makeCall(endpoint, method, request.params, { timeout, about }, parent);
}
