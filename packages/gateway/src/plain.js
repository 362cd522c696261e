/** Results as plain data: what JSON can say, and the bytes apart. */

/** Levels that are looked at: what is deeper is cut off. */
const MAX_DEPTH = 64;
/** Values that are looked at in one result. */
const MAX_VALUES = 1_000_000;

/**
 * Bytes that a result holds.
 * @typedef {object} Bytes
 * @property {Uint8Array} bytes
 * @property {string} mimeType
 * @property {string} [filename]
 */

/**
 * What is at the place of bytes in the plain data.
 * @callback Describe
 * @param {Bytes} found
 * @param {object} rest what else the object that held them says
 * @returns {unknown}
 */

const MIME = /^[\w.+-]{1,64}\/[\w.+-]{1,64}$/;

/** @param {unknown} value */
export const mimeTypeOf = (value) => {
  const essence = typeof value === 'string' ? value.split(';', 1)[0].trim().toLowerCase() : '';
  return MIME.test(essence) ? essence : 'application/octet-stream';
};

/** @param {unknown} value @returns {Uint8Array | undefined} */
function bytesOf(value) {
  if (ArrayBuffer.isView(value)) {
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  }
  return value instanceof ArrayBuffer ? new Uint8Array(value) : undefined;
}

/** The bytes of the protocol's BinaryData, in any of its forms. @param {any} value @returns {Promise<Uint8Array | undefined>} */
async function contentOf({ content, encoding, mimeType }) {
  if (content instanceof Blob) return new Uint8Array(await content.arrayBuffer());
  if (typeof content === 'string' && encoding === 'base64' && typeof mimeType === 'string') {
    return new Uint8Array(Buffer.from(content, 'base64'));
  }
  return bytesOf(content);
}

/**
 * A copy of a result that JSON can say. What a page returns is read once, as data.
 * @param {unknown} value
 * @param {Describe} describe
 * @returns {Promise<any>}
 */
export async function toPlain(value, describe) {
  let left = MAX_VALUES;
  /** @param {any} value @param {number} depth @returns {Promise<unknown>} */
  const copy = async (value, depth) => {
    if (typeof value === 'bigint') return String(value);
    if (typeof value === 'string') return value.toWellFormed();
    if (typeof value === 'number') return Number.isFinite(value) ? value : null;
    if (typeof value !== 'object' || value === null) return value ?? null;
    if (depth > MAX_DEPTH || --left < 0) return null;
    if (value instanceof Date) return Number.isNaN(+value) ? null : value.toISOString();
    if (value instanceof Blob) {
      const bytes = new Uint8Array(await value.arrayBuffer());
      return describe({ bytes, mimeType: mimeTypeOf(value.type) }, {});
    }
    const bare = bytesOf(value);
    if (bare) return describe({ bytes: bare, mimeType: mimeTypeOf(undefined) }, {});
    if (value instanceof Set || Array.isArray(value)) return list([...value], depth);
    if (value instanceof Map) return list([...value], depth);
    if (Object.hasOwn(value, 'content')) {
      const bytes = await contentOf(value);
      if (bytes) {
        const rest = { ...value };
        delete rest.content;
        delete rest.encoding;
        const { mimeType, filename } = rest;
        const found = {
          bytes,
          mimeType: mimeTypeOf(mimeType),
          ...(typeof filename === 'string' && { filename }),
        };
        return describe(found, await object(rest, depth));
      }
    }
    return object(value, depth);
  };
  /** @param {unknown[]} values @param {number} depth */
  const list = async (values, depth) => {
    const copies = [];
    for (const each of values) copies.push(await copy(each, depth + 1));
    return copies;
  };
  /** @param {object} value @param {number} depth */
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
