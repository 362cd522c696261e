/** How much a value counts as where values are bounded: docs/streams.md has the rule. */
import { isObject } from './values.js';

/** Values of one chunk that are counted; the rest of a larger one counts as nothing. */
const MAX_COUNTED = 1024;

/**
 * The size of a value in bytes, roughly: bytes as they are, a character of a text 1, anything else 8.
 * @param {unknown} value
 * @returns {number}
 */
export function sizeOf(value) {
  let left = MAX_COUNTED;
  let size = 0;
  const count = (/** @type {any} */ part) => {
    if (--left < 0) return;
    if (typeof part === 'string') size += part.length;
    else if (part?.byteLength >= 0) size += part.byteLength;
    else if (typeof Blob === 'function' && part instanceof Blob) size += part.size;
    else if (Array.isArray(part)) for (let i = 0; i < part.length && left > 0; i++) count(part[i]);
    else if (isObject(part)) {
      for (const key in part) {
        if (left <= 0) break;
        size += key.length;
        count(/** @type {any} */ (part)[key]);
      }
    } else size += 8;
  };
  count(value);
  return size;
}
