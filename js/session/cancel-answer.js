/**
 * Reads the answer to a cancel by id. Loaded when such an answer arrives, unless it is a plain
 * success.
 */
import * as abp from '../driver/abp-boundary.js';
import { reasonText } from '../common/errors.js';
import { copyRecord, isObject } from '../common/values.js';
import { unanswered } from './pending-cancel.js';

/**
 * @param {import('./endpoint.js').Endpoint} endpoint
 * @param {string} callId
 * @param {abp.Outcome} outcome of the cancel
 * @param {unknown} payload of the answer, if one arrived
 * @returns {any} the response for its caller
 */
export function answerOf({ core, cause }, callId, outcome, payload) {
  const cancelled = outcome === abp.CANCELLED;
  if (!payload || !(cancelled || outcome === abp.COMPLETED)) {
    const why = { reason: reasonText(cause) };
    return unanswered(callId, core.response(abp.SETTLE, outcome, abp.FATE_UNKNOWN, why));
  }
  const read = copyRecord(payload);
  const { code, retryable, reason, message = reason, error } = read;
  if (typeof reason !== 'string') delete read.reason;
  delete read.error;
  // The published form has no member for an error, so some apps put `code` and `message` beside the
  // other members.
  const found = isObject(error) ? error : typeof code === 'string' && { code, message, retryable };
  if (found) {
    const given = { success: false, error: found };
    read.error = core.response(abp.SETTLE, abp.COMPLETED, abp.FATE_NONE, { given }).error;
  }
  return { ...read, callId, cancelled };
}
