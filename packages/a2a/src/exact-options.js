/**
 * Checks the options of agents and clients more strictly than elsewhere: unknown names and `null`
 * are rejected.
 */
import {
  AbpError,
  misfit,
  mistyped,
  requireOf,
  requireOptions,
  requireValues,
} from 'abp-bridge/driver';

/**
 * Throws unless each option is known and of its kind.
 * @param {string} who the function whose options they are
 * @param {any} options
 * @param {import('abp-bridge/driver').Kinds} kinds
 */
export function requireExactly(who, options, kinds) {
  requireOf(who, 'options', 'an object', options);
  requireOptions(who, options, kinds, true);
  requireValues(who, options, kinds);
  const name = misfit(options, kinds);
  if (name === undefined) return;
  const names = Object.keys(kinds).join(', ');
  throw new AbpError('INVALID_PARAMS', `${who} has no option ${name}; it has: ${names}`);
}

/**
 * Throws unless an option is a list of strings, or absent.
 * @param {string} who
 * @param {string} name
 * @param {unknown} list
 */
export function requireTextList(who, name, list = []) {
  if (!Array.isArray(list) || list.some((text) => typeof text !== 'string'))
    throw mistyped(who, name, 'a list of strings');
}
