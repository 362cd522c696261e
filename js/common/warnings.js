/**
 * What this library warns of: mistakes in a program that would go unnoticed. Loaded with the first
 * warning, so that nobody else downloads anything of it.
 */

/**
 * @typedef {(message: string, ...details: unknown[]) => void} WarningListener Takes a warning, as
 *   `console.warn` would.
 */

/** @type {WarningListener | undefined} */
let listener;

/**
 * Says who takes the warnings of this library, of all its entries: mistakes in a program that would
 * go unnoticed, such as a misspelt option or a handler that does not stop. Errors that your code
 * throws are not among them.
 * @param {WarningListener | boolean} to a function that takes them in place of the console; `false`
 *   for nobody, `true` for the console again
 */
export function warnings(to) {
  listener = typeof to === 'function' ? to : to ? undefined : () => {};
}

/**
 * Warns.
 * @internal
 * @param {string} message what is wrong and what to do
 * @param {...unknown} details
 */
export function warn(message, ...details) {
  (listener ?? console.warn)(`abp-bridge: ${message}`, ...details);
}

/** Mistakes that are warned of at most, of those that belong together. */
const MAX_WARNED = 100;
/** Those that were, by what they belong to. @type {WeakMap<object, Set<unknown>>} */
const warned = new WeakMap();

/**
 * Warns once of a mistake.
 * @internal
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
