/** Which parts of a value are moved to the other side instead of copied. */
import { marked } from './marked.js';

/**
 * Marks a handler's result: the listed objects are moved, not copied, and cannot be used here
 * afterwards. `BinaryData` with an `ArrayBuffer` needs no mark.
 * @template {object} T
 * @param {T} value the result
 * @param {Transferable[]} transferables the objects in it to move
 * @returns {T} the value itself
 */
export function transfer(value, transferables) {
  marked.set(value, transferables);
  return value;
}

/**
 * The objects that `transfer` marked to be moved with a value.
 * @param {unknown} value the value passed to `transfer`
 */
export const markedTransfer = (value) => marked.get(/** @type {object} */ (value));

/**
 * True if a handler streams its return value: an async iterable, a generator or a `ReadableStream`,
 * of this realm, another one or a library. A value marked by `transfer` is moved as a whole.
 * @param {unknown} value
 */
export const isStream = (value) =>
  typeof value === 'object' &&
  value !== null &&
  (typeof (/** @type {Partial<AsyncIterable<unknown>>} */ (value)[Symbol.asyncIterator]) ===
    'function' ||
    /^(Generator|ReadableStream)$/.test(/** @type {any} */ (value)[Symbol.toStringTag])) &&
  !marked.has(value);

/**
 * Ends a stream that will not be read.
 * @param {any} source if there is one
 */
export const endUnread = (source) =>
  void Promise.resolve()
    .then(() => (source?.cancel ?? source?.return)?.call(source))
    .catch(() => {});

/**
 * True if a handler is a generator, async or not: calling it runs none of its code.
 * @param {any} handler
 */
export const isGenerator = (handler) => /GeneratorFunction/.test(handler[Symbol.toStringTag]);

/** Members or elements of one object that are searched. */
const MAX_SEARCHED_MEMBERS = 64;

/**
 * The objects to move: the marked ones, or else the buffers of `BinaryData`, which may be the value
 * itself or up to three levels inside it.
 * @param {unknown} value the value that is about to be sent
 * @returns {Transferable[] | undefined} undefined if there are none
 */
export const transferOf = (value) =>
  typeof value === 'object' && value ? (marked.get(value) ?? buffersIn(value, 3)) : undefined;

/**
 * @param {any} object
 * @param {number} depth levels of objects in it that are searched
 * @param {ArrayBuffer[]} [found]
 */
function buffersIn(object, depth, found) {
  const { content } = object;
  // A buffer that was moved before is empty: Node would move it again without an error, while
  // copying it fails, as it should.
  if (content instanceof ArrayBuffer && content.byteLength && typeof object.mimeType === 'string')
    return found?.includes(content) ? found : [...(found ?? []), content];
  const isList = Array.isArray(object);
  if (!depth || !(isList || Object.getPrototypeOf(object) === Object.prototype)) return found;
  // `for in` over a list takes far longer.
  const names = isList ? object : Object.keys(object);
  for (let i = 0; i < names.length && i < MAX_SEARCHED_MEMBERS; i++) {
    const member = isList ? names[i] : object[names[i]];
    if (typeof member === 'object' && member) found = buffersIn(member, depth - 1, found);
  }
  return found;
}
