/** What users of this library see of the wire: responses, progress, and names. */
import { tell } from '../common/development.js';
import { toErrorObject } from '../common/errors.js';
import { copyRecord, getOwn, isObject, isRecord } from '../common/values.js';

/**
 * @typedef {object} ProgressInfo How far a call has come.
 * @property {string | number} operationId the `progressToken`
 * @property {number} progress
 * @property {number} [total]
 * @property {number} [percentage] 0 to 100
 * @property {string} [status]
 * @property {string} [stage]
 * @property {number} [estimatedRemaining] ms
 */

/**
 * @template [Data=any]
 * @typedef {object} Success The response to a call that succeeded.
 * @property {true} success
 * @property {Data} data
 * @property {undefined} [error]
 * @property {false} [cancelled]
 * @property {Metadata} [metadata]
 */

/**
 * @template {string} [Code=never] the app's own error codes, where they are known
 * @typedef {object} Failure The response to a call that failed or was cancelled.
 * @property {false} success
 * @property {undefined} [data]
 * @property {import('../common/errors.js').ErrorObject<Code>} error
 * @property {boolean} [cancelled] whether it was cancelled, which a timeout is, too
 * @property {Metadata} [metadata]
 * @property {Promise<import('../types/outcome.js').CallFate>} [settled] of an agent's call whose
 *   outcome is `running` or `unknown`: what became of it in the end. The app is asked when it is
 *   first read
 */

/**
 * @typedef {object} Metadata What a response says of its call besides the result.
 * @property {number} [duration] ms
 * @property {boolean} [cached]
 * @property {boolean} [collected] the data are the chunks of a stream, in a list
 * @property {import('../types/outcome.js').CallOutcome} [outcome] of a call that did not succeed:
 *   what became of its work
 * @property {any} [report] of a call that did not succeed: what its handler reported last, such as
 *   what it has applied and what remains
 * @property {ProgressInfo} [progress] of a call that did not succeed: the last progress
 */

/**
 * The protocol's answer to a call.
 * @template [Data=any]
 * @template {string} [Code=never] the app's own error codes, where they are known
 * @typedef {Success<Data> | Failure<Code>} Response
 */

/**
 * @typedef {object} CancelResponse What a cancel was answered.
 * @property {string} callId
 * @property {boolean} cancelled whether the app stopped the call
 * @property {string} [reason] why not
 * @property {import('../common/errors.js').ErrorObject} [error]
 */

/** The capability by which an agent asks what became of a call. */
export const OUTCOME = 'bridge/outcome';

/**
 * The elicitation by which an app reads what its agent streams to a handler; `params` has the
 * callId.
 */
export const INPUT = 'bridge/input';

/**
 * An elicitation's method, by its standard name.
 * @param {unknown} name
 */
export const elicitationMethod = (name) =>
  name === 'elicitation/text' ? 'elicitation/input' : String(name);

/** The notification that an app's capabilities have changed. */
export const LIST_CHANGED = 'notifications/capabilities/list_changed';

const RESPONSE_MEMBERS = ['success', 'data', 'error', 'cancelled', 'metadata'];

/**
 * Whether a handler returned a whole response of the protocol and not just the data: an object with
 * a boolean `success` and no members but those of a response.
 * @param {unknown} value
 * @returns {value is Response}
 */
export const isResponse = (value) =>
  isRecord(value) &&
  typeof getOwn(value, 'success') === 'boolean' &&
  Object.keys(value).every((key) => RESPONSE_MEMBERS.includes(key));

/**
 * Whether more may become known of a call.
 * @param {unknown} outcome as it was told
 */
export const isOpen = (outcome) => outcome === 'running' || outcome === 'unknown';

/**
 * The response of what has failed for a reason that the core does not know.
 * @param {unknown} error why
 * @param {any} [outcome] what became of the work
 * @returns {any}
 */
export const failedBy = (error, outcome) => ({
  success: false,
  error: toErrorObject(error),
  ...(outcome && { metadata: { outcome } }),
});

/**
 * The response to a call that did not begin, or whose handler did not.
 * @param {unknown} error why
 * @returns {Failure}
 */
export const unstarted = (error) => failedBy(error, 'unstarted');

/**
 * Reads what a handler returned, once, so that whatever reads it later finds the same.
 * @param {unknown} value throws if it cannot be read
 * @returns {any} a whole response; undefined if it is just the data
 */
export function readResponse(value) {
  if (!isResponse(value)) return undefined;
  const { error, metadata } = /** @type {any} */ (value);
  return {
    ...value,
    ...(isObject(error) && { error: isRecord(error) ? { ...error } : toErrorObject(error) }),
    ...(isRecord(metadata) && { metadata: { ...metadata } }),
  };
}

/**
 * Whether a capability says that it may run twice.
 * @param {unknown} annotations its hints
 */
export const isRepeatable = (annotations) =>
  isObject(annotations) &&
  ['readOnlyHint', 'idempotentHint'].some((hint) => getOwn(annotations, hint) === true);

/** The members of progress that are numbers, and those that are strings. All are optional. */
const PROGRESS_NUMBERS = ['progress', 'total', 'percentage', 'estimatedRemaining'];
const PROGRESS_TEXTS = ['status', 'stage'];

/**
 * Reads progress: leaves out members of the wrong type, and calculates `percentage` where there is
 * a total.
 * @param {unknown} info what a peer sent: any value
 * @returns {any} a copy
 */
export function progressInfo(info) {
  const read = copyRecord(info);
  for (const key of PROGRESS_NUMBERS) if (!Number.isFinite(read[key])) delete read[key];
  for (const key of PROGRESS_TEXTS) if (typeof read[key] !== 'string') delete read[key];
  read.progress ??= 0;
  if (read.total > 0) read.percentage ??= Math.min(100, (read.progress / read.total) * 100);
  return read;
}

/**
 * Checks the progress that a program reports, and warns of one that does not say in numbers how far
 * it is.
 * @param {string} who reports it
 * @param {any} info what it gave
 * @param {any} [before] the report before: what says only the stage is as far as that
 * @returns {any} undefined if it must not be sent
 */
export function checkedProgress(who, info, before) {
  const given = {
    progress: before?.progress ?? info?.percentage ?? ((info?.status || info?.stage) && 0),
    ...info,
  };
  const isNumber = (/** @type {string} */ key) =>
    ['number', 'undefined'].includes(typeof given[key]);
  if (Number.isFinite(given.progress) && PROGRESS_NUMBERS.every(isNumber))
    return progressInfo(given);
  return tell((dev) => dev.warnOfProgress(who, info));
}
