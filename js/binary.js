/**
 * Bytes where only text can go. JSON has none, so `BinaryData` carries them as base64: what is written by
 * `JSON.stringify(value, bytesToText)` is read by `JSON.parse(text, textToBytes)`. JSON itself does the walk:
 * own properties only, and too deep a value is its RangeError.
 *
 * Each function uses others of this file and nothing else, so that they can be put into a page as text.
 */

/**
 * @param {Uint8Array} bytes
 * @returns {string}
 */
export function toBase64(bytes) {
  const native = /** @type {any} */ (bytes).toBase64;
  if (typeof native === 'function') return native.call(bytes);
  // Node's own is forty times as fast as what follows.
  const { Buffer } = /** @type {any} */ (globalThis);
  if (typeof Buffer?.from === 'function') {
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64');
  }
  // Arguments are passed on a stack that ends: a chunk at a time, of whole groups of three bytes.
  const chunk = 3 * 8192;
  let text = '';
  for (let at = 0; at < bytes.length; at += chunk) {
    const part = /** @type {any} */ (bytes.subarray(at, at + chunk));
    text += btoa(String.fromCharCode.apply(null, part));
  }
  return text;
}

/**
 * @param {string} text
 * @returns {Uint8Array<ArrayBuffer>} with a buffer of its own; throws when the text is no base64
 */
export function fromBase64(text) {
  const native = /** @type {any} */ (Uint8Array).fromBase64;
  if (typeof native === 'function') return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/**
 * The bytes of a buffer or a view of one, of whatever realm; undefined for anything else.
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
 * For `JSON.stringify`: `BinaryData` with bytes gets them as base64, and bare bytes become `BinaryData`.
 * @this {any} what holds the value
 * @param {string} key
 * @param {any} value after its toJSON: a Buffer of Node's has one
 * @returns {any}
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
 * For `JSON.parse`: `BinaryData` in base64 gets an ArrayBuffer. What cannot be decoded stays as it is.
 * @param {string} _key
 * @param {any} value
 * @returns {any}
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
