/** What an agent answers: its app's questions, and the app's reading of a call's input. */
import * as abp from '../driver/abp-boundary.js';
import { getOwn } from '../common/values.js';
import { Call } from '../session/call.js';
import { INPUT, elicitationMethod } from '../wire/elicitations.js';

/** @import { Callee, Endpoint } from '../session/endpoint.js' */

/**
 * Answers an app.
 * @param {import('./client.js').Client} client whose `onElicitation` answers its questions
 * @param {() => Endpoint} endpointOf
 * @param {string[] | undefined} allowedRequests the elicitation methods that the app may use; all, if there is no list
 * @returns {Callee}
 */
export function calleeOf(client, endpointOf, allowedRequests) {
  /** The input of a call that is pending. @param {unknown} params as the app says them */
  const inputOf = (params) => {
    const callId = getOwn(params, 'callId');
    const call = endpointOf().machine.find(
      (record) => record instanceof Call && record.options.input && record.callId === callId,
    );
    return call?.options.input;
  };
  return {
    rejectionFor: ({ name, params, options }) => {
      // Without a window it would be a question, for which a clock stands still.
      if (name === INPUT)
        return options.input && inputOf(params)?.taken === false
          ? abp.NO_ERROR
          : abp.INVALID_PARAMS;
      const allowed = !allowedRequests || allowedRequests.includes(elicitationMethod(name));
      const able = client.onElicitation && endpointOf().has(abp.ELICITATION);
      return able && allowed ? abp.NO_ERROR : abp.NOT_SUPPORTED;
    },
    run: ({ name, params, options: { timeout } }, { signal }) => {
      if (name === INPUT) return inputOf(params);
      return client.onElicitation?.(
        { method: elicitationMethod(name), params, ...(timeout && { timeout }) },
        { signal },
      );
    },
  };
}
