/** Cancelling a call by its id. A call of one's own is cancelled by its signal. */
import * as abp from '../driver/abp-boundary.js';
import { loadPart, reasonText, toErrorObject } from '../common/errors.js';

/**
 * Asks for whatever call has this id to stop.
 * @param {import('./endpoint.js').Endpoint} endpoint
 * @param {string} callId
 * @param {unknown} reason
 * @param {(response: any) => void} answerTo gets the protocol's answer
 */
export function cancelById(endpoint, callId, reason, answerTo) {
  const { core } = endpoint;
  /** The `capabilities/cancel` that waits for its answer. @type {PendingCancel} */
  const record = {
    handle: 0,
    callId,
    settle: (outcome, context) =>
      void loadPart(import('./cancel-answer.js'))
        .then(
          ({ answerOf }) => answerOf(endpoint, callId, outcome, context?.payload),
          (error) => unanswered(callId, { error: toErrorObject(error) }, outcome === abp.CANCELLED),
        )
        .then(answerTo),
    fail: (response) => answerTo(unanswered(callId, response)),
  };
  endpoint.begin(record, 0, (x, pointer) => {
    const length = core.writeId(callId);
    return x.cancel_by_id(pointer, length, core.writeReason(reasonText(reason), length));
  });
}

/**
 * What is told where there was no answer that could be read.
 * @param {string} callId
 * @param {{ error: import('../common/errors.js').ErrorObject }} response
 * @param {boolean} [cancelled] whether the call is known to have been stopped
 */
export const unanswered = (callId, { error }, cancelled = false) => ({
  callId,
  cancelled,
  reason: error.message,
  error,
});

/**
 * @typedef {object} PendingCancel
 * @property {abp.Handle} handle
 * @property {string} callId
 * @property {(outcome: abp.Outcome, context?: { payload?: unknown }) => void} settle gets its answer
 * @property {(response: { error: import('../common/errors.js').ErrorObject }) => void} fail
 */
