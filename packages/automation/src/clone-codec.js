/**
 * Writes values as text, for a text-only channel between two ends of this library. Values that
 * structured clone keeps and JSON loses become strings that begin with a mark (`~`). Ordinary
 * strings that begin with the mark get a second one.
 */
import { bytesOf, fromBase64, requireBounded, toBase64 } from 'abp-bridge/driver';

/**
 * Writes a value.
 * @param {unknown} value the value
 * @param {boolean} [strict] whether functions and symbols are errors, as for structured clone, or
 *   omitted, as in JSON
 * @param {WeakMap<Blob, Uint8Array>} [blobs] the contents of Blobs in it. Other Blobs are errors
 * @returns {string} throws for cycles, for objects that cannot be sent (such as a Promise), and for
 *   values that are too large to be written in reasonable time
 */
export function toText(value, strict, blobs) {
  requireBounded(value, { maxValues: 2 ** 24, maxCharacters: 2 ** 28 });

  /**
   * @param {unknown} value
   * @returns {string}
   */
  const write = (value) =>
    JSON.stringify(
      value,
      /** @this {any} */ function (key, json) {
        return marked(this[key], json);
      },
    );

  /**
   * @param {any} value before its toJSON
   * @param {unknown} json after it, if it has one
   */
  function marked(value, json) {
    switch (typeof value) {
      case 'string':
        return value.startsWith('~') ? `~${value}` : value;
      case 'number':
        if (Object.is(value, -0)) return '~n-0';
        return Number.isFinite(value) ? value : `~n${value}`;
      case 'bigint':
        return `~i${value}`;
      case 'function':
      case 'symbol':
        if (strict) throw new TypeError(`A ${typeof value} cannot be sent`);
        return undefined;
    }
    if (typeof value !== 'object' || value === null) return value;
    const prototype = Object.getPrototypeOf(value);
    if (Array.isArray(value) || !prototype || !Object.getPrototypeOf(prototype)) return value;
    const form = Object.prototype.toString.call(value).slice(8, -1);
    const bytes = bytesOf(value);
    if (bytes) return `~b${toBase64(bytes)}:${form}`;
    if (strict) structuredClone(value); // It throws for such values.
    switch (form) {
      case 'Object':
        return json;
      case 'Date':
        return `~d${Number(value)}`;
      case 'Map':
      case 'Set':
        return `~${form === 'Map' ? 'm' : 's'}${write([...value])}`;
      case 'Error':
      case 'DOMException':
        return { name: value.name, message: value.message, ...value };
      case 'Blob':
      case 'File': {
        const content = blobs?.get(value);
        if (content) return `~f${toBase64(content)}:${value.type}`;
        throw new TypeError('A Blob cannot be sent: read it first, await blob.arrayBuffer()');
      }
    }
    if (json !== value || Object.keys(value).length > 0) return json;
    throw new TypeError(`A ${form} cannot be sent`);
  }

  return write(value);
}

/**
 * Reads a text of `toText`.
 * @param {string} text the text
 * @returns {any} the value; throws when the text does not have that form
 */
export function fromText(text) {
  /**
   * @param {string} _key
   * @param {unknown} value a string with a mark, or anything else
   */
  function unmarked(_key, value) {
    if (typeof value !== 'string' || !value.startsWith('~')) return value;
    const rest = value.slice(2);
    switch (value[1]) {
      case '~':
        return value.slice(1);
      case 'n':
        return Number(rest);
      case 'i':
        // Reading digits takes more than linear time: so the limit of toText applies.
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

  return JSON.parse(text, text.includes('"~') ? unmarked : undefined);
}
