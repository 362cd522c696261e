/** Messages and responses as text, which the core reads and prints, without the values that it never looks into. */
import { copyRecord, getOwn, isObject } from '../common/values.js';

/** Members of a payload that are values. The core is told which one it is by its place here. */
export const VALUES = ['params', 'data', 'chunk'];
/** Characters that the core gets of a text in an error or in metadata. */
const MAX_TEXT = 65_536;

/**
 * Writes what the core reads of a message or a response. Strings may contain what it cannot carry: NUL or lone surrogates. These are
 * replaced by U+FFFD, so that a reason that was cut in the wrong place does not cost the whole message. A callId that contains them
 * becomes none that can be one, because the replaced text could be the id of another call. Binary data is left out, and so are objects
 * in an error or in metadata, which are values, too, and one in the place of an id.
 * @param {unknown} message as it arrived
 * @param {unknown} payload of which members are values: the message's, or a response itself
 * @param {number} longest characters of the text; throws a RangeError if it certainly has more. That is known while it is
 *   written: nothing that is too large is written to its end
 * @returns {string | undefined} undefined of what JSON cannot say
 */
export function textOf(message, payload, longest) {
  let left = longest;
  const told = [getOwn(payload, 'error'), getOwn(payload, 'metadata')];
  /** @param {number} size characters that the text has at least */
  const count = (size) => {
    if ((left -= size) < 0) throw new RangeError();
  };
  /** @type {(this: any, key: string, value: any) => unknown} */
  function write(key, value) {
    const place = this === payload ? VALUES.indexOf(key) : -1;
    if (place >= 0) return place;
    const isTold = told.includes(this);
    const isValue = isTold || (key === 'id' && this === message);
    if (ArrayBuffer.isView(value) || (isValue && isObject(value))) return undefined;
    // A value takes a few characters, and may claim to have any number of elements.
    count(Array.isArray(this) ? 2 : key.length + 4);
    if (Array.isArray(value) && value.length * 2 > left) count(Infinity);
    let words = value;
    if (Object(value) instanceof BigInt) words = null;
    if (typeof value === 'string') {
      if (isTold) value = value.slice(0, MAX_TEXT);
      count(value.length);
      words = key === 'id' ? value : value.replace(/[\0\p{Surrogate}]/gu, '\ufffd');
    }
    return key === 'callId' && words !== value ? false : words;
  }
  return JSON.stringify(message, write);
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
