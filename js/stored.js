/**
 * Results where only text can cross: Blobs are read, and what is large goes as a reference (the protocol's
 * `BinaryDataReference`) to where the app has stored it.
 */
import { bytesOf, fromBase64 } from './binary.js';
import { AbpError, toErrorObject } from './errors.js';
import { own } from './messages.js';

/**
 * @typedef {object} Stored Where bytes are that were stored.
 * @property {string} downloadUrl
 * @property {number} [expiresAt] ms since 1970; the protocol asks for an hour at least
 * @property {{ type: 'bearer' | 'query', token?: string, header?: string }} [auth]
 */

/** @typedef {{ signal: AbortSignal, callId: string }} CallContext */

/**
 * @callback Store
 * @param {{ content: ArrayBuffer, mimeType: string, filename?: string, size: number }} data
 * @param {CallContext} context the call whose result it is
 * @returns {Stored | Promise<Stored>}
 */

/**
 * What crosses in place of a result. Making it is part of the call: once that is cancelled, nothing is stored.
 * @param {any} value
 * @param {CallContext} context
 * @param {Store | undefined} store
 * @param {number} storeAbove bytes
 */
export async function prepare(value, context, store, storeAbove) {
  /** What crosses, by what the handler gave. @type {Map<object, any>} */
  const parts = new Map();
  replaceBinary(value, (part) => (parts.set(part, part), part));
  for (const part of parts.keys()) {
    const data = binaryData(part);
    const large = store && sizeOf(data) > storeAbove;
    if (!large && !isBlob(data.content)) continue;
    const content = await contentOf(data);
    context.signal.throwIfAborted();
    parts.set(part, large ? await stored(data, content, context, store) : { ...data, content });
  }
  return replaceBinary(value, (part) => parts.get(part));
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
 * A value with its bytes replaced, wherever they stand; copied only as far as that takes.
 * @param {any} value
 * @param {(part: object) => any} replace takes BinaryData, or bytes that stand alone
 * @param {Set<object>} [path] what the value stands in
 * @returns {any}
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
  const known = typeof own(value, 'mimeType') === 'string' && sizeOf(value) >= 0;
  return known ? value : undefined;
}

const OCTETS = 'application/octet-stream';

/** @param {any} value */
const isBlob = (value) => typeof Blob === 'function' && value instanceof Blob;

/**
 * How many bytes `BinaryData` has; characters, where it is text. NaN if its content is of no kind that has any.
 * @param {any} data
 * @returns {number}
 */
function sizeOf(data) {
  const content = own(data, 'content');
  if (typeof content !== 'string') {
    return isBlob(content) ? content.size : (bytesOf(content)?.length ?? NaN);
  }
  if (own(data, 'encoding') !== 'base64') return content.length;
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
