/** Warns about unknown options. */
import { similarName } from '../../js/common/similar-name.js';
import { warnOnce } from './warnings.js';

/** @import { Kinds } from '../../js/common/check-options.js' */

/** The kinds of `Limits` in js/driver/abp-core.js */
const LIMITS = {
  firstNumber: 'a number',
  grace: 'a number',
  heartbeat: 'a number',
  maxCalls: 'a number',
  maxConcurrent: 'a number',
  maxControlLength: 'a number',
  maxIdLength: 'a number',
  probe: 'a number',
  rememberFor: 'a number',
  remembered: 'a number',
  streamBytes: 'a number',
  streamChunks: 'a number',
};

/**
 * Warns once about each unknown option or member.
 * @param {string} who the function, or the object, that has them
 * @param {any} options
 * @param {Kinds} kinds the known options
 */
export function warnOfUnread(who, options, kinds) {
  const names = Object.keys(kinds);
  for (const name of Object.keys(options ?? {})) {
    if (names.includes(name)) continue;
    const near = similarName(name, names);
    const hint = near === undefined ? `it has ${names.join(', ')}` : `did you mean ${near}?`;
    const what = /^(capability|the definition)/.test(who) ? 'member' : 'option';
    const problem = `${who} has no ${what} ${name.slice(0, 64)}`;
    warnOnce(problem, `${problem}: ${hint} (docs/errors.md#warnings)`, LIMITS);
  }
  if (kinds.limits) warnOfUnread('limits', options?.limits, LIMITS);
}
