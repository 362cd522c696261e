/**
 * The shapes of a call and its result: all that JavaScript knows of the wire. Only own properties are read, so that
 * nothing inherited is ever taken for something that the peer sent.
 */
import * as abp from '../driver/abp-boundary.js';
import { copyRecord, getOwn, isObject, isRecord, milliseconds, textOf } from '../common/values.js';

/**
 * @typedef {object} Asked What a call or an elicitation says.
 * @property {unknown} name
 * @property {unknown} params
 * @property {number} timeout ms, 0 for none
 * @property {unknown} progress the token that names its progress; true is the id of the call, false is no progress
 * @property {[number, number]} [window] of a stream: how many chunks and bytes may be under way
 * @property {unknown} [input] whether its caller streams to its handler
 * @property {unknown} [idempotencyKey] repeats of the call have the same one
 * @property {unknown} [about] of a question: the callId of the agent's call on whose behalf it is asked; of a call: that of the
 *   one it repeats, if that may have run
 */

/**
 * A call or an elicitation that came in.
 * @typedef {Asked & { key: unknown }} Request `key` is what cancels will name: in frames its number or its id, in a message its
 *   id. A peer may give anything in place of them
 */

/**
 * What may become of a message that cannot be sent at once. One without a kind must be sent.
 *
 * - `request`: its caller can be told to try later. While too much waits to be sent, a transport may throw an error with
 *   code `RATE_LIMITED` instead of sending it.
 * - `droppable`: a later message replaces it, as with progress. While too much waits to be sent, it may be left out.
 * - `greeting`: it holds no secret, and may be sent before it is known who listens.
 * @typedef {'request' | 'droppable' | 'greeting'} MessageKind
 */

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
 * @property {Promise<import('../types/outcome.js').CallFate>} [settled] of an agent's call whose outcome is `running` or `unknown`:
 *   what became of it in the end. The app is asked when it is first read
 */

/**
 * @typedef {object} Metadata What a response says of its call besides the result.
 * @property {number} [duration] ms
 * @property {boolean} [cached]
 * @property {boolean} [collected] the data are the chunks of a stream, in a list
 * @property {import('../types/outcome.js').CallOutcome} [outcome] of a call that did not succeed: what became of its work
 * @property {any} [report] of a call that did not succeed: what its handler reported last, such as what it has applied and what
 *   remains
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

/**
 * What a peer says of a stream; the core takes -1 for what is no number.
 * @param {unknown} chunks
 * @param {unknown} bytes
 * @returns {[number, number]}
 */
export const readAmount = (chunks, bytes) => [countOf(chunks), countOf(bytes)];

/** @param {unknown} value */
export const countOf = (value) => (typeof value === 'number' ? value : -1);

/** @param {unknown} message */
function idOf(message) {
  const id = getOwn(message, 'id');
  return typeof id === 'number' ? `${id}` : id;
}

/** @param {unknown} stream */
const windowOf = (stream) =>
  stream ? readAmount(getOwn(stream, 'chunks'), getOwn(stream, 'bytes')) : undefined;

/** @param {[number, number] | undefined} window */
const streamOf = (window) =>
  window?.[0] ? { stream: { chunks: window[0], bytes: window[1] } } : undefined;

/** @param {unknown} operationId @param {object} info */
export const progressMessage = (operationId, info) => ({
  type: 'progress',
  payload: { ...info, operationId },
});

/** The capability by which an agent asks what became of a call. */
export const OUTCOME = 'bridge/outcome';

/** The notification that an app's capabilities have changed. */
export const LIST_CHANGED = 'notifications/capabilities/list_changed';

/** An agent's call of a capability. */
export const CALL = {
  request: 'capabilities/call',
  response: 'capabilities/call-result',
  /**
   * @param {unknown} message
   * @returns {Request}
   */
  read(message) {
    const payload = getOwn(message, 'payload');
    const options = getOwn(payload, 'options');
    return {
      // Clients differ in where they put the callId, and some send none.
      key: textOf(getOwn(options, 'callId') ?? getOwn(payload, 'callId') ?? idOf(message)),
      name: getOwn(payload, 'capability'),
      params: getOwn(payload, 'params') ?? {},
      timeout: milliseconds(getOwn(options, 'timeout')),
      progress: getOwn(options, 'progressToken') ?? false,
      window: windowOf(getOwn(options, 'stream')),
      input: getOwn(options, 'input') === true,
      idempotencyKey: getOwn(options, 'idempotencyKey'),
      about: getOwn(options, 'repeats'),
    };
  },
  /**
   * The payload.
   * @param {string} id
   * @param {Asked} asked
   */
  write: (id, { name, params, timeout, progress, window, input, idempotencyKey, about }) => ({
    capability: name,
    params,
    callId: id,
    options: {
      callId: id,
      ...(timeout && { timeout }),
      ...(progress !== false && { progressToken: progress === true ? id : progress }),
      ...streamOf(window),
      ...(Boolean(input) && { input: true }),
      ...(idempotencyKey !== undefined && { idempotencyKey }),
      ...(about !== undefined && { repeats: about }),
    },
  }),
  /**
   * @param {unknown} data
   * @param {number} duration ms
   * @param {boolean} [cached] whether the handler said so
   * @param {boolean} [collected] whether the data are the chunks of a stream
   */
  succeed: (data, duration, cached, collected) => ({
    success: true,
    data,
    metadata: {
      duration,
      ...(cached !== undefined && { cached }),
      ...(collected && { collected }),
    },
  }),
  /**
   * @param {Response} response
   * @param {number} duration ms
   */
  fail: (response, duration) => ({
    ...response,
    metadata: { ...copyRecord(response.metadata), duration },
  }),
  /**
   * Says what became of the work of a call that did not succeed.
   * @param {any} response
   * @param {abp.Fate} fate if the metadata do not say it
   * @param {boolean} [repeatable] whether its error may say `retryable` if it may have run: an error of its handler's, or of a
   *   capability that may run twice
   * @param {any} [metadata]
   */
  became(response, fate, repeatable = false, metadata = response.metadata) {
    const known = fateIn(metadata) || fate;
    const { error } = response;
    const isSafe = repeatable || known === abp.FATE_UNSTARTED;
    return {
      ...response,
      ...(error?.retryable && { error: { ...error, retryable: isSafe } }),
      metadata: { ...copyRecord(metadata), outcome: abp.FATES[known] },
    };
  },
};

/** An app's question to its agent. */
export const ELICITATION = {
  request: 'elicitation/request',
  response: 'elicitation/response',
  /**
   * @param {unknown} message
   * @returns {Request}
   */
  read(message) {
    const payload = getOwn(message, 'payload');
    return {
      key: textOf(idOf(message)),
      name: getOwn(payload, 'method'),
      params: getOwn(payload, 'params'),
      timeout: milliseconds(getOwn(payload, 'timeout')),
      progress: false,
      window: windowOf(getOwn(payload, 'stream')),
      about: getOwn(payload, 'callId'),
    };
  },
  /**
   * The payload.
   * @param {string} _id
   * @param {Asked} asked
   */
  write: (_id, { name, params, timeout, window, about }) => ({
    method: name,
    params,
    ...(about !== undefined && { callId: about }),
    ...(timeout && { timeout }),
    ...streamOf(window),
  }),
  /** @param {unknown} data */
  succeed: (data) => ({ success: true, data }),
  /** @param {Response} response */
  fail: (response) => response,
  /** @param {any} response */
  became: (response) => response, // nobody asks that of a question
};

const RESPONSE_MEMBERS = ['success', 'data', 'error', 'cancelled', 'metadata'];

/**
 * Whether a handler returned a whole response of the protocol and not just the data: an object with a boolean `success`
 * and no members but those of a response.
 * @param {unknown} value
 * @returns {value is Response}
 */
export const isResponse = (value) =>
  isRecord(value) &&
  typeof getOwn(value, 'success') === 'boolean' &&
  Object.keys(value).every((key) => RESPONSE_MEMBERS.includes(key));

/**
 * Whether a capability says that it may run twice.
 * @param {unknown} annotations its hints
 */
export const isRepeatable = (annotations) =>
  ['readOnlyHint', 'idempotentHint'].some((hint) => getOwn(annotations, hint) === true);

/**
 * What the metadata of a response say became of the call's work.
 * @param {unknown} metadata
 */
export const fateIn = (metadata) =>
  /** @type {abp.Fate} */ (
    // -1, of what is no word of ours, and 0 are nothing.
    Math.max(abp.FATES.indexOf(getOwn(metadata, 'outcome')), 0)
  );

/**
 * What a response says about its call, as an `abp_outcome`: completed, failed, timed out, or cancelled, which can be said
 * in two ways.
 * @param {unknown} response
 */
export function outcomeOf(response) {
  const flagged = getOwn(response, 'cancelled') === true;
  const code = getOwn(getOwn(response, 'error'), 'code');
  if (flagged && code === 'TIMEOUT') return abp.TIMED_OUT;
  if (flagged || code === 'CANCELLED') return abp.CANCELLED;
  return getOwn(response, 'success') === true ? abp.COMPLETED : abp.FAILED;
}

/** The members of progress that are numbers, and those that are strings. All are optional. */
const PROGRESS_NUMBERS = ['progress', 'total', 'percentage', 'estimatedRemaining'];
const PROGRESS_TEXTS = ['status', 'stage'];

/**
 * Reads progress: leaves out members of the wrong type, and calculates `percentage` where there is a total.
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
 * Checks the progress that a handler reports.
 * @param {any} info what the handler gave
 * @throws {TypeError} if it has the wrong form
 */
export function checkedProgress(info) {
  const isNumber = (/** @type {string} */ key) =>
    ['number', 'undefined'].includes(typeof info[key]);
  if (!isObject(info) || !PROGRESS_NUMBERS.every(isNumber)) {
    throw new TypeError('progress needs { progress, total }, both numbers');
  }
  return progressInfo({ ...info });
}
