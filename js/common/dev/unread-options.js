/** Warns of options that nothing reads. */
import { similarName } from '../similar-name.js';
import { warn } from '../warnings.js';

/** @import { Kinds } from '../check-options.js' */

/** The kinds of `Limits` in js/driver/abp-core.js */
// prettier-ignore
const LIMITS = {
  firstNumber: 'a number', grace: 'a number', heartbeat: 'a number', maxCalls: 'a number', maxConcurrent: 'a number',
  maxControlLength: 'a number', maxIdLength: 'a number', probe: 'a number', rememberFor: 'a number', remembered: 'a number',
  streamBytes: 'a number', streamChunks: 'a number',
};

/** Names of options that were warned of. */
const MAX_WARNED = 100;
/** @type {Set<string>} */
const warned = new Set();

/**
 * Warns once of each option, or member, that nothing reads.
 * @param {string} who whose they are
 * @param {any} options
 * @param {Kinds} kinds of those that are read
 */
export function warnOfUnread(who, options, kinds) {
  const names = Object.keys(kinds);
  for (const name of Object.keys(options ?? {})) {
    const id = `${who} ${name}`;
    if (names.includes(name) || warned.has(id) || warned.size >= MAX_WARNED) continue;
    warned.add(id);
    const near = similarName(name, names);
    const hint = near === undefined ? `it has ${names.join(', ')}` : `did you mean ${near}?`;
    const what = /^(capability|the definition)/.test(who) ? 'member' : 'option';
    warn(`${who} has no ${what} ${name.slice(0, 64)}: ${hint} (docs/errors.md#warnings)`);
  }
  if (kinds.limits) warnOfUnread('limits', options?.limits, LIMITS);
}
