/** Says what is wrong with options that a program gave. Loaded when something is, or may be. */
import { isOf, mistyped, requireOptionsObject } from './check-options.js';
import { similarName } from './similar-name.js';
import { warn } from './warnings.js';

/** @import { OptionTypes } from './check-options.js' */

/** Those of `limits`; see js/driver/abp-core.js. @type {OptionTypes} */
const LIMITS = Object.fromEntries(
  [
    ...['maxCalls', 'maxConcurrent', 'remembered', 'rememberFor', 'grace', 'maxIdLength'],
    ...['maxControlLength', 'heartbeat', 'probe', 'streamChunks', 'streamBytes', 'firstNumber'],
  ].map((name) => [name, 'a number']),
);

/** Names of options that were warned of. */
const MAX_WARNED = 100;
/** @type {Set<string>} */
const warned = new Set();

/**
 * Throws unless each option is of its type, and warns once of each that nothing reads: a misspelt `signal` makes a call that
 * cannot be stopped.
 * @param {string} who whose options they are
 * @param {any} options
 * @param {OptionTypes} types
 * @throws {import('./errors.js').AbpError} INVALID_PARAMS
 */
export function checkOptions(who, options, types) {
  requireOptionsObject(who, options);
  for (const [name, value] of Object.entries(options ?? {})) {
    const type = types[name];
    if (!type) warnOfName(who, name, Object.keys(types));
    else if (!isOf(type, value)) throw mistyped(who, name, type);
  }
  if (types.limits && options.limits) checkOptions('limits', options.limits, LIMITS);
}

/**
 * @param {string} who
 * @param {string} name
 * @param {string[]} names of what is read
 */
function warnOfName(who, name, names) {
  const id = `${who} ${name}`;
  if (warned.has(id) || warned.size >= MAX_WARNED) return;
  warned.add(id);
  const near = similarName(name, names);
  const hint = near === undefined ? `it has ${names.join(', ')}` : `did you mean ${near}?`;
  warn(`${who} has no option ${name.slice(0, 64)}: ${hint} (docs/errors.md#warnings)`);
}
