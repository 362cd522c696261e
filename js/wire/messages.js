/**
 * The shapes of a call and its result: all that JavaScript knows of the wire. Only own properties are read, so that
 * nothing inherited is ever taken for something that the peer sent.
 */
import * as abp from '../core/abp-boundary.js';
import { safely } from '../common/errors.js';
import { copyRecord, getOwn, isObject, isRecord, milliseconds } from '../common/values.js';

/**
 * @typedef {object} Request A call or an elicitation that came in.
 * @property {unknown} key the id that cancels will name
 * @property {unknown} name
 * @property {unknown} params
 * @property {number} timeout ms, 0 for none
 * @property {[number, number]} [window] of a stream: how many chunks and bytes may be under way
 * @property {boolean} [input] whether its caller streams to its handler
 * @property {unknown} progress the token that names its progress; true is the id of the call, false is no progress
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
const streamOf = (window) => window?.[0] && { stream: { chunks: window[0], bytes: window[1] } };

/** The elicitation by which an app reads what its agent streams to a handler; `params` has the callId. */
export const INPUT = 'bridge/input';

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
      key: getOwn(options, 'callId') ?? getOwn(payload, 'callId') ?? idOf(message),
      name: getOwn(payload, 'capability'),
      params: getOwn(payload, 'params') ?? {},
      timeout: milliseconds(getOwn(options, 'timeout')),
      progress: getOwn(options, 'progressToken') ?? false,
      window: windowOf(getOwn(options, 'stream')),
      input: getOwn(options, 'input') === true,
    };
  },
  /**
   * @param {string} id
   * @param {string} capability
   * @param {unknown} params
   * @param {number} timeout
   * @param {boolean | string | number} progress whether progress is wanted, or its token
   * @param {[number, number]} [window] of a stream: chunks and bytes
   * @param {boolean} [input] whether the caller streams to the handler
   */
  write: (id, capability, params, timeout, progress, window, input) => ({
    capability,
    params,
    callId: id,
    options: {
      callId: id,
      ...(timeout && { timeout }),
      ...(progress !== false && { progressToken: progress === true ? id : progress }),
      ...streamOf(window),
      ...(input && { input }),
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
   * @param {import('../agent/client.js').Response} response
   * @param {number} duration ms
   */
  fail: (response, duration) => ({ ...response, metadata: { duration } }),
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
      key: idOf(message),
      name: getOwn(payload, 'method'),
      params: getOwn(payload, 'params'),
      timeout: milliseconds(getOwn(payload, 'timeout')),
      progress: false,
      window: windowOf(getOwn(payload, 'stream')),
    };
  },
  /**
   * @param {string} _id
   * @param {string} method
   * @param {unknown} params
   * @param {number} timeout
   * @param {boolean | string | number} [_progress]
   * @param {[number, number]} [window] of a stream: chunks and bytes
   */
  write: (_id, method, params, timeout, _progress, window) => ({
    method,
    params,
    ...(timeout && { timeout }),
    ...streamOf(window),
  }),
  /** @param {unknown} data */
  succeed: (data) => ({ success: true, data }),
  /** @param {import('../agent/client.js').Response} response */
  fail: (response) => response,
};

/**
 * An elicitation's method, by its standard name.
 * @param {unknown} name
 */
export const elicitationMethod = (name) =>
  name === 'elicitation/text' ? 'elicitation/input' : String(name);

const RESPONSE_MEMBERS = ['success', 'data', 'error', 'cancelled', 'metadata'];

/**
 * Whether a handler returned a whole response of the protocol and not just the data: an object with a boolean `success`
 * and no members but those of a response.
 * @param {unknown} value
 * @returns {value is import('../agent/client.js').Response}
 */
export const isResponse = (value) =>
  isRecord(value) &&
  typeof getOwn(value, 'success') === 'boolean' &&
  Object.keys(value).every((key) => RESPONSE_MEMBERS.includes(key));

/**
 * What a response says about its call, as an `abp_outcome`: completed, timed out, or cancelled, which can be said in two
 * ways.
 * @param {unknown} response
 */
export function outcomeOf(response) {
  const flagged = getOwn(response, 'cancelled') === true;
  const code = getOwn(getOwn(response, 'error'), 'code');
  if (flagged && code === 'TIMEOUT') return abp.TIMED_OUT;
  return flagged || code === 'CANCELLED' ? abp.CANCELLED : abp.COMPLETED;
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
    throw new TypeError('progress takes { progress, total }, which are numbers');
  }
  return progressInfo({ ...info });
}

const NO_RESPONSE = 'The other side answered with no response of ABP: { success, data, error }';

/**
 * Reads the response to a call or a question, and makes sure that it has `success` and, if it failed, `error.code`.
 * @param {unknown} said what the peer sent
 * @returns {import('../agent/client.js').Response} what was said, if it is a response
 */
export function readResponse(said) {
  return safely(
    () => {
      if (!isRecord(said) || typeof getOwn(said, 'success') !== 'boolean') {
        const details = said !== undefined && { details: said };
        return { success: false, error: { ...readError(NO_RESPONSE), ...details } };
      }
      const response = /** @type {import('../agent/client.js').Response} */ (said);
      const error = getOwn(said, 'error');
      // A cancelled response needs no error.
      if (response.success || (error === undefined && response.cancelled === true)) return response;
      const read = readError(error);
      return read === error ? response : { ...response, error: read };
    },
    { success: false, error: readError(NO_RESPONSE) },
  );
}

/**
 * Reads an error that a peer sent.
 * @param {unknown} said any value
 * @returns {import('../common/errors.js').ErrorObject} what was said, if it has the protocol's form
 */
export function readError(said) {
  return safely(
    () => {
      const [code, message, retryable] = ['code', 'message', 'retryable'].map((key) =>
        getOwn(said, key),
      );
      const words = [message, said].find((text) => typeof text === 'string' && text !== '');
      const whole = typeof code === 'string' && words === message && typeof retryable === 'boolean';
      if (whole && isRecord(said)) return /** @type {unknown} */ (said);
      return {
        ...copyRecord(said),
        code: typeof code === 'string' ? code : 'OPERATION_FAILED',
        message:
          words ??
          (typeof code === 'string' ? code : 'The operation failed, and no reason was given'),
        retryable: retryable === true,
      };
    },
    { code: 'OPERATION_FAILED', message: 'The error cannot be read', retryable: false },
  );
}

/**
 * Reads the answer to a cancel. The published form has no member for an error, so some apps put `code` and `message`
 * beside the other members.
 * @param {unknown} said what the app sent
 * @returns {{ reason?: string, error?: import('../common/errors.js').ErrorObject, [more: string]: unknown }}
 */
export function readCancelAnswer(said) {
  const read = copyRecord(said);
  const { code, message = read.reason, retryable } = read;
  if (typeof read.reason !== 'string') delete read.reason;
  if (isObject(read.error)) read.error = readError(read.error);
  else if (typeof code === 'string') read.error = readError({ code, message, retryable });
  else delete read.error;
  return read;
}
