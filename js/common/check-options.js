/** Finds options that a program gave wrong. What is said of them is in option-mistakes.js, and loaded when there is something to say. */
import { AbpError } from './errors.js';
import { isObject, isRecord } from './values.js';

/** The type of an option that is looked at elsewhere. */
export const ANYTHING = 'anything';
/** The type of an option that is a signal, of any realm or of a library. */
export const SIGNAL = 'an AbortSignal';
/** The type of `limits`. */
export const NUMBERS = 'an object of numbers';
/** What can end any call. */
export const ENDING = { signal: SIGNAL, timeout: 'a number' };

/**
 * The types of options in words, such as `a boolean or an object`, by their names. Texts of which an option is one stand there in
 * quotes: `"frames" or "none"`.
 * @typedef {Record<string, string | undefined>} OptionTypes
 */

/**
 * Finds an option that is not of its type, or that nothing reads. What is falsy is taken for absent.
 * @param {any} options only its own properties count
 * @param {OptionTypes} types
 * @returns {string | undefined} its name
 */
export const misfit = (options, types) =>
  areOptions(options)
    ? Object.keys(options ?? {}).find((key) => !isOf(types[key], options[key]))
    : 'options';

/** Whether something can be options: an object of them, or a context, which has a signal. @param {any} options */
const areOptions = (options) =>
  isRecord(options ?? {}) || (isObject(options) && 'signal' in options);

/**
 * Throws if something is given in the place of options that is none: a signal, as `addEventListener` has it, would be read as
 * options without one.
 * @param {string} who whose options they are
 * @param {unknown} options
 * @throws {AbpError} INVALID_PARAMS
 */
export function requireOptionsObject(who, options) {
  if (!areOptions(options)) throw mistyped(who, 'options', 'an object: pass { signal }');
}

/**
 * @param {string | undefined} type
 * @param {any} value
 * @returns {unknown} whether the value is of that type; falsy if there is no type
 */
export function isOf(type, value) {
  const kind = typeof value;
  if (!type || !value || type === ANYTHING) return type;
  if (type === SIGNAL) return value.addEventListener;
  if (type === NUMBERS) return kind === 'object' && Object.values(value).every(isLimit);
  if (type.includes(kind)) return kind !== 'number' || value >= 0;
  return kind === 'string' && type.includes(`"${value}"`);
}

/** @param {unknown} value */
const isLimit = (value) => isOf('a number', value);

/**
 * @param {string} who whose options they are
 * @param {string} name
 * @param {string | undefined} type
 */
export const mistyped = (who, name, type) =>
  new AbpError('INVALID_PARAMS', `${name} of ${who} must be ${type}`);

/**
 * Throws if an option is not of its type.
 * @param {string} who whose options they are
 * @param {object} options
 * @param {OptionTypes} types
 * @returns {string | undefined} the name of one that nothing reads
 * @throws {AbpError} INVALID_PARAMS
 */
export function requireTypes(who, options, types) {
  requireOptionsObject(who, options);
  const name = misfit(options, types);
  if (name && types[name]) throw mistyped(who, name, types[name]);
  return name;
}

/**
 * Throws if an option is not of its type, and warns of names that nothing reads: a misspelt `signal` makes a call that cannot be
 * stopped. What warns is loaded when there is something to look at.
 * @param {string} who whose options they are
 * @param {any} options
 * @param {OptionTypes} types
 * @throws {AbpError} INVALID_PARAMS
 */
export function requireOptions(who, options, types) {
  if (!requireTypes(who, options, types) && !options?.limits) return;
  import('./option-mistakes.js').then(
    (loaded) => loaded.checkOptions(who, options, types),
    () => {},
  );
}
