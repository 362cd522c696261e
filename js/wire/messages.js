/** The parts of the wire that users of this library see: responses, progress, and names. */
import { tell } from '../common/development.js';
import { toErrorObject } from '../common/errors.js';
import { copyRecord, getOwn, isObject, isRecord } from '../common/values.js';

/**
 * @typedef {object} ProgressInfo The progress of a call.
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
 * @template {string} [Code=never] the app's own error codes, if they are known
 * @typedef {object} Failure The response to a call that failed or was cancelled.
 * @property {false} success
 * @property {undefined} [data]
 * @property {import('../common/errors.js').ErrorObject<Code>} error
 * @property {boolean} [cancelled] whether it was cancelled; also true for a timeout
 * @property {Metadata} [metadata]
 * @property {Promise<import('../types/outcome.js').CallFate>} [settled] for an agent's call whose
 *   outcome is `running` or `unknown`: its final outcome. The app is asked when this is first read
 */

/**
 * @typedef {object} Metadata The members of a response about its call, besides the result.
 * @property {number} [duration] ms
 * @property {boolean} [cached]
 * @property {boolean} [collected] the data are the chunks of a stream, in a list
 * @property {import('../types/outcome.js').CallOutcome} [outcome] of a call that did not succeed:
 *   the outcome of its work
 * @property {any} [report] of a call that did not succeed: its handler's last report, such as its
 *   completed and its remaining work
 * @property {ProgressInfo} [progress] of a call that did not succeed: the last progress
 */

/**
 * The protocol's answer to a call.
 * @template [Data=any]
 * @template {string} [Code=never] the app's own error codes, if they are known
 * @typedef {Success<Data> | Failure<Code>} Response
 */

/**
 * @typedef {object} CancelResponse The answer to a cancel.
 * @property {string} callId
 * @property {boolean} cancelled whether the app stopped the call
 * @property {string} [reason] why the app did not stop it
 * @property {import('../common/errors.js').ErrorObject} [error]
 */

/** The capability by which an agent asks for the outcome of a call. */
export const OUTCOME = 'bridge/outcome';

/**
 * The elicitation by which an app reads the stream of its agent to a handler; `params` has the
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
 * True if a handler returned a whole response of the protocol and not just data: an object with a
 * boolean `success` and only members of a response.
 * @param {unknown} value
 * @returns {value is Response}
 */
export const isResponse = (value) =>
  isRecord(value) &&
  typeof getOwn(value, 'success') === 'boolean' &&
  Object.keys(value).every((key) => RESPONSE_MEMBERS.includes(key));

/**
 * True if the final outcome of a call is still open.
 * @param {unknown} outcome as received
 */
export const isOpen = (outcome) => outcome === 'running' || outcome === 'unknown';

/**
 * The response of a failure whose reason the core does not know.
 * @param {unknown} error the reason
 * @param {any} [outcome] the outcome of the work
 * @returns {any}
 */
export const failedBy = (error, outcome) => ({
  success: false,
  error: toErrorObject(error),
  ...(outcome && { metadata: { outcome } }),
});

/**
 * The response to a call that did not begin, or whose handler did not.
 * @param {unknown} error the reason
 * @returns {Failure}
 */
export const unstarted = (error) => failedBy(error, 'unstarted');

/**
 * Reads a handler's return value once, so that later reads see the same value.
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
 * True if a capability declares that it may run twice.
 * @param {unknown} annotations its hints
 */
export const isRepeatable = (annotations) =>
  isObject(annotations) &&
  ['readOnlyHint', 'idempotentHint'].some((hint) => getOwn(annotations, hint) === true);

/** The number members of progress, and the string members. All are optional. */
const PROGRESS_NUMBERS = ['progress', 'total', 'percentage', 'estimatedRemaining'];
const PROGRESS_TEXTS = ['status', 'stage'];

/**
 * Reads progress: leaves out members of the wrong type, and calculates `percentage` where there is
 * a total.
 * @param {unknown} info from a peer: any value
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
 * Checks the progress that a program reports, and warns if it has no numbers.
 * @param {string} who the name of the reporter
 * @param {any} info the reported progress
 * @param {any} [before] the previous report, whose `progress` is used if this one has only a stage
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
