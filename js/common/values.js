/** Reads values that come from outside. */

/** A shared empty object for absent values; do not change it. @type {any} */
export const EMPTY = Object.freeze({});

/**
 * @param {unknown} value
 * @returns {value is object} whether it is an object, and not null
 */
export const isObject = (value) => typeof value === 'object' && value !== null;

/**
 * An own property: an inherited one did not come from the peer.
 * @param {unknown} object
 * @param {string} key
 * @returns {unknown}
 */
export const getOwn = (object, key) =>
  isObject(object) && Object.hasOwn(object, key) ? /** @type {any} */ (object)[key] : undefined;

/**
 * @param {unknown} value
 * @returns {string | undefined} undefined if it is not a string
 */
export const textOf = (value) => (typeof value === 'string' ? value : undefined);

/**
 * True if a value is a plain object of any realm, and not a list, text or bytes, which may have too
 * many members to visit.
 * @param {unknown} value
 * @returns {value is object}
 */
export function isRecord(value) {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/**
 * The own members of an object of any class, without inherited ones. Empty for a list, and for an
 * object that cannot be read.
 * @param {unknown} value
 * @returns {any}
 */
export function ownMembers(value) {
  try {
    if (typeof value === 'object' && !Array.isArray(value)) return { __proto__: null, ...value };
  } catch {
    // A getter or a proxy threw.
  }
  return { __proto__: null };
}

/**
 * The members of an object from a peer; empty if it is not a plain object or cannot be read.
 * @param {unknown} value
 * @returns {any}
 */
export function copyRecord(value) {
  try {
    return isRecord(value) ? { ...value } : {};
  } catch {
    return {};
  }
}

/** The original functions, even if the page replaces them later. */
export const { parse, stringify } = JSON;

/**
 * The first elements of a list from a peer. A sparse list may claim any length, so never iterate
 * over all of it.
 * @param {unknown} list any value
 * @param {number} max how many elements to take
 * @returns {any[]} empty if it is not a list
 */
export const firstOf = (list, max) => (Array.isArray(list) ? list.slice(0, max) : []);

/** The longest time that a timer takes, in ms: 24 days. */
export const MAX_TIMER = 2 ** 31 - 1;

/**
 * A time for a timer. Absent, zero, negative and infinite values mean: no timer.
 * @param {unknown} value in ms
 * @returns {number} whole ms that a timer can take; 0 for no timer
 */
export const milliseconds = (value) =>
  typeof value === 'number' && value > 0 && value < Infinity
    ? Math.min(Math.ceil(value), MAX_TIMER)
    : 0;

/**
 * A limit in the form that the core takes.
 * @param {unknown} value the user's; Infinity becomes the largest value that a timer can take
 * @returns {number} 0 or NaN, either of which is the default, if the value is not a positive number
 */
export const limitOf = (value) => Math.min(Math.max(Number(value), 0), MAX_TIMER);
