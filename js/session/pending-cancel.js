/** Cancelling a call by its id. A call of one's own is cancelled by its signal. */
import * as abp from '../driver/abp-boundary.js';
import { reasonText } from '../common/errors.js';
import { copyRecord, isObject } from '../common/values.js';

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
    settle: (outcome, context) => answerTo(answerOf(endpoint, callId, outcome, context?.payload)),
    fail: (response) => answerTo(unanswered(callId, response)),
  };
  endpoint.begin(record, 0, (x, pointer) => {
    const length = core.writeId(callId);
    return x.cancel_by_id(pointer, length, core.writeReason(reasonText(reason), length));
  });
}

/**
 * Reads the answer.
 * @param {import('./endpoint.js').Endpoint} endpoint
 * @param {string} callId
 * @param {abp.Outcome} outcome of the cancel
 * @param {unknown} payload of the answer, if one has come
 * @returns {any} what its caller is told
 */
function answerOf({ core, cause }, callId, outcome, payload) {
  const cancelled = outcome === abp.CANCELLED;
  if (!payload || !(cancelled || outcome === abp.COMPLETED)) {
    const why = { reason: reasonText(cause) };
    return unanswered(callId, core.response(abp.SETTLE, outcome, abp.FATE_UNKNOWN, why));
  }
  const read = copyRecord(payload);
  const { code, retryable, reason, message = reason, error } = read;
  if (typeof reason !== 'string') delete read.reason;
  delete read.error;
  // The published form has no member for an error, so some apps put `code` and `message` beside the other members.
  const said = isObject(error) ? error : typeof code === 'string' && { code, message, retryable };
  if (said) {
    const given = { success: false, error: said };
    read.error = core.response(abp.SETTLE, abp.COMPLETED, abp.FATE_NONE, { given }).error;
  }
  return { ...read, callId, cancelled };
}

/**
 * What is told where there was no answer that could be read: the call may or may not have been stopped.
 * @param {string} callId
 * @param {{ error: import('../common/errors.js').ErrorObject }} response
 */
export function unanswered(callId, { error }) {
  return { callId, cancelled: false, reason: error.message, error };
}

/**
 * @typedef {object} PendingCancel
 * @property {abp.Handle} handle
 * @property {string} callId
 * @property {(outcome: abp.Outcome, context?: { payload?: unknown }) => void} settle gets its answer
 * @property {(response: { error: import('../common/errors.js').ErrorObject }) => void} fail
 */
