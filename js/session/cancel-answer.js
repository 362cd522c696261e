/** What is told of the answer to a cancel by an id. Loaded when one comes. */
import * as abp from '../driver/abp-boundary.js';
import { reasonText } from '../common/errors.js';
import { copyRecord, isObject } from '../common/values.js';
import { unanswered } from './pending-cancel.js';

/**
 * @param {import('./endpoint.js').Endpoint} endpoint
 * @param {string} callId
 * @param {abp.Outcome} outcome of the cancel
 * @param {unknown} payload of the answer, if one has come
 * @returns {any} what its caller is told
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
  const said = isObject(error) ? error : typeof code === 'string' && { code, message, retryable };
  if (said) {
    const given = { success: false, error: said };
    read.error = core.response(abp.SETTLE, abp.COMPLETED, abp.FATE_NONE, { given }).error;
  }
  return { ...read, callId, cancelled };
}
