/**
 * What this library warns of: mistakes in a program that would go unnoticed. Loaded with the first warning, so that nobody else
 * downloads anything of it.
 */

/** @typedef {(message: string, ...details: unknown[]) => void} WarningListener Takes a warning, as `console.warn` would. */

/** @type {WarningListener | undefined} */
let listener;

/**
 * Says who takes the warnings of this library, of all its entries: mistakes in a program that would go unnoticed, such as a misspelt
 * option or a handler that does not stop. Errors that your code throws are not among them.
 * @param {WarningListener | boolean} to a function that takes them in place of the console; `false` for nobody, `true` for the
 *   console again
 */
export function warnings(to) {
  listener = typeof to === 'function' ? to : to ? undefined : () => {};
}

/** Warns. @internal @param {string} message what is wrong and what to do @param {...unknown} details */
export function warn(message, ...details) {
  (listener ?? console.warn)(`abp-bridge: ${message}`, ...details);
}
