import { isObject } from './values.js';

/**
 * Copies a value that waits on this side, or never leaves it.
 * @param {unknown} value
 * @param {Transferable[]} [transfer] what of it is moved
 * @returns {unknown}
 * @throws what `structuredClone` throws if it cannot be copied
 */
export const copyOf = (value, transfer) =>
  isObject(value) ? structuredClone(value, { transfer }) : value;
