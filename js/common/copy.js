/**
 * Copies of values. Plain data is copied also where it stands behind proxies, such as reactive
 * state, which a clone refuses.
 */
import { safely } from './errors.js';
import { isRecord, stringify } from './values.js';

/** Objects in a value that are read: a proxy may have others for ever. */
const MAX_COPIED = 2 ** 20;

/**
 * Copies plain data by reading it, also behind a proxy, which a clone refuses. What is not plain
 * stays: a clone takes or refuses it.
 * @param {any} value
 * @param {Map<object, any>} [copies] of the objects in it
 * @returns {any}
 */
export function plainOf(value, copies = new Map()) {
  const isList = Array.isArray(value);
  if (!isList && !isRecord(value)) return value;
  if (copies.has(value)) return copies.get(value);
  if (copies.size > MAX_COPIED) throw new RangeError('It has too many objects');
  // Without what all lists and objects inherit here, a `toJSON` for example.
  const copy = Object.setPrototypeOf(isList ? Array(value.length) : {}, null);
  copies.set(value, copy);
  for (const [key, member] of Object.entries(value)) copy[key] = plainOf(member, copies);
  return copy;
}

/**
 * Copies a value, or throws what `structuredClone` throws.
 * @param {unknown} value
 * @param {Transferable[]} [transfer] what of it is moved
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
 * A copy of what has to wait, whoever changes it meanwhile; what cannot be copied stays as it is.
 * @template T
 * @param {T} value
 * @returns {T}
 */
export const cloneOf = (value) => safely(() => copyOf(value), value);

/**
 * Plain data as JSON.
 * @param {unknown} value
 * @returns {string} undefined if JSON has nothing for it
 */
export const plainText = (value) => stringify(plainOf(value));
