/**
 * Digests of values: equal values have the same digest, in whatever form they arrived.
 *
 * A value is written as text with sorted members, and with digests in place of the content of
 * bytes. The hash is SHA-256, but not that of `crypto.subtle`, which is missing on pages without
 * TLS and needs all bytes at once.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { bytesOf, isBlob } from './binary.js';
import { fromBase64 } from './base64.js';
import { safely } from '../common/errors.js';
import { isObject, isRecord } from '../common/values.js';

/** The largest cost of a value: `COST` for each value in it, and 1 for each character. */
const MAX_COST = 2 ** 26;
const COST = 32;
/** The most levels of objects in objects. */
const MAX_LEVELS = 1000;
/** The most bytes that are read at once. */
const PIECE = 2 ** 18;

/**
 * The content by which objects other than plain objects and lists are compared.
 * @type {Record<string, (value: any) => unknown>}
 */
const CONTENT = {
  Date: (value) => value.getTime(),
  Error: ({ name, message, cause }) => ({ name, message, cause }),
  Map: (value) => [...value],
  RegExp: String,
  Set: (value) => [...value],
};

/**
 * @param {ReturnType<typeof sha256.create>} hash
 * @returns {string} its first 128 bits
 */
const hexOf = (hash) => bytesToHex(hash.digest().subarray(0, 16));

/**
 * The digest of a text.
 * @param {string} text
 */
export const hashOf = (text) => hexOf(sha256.create().update(utf8ToBytes(text)));

/**
 * The digest of a value that can be sent. The order of members does not count. A member that is
 * undefined counts as absent: JSON drops it. Bytes count by their content, in any form, bare or as
 * `BinaryData`.
 * @param {unknown} value any value is safe
 * @param {string} name its name in an error
 * @returns {string | Promise<string>} a promise if the value has bytes; it rejects if some cannot
 *   be read
 * @throws {TypeError} with the reason if it has no digest: something in it has no content that can
 *   be compared, or it is too large
 */
export function digestOf(value, name) {
  let left = MAX_COST;
  /**
   * The text of each object; for the objects around the current value, a placeholder.
   * @type {Map<object, string>}
   */
  const known = new Map();
  /** The members that lead to the current value. */
  const path = [name];
  /** @type {any[]} */
  const contents = [];
  const refuse = (/** @type {string} */ why) => {
    throw new TypeError(`${path.join('.').slice(0, 100)} ${why}`);
  };
  const count = (/** @type {number} */ cost) => (left -= cost) < 0 && refuse('is too much');

  /**
   * @param {any} value
   * @returns {string}
   */
  const membersOf = (value) => {
    const keys = Object.keys(value).filter((key) => value[key] !== undefined);
    // The members of a list are in order, and may be very many.
    if (!Array.isArray(value)) keys.sort();
    const members = keys.map((key) => {
      count(key.length);
      path.push(key);
      const member = `${JSON.stringify(key)}:${textOf(value[key])}`;
      path.pop();
      return member;
    });
    return `{${members}}`;
  };

  /**
   * @param {any} value an object
   * @returns {string}
   */
  const objectOf = (value) => {
    const binary = binaryOf(value);
    // A JSON text has no such character: JSON escapes it.
    if (binary) return `\0${contents.push(binary.content) - 1}${membersOf(binary.data)}`;
    if (isRecord(value)) return membersOf(value);
    if (Array.isArray(value)) return `[${value.length}${membersOf(value)}]`;
    const kind = Object.prototype.toString.call(value).slice(8, -1);
    if (Object.hasOwn(CONTENT, kind)) return kind + textOf(CONTENT[kind](value));
    return refuse(`(${value.constructor?.name ?? kind}) cannot be compared`);
  };

  /**
   * @param {unknown} value
   * @returns {string}
   */
  const textOf = (value) => {
    count(COST);
    if (isObject(value) && !known.has(value)) {
      if (path.length > MAX_LEVELS) refuse('is too deep');
      known.set(value, `^${known.size}`);
      const text = objectOf(value);
      known.set(value, text);
      return text;
    }
    if (typeof value === 'function' || typeof value === 'symbol')
      return refuse(`(${typeof value}) cannot be compared`);
    // BigInts are written in hexadecimal, which takes linear time.
    const simple = typeof value === 'bigint' ? `0x${value.toString(16)}` : value;
    const text = known.get(/** @type {any} */ (value)) ?? String(simple);
    count(text.length);
    return typeof value === 'string' ? JSON.stringify(value) : text;
  };

  const text = textOf(value);
  return contents.length ? withContents(text, contents) : hashOf(text);
}

/**
 * Reads the contents of bytes in pieces, each in a turn of its own.
 * @param {string} text
 * @param {any[]} contents
 */
async function withContents(text, contents) {
  for (const [i, content] of contents.entries()) {
    const hash = sha256.create();
    const blob = isBlob(content) ? content : new Blob([content]);
    for (let at = 0; at < blob.size; at += PIECE)
      hash.update(new Uint8Array(await blob.slice(at, at + PIECE).arrayBuffer()));
    contents[i] = hexOf(hash);
  }
  return hashOf(text.replace(/\0(\d+)/g, (_, i) => `bytes ${contents[i]}`));
}

/**
 * The content and the other members of `BinaryData`, in whatever form the bytes came; undefined for
 * anything else.
 * else.
 * @param {any} value
 */
function binaryOf(value) {
  const mimeType = 'application/octet-stream';
  const { type, name } = value;
  if (isBytes(value))
    return { content: value, data: { mimeType: type || mimeType, filename: name } };
  const { content, encoding, ...rest } = isRecord(value) ? /** @type {any} */ (value) : {};
  const isText = encoding === 'base64' && typeof content === 'string';
  const bytes = isText ? safely(() => fromBase64(content)) : content;
  return isBytes(bytes) && { content: bytes, data: { mimeType, ...rest, size: undefined } };
}

/** @param {any} value */
const isBytes = (value) => isBlob(value) || bytesOf(value) !== undefined;
