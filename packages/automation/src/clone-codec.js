/**
 * Writes values as text, for a channel between two ends of this library that carries nothing else. Values that
 * structured clone keeps and JSON loses become strings that begin with a mark (`~`). Ordinary strings that begin with
 * the mark get a second one.
 *
 * The functions use only each other, packages/binary and packages/untrusted/src/bounds.js, so that they can be injected into a page as
 * text.
 */
import { fromBase64, toBase64 } from '../../binary/src/base64.js';
import { requireBounded } from '../../untrusted/src/bounds.js';
import { bytesOf } from '../../binary/src/binary.js';

/** @typedef {Pick<Map<Blob, Uint8Array | undefined>, 'get' | 'set'>} Blobs */

/**
 * Writes a value.
 * @param {unknown} value the value
 * @param {boolean} [strict] whether functions and symbols are errors, as for structured clone, or left out, as in JSON
 * @param {Blobs} [blobs] the bytes of the Blobs in the value. A Blob that is missing is
 *   added with undefined: read it and write again. Without a map, Blobs are errors
 * @returns {string} throws for cycles, for objects that cannot be sent (a Promise, say), and for values that are too
 *   large to be written in reasonable time
 */
export function toText(value, strict, blobs) {
  requireBounded(value, { maxValues: 2 ** 24, maxCharacters: 2 ** 28 });
  return boundedText(value, strict, blobs);
}

/**
 * The same without the check of bounds.
 * @param {unknown} value within bounds
 * @param {boolean} [strict] as above
 * @param {Blobs} [blobs] as above
 * @returns {string}
 */
export function boundedText(value, strict, blobs) {
  return JSON.stringify(
    value,
    /** @this {any} */ function (key, json) {
      return markedText(this[key], json, strict, blobs);
    },
  );
}

/**
 * Reads what `toText` wrote.
 * @param {string} text the text
 * @returns {any} the value; throws when the text is not of that form
 */
export function fromText(text) {
  return JSON.parse(text, text.includes('"~') ? fromMarked : undefined);
}

/**
 * The replacer of `toText`.
 * @param {any} value a value before its toJSON
 * @param {unknown} json the same value after its toJSON, if it has one
 * @param {boolean} [strict] as above
 * @param {Blobs} [blobs] as above
 * @returns {unknown} what JSON is to write
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
      return `~m${boundedText([...value], strict, blobs)}`;
    case 'Set':
      return `~s${boundedText([...value], strict, blobs)}`;
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
 * The reviver of `fromText`.
 * @param {string} _key
 * @param {unknown} value a string with a mark, or anything else
 * @returns {unknown} the value
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
      // Reading digits takes more than linear time: so no more than toText writes.
      if (rest.length > 5000) throw new RangeError('A BigInt has too many digits');
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
  const BufferView = /^(DataView|(Big)?(Ui|I)nt\d+(Clamped)?Array|Float\d+Array)$/.test(form)
    ? /** @type {any} */ (globalThis)[form]
    : undefined;
  // A view that this side does not know becomes plain bytes.
  return BufferView ? new BufferView(bytes.buffer) : bytes;
}
