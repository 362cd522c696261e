/** Messages as JSON text, for transports that carry only text. */
import { bytesToText, textToBytes } from '../../js/binary/binary.js';
import { requireBounded } from '../../js/untrusted/bounds.js';
import { warn } from '../../js/common/development.js';
import { copyOf } from '../../js/common/copy.js';
import { isObject, isRecord, parse, stringify } from '../../js/common/values.js';

/** The default for the longest message, in characters. */
const MAX_LENGTH = 32 << 20;

/** True after the warning about lost values. */
let isTold = false;

/** True if the message has more than plain data. */
let isMore = false;

/**
 * @this {any} the object that contains the value
 * @param {string} key
 * @param {unknown} value
 */
function asText(key, value) {
  const own = this[key];
  // A page may have given all lists a `toJSON`.
  if (Array.isArray(own) || isRecord(own)) value = own;
  else isMore ||= isObject(value) || typeof own === 'function' || typeof own === 'symbol';
  if (!isTold && (value instanceof Map || value instanceof Set)) {
    isTold = true;
    warn(
      `${key || 'a message'} is a Map or a Set, of which JSON carries nothing: send a list or an object`,
    );
  }
  return bytesToText.call(this, key, value);
}

/**
 * Writes a message as JSON, for a transport of your own that carries text. Bytes become
 * `BinaryData` in base64, as over WebSockets.
 * @param {unknown} message the message
 * @param {number} [maxLength] the longest text, in characters (33554432)
 * @returns {string}
 * @throws {RangeError} if the text is too long; thrown before it is written, if that is certain
 * @throws {TypeError} if the message cannot be written as JSON; or the error of `structuredClone`
 *   if that rejects the message
 */
export function messageToText(message, maxLength = MAX_LENGTH) {
  // A value takes at least two characters: itself and a separator.
  requireBounded(message, { maxValues: maxLength / 2 + 1, maxCharacters: maxLength });
  isMore = false;
  const text = stringify(message, asText);
  if (isMore) copyOf(message);
  if (text === undefined) throw new TypeError('Only JSON values can be sent');
  if (text.length > maxLength) {
    throw new RangeError(`${text.length} characters are too long: the limit is ${maxLength}`);
  }
  return text;
}

/**
 * Reads a text of `messageToText`: base64 in `BinaryData` becomes bytes again.
 * @param {string} text the JSON
 * @returns {any} the message
 * @throws {SyntaxError} if it is not JSON
 */
export const textToMessage = (text) =>
  // Few messages contain bytes, and a reviver would take most of the time.
  text.includes('base64') ? parse(text, textToBytes) : parse(text);
