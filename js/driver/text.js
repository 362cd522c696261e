/** Messages as text for the core, without their values, which it never reads. */
import { isObject, stringify } from '../common/values.js';

/** The members of a payload that are values. The core gets the index of a value in this list. */
export const VALUES = ['params', 'data', 'chunk'];
/**
 * Members that are keys of calls. If such a key cannot be written as it is, it is written as
 * `false`, so that it does not match another call.
 */
const NAMES = ['callId', 'idempotencyKey'];
/** The levels of nested objects that the core reads. */
const MAX_LEVELS = 64;
/**
 * Levels of an object without nested objects. Not a whole number, so that counting down skips 0.
 */
const ALONE = 0.5;
/**
 * Limits of a message that is shortened because it has more than the core reads: levels, and
 * members of an object. Texts are shortened, too.
 */
const FEW_LEVELS = 4;
const FEW = 24;

/**
 * Writes the parts of a message that the core reads. Strings may contain NUL or lone surrogates,
 * which the core cannot take. They are replaced by U+FFFD, so that a reason that was cut in the
 * wrong place does not cost the whole message. A callId or a key that contains them becomes invalid
 * instead, because the replaced text could equal that of another call. Left out are binary data,
 * objects within an error or metadata, which are values, too, and an object in place of an id.
 * @param {unknown} message as it arrived
 * @param {unknown} payload the message's, its members may be values
 * @param {number} longest characters of the text; throws a RangeError, before it is written, if it
 *   certainly has more
 * @param {boolean} isShort whether to write a shortened message
 * @returns {string}
 */
export function textOf(message, payload, longest, isShort) {
  let left = longest;
  /** @param {number} size characters that the text will have at least */
  const count = (size) => {
    if ((left -= size) < 0) throw new RangeError('the message is too long');
  };
  /**
   * @param {any} value
   * @param {string} key
   * @param {number} levels levels of objects that may be in it; below 0 it must not be an object
   * @returns {unknown}
   */
  const shown = (value, key, levels) => {
    if (typeof value === 'string') {
      // A shortened id would be another id.
      const text = isShort && !/id$/i.test(key) ? value.slice(0, longest >> 6) : value;
      count(text.length);
      const clean = key === 'id' ? text : text.replace(/[\0\p{Surrogate}]/gu, '\ufffd');
      return clean !== text && NAMES.includes(key) ? false : clean;
    }
    if (typeof value === 'bigint') return NAMES.includes(key) ? false : null;
    if (!isObject(value)) return typeof value === 'function' ? undefined : value;
    if (levels < 0 || key === 'id' || ArrayBuffer.isView(value)) return undefined;
    if (!levels && !isShort) count(Infinity);
    const isList = Array.isArray(value);
    // A value takes at least two characters, and a list may claim any number of elements.
    if (isList) count(value.length * 2);
    // Without inherited members, which the page may have changed.
    const copy = Object.setPrototypeOf(isList ? [] : {}, null);
    for (const name of isShort ? Object.keys(value).slice(0, FEW) : Object.keys(value)) {
      if (!isList) count(name.length + 4);
      const member = /** @type {any} */ (value)[name];
      const isOwn = value === payload;
      const place = isOwn ? VALUES.indexOf(name) : -1;
      const isShallow = isOwn && (name === 'error' || name === 'metadata');
      // Some languages write null for absent members.
      const isValue = place >= 0 && member !== undefined && member !== null;
      copy[name] = isValue ? place : shown(member, name, isShallow ? ALONE : levels - 1);
    }
    return copy;
  };
  return stringify(shown(message, '', isShort ? FEW_LEVELS : MAX_LEVELS)) ?? '';
}
