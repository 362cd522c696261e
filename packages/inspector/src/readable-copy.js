/** Copies of values as JSON can carry them, bounded: what recordings and the inspector keep of payloads. */
import { walkBounded } from '../../untrusted/src/bounds.js';

/** Characters of one string or name. */
const MAX_TEXT = 20_000;
const BOUNDS = { maxValues: 5000, maxCharacters: 2 ** 18, maxDepth: 12 };

/** @param {string} text */
const cut = (text) =>
  text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}… (${text.length} characters)` : text;

/**
 * A copy of a value for people to read. Bytes are described, not copied; what is too deep, too long or cannot be read is
 * said in words.
 * @param {unknown} value any value
 * @returns {unknown} a value that JSON can carry
 */
export function readableCopy(value) {
  try {
    return walkBounded(value, BOUNDS, {
      copies: true,
      exceed: (_limit, what) =>
        what === 'cycles' ? '(circular)' : what === 'bits' ? '(bigint)' : '(…)',
      leaf,
      name: cut,
      replace: describe,
    });
  } catch {
    return '(cannot be read)';
  }
}

/** @param {unknown} value no object */
function leaf(value) {
  if (typeof value === 'string') return cut(value);
  if (typeof value === 'number' && !Number.isFinite(value)) return `${value}`;
  const isKept = value === null || ['number', 'boolean', 'undefined'].includes(typeof value);
  return isKept ? value : `(${typeof value})`;
}

/** The words for an object that is not copied; undefined for plain objects and lists. @param {any} object @returns {unknown} */
function describe(object) {
  if (ArrayBuffer.isView(object) || object instanceof ArrayBuffer)
    return `(${object.constructor.name}, ${object.byteLength} bytes)`;
  const tag = Object.prototype.toString.call(object).slice(8, -1);
  if (tag === 'Object' || tag === 'Array') return undefined;
  if (tag === 'Date') return `${object}`;
  if (tag === 'Error') return { name: cut(`${object.name}`), message: cut(`${object.message}`) };
  if (tag === 'Blob' || tag === 'File') return `(${tag}, ${object.size} bytes)`;
  if (tag === 'Map' || tag === 'Set') return `(${tag}, ${object.size} members)`;
  return `(${tag})`;
}
