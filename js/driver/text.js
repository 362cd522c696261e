/** Messages and responses as text, which the core reads and prints, without the values that it never looks into. */
import { copyRecord, isObject, isRecord } from '../common/values.js';

/** Members of a payload that are values. The core is told which one it is by its place here. */
export const VALUES = ['params', 'data', 'chunk'];
/** Characters that the core gets of a text in an error or in metadata. */
const MAX_TEXT = 65_536;

/**
 * A copy of a payload with a number in the place of each value. Objects in an error or in metadata are values, too, and are left out. It is
 * made first, because JSON.stringify() would ask values for their `toJSON`.
 * @param {any} payload
 */
function withoutValues(payload) {
  if (!isRecord(payload)) return payload;
  /** @type {any} */
  const shown = { ...payload };
  VALUES.forEach((name, place) => {
    if (name in shown) shown[name] = place;
  });
  for (const name of ['error', 'metadata'])
    if (isRecord(shown[name])) shown[name] = Object.fromEntries(textsOf(shown[name]));
  return shown;
}

/** The members of a record that are no objects. @param {object} record @returns {[string, unknown][]} */
const textsOf = (record) =>
  Object.entries(record).flatMap(([key, value]) =>
    isObject(value) || typeof value === 'function'
      ? []
      : [[key, typeof value === 'string' ? value.slice(0, MAX_TEXT) : value]],
  );

/**
 * Writes what the core reads of a message or a response. Strings may contain what it cannot carry: NUL or lone surrogates. These are
 * replaced by U+FFFD, so that a reason that was cut in the wrong place does not cost the whole message. A callId that contains them
 * becomes none that can be one, because the replaced text could be the id of another call. Binary data is left out, and so is an object
 * in the place of an id.
 * @param {any} message as it arrived
 * @param {unknown} payload of which members are values: the message's, or a response itself
 * @param {number} longest characters of the text; throws a RangeError if it certainly has more. That is known while it is
 *   written: nothing that is too large is written to its end
 * @returns {string}
 */
export function textOf(message, payload, longest) {
  let left = longest;
  /** @param {number} size characters that the text has at least */
  const count = (size) => {
    if ((left -= size) < 0) throw new RangeError('the message is too long');
  };
  /** @type {any} */
  let shown = message;
  if (message === payload) shown = withoutValues(payload);
  else if (isRecord(message)) {
    shown = { ...message };
    if ('payload' in shown) shown.payload = withoutValues(payload);
    if (isObject(shown.id)) delete shown.id;
  }
  /** @type {(this: any, key: string, value: any) => unknown} */
  function write(key, value) {
    if (ArrayBuffer.isView(value)) return undefined;
    // A value takes a few characters, and may claim to have any number of elements.
    count(Array.isArray(this) ? 2 : key.length + 4);
    if (Array.isArray(value) && value.length * 2 > left) count(Infinity);
    let words = value;
    if (typeof value === 'bigint' || value instanceof BigInt) words = null;
    if (typeof value === 'string') {
      count(value.length);
      words = key === 'id' ? value : value.replace(/[\0\p{Surrogate}]/gu, '\ufffd');
    }
    return key === 'callId' && words !== value ? false : words;
  }
  return JSON.stringify(shown, write) ?? '';
}

/**
 * A response as the core says it, with what else its handler or the peer has said.
 * @param {any} said
 * @param {unknown} given any value
 */
export function responseOf({ error, metadata, ...said }, given) {
  const { error: theirs, metadata: more, data, ...rest } = copyRecord(given);
  // What succeeded too late is not told.
  if (data !== undefined && rest.success !== true) rest.data = data;
  const isResponse = given === undefined || typeof rest.success === 'boolean';
  return {
    ...rest,
    ...said,
    error: { ...copyRecord(theirs), ...error, ...(!isResponse && { details: given }) },
    ...((metadata || more) && { metadata: { ...copyRecord(more), ...metadata } }),
  };
}
