/** Messages as JSON text, for transports that carry only text. */
import { requireBounded } from '../../untrusted/src/bounds.js';

/**
 * Writes a message as JSON.
 * @param {unknown} message the message
 * @param {number} maxLength characters that the text may have
 * @param {(this: unknown, key: string, value: unknown) => unknown} [replacer] as `JSON.stringify` takes it
 * @returns {string}
 * @throws {RangeError} if the text is too long; where that is certain, before it is written
 * @throws {TypeError} if the message cannot be written as JSON
 */
export function jsonText(message, maxLength, replacer) {
  // A value takes at least two characters: itself and a separator.
  requireBounded(message, { maxValues: maxLength / 2 + 1, maxCharacters: maxLength });
  const text = JSON.stringify(message, replacer);
  if (text === undefined) throw new TypeError('Only JSON values can be sent');
  if (text.length > maxLength) {
    throw new RangeError(`${text.length} characters are too long: the limit is ${maxLength}`);
  }
  return text;
}
