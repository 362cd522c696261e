/** What the stores have in common: their options, and their limit. */
import { AbpError } from '../../../js/common/errors.js';
import { requireOptions } from '../../../js/common/check-options.js';

/**
 * @typedef {object} KeysOptions What a store remembers.
 * @property {number} [rememberFor] ms for which a key is known after its call has ended (604800000, a week). All who share the store
 *   should say the same
 * @property {number} [capacity] keys that are kept; with as many, no call with another begins (100000)
 */

/** @type {import('../../../js/common/check-options.js').Kinds<KeysOptions>} */
// prettier-ignore
const OPTIONS = {
  capacity: 'a number', rememberFor: 'a number',
};

/** How often what is too old is deleted, in ms. */
export const CLEANING = 60_000;

/**
 * @param {string} who
 * @param {KeysOptions & Record<string, unknown>} options
 * @param {import('../../../js/common/check-options.js').Kinds} [kinds] of its own options
 * @returns {Required<KeysOptions>}
 * @throws {AbpError} INVALID_PARAMS
 */
export function readOptions(who, options, kinds = {}) {
  requireOptions(who, options, { ...OPTIONS, ...kinds });
  const { rememberFor = 604_800_000, capacity = 100_000 } = options ?? {};
  return { rememberFor, capacity };
}

/** There is no room for another key. */
export const full = () =>
  new AbpError('RATE_LIMITED', 'Too many calls with an idempotencyKey are remembered', {
    retryable: true,
  });
