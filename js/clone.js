/**
 * Values as text, for a way that carries nothing else between two ends of this library: what JSON loses and
 * structured clone keeps is a string with a mark in front, and strings that have the mark by nature get another.
 *
 * Each function uses others of this file and js/binary.js and nothing else, so that they can be put into a
 * page as text.
 */
import { bytesOf, fromBase64, toBase64 } from './binary.js';

/**
 * @param {any} value
 * @param {boolean} [strict] whether a function or a symbol is an error, as for structured clone, or left out,
 *   as in JSON
 * @param {Map<Blob, Uint8Array | undefined>} [blobs] the bytes of the Blobs in the value. Those that it has
 *   not are added to it without: read them and write again. No map at all, and a Blob is an error
 * @returns {string} throws for cycles, and for what has nothing that can be sent: a Promise, say
 */
export function toText(value, strict, blobs) {
  return JSON.stringify(
    value,
    /** @this {any} */ function (key, json) {
      return markedText(this[key], json, strict, blobs);
    },
  );
}

/**
 * @param {string} text
 * @returns {any} throws when it is no such text
 */
export function fromText(text) {
  return JSON.parse(text, text.includes('"~') ? fromMarked : undefined);
}

/**
 * @param {any} value
 * @param {any} json the same after its toJSON, if it has one
 * @param {boolean} [strict]
 * @param {Map<Blob, Uint8Array | undefined>} [blobs]
 * @returns {any} what JSON is to write
 */
export function markedText(value, json, strict, blobs) {
  switch (typeof value) {
    case 'string':
      return value.startsWith('~') ? `~${value}` : value;
    case 'number':
      if (Number.isFinite(value) && !Object.is(value, -0)) return value;
      return Object.is(value, -0) ? '~n-0' : `~n${value}`;
    case 'bigint':
      return `~i${value}`;
    case 'function':
    case 'symbol':
      if (strict) throw new TypeError(`A ${typeof value} cannot be sent`);
      return undefined;
  }
  if (typeof value !== 'object' || value === null) return value;
  const form = Object.prototype.toString.call(value).slice(8, -1);
  const bytes = bytesOf(value);
  if (bytes) return `~b${toBase64(bytes)}:${form}`;
  switch (form) {
    case 'Object':
    case 'Array':
      return json;
    case 'Date':
      return `~d${Number(value)}`;
    case 'Map':
      return `~m${toText([...value], strict, blobs)}`;
    case 'Set':
      return `~s${toText([...value], strict, blobs)}`;
    case 'Error':
    case 'DOMException':
      return { name: value.name, message: value.message, ...value };
    case 'Blob':
    case 'File': {
      if (!blobs)
        throw new TypeError('A Blob cannot be sent: read it first, await blob.arrayBuffer()');
      const content = blobs.get(value);
      if (content) return `~f${toBase64(content)}:${value.type}`;
      blobs.set(value, undefined);
      return null;
    }
  }
  if (json !== value || Object.keys(value).length > 0) return json;
  throw new TypeError(`A ${form} cannot be sent`);
}

/**
 * @param {string} _key
 * @param {any} value
 * @returns {any}
 */
export function fromMarked(_key, value) {
  if (typeof value !== 'string' || !value.startsWith('~')) return value;
  const rest = value.slice(2);
  switch (value[1]) {
    case '~':
      return value.slice(1);
    case 'n':
      return Number(rest);
    case 'i':
      return BigInt(rest);
    case 'd':
      return new Date(Number(rest));
    case 'm':
      return new Map(fromText(rest));
    case 's':
      return new Set(fromText(rest));
  }
  const colon = rest.indexOf(':');
  const bytes = fromBase64(rest.slice(0, colon));
  const form = rest.slice(colon + 1);
  if (value[1] === 'f') return new Blob([bytes], { type: form });
  if (/Buffer$/.test(form)) return bytes.buffer;
  const View = /^(DataView|(Big)?(Ui|I)nt\d+(Clamped)?Array|Float\d+Array)$/.test(form)
    ? /** @type {any} */ (globalThis)[form]
    : undefined;
  // One that this side does not know is its bytes.
  return View ? new View(bytes.buffer) : bytes;
}
