/**
 * Digests of values: values that mean the same have the same digest, whichever way they came.
 *
 * How it is made. A value is written as text in which the order of members does not show. Bytes stand in it as the digest of their
 * content, and so does the text of each part that is long: a part that is in many places is written once, and costs no more where it
 * grows with each level. The hash is SHA-256. It is here because pages without TLS have no `crypto.subtle`, which also needs all bytes at
 * once.
 */
import { bytesOf, isBlob } from './binary.js';
import { fromBase64 } from './base64.js';
import { safely } from '../../../js/common/errors.js';
import { isRecord } from '../../../js/common/values.js';

/** What a value may have: so much for each value in it, and its characters. */
const MAX_COST = 2 ** 26;
const COST = 32;
/** Levels of objects in objects. */
const MAX_LEVELS = 1000;
/** Characters of a part that stand in the text of what contains it. */
const MAX_PART = 64;
/** Bytes that are read at once. */
const PIECE = 2 ** 18;
/** Bits of a BigInt: writing its digits takes more than linear time. */
const MAX_BITS = 2 ** 14;

/** The first 64 prime numbers: SHA-256 takes its constants from their roots. */
const PRIMES = [2];
for (let n = 3; PRIMES.length < 64; n += 2) if (PRIMES.every((prime) => n % prime)) PRIMES.push(n);
const START = Int32Array.from(PRIMES.slice(0, 8), (prime) => (prime ** (1 / 2) % 1) * 2 ** 32);
const ROUNDS = Int32Array.from(PRIMES, (prime) => (prime ** (1 / 3) % 1) * 2 ** 32);

const encoder = new TextEncoder();

/** @param {number} word @param {number} by bits that it is turned by */
const turned = (word, by) => (word >>> by) | (word << (32 - by));

/**
 * A SHA-256 of what comes in pieces. All but the last have a multiple of 64 bytes. `end` gives its first 128 bits, in hex.
 */
function hasher() {
  let state = [...START];
  let length = 0;
  let rest = new Uint8Array();
  const words = new Int32Array(64);
  /** @param {DataView} view @param {number} at where its next 64 bytes are */
  const mix = (view, at) => {
    for (let i = 0; i < 16; i++) words[i] = view.getInt32(at + i * 4);
    for (let i = 16; i < 64; i++) {
      const early = words[i - 15];
      const late = words[i - 2];
      const one = turned(early, 7) ^ turned(early, 18) ^ (early >>> 3);
      const other = turned(late, 17) ^ turned(late, 19) ^ (late >>> 10);
      words[i] = words[i - 16] + one + words[i - 7] + other;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const mixed = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25);
      const one = (h + mixed + ((e & f) ^ (~e & g)) + ROUNDS[i] + words[i]) | 0;
      const other = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22);
      const majority = (a & b) ^ (a & c) ^ (b & c);
      h = g;
      g = f;
      f = e;
      e = (d + one) | 0;
      d = c;
      c = b;
      b = a;
      a = (one + other + majority) | 0;
    }
    state = [a, b, c, d, e, f, g, h].map((word, i) => (word + state[i]) | 0);
  };
  /** @param {Uint8Array} bytes */
  const add = (bytes) => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const end = bytes.length - (bytes.length % 64);
    for (let at = 0; at < end; at += 64) mix(view, at);
    length += bytes.length;
    rest = bytes.slice(end);
  };
  const end = () => {
    const padded = new Uint8Array(rest.length < 56 ? 64 : 128);
    padded.set(rest);
    padded[rest.length] = 128;
    new DataView(padded.buffer).setBigUint64(padded.length - 8, BigInt(length) * 8n);
    add(padded);
    const hex = (/** @type {number} */ word) => (word >>> 0).toString(16).padStart(8, '0');
    return state.slice(0, 4).map(hex).join('');
  };
  return { add, end };
}

/** @param {Uint8Array} bytes */
function hashOf(bytes) {
  const { add, end } = hasher();
  add(bytes);
  return end();
}

/** Reads what is large, or not in memory, in pieces: each is a turn of its own. @param {Blob} blob */
async function hashOfBlob(blob) {
  const { add, end } = hasher();
  for (let at = 0; at < blob.size; at += PIECE)
    add(new Uint8Array(await blob.slice(at, at + PIECE).arrayBuffer()));
  return end();
}

/**
 * The digest of a value that can be sent: 128 bits of SHA-256. The order of members does not count. A member that is undefined is as
 * absent: JSON drops it. Bytes count by their content, in whatever form they are, bare or as `BinaryData`.
 * @param {unknown} value any value is safe
 * @param {string} name what it is called in an error
 * @returns {string | Promise<string>} a promise where it has Blobs or many bytes, which rejects if one cannot be read
 * @throws {TypeError} that says why it has no digest: something in it has no content that can be compared, or it is too much
 */
export function digestOf(value, name) {
  /** What is large, and its digest once it was read, by the part of the value that it is. @type {Map<object, Blob | string>} */
  const large = new Map();
  const digest = digestWith(value, name, large);
  if (!large.size) return digest;
  const read = async () => {
    for (const [part, blob] of large) large.set(part, await hashOfBlob(/** @type {Blob} */ (blob)));
    return digestWith(value, name, large);
  };
  return read();
}

/** @param {unknown} whole @param {string} name @param {Map<object, Blob | string>} large */
function digestWith(whole, name, large) {
  let left = MAX_COST;
  let levels = 0;
  /** The text of each object, or its number as long as that is not written. @type {Map<object, string | number>} */
  const known = new Map();
  /** The members that lead to the current value. */
  const path = [name];
  const refuse = (/** @type {string} */ why) => {
    throw new TypeError(`${path.join('.').slice(0, 100)} ${why}`);
  };
  const count = (/** @type {number} */ cost) => (left -= cost) < 0 && refuse('is too much');

  /** @param {any} value @returns {string} */
  const membersOf = (value) => {
    const keys = Object.keys(value).filter((key) => value[key] !== undefined);
    // Those of a list are in order, and may be very many.
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

  /** `BinaryData`, as it is whichever way it came. @param {object} part @param {any} data @param {any} content */
  const binaryOf = (part, data, content) => {
    const bytes = bytesOf(content);
    const isSmall = bytes && bytes.length <= PIECE;
    if (!isSmall && !large.has(part))
      large.set(part, bytes ? new Blob([/** @type {any} */ (bytes)]) : content);
    const hash = isSmall ? hashOf(bytes) : large.get(part);
    const how = { encoding: undefined, size: undefined, content: undefined };
    return `${membersOf({ mimeType: 'application/octet-stream', ...data, ...how })}bytes ${hash}`;
  };

  /** @param {any} value an object @returns {string} */
  const objectOf = (value) => {
    if (isBytes(value)) {
      const { type, name: filename } = value;
      return binaryOf(value, { ...(type && { mimeType: type }), filename }, value);
    }
    if (isRecord(value)) {
      const { content, encoding } = /** @type {any} */ (value);
      const isText = encoding === 'base64' && typeof content === 'string';
      const bytes = isText ? safely(() => fromBase64(content)) : content;
      return isBytes(bytes) ? binaryOf(value, value, bytes) : membersOf(value);
    }
    const kind = Object.prototype.toString.call(value).slice(8, -1);
    switch (kind) {
      case 'Array':
        return value.length + membersOf(value);
      case 'Map':
      case 'Set':
        return `${kind}[${Array.from(value, textOf)}]`;
      case 'Error':
        return kind + membersOf({ name: value.name, message: value.message, cause: value.cause });
      case 'RegExp':
        return kind + textOf(String(value));
      case 'Date':
      case 'Boolean':
      case 'Number':
      case 'String':
      case 'BigInt':
        return kind + textOf(value.valueOf());
    }
    return refuse(`(${value.constructor?.name ?? kind}) cannot be compared`);
  };

  /** @param {unknown} value @returns {string} */
  const textOf = (value) => {
    count(COST);
    switch (typeof value) {
      case 'string':
        count(value.length);
        return JSON.stringify(value);
      case 'bigint':
        return BigInt.asIntN(MAX_BITS, value) === value ? `${value}n` : refuse('is too much');
      case 'function':
      case 'symbol':
        return refuse(`(${typeof value}) cannot be compared`);
      case 'object':
        return value === null ? 'null' : partOf(value);
    }
    return String(value);
  };

  /** @param {object} value */
  const partOf = (value) => {
    const text = known.get(value);
    if (text !== undefined) return typeof text === 'string' ? text : `^${text}`;
    if (++levels > MAX_LEVELS) refuse('is too deep');
    known.set(value, known.size);
    const written = objectOf(value);
    const part = written.length > MAX_PART ? `#${hashOf(encoder.encode(written))}` : written;
    known.set(value, part);
    levels--;
    return part;
  };
  return hashOf(encoder.encode(textOf(whole)));
}

/** @param {any} value */
const isBytes = (value) => isBlob(value) || bytesOf(value) !== undefined;
