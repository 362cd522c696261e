/**
 * Results over transports that carry only text: Blobs are read, and large data is stored by the app and sent as a
 * reference (the protocol's `BinaryDataReference`).
 */
import { fromBase64, toBase64 } from '../common/base64.js';
import { requireBounded } from '../common/bounds.js';
import { bytesOf } from './binary.js';
import { AbpError, toErrorObject } from '../common/errors.js';
import { getOwn } from '../common/values.js';

/**
 * @typedef {object} Stored Where stored bytes can be fetched.
 * @property {string} downloadUrl
 * @property {number} [expiresAt] ms since 1970; the protocol asks for an hour at least
 * @property {{ type: 'bearer' | 'query', token?: string, header?: string }} [auth]
 */

/** @typedef {{ signal: AbortSignal, callId: string }} CallContext The call whose result is stored. */

/**
 * @callback Store Stores bytes where the agent can fetch them.
 * @param {{ content: ArrayBuffer, mimeType: string, filename?: string, size: number }} data
 * @param {CallContext} context the call whose result it is
 * @returns {Stored | Promise<Stored>}
 */

/**
 * Converts what a handler returned, or a chunk of it, to what can be sent, or to a promise of that. Its context is the call's.
 * @typedef {(value: unknown, context: CallContext) => unknown} Prepare
 */

/**
 * Prepares a result for sending. This is part of the call: once the call is cancelled, nothing is stored.
 * @param {unknown} value the handler's result
 * @param {CallContext} context the call's
 * @param {Store | undefined} store stores large data, if the app can
 * @param {number} storeAbove bytes from which on data is large
 * @returns {Promise<unknown>} what to send
 */
export async function prepare(value, context, store, storeAbove) {
  try {
    requireBounded(value, { maxValues: 2 ** 24, maxCharacters: 2 ** 29 });
  } catch (cause) {
    const why = `The result cannot be sent: ${toErrorObject(cause).message}`;
    throw new AbpError('OPERATION_FAILED', why, { cause });
  }
  /** What is sent, by what the handler gave. @type {Map<object, unknown>} */
  const binary = new Map();
  replaceBinary(value, (part) => (binary.set(part, part), part));
  for (const part of binary.keys()) {
    const data = binaryData(part);
    const large = store && sizeOf(data) > storeAbove;
    if (!large && !isBlob(data.content)) continue;
    const content = await contentOf(data);
    context.signal.throwIfAborted();
    binary.set(part, large ? await stored(data, content, context, store) : { ...data, content });
  }
  return replaceBinary(value, (part) => binary.get(part));
}

/**
 * Makes a value that is text only: all bytes become `BinaryData` in base64.
 * @template T
 * @param {T} value the value
 * @returns {T | Promise<T>} the value itself if it has no bytes
 */
export function withBase64(value) {
  /** @type {Map<object, unknown>} */
  const binary = new Map();
  replaceBinary(value, (part) => (binary.set(part, part), part));
  return binary.size ? replaceByBase64(value, binary) : value;
}

/**
 * @param {unknown} value
 * @param {Map<object, unknown>} binary its bytes
 */
async function replaceByBase64(value, binary) {
  for (const part of binary.keys()) {
    const data = binaryData(part);
    if (typeof data.content === 'string') continue;
    const content = new Uint8Array(await contentOf(data));
    const size = content.length;
    binary.set(part, { ...data, content: toBase64(content), encoding: 'base64', size });
  }
  return /** @type {any} */ (replaceBinary(value, (part) => binary.get(part)));
}

/**
 * @param {any} data BinaryData
 * @param {ArrayBuffer} content
 * @param {CallContext} context
 * @param {Store} store
 */
async function stored({ mimeType, filename }, content, { signal, callId }, store) {
  const size = content.byteLength;
  try {
    const answer = await store({ content, mimeType, filename, size }, { signal, callId });
    const { downloadUrl, expiresAt, auth } = answer;
    if (typeof downloadUrl !== 'string') throw new TypeError('store gave no downloadUrl');
    return { downloadUrl, mimeType, size, filename, expiresAt, auth };
  } catch (error) {
    const { message } = toErrorObject(error);
    throw new AbpError('OPERATION_FAILED', `The result could not be stored: ${message}`, {
      cause: error,
    });
  }
}

/**
 * Replaces the bytes in a value. Only the objects that contain them are copied.
 * @param {any} value
 * @param {(part: object) => unknown} replace takes BinaryData, or bytes that stand alone
 * @param {Set<object>} [path] what the value stands in
 * @returns {unknown}
 */
function replaceBinary(value, replace, path = new Set()) {
  if (typeof value !== 'object' || value === null) return value;
  if (binaryData(value)) return replace(value);
  // JSON takes another's word for the one, and refuses the other.
  if (typeof value.toJSON === 'function' || path.has(value)) return value;
  path.add(value);
  let copy = value;
  for (const key of Object.keys(value)) {
    const replaced = replaceBinary(value[key], replace, path);
    if (replaced === value[key]) continue;
    if (copy === value) copy = Array.isArray(value) ? [...value] : { ...value };
    copy[key] = replaced;
  }
  path.delete(value);
  return copy;
}

/**
 * `BinaryData`, made of bytes if they stand alone; undefined for anything else.
 * @param {any} value
 */
function binaryData(value) {
  if (isBlob(value)) return { content: value, mimeType: value.type || OCTETS };
  if (bytesOf(value)) return { content: value, mimeType: OCTETS };
  const known = typeof getOwn(value, 'mimeType') === 'string' && sizeOf(value) >= 0;
  return known ? value : undefined;
}

const OCTETS = 'application/octet-stream';

/** @param {unknown} value @returns {value is Blob} */
const isBlob = (value) => typeof Blob === 'function' && value instanceof Blob;

/**
 * The size of `BinaryData`: bytes, or characters if it is text. NaN if its content is neither.
 * @param {unknown} data
 * @returns {number}
 */
function sizeOf(data) {
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
async function contentOf({ content, encoding }) {
  if (content instanceof ArrayBuffer) return content;
  if (isBlob(content)) return content.arrayBuffer();
  if (encoding === 'base64') return fromBase64(content).buffer;
  const bytes = bytesOf(content) ?? new TextEncoder().encode(content);
  return /** @type {ArrayBuffer} */ (bytes.slice().buffer);
}
