/** Warnings about mistakes in a program that would otherwise go unnoticed. */

/**
 * Writes a warning to the console.
 * @param {string} message what is wrong and what to do
 * @param {...unknown} details
 */
export function warn(message, ...details) {
  console.warn(`abp-bridge: ${message}`, ...details);
}

/** The most warnings about one object. */
const MAX_WARNED = 100;
/** The ids of the warnings given, by object. @type {WeakMap<object, Set<unknown>>} */
const warned = new WeakMap();

/**
 * Warns once about a mistake.
 * @param {unknown} id identifies the mistake
 * @param {string} message
 * @param {object} [of] the object that it is about, such as an app
 * @param {number} [most] the most warnings about that object
 */
export function warnOnce(id, message, of = warned, most = MAX_WARNED) {
  const ids = warned.get(of) ?? new Set();
  if (ids.has(id) || ids.size >= most) return;
  warned.set(of, ids.add(id));
  warn(message);
}
