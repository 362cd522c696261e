/** The size of a value for limits: docs/streams.md has the rule. */
import { mistyped } from './check-options.js';
import { isObject } from './values.js';

/** @import { AbpError } from './errors.js' */

/** Values of one chunk that are counted; the rest of a larger chunk counts as 0. */
const COUNTED = 1024;
/** Levels of objects in objects that are visited. */
const MAX_LEVELS = 1000;

/**
 * The size of a value in bytes, roughly: bytes as they are, 1 for a character of a text, 8 for
 * anything else.
 * @param {unknown} value
 * @param {number} [left] the most values in it that are counted
 * @returns {number}
 */
export function sizeOf(value, left = COUNTED) {
  let size = 0;
  /**
   * @param {any} part
   * @param {number} level
   */
  const add = (part, level) => {
    if (--left < 0) return;
    if (!isObject(part)) return void (size += typeof part === 'string' ? part.length : 8);
    const bytes = part instanceof Blob ? part.size : /** @type {any} */ (part).byteLength;
    if (typeof bytes === 'number' && bytes >= 0) return void (size += bytes);
    if (level === MAX_LEVELS) return;
    const isMap = part instanceof Map;
    const isList = isMap || part instanceof Set || Array.isArray(part);
    for (const member of isList ? part : Object.keys(part)) {
      if (!isList) size += member.length;
      if (left <= 0) break;
      if (isMap) for (const each of member) add(each, level + 1);
      else add(isList ? member : /** @type {any} */ (part)[member], level + 1);
    }
  };
  add(value, 0);
  return size;
}

/**
 * The error of a stream with an invalid `highWaterMark`.
 * @returns {AbpError}
 */
export const badHighWaterMark = () =>
  mistyped('a stream', 'highWaterMark', 'a whole number of bytes, at least 1');
