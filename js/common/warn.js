/**
 * Warns of a mistake that would go unnoticed. What takes the warnings is loaded with the first of them.
 * @param {string} message what is wrong and what to do
 * @param {...unknown} details
 */
export const warn = (message, ...details) =>
  void import('./warnings.js').then(
    (loaded) => loaded.warn(message, ...details),
    () => {},
  );
