/**
 * Checks the options that a program passes. The code that warns about unknown names is loaded when
 * the first one is found.
 */
import { tell } from './development.js';
import { AbpError } from './errors.js';
import { getOwn, isRecord } from './values.js';

/**
 * The kinds of options in words, such as `a boolean or an object`, by their names. Quoted texts are
 * the allowed values: `"frames" or "none"`. The value of `anything` is checked elsewhere.
 * scripts/kinds.js writes the objects that are declared as `Kinds<Type>`.
 * @template [Options=any]
 * @template {string} [Others=never] names of options that are checked where they are read
 * @typedef {Record<string, string | undefined>} Kinds
 */

/** @typedef {{ signal?: AbortSignal, timeout?: number }} Ending Options that can end any call. */
/** @type {Kinds<Ending>} */
export const ENDING = { signal: 'an AbortSignal', timeout: 'a number' };

/**
 * @param {string | undefined} kind
 * @param {any} value
 * @returns {unknown} whether a value is of a kind, or absent; falsy if there is no kind
 */
function isOf(kind, value) {
  const type = typeof value;
  if (!kind || !value || kind === 'anything') return kind;
  // It may be from another realm, or from a library.
  if (kind === 'an AbortSignal') return value.addEventListener;
  if (type === 'object' && kind.includes('numbers')) return !misfit(value, {}, 'a number');
  if (type === 'number') return kind.includes('a number') && value >= 0;
  return kind.includes(type) || (type === 'string' && kind.includes(`"${value}"`));
}

/**
 * Finds an option that is not of its kind, or that has no kind. Falsy values count as absent.
 * @param {any} options
 * @param {Kinds} kinds
 * @param {string} [otherwise] the kind of options that have none
 * @returns {string | undefined} its name; `options` if the value is not an options object
 */
export function misfit(options, kinds, otherwise) {
  options = Object(options);
  // A context has a signal. A signal in place of options, as for `addEventListener`, would be read
  // as options without one.
  if (!isRecord(options) && !('signal' in options)) return 'options';
  return Object.keys(options).find(
    (name) => !isOf(/** @type {string} */ (getOwn(kinds, name)) ?? otherwise, options[name]),
  );
}

/**
 * The error of a value of the wrong kind.
 * @param {string} who the function that takes it
 * @param {string} name
 * @param {string} what the expected kind
 */
export const mistyped = (who, name, what) =>
  new AbpError('INVALID_PARAMS', `${name} of ${who} must be ${what}`);

/**
 * True if a value is a valid `highWaterMark`, or undefined.
 * @param {unknown} value
 */
export const isHighWaterMark = (value) =>
  value === undefined || (typeof value === 'number' && value >= 1 && !(value % 1));

/**
 * Throws unless a value is present and of a kind.
 * @param {string} who the function that takes it
 * @param {string} name
 * @param {string} kind
 * @param {unknown} value
 */
export function requireOf(who, name, kind, value) {
  if (!value || Array.isArray(value) || !isOf(kind, value)) throw mistyped(who, name, kind);
}

/**
 * Throws if an option is null, NaN or false and that is not of its kind: for options whose falsy
 * values do not count as absent.
 * @param {string} who the function that takes them
 * @param {object} options
 * @param {Kinds} kinds
 */
export function requireValues(who, options, kinds) {
  for (const [name, value] of Object.entries(options)) {
    const kind = kinds[name] ?? '';
    if (value === null || value !== value || (value === false && !kind.includes('boolean')))
      throw mistyped(who, name, kind);
  }
}

/**
 * The error of a call with another value than options after its params: `sum(1, 2)` instead of
 * `sum([1, 2])`.
 * @param {string} who the function that was called
 * @param {string} form the correct form of the call
 * @param {boolean} isMore whether the value follows options
 */
export function formError(who, form, isMore) {
  const why = isMore
    ? `${who} takes nothing after its options`
    : `options of ${who} must be an object`;
  const hint =
    'where params is one value, such as [1, 2] or { a: 1, b: 2 } (docs/errors.md#several-params)';
  return new AbpError('INVALID_PARAMS', `${why}: write ${form}, ${hint}`);
}

/**
 * Throws that error if the arguments after params are not options.
 * @param {string} who the function that was called
 * @param {string} form
 * @param {any[]} rest the arguments after params
 */
export function requireForm(who, form, [options, ...more]) {
  const isMore = more.some((each) => each !== undefined);
  if (isMore || misfit(options, {}, 'anything')) throw formError(who, form, isMore);
}

/**
 * Throws if an option is not of its kind, and warns about unknown names: a misspelt `signal` makes
 * a call that cannot be stopped.
 * @param {string} who the function that takes them
 * @param {any} options
 * @param {Kinds} kinds
 * @param {boolean} [isPart] whether other code reads the other options
 */
export function requireOptions(who, options, kinds, isPart) {
  const name = misfit(options, kinds, 'anything');
  if (name !== undefined) throw mistyped(who, name, kinds[name] ?? 'an object: pass { signal }');
  if (!isPart && (misfit(options, kinds) !== undefined || options?.limits))
    tell((dev) => dev.warnOfUnread(who, options, kinds));
}
