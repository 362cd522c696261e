/** What of a value is moved to the other side instead of copied. */

/** @type {WeakMap<object, Transferable[]>} */
const marked = new WeakMap();

/**
 * Marks a handler's result: what is listed is moved, not copied, and is gone here afterwards.
 * `BinaryData` with an `ArrayBuffer` needs no mark.
 * @template {object} T
 * @param {T} value
 * @param {Transferable[]} transferables
 * @returns {T} the value itself
 */
export function transfer(value, transferables) {
  marked.set(value, transferables);
  return value;
}

/** The protocol's `BinaryData`. @param {any} value */
const isBinary = (value) =>
  value?.content instanceof ArrayBuffer && typeof value.mimeType === 'string';

/**
 * The buffers to move: those marked, else those of `BinaryData`, which may be the value itself, or stand
 * in it or in a list in it.
 * @param {any} value
 * @returns {Transferable[] | undefined}
 */
export function transferOf(value) {
  if (typeof value !== 'object' || value === null) return undefined;
  const listed = marked.get(value);
  if (listed) return listed;
  /** @type {Set<ArrayBuffer>} */
  const found = new Set();
  collect(value, 3, found);
  return found.size ? [...found] : undefined;
}

/**
 * @param {any} value
 * @param {number} depth
 * @param {Set<ArrayBuffer>} found
 */
function collect(value, depth, found) {
  if (isBinary(value)) found.add(value.content);
  else if (depth && (Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype)) {
    for (const part of Object.values(value).slice(0, 64)) {
      if (typeof part === 'object' && part !== null) collect(part, depth - 1, found);
    }
  }
}
