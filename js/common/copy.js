/**
 * Copies of values. Plain data is copied even behind proxies, such as reactive state, which
 * `structuredClone` rejects.
 */
import { safely } from './errors.js';
import { isRecord, stringify } from './values.js';

/** Objects that are read in one value: a proxy could have an endless number of them. */
const MAX_COPIED = 2 ** 20;

/**
 * Copies plain data by reading it. Other values stay as they are, for `structuredClone` to take or
 * reject.
 * @param {any} value
 * @param {Map<object, any>} [copies] by original
 * @returns {any}
 */
export function plainOf(value, copies = new Map()) {
  const isList = Array.isArray(value);
  if (!isList && !isRecord(value)) return value;
  if (copies.has(value)) return copies.get(value);
  if (copies.size > MAX_COPIED) throw new RangeError('It has too many objects');
  // Without the members that all lists and objects inherit here, such as a `toJSON`.
  const copy = Object.setPrototypeOf(isList ? Array(value.length) : {}, null);
  copies.set(value, copy);
  for (const [key, member] of Object.entries(value)) copy[key] = plainOf(member, copies);
  return copy;
}

/**
 * Copies a value, or throws what `structuredClone` throws.
 * @param {unknown} value
 * @param {Transferable[]} [transfer] the objects in it to move
 * @returns {any}
 */
export function copyOf(value, transfer) {
  try {
    return structuredClone(value, { transfer });
  } catch {
    return structuredClone(plainOf(value), { transfer });
  }
}

/**
 * A copy of a value that has to wait, so that later changes do not matter; the value itself if it
 * cannot be copied.
 * @template T
 * @param {T} value
 * @returns {T}
 */
export const cloneOf = (value) => safely(() => copyOf(value), value);

/**
 * The JSON text of plain data.
 * @param {unknown} value
 * @returns {string} undefined if JSON cannot represent it
 */
export const plainText = (value) => stringify(plainOf(value));
