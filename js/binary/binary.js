/**
 * Bytes over transports that carry only text. JSON has no bytes, so `BinaryData` carries them as
 * base64: write with `JSON.stringify(value, bytesToText)` and read with `JSON.parse(text,
 * textToBytes)`.
 *
 * JSON calls these two while it walks the value: it takes own properties only, and throws a
 * RangeError for a value that is too deep. `replaceBinary` walks by itself, since it may have to
 * wait for bytes (Blobs), and copies only objects that contain bytes. base64.js encodes and
 * decodes. This folder holds no state and does not know calls.
 */
import { fromBase64, toBase64 } from './base64.js';
import { getOwn } from '../common/values.js';

/**
 * The bytes of a buffer or of a view of one, of any realm; undefined for anything else.
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
 * A replacer for `JSON.stringify`: the bytes of `BinaryData` become base64, and bare bytes become
 * `BinaryData`.
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
 * A reviver for `JSON.parse`: base64 in `BinaryData` becomes an ArrayBuffer. Text that cannot be
 * decoded stays unchanged.
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

/**
 * Converts all bytes in a value to `BinaryData` in base64, so that the value is text only.
 * @template T
 * @param {T} value the value
 * @returns {T | Promise<T>} the value itself if it has no bytes
 */
export const withBase64 = (value) =>
  replaceBinary(value, async (data, part) => {
    if (typeof data.content === 'string') return part;
    const bytes = new Uint8Array(await contentOf(data));
    return { ...data, content: toBase64(bytes), encoding: 'base64', size: bytes.length };
  });

/**
 * Replaces the `BinaryData` in a value, and bytes outside of `BinaryData`. Only the objects that
 * contain them are copied.
 * @template T
 * @param {T} value the value
 * @param {(data: any, part: object) => unknown} replace gets the `BinaryData`, and the part of the
 *   value from which it was made
 * @returns {T | Promise<T>} the value itself if it has no bytes
 */
export function replaceBinary(value, replace) {
  /** The replacements, by the replaced parts. @type {Map<object, unknown>} */
  const parts = new Map();
  withParts(value, (part) => (parts.set(part, part), part));
  const replaced = async () => {
    for (const part of parts.keys()) parts.set(part, await replace(binaryData(part), part));
    return withParts(value, (part) => parts.get(part));
  };
  return parts.size ? replaced() : value;
}

/**
 * @param {any} value
 * @param {(part: object) => unknown} replace gets `BinaryData`, or bytes outside of it
 * @param {Set<object>} [path] the objects around the value
 * @returns {any}
 */
function withParts(value, replace, path = new Set()) {
  if (typeof value !== 'object' || value === null) return value;
  if (binaryData(value)) return replace(value);
  // JSON uses the result of `toJSON`, and rejects cycles.
  if (typeof value.toJSON === 'function' || path.has(value)) return value;
  path.add(value);
  let copy = value;
  for (const key of Object.keys(value)) {
    const replaced = withParts(value[key], replace, path);
    if (replaced === value[key]) continue;
    if (copy === value) copy = Array.isArray(value) ? [...value] : { ...value };
    copy[key] = replaced;
  }
  path.delete(value);
  return copy;
}

/**
 * `BinaryData`; made here for bare bytes; undefined for anything else.
 * @param {any} value
 */
function binaryData(value) {
  if (isBlob(value)) return { content: value, mimeType: value.type || OCTETS };
  if (bytesOf(value)) return { content: value, mimeType: OCTETS };
  const known = typeof getOwn(value, 'mimeType') === 'string' && sizeOf(value) >= 0;
  return known ? value : undefined;
}

const OCTETS = 'application/octet-stream';

/**
 * @param {unknown} value
 * @returns {value is Blob}
 */
export const isBlob = (value) => typeof Blob === 'function' && value instanceof Blob;

/**
 * The size of `BinaryData`: bytes, or characters if it is text. NaN if its content is neither.
 * @param {unknown} data
 * @returns {number}
 */
export function sizeOf(data) {
  const content = getOwn(data, 'content');
  if (typeof content !== 'string') {
    return isBlob(content) ? content.size : (bytesOf(content)?.length ?? NaN);
  }
  if (getOwn(data, 'encoding') !== 'base64') return content.length;
  const padding = content.indexOf('=');
  return Math.floor((padding < 0 ? content.length : padding) * 0.75);
}

/**
 * @param {any} data BinaryData
 * @returns {Promise<ArrayBuffer>}
 */
export async function contentOf({ content, encoding }) {
  if (content instanceof ArrayBuffer) return content;
  if (isBlob(content)) return content.arrayBuffer();
  if (encoding === 'base64') return fromBase64(content).buffer;
  const bytes = bytesOf(content) ?? new TextEncoder().encode(content);
  return /** @type {ArrayBuffer} */ (bytes.slice().buffer);
}
