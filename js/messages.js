/**
 * The shape of a call and its result: all that JavaScript knows of the wire. Only own properties are read,
 * so that nothing inherited, polluted or not, is ever taken for what the peer said.
 */
import * as abp from '../dist/abp-constants.js';

/**
 * @param {any} value
 * @returns {value is object}
 */
export const isObject = (value) => typeof value === 'object' && value !== null;

/**
 * @param {any} object
 * @param {string} key
 * @returns {any}
 */
export const own = (object, key) =>
  isObject(object) && Object.hasOwn(object, key) ? /** @type {any} */ (object)[key] : undefined;

/**
 * Milliseconds for a timer, or 0 for none: absent, zero, negative and infinite ones are none.
 * @param {unknown} value
 */
export function milliseconds(value) {
  if (typeof value !== 'number' || !(value > 0) || value === Infinity) return 0;
  return Math.min(Math.ceil(value), 2 ** 31 - 1);
}

/**
 * A limit for the core: Infinity is as much as a timer can take, 0 and what is no number is the default.
 * @param {unknown} value
 */
export const limitOf = (value) => Math.min(Math.max(Number(value), 0), 2 ** 31 - 1);

/**
 * @typedef {object} Request A call or an elicitation that came in.
 * @property {unknown} key the id that cancels will name
 * @property {unknown} name
 * @property {any} params
 * @property {number} timeout
 * @property {unknown} progress what its progress is named by: true is its own id, false is that none is wanted
 */

/** @param {any} message */
function idOf(message) {
  const id = own(message, 'id');
  return typeof id === 'number' ? `${id}` : id;
}

/** An agent's call of a capability. */
export const CALL = {
  request: 'capabilities/call',
  response: 'capabilities/call-result',
  /**
   * @param {any} message
   * @returns {Request}
   */
  read(message) {
    const payload = own(message, 'payload');
    const options = own(payload, 'options');
    return {
      // One client sends the callId here, another there, a third not at all.
      key: own(options, 'callId') ?? own(payload, 'callId') ?? idOf(message),
      name: own(payload, 'capability'),
      params: own(payload, 'params') ?? {},
      timeout: milliseconds(own(options, 'timeout')),
      progress: own(options, 'progressToken') ?? false,
    };
  },
  /**
   * @param {string} id
   * @param {string} capability
   * @param {any} params
   * @param {number} timeout
   * @param {boolean} progress
   */
  write: (id, capability, params, timeout, progress) => ({
    capability,
    params,
    callId: id,
    options: {
      callId: id,
      ...(timeout && { timeout }),
      ...(progress && { progressToken: id }),
    },
  }),
  /**
   * @param {any} data
   * @param {number} duration ms
   */
  succeed: (data, duration) => ({ success: true, data, metadata: { duration } }),
};

/** An app's question to its agent. */
export const ELICITATION = {
  request: 'elicitation/request',
  response: 'elicitation/response',
  /**
   * @param {any} message
   * @returns {Request}
   */
  read(message) {
    const payload = own(message, 'payload');
    return {
      key: idOf(message),
      name: own(payload, 'method'),
      params: own(payload, 'params'),
      timeout: milliseconds(own(payload, 'timeout')),
      progress: false,
    };
  },
  /**
   * @param {string} _id
   * @param {string} method
   * @param {any} params
   * @param {number} timeout
   */
  write: (_id, method, params, timeout) => ({ method, params, ...(timeout && { timeout }) }),
  /**
   * Handlers of the protocol's own form answer with its response, others with the data alone.
   * @param {any} answer
   */
  succeed: (answer) =>
    typeof own(answer, 'success') === 'boolean' ? answer : { success: true, data: answer },
};

/**
 * What a response says of its call, as an `abp_outcome`: cancelled, in either of the two ways there are to
 * say so, because of a timeout, or completed.
 * @param {any} response
 */
export function outcomeOf(response) {
  const flagged = own(response, 'cancelled') === true;
  const code = own(own(response, 'error'), 'code');
  if (flagged && code === 'TIMEOUT') return abp.TIMED_OUT;
  return flagged || code === 'CANCELLED' ? abp.CANCELLED : abp.COMPLETED;
}

/**
 * Progress, with a `percentage` wherever there is a total to reckon it from.
 * @param {any} info
 */
export function progressInfo(info) {
  const known = typeof info?.progress === 'number' && info.total > 0;
  return {
    progress: 0,
    ...(known && { percentage: Math.min(100, (info.progress / info.total) * 100) }),
    ...info,
  };
}

/**
 * A control message as text. Words may hold what the core cannot carry: NUL, half a surrogate. They are mended,
 * so that a reason or a description that was cut in the wrong place does not cost the message; a callId that
 * holds such is none, since mended it could be another's.
 *
 * What is binary is left out, and how many values are written is bounded: buffers and sparse arrays are sent in
 * no time, and would take seconds to write.
 * @param {unknown} message
 * @param {number} longest characters; throws a RangeError for what has too many values to fit
 */
export function controlText(message, longest) {
  let left = longest / 8;
  return JSON.stringify(message, (key, value) => {
    if (--left < 0) throw new RangeError('too many values for a control message');
    if (ArrayBuffer.isView(value)) return undefined;
    if (typeof value !== 'string' || key === 'id') return value;
    const words = value.replace(/[\0\p{Surrogate}]/gu, '\ufffd');
    return key === 'callId' && words !== value ? null : words;
  });
}
