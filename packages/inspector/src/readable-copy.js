/**
 * Bounded copies of values as JSON can represent them, for payloads in recordings and in the
 * inspector.
 */
import { isObject } from 'abp-bridge/driver';

/** Characters of one string or name, and of all in a copy. */
const MAX_TEXT = 20_000;
const MAX_CHARACTERS = 2 ** 18;
const MAX_VALUES = 5000;
const MAX_DEPTH = 12;
/** Replaces the part that exceeds a limit. */
const REST = '(…)';

/** @param {string} text */
const cut = (text) =>
  text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}… (${text.length} characters)` : text;

/**
 * A copy of a value for people to read. Bytes are described, not copied; values that are too deep,
 * too long or unreadable are replaced by a description.
 * @param {unknown} value any value
 * @returns {unknown} a value that JSON can represent
 */
export function readableCopy(value) {
  let values = MAX_VALUES;
  let characters = MAX_CHARACTERS;
  const hasRoom = (/** @type {string} */ text) => (characters -= text.length) >= 0;
  /**
   * @param {unknown} value
   * @param {object[]} path the objects that contain it
   * @returns {unknown}
   */
  const copyOf = (value, path) => {
    if (--values < 0) return REST;
    if (!isObject(value)) {
      const shown = leaf(value);
      return typeof shown !== 'string' || hasRoom(shown) ? shown : REST;
    }
    const words = describe(value);
    if (words !== undefined) return words;
    if (path.includes(value)) return '(circular)';
    if (path.length >= MAX_DEPTH) return REST;
    const isList = Array.isArray(value);
    const copy = isList ? [] : {};
    for (const key of isList ? value.keys() : Object.keys(value)) {
      const name = cut(`${key}`);
      const isRead = values > 0 && (isList || hasRoom(name));
      const part = isRead ? copyOf(/** @type {any} */ (value)[key], [...path, value]) : REST;
      const how = { writable: true, enumerable: true, configurable: true };
      Object.defineProperty(copy, name, { value: part, ...how });
      if (!isRead) break;
    }
    return copy;
  };
  try {
    return copyOf(value, []);
  } catch {
    return '(cannot be read)';
  }
}

/** @param {unknown} value not an object */
function leaf(value) {
  if (typeof value === 'string') return cut(value);
  if (typeof value === 'number' && !Number.isFinite(value)) return `${value}`;
  const isKept = value === null || ['number', 'boolean', 'undefined'].includes(typeof value);
  return isKept ? value : `(${typeof value})`;
}

/**
 * The description of an object that is not copied; undefined for plain objects and lists.
 * @param {any} object
 * @returns {unknown}
 */
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
