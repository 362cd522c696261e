/**
 * Checks options that a program gave. What warns of names that nothing reads is loaded when there
 * is one.
 */
import { tell } from './development.js';
import { AbpError } from './errors.js';
import { getOwn, isRecord } from './values.js';

/**
 * The kinds of options in words, such as `a boolean or an object`, by their names. Texts of which
 * an option is one stand there in quotes: `"frames" or "none"`; `anything` is looked at elsewhere.
 * scripts/kinds.js writes what is declared as `Kinds<Type>`.
 * @template [Options=any]
 * @template {string} [Others=never] names of those that are looked at where they are read
 * @typedef {Record<string, string | undefined>} Kinds
 */

/** @typedef {{ signal?: AbortSignal, timeout?: number }} Ending What can end any call. */
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
  // Of another realm, or of a library.
  if (kind === 'an AbortSignal') return value.addEventListener;
  if (type === 'object' && kind.includes('numbers')) return !misfit(value, {}, 'a number');
  if (type === 'number') return kind.includes('a number') && value >= 0;
  return kind.includes(type) || (type === 'string' && kind.includes(`"${value}"`));
}

/**
 * Finds an option that is not of its kind, or that nothing reads. What is falsy is taken for
 * absent.
 * @param {any} options
 * @param {Kinds} kinds
 * @param {string} [otherwise] the kind of those that have none
 * @returns {string | undefined} its name; `options` if these are none
 */
export function misfit(options, kinds, otherwise) {
  options = Object(options);
  // A context has a signal. A signal in the place of options, as `addEventListener` has it, would
  // be read as options without one.
  if (!isRecord(options) && !('signal' in options)) return 'options';
  return Object.keys(options).find(
    (name) => !isOf(/** @type {string} */ (getOwn(kinds, name)) ?? otherwise, options[name]),
  );
}

/**
 * What is not what it must be.
 * @param {string} who whose it is
 * @param {string} name
 * @param {string} what it must be
 */
export const mistyped = (who, name, what) =>
  new AbpError('INVALID_PARAMS', `${name} of ${who} must be ${what}`);

/**
 * Whether a stream may have such a `highWaterMark`, or none.
 * @param {unknown} value
 */
export const isHighWaterMark = (value) =>
  value === undefined || (typeof value === 'number' && value >= 1 && !(value % 1));

/**
 * Throws unless a value is there, and of a kind.
 * @param {string} who whose it is
 * @param {string} name
 * @param {string} kind
 * @param {unknown} value
 */
export function requireOf(who, name, kind, value) {
  if (!value || Array.isArray(value) || !isOf(kind, value)) throw mistyped(who, name, kind);
}

/**
 * Throws if an option is null, NaN or false and that is not of its kind, for those who would not
 * take it for absent.
 * @param {string} who whose options they are
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
 * The error of a call behind whose params something else stands than options: `sum(1, 2)` was meant
 * as `sum([1, 2])`.
 * @param {string} who whose options they are
 * @param {string} form how it is written
 * @param {boolean} isMore whether it stands behind options
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
 * Throws it where it is due.
 * @param {string} who whose options they are
 * @param {string} form
 * @param {any[]} rest what stands behind params
 */
export function requireForm(who, form, [options, ...more]) {
  const isMore = more.some((each) => each !== undefined);
  if (isMore || misfit(options, {}, 'anything')) throw formError(who, form, isMore);
}

/**
 * Throws if an option is not of its kind, and warns of names that nothing reads: a misspelt
 * `signal` makes a call that cannot be stopped.
 * @param {string} who whose options they are
 * @param {any} options
 * @param {Kinds} kinds
 * @param {boolean} [isPart] whether something else reads the others
 */
export function requireOptions(who, options, kinds, isPart) {
  const name = misfit(options, kinds, 'anything');
  if (name !== undefined) throw mistyped(who, name, kinds[name] ?? 'an object: pass { signal }');
  if (!isPart && (misfit(options, kinds) !== undefined || options?.limits))
    tell((dev) => dev.warnOfUnread(who, options, kinds));
}
