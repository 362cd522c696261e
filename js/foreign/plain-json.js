/** Results for readers that know only JSON: WebMCP's agents, and the tools of pages. */
import { bytesToText } from '../binary/binary.js';

/**
 * A replacer for `JSON.stringify`: bytes become `BinaryData` in base64 (a Blob is an error), a Map
 * or a Set becomes a list, a BigInt its digits, an Error its name and message.
 * @this {any} the object that contains the value
 * @param {string} key
 * @param {any} value after its toJSON, if it has one
 * @returns {unknown}
 */
export function plainJson(key, value) {
  if (typeof value === 'bigint') return `${value}`;
  switch (Object.prototype.toString.call(value)) {
    case '[object Map]':
    case '[object Set]':
      return [...value];
    case '[object Error]':
      return { name: value.name, message: value.message, ...value };
  }
  return bytesToText.call(this, key, value);
}

/**
 * Converts a value as such a reader receives it.
 * @param {unknown} value
 * @param {(key: string, part: any) => unknown} [revive]
 * @returns {any}
 * @throws {TypeError} if JSON cannot represent it
 */
export function plain(value, revive) {
  const text = JSON.stringify(value, plainJson);
  if (text === undefined) throw new TypeError(`it is a ${typeof value}`);
  return JSON.parse(text, revive);
}
