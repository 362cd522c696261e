/** Messages as text, which the core reads, without the values that it never looks into. */
import { isObject, stringify } from '../common/values.js';

/** Members of a payload that are values. The core is told which one it is by its place here. */
export const VALUES = ['params', 'data', 'chunk'];
/** Members that name something. What would name something else counts as no name. */
const NAMES = ['callId', 'idempotencyKey'];
/** Levels of objects in objects that the core reads. */
const MAX_LEVELS = 64;
/**
 * For an object in which no other is written. It is no whole number, so that counting down passes
 * 0.
 */
const ALONE = 0.5;
/**
 * What is written of a message that is more than the core reads: levels, and members of an object.
 * Of texts a part of what there is room for.
 */
const FEW_LEVELS = 4;
const FEW = 24;

/**
 * Writes what the core reads of a message. Strings may contain what it cannot carry:
 * NUL or lone surrogates. These are replaced by U+FFFD, so that a reason that was cut in the wrong
 * place does not cost the whole message. A callId or a key that contains them becomes none that can
 * be one, because the replaced text could be that of another call. Binary data is left out, and so
 * are objects in an error or in metadata, which are values, too, and one in the place of an id.
 * @param {unknown} message as it arrived
 * @param {unknown} payload the message's, of which members are values
 * @param {number} longest characters of the text; throws a RangeError if it certainly has more.
 *   That is known before it is written
 * @param {boolean} isShort whether only what is short is written
 * @returns {string}
 */
export function textOf(message, payload, longest, isShort) {
  let left = longest;
  /** @param {number} size characters that the text has at least */
  const count = (size) => {
    if ((left -= size) < 0) throw new RangeError('the message is too long');
  };
  /**
   * @param {any} value
   * @param {string} key
   * @param {number} levels of objects that may be in it; below 0 it must be none
   * @returns {unknown}
   */
  const shown = (value, key, levels) => {
    if (typeof value === 'string') {
      // An id that is cut would be another one.
      const text = isShort && !/id$/i.test(key) ? value.slice(0, longest >> 6) : value;
      count(text.length);
      const words = key === 'id' ? text : text.replace(/[\0\p{Surrogate}]/gu, '\ufffd');
      return words !== text && NAMES.includes(key) ? false : words;
    }
    if (typeof value === 'bigint') return NAMES.includes(key) ? false : null;
    if (!isObject(value)) return typeof value === 'function' ? undefined : value;
    if (levels < 0 || key === 'id' || ArrayBuffer.isView(value)) return undefined;
    if (!levels && !isShort) count(Infinity);
    const isList = Array.isArray(value);
    // A value takes a few characters, and may claim to have any number of elements.
    if (isList) count(value.length * 2);
    // Of these no page has changed what they inherit.
    const copy = Object.setPrototypeOf(isList ? [] : {}, null);
    for (const name of isShort ? Object.keys(value).slice(0, FEW) : Object.keys(value)) {
      if (!isList) count(name.length + 4);
      const member = /** @type {any} */ (value)[name];
      const isOwn = value === payload;
      const place = isOwn ? VALUES.indexOf(name) : -1;
      const isTold = isOwn && (name === 'error' || name === 'metadata');
      // Some languages write null for what is absent.
      const isValue = place >= 0 && member !== undefined && member !== null;
      copy[name] = isValue ? place : shown(member, name, isTold ? ALONE : levels - 1);
    }
    return copy;
  };
  return stringify(shown(message, '', isShort ? FEW_LEVELS : MAX_LEVELS)) ?? '';
}
