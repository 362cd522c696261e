/** Checks options that a program gave: a wrong one throws an `AbpError` of code `INVALID_PARAMS`, and nothing has happened. */
import { AbpError } from './errors.js';
import { isObject } from './values.js';

/**
 * @param {string} who whose option it is
 * @param {string} key its name
 * @param {string} what it must be
 */
export const invalidOption = (who, key, what) =>
  new AbpError('INVALID_PARAMS', `${key} of ${who} must be ${what}`);

/**
 * Throws unless a value is an object that is no list.
 * @param {string} who
 * @param {string} key
 * @param {unknown} value
 */
export function requireObject(who, key, value) {
  if (!isObject(value) || Array.isArray(value)) throw invalidOption(who, key, 'an object');
}

/**
 * Throws unless each value, a count or a time in ms, is a number from 0 on, or absent. Infinity is allowed.
 * @param {string} who
 * @param {Record<string, unknown>} values by their names
 */
export function requireNumbers(who, values) {
  for (const [key, value] of Object.entries(values)) {
    if (value === undefined || (typeof value === 'number' && value >= 0)) continue;
    throw invalidOption(who, key, 'a number that is not negative');
  }
}

/**
 * Throws unless each value is a function or absent.
 * @param {string} who
 * @param {Record<string, unknown>} values by their names
 */
export function requireFunctions(who, values) {
  for (const [key, value] of Object.entries(values)) {
    if (value !== undefined && typeof value !== 'function') {
      throw invalidOption(who, key, 'a function');
    }
  }
}

/**
 * Throws unless a value is an AbortSignal or absent. Signals may be of other realms, or of a library.
 * @param {string} who
 * @param {any} signal
 */
export function requireSignal(who, signal) {
  if (signal === undefined || signal === null) return;
  if (typeof signal.addEventListener === 'function' && typeof signal.aborted === 'boolean') return;
  throw invalidOption(who, 'signal', 'an AbortSignal');
}

/**
 * Throws unless a value is a list of texts or absent.
 * @param {string} who
 * @param {string} key
 * @param {unknown} value
 */
export function requireListOfTexts(who, key, value) {
  if (value === undefined) return;
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return;
  throw invalidOption(who, key, 'a list of strings');
}

/**
 * Throws if an object has an option that nothing reads, such as a misspelt one.
 * @param {string} who
 * @param {object} options
 * @param {string[]} known names
 */
export function requireKnown(who, options, known) {
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  const message = `${who} has no option ${unknown}; it has: ${known.join(', ')}`;
  throw new AbpError('INVALID_PARAMS', message);
}
