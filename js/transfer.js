/** What of a value is moved to the other side instead of copied. */
import { isObject } from './messages.js';

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

/** The buffers to move that were marked, if any were. @param {any} value */
export const markedTransfer = (value) => (isObject(value) ? marked.get(value) : undefined);

/**
 * The protocol's `BinaryData`, if it has anything to move. A buffer that was moved before has nothing left: Node
 * would move it again as an empty one, where copying it fails, as it should.
 * @param {any} value
 */
const isBinary = (value) =>
  value?.content instanceof ArrayBuffer &&
  value.content.byteLength > 0 &&
  typeof value.mimeType === 'string';

/**
 * The buffers to move: those marked, else those of `BinaryData`, which may be the value itself, or stand
 * in it or in a list in it.
 * @param {any} value
 * @returns {Transferable[] | undefined}
 */
export function transferOf(value) {
  if (!isObject(value)) return undefined;
  return markedTransfer(value) ?? collect(value, 3, undefined);
}

/** Members and elements that are looked at. */
const MOST = 64;

/**
 * @param {any} value
 * @param {number} depth
 * @param {ArrayBuffer[] | undefined} found
 */
function collect(value, depth, found) {
  if (isBinary(value)) {
    return found?.includes(value.content) ? found : [...(found ?? []), value.content];
  }
  if (!depth) return found;
  const look = (/** @type {any} */ part) => {
    if (isObject(part)) found = collect(part, depth - 1, found);
  };
  // Naming every element of a list takes far longer.
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length && i < MOST; i++) look(value[i]);
  } else if (Object.getPrototypeOf(value) === Object.prototype) {
    let left = MOST;
    for (const key in value) {
      look(value[key]);
      if (--left === 0) break;
    }
  }
  return found;
}
