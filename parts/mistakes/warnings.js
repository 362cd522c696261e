/** What this library warns of: mistakes in a program that would go unnoticed. */

/**
 * Warns.
 * @param {string} message what is wrong and what to do
 * @param {...unknown} details
 */
export function warn(message, ...details) {
  console.warn(`abp-bridge: ${message}`, ...details);
}

/** Mistakes that are warned of at most, of those that belong together. */
const MAX_WARNED = 100;
/** Those that were, by what they belong to. @type {WeakMap<object, Set<unknown>>} */
const warned = new WeakMap();

/**
 * Warns once of a mistake.
 * @param {unknown} id says which one it is
 * @param {string} message
 * @param {object} [of] what it belongs to, such as an app
 * @param {number} [most] how many of that are told
 */
export function warnOnce(id, message, of = warned, most = MAX_WARNED) {
  const ids = warned.get(of) ?? new Set();
  if (ids.has(id) || ids.size >= most) return;
  warned.set(of, ids.add(id));
  warn(message);
}
