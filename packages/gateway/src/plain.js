/** Results as plain data: JSON values, with bytes separate. */

/** Nesting of values: deeper ones are cut off. */
const MAX_DEPTH = 64;
/** Values that are read in one result. */
const MAX_VALUES = 1_000_000;

/**
 * @typedef {object} Bytes Bytes in a result.
 * @property {Uint8Array} bytes
 * @property {string} mimeType
 * @property {string} [filename]
 * @typedef {(found: Bytes, rest: object) => unknown} Describe Returns what replaces them in the
 *   plain data. `rest` has the other members of the object that held them.
 */

const MIME = /^[\w.+-]{1,64}\/[\w.+-]{1,64}$/;

/** @param {unknown} value */
export const mimeTypeOf = (value) => {
  const essence = typeof value === 'string' ? value.split(';', 1)[0].trim().toLowerCase() : '';
  return MIME.test(essence) ? essence : 'application/octet-stream';
};

/**
 * @param {unknown} value
 * @returns {Promise<Uint8Array | undefined>}
 */
async function bytesOf(value) {
  if (value instanceof Blob) return new Uint8Array(await value.arrayBuffer());
  if (ArrayBuffer.isView(value))
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return value instanceof ArrayBuffer ? new Uint8Array(value) : undefined;
}

/**
 * The bytes of the protocol's BinaryData, in any of its forms.
 * @param {any} value
 */
const contentOf = ({ content, encoding, mimeType }) =>
  typeof content === 'string' && encoding === 'base64' && typeof mimeType === 'string'
    ? new Uint8Array(Buffer.from(content, 'base64'))
    : bytesOf(content);

/**
 * A copy of a result, as JSON can represent it. Each member of a page's object is read once.
 * @param {unknown} value
 * @param {Describe} describe
 * @returns {Promise<any>}
 */
export async function toPlain(value, describe) {
  let left = MAX_VALUES;
  /**
   * @param {any} value
   * @param {number} depth
   * @returns {Promise<unknown>}
   */
  const copy = async (value, depth) => {
    if (typeof value === 'bigint') return String(value);
    if (typeof value === 'string') return value.toWellFormed();
    if (typeof value === 'number') return Number.isFinite(value) ? value : null;
    if (typeof value !== 'object' || value === null) return value ?? null;
    if (depth > MAX_DEPTH || --left < 0) return null;
    if (value instanceof Date) return Number.isNaN(+value) ? null : value.toISOString();
    if (Array.isArray(value) || value instanceof Set || value instanceof Map) {
      const copies = [];
      for (const each of [...value]) copies.push(await copy(each, depth + 1));
      return copies;
    }
    const bare = await bytesOf(value);
    if (bare) return describe({ bytes: bare, mimeType: mimeTypeOf(value.type) }, {});
    const bytes = Object.hasOwn(value, 'content') ? await contentOf(value) : undefined;
    if (!bytes) return object(value, depth);
    const { mimeType, filename } = value;
    const named = typeof filename === 'string' && { filename };
    const rest = await object({ ...value, content: undefined, encoding: undefined }, depth);
    return describe({ bytes, mimeType: mimeTypeOf(mimeType), ...named }, rest);
  };
  /**
   * @param {object} value
   * @param {number} depth
   */
  const object = async (value, depth) => {
    /** @type {[string, unknown][]} */
    const entries = [];
    for (const [key, each] of Object.entries(value)) {
      if (each !== undefined) entries.push([key.toWellFormed(), await copy(each, depth + 1)]);
    }
    return Object.fromEntries(entries);
  };
  return copy(value, 0);
}
