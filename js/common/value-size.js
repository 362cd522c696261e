/** How much a value counts as where values are bounded: docs/streams.md has the rule. */
import { walkBounded } from './bounds.js';

/** Values of one chunk that are counted; the rest of a larger one counts as nothing. */
const COUNTED = 1024;

/**
 * The size of a value in bytes, roughly: bytes as they are, a character of a text 1, anything else 8.
 * @param {unknown} value
 * @param {number} [maxValues] in it that are counted
 * @returns {number}
 */
export function sizeOf(value, maxValues = COUNTED) {
  if (typeof value === 'string') return value.length;
  let size = 0;
  walkBounded(
    value,
    { maxValues, maxCharacters: Infinity },
    {
      leaf: (part) => void (size += typeof part === 'string' ? part.length : 8),
      name: (name) => ((size += name.length), name),
      replace(/** @type {any} */ part) {
        const isBlob = typeof Blob === 'function' && part instanceof Blob;
        const bytes = isBlob ? part.size : part.byteLength;
        if (!(bytes >= 0)) return undefined;
        size += bytes;
        return part;
      },
      exceed() {},
    },
  );
  return size;
}
