/**
 * Bytes over transports that carry only text. JSON has no bytes, so `BinaryData` carries them as base64: write with
 * `JSON.stringify(value, bytesToText)` and read with `JSON.parse(text, textToBytes)`. JSON walks the value: it takes own
 * properties only, and throws a RangeError for a value that is too deep.
 */
import { fromBase64, toBase64 } from '../common/base64.js';

/**
 * The bytes of a buffer or of a view of one, of whatever realm; undefined for anything else. It uses nothing of this
 * file, so that it can be injected into a page as text.
 * @param {any} value
 * @returns {Uint8Array | undefined}
 */
export function bytesOf(value) {
  if (ArrayBuffer.isView(value)) {
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  }
  const form = Object.prototype.toString.call(value);
  const isBuffer = form === '[object ArrayBuffer]' || form === '[object SharedArrayBuffer]';
  return isBuffer ? new Uint8Array(value) : undefined;
}

/**
 * A replacer for `JSON.stringify`: the bytes of `BinaryData` become base64, and bare bytes become `BinaryData`.
 * @this {any} the object that contains the value
 * @param {string} key
 * @param {any} value after its toJSON, which Node's Buffers have
 * @returns {unknown}
 */
export function bytesToText(key, value) {
  if (typeof Blob === 'function' && value instanceof Blob) {
    throw new TypeError('A Blob cannot be sent: read it first, await blob.arrayBuffer()');
  }
  const data = bytesOf(this[key]) ? { content: this[key] } : value;
  if (typeof data !== 'object' || data === null || !Object.hasOwn(data, 'content')) return value;
  const bytes = bytesOf(data.content);
  if (!bytes) return value;
  const size = bytes.length;
  const mimeType = 'application/octet-stream';
  return { mimeType, ...data, content: toBase64(bytes), encoding: 'base64', size };
}

/**
 * A reviver for `JSON.parse`: base64 in `BinaryData` becomes an ArrayBuffer. What cannot be decoded stays unchanged.
 * @param {string} _key
 * @param {any} value
 * @returns {unknown}
 */
export function textToBytes(_key, value) {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, 'content')) return value;
  const { content, encoding, ...rest } = value;
  if (typeof content !== 'string' || encoding !== 'base64' || !Object.hasOwn(rest, 'mimeType')) {
    return value;
  }
  try {
    return { ...rest, content: fromBase64(content).buffer };
  } catch {
    return value;
  }
}
