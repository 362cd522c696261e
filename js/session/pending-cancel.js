/** Cancels a call by its id. A caller cancels its own calls by their signals. */
import { CANCELLED } from '../driver/abp-boundary.js';
import { loadPart, reasonText } from '../common/errors.js';
import { copyRecord } from '../common/values.js';

/**
 * Sends a cancel for the call with this id, which any client may have made.
 * @param {import('./endpoint.js').Endpoint} endpoint
 * @param {string} callId
 * @param {unknown} reason
 * @param {(response: any) => void} answerTo called with the protocol's answer
 */
export function cancelById(endpoint, callId, reason, answerTo) {
  const { core } = endpoint;
  /** The `capabilities/cancel` that waits for its answer. @type {PendingCancel} */
  const record = {
    handle: 0,
    callId,
    settle(outcome, context) {
      const payload = context?.payload;
      const cancelled = outcome === CANCELLED && !!payload;
      const answer = { ...copyRecord(payload), callId, cancelled };
      // Other answers are rare.
      if (cancelled && !answer.reason && !answer.error) return answerTo(answer);
      return loadPart(import('./cancel-answer.js'))
        .then(({ answerOf }) => answerOf(endpoint, callId, outcome, payload))
        .catch((error) => ({ ...answer, error }))
        .then(answerTo);
    },
    fail(response) {
      answerTo(unanswered(callId, response));
    },
  };
  const length = core.writeId(callId);
  const reasonLength = core.writeReason(reasonText(reason), length);
  const status = endpoint.feed(core.x.cancel_by_id, record, length, reasonLength);
  if (status < 0) endpoint.reject(record, status, 0);
}

/**
 * The response without a readable answer: the call may or may not have been stopped.
 * @param {string} callId
 * @param {{ error: import('../common/errors.js').ErrorObject }} response
 */
export function unanswered(callId, { error }) {
  return { callId, cancelled: false, reason: error.message, error };
}

/** @import { Outcome } from '../driver/abp-boundary.js' */

/**
 * @typedef {object} PendingCancel
 * @property {import('../driver/abp-boundary.js').Handle} handle
 * @property {string} callId
 * @property {(outcome: Outcome, context?: { payload?: unknown }) => unknown} settle called with its
 *   answer
 * @property {(response: { error: import('../common/errors.js').ErrorObject }) => void} fail
 */
