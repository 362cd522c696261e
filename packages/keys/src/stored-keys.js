/** What the stores that outlive their app have in common: their options and limit, and what a call is told that wants to begin. */
import { AbpError } from '../../../js/common/errors.js';
import { requireOptions } from '../../../js/common/check-options.js';

/** @import { KeyEnded, KeyFound } from '../types/store.js' */

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
const CLEANING = 60_000;

export class StoredKeys {
  /** What names this process, or page, among those who share the store. */
  self = '';
  /** Keys whose calls run here. @type {Set<string>} */
  live = new Set();
  /** How many keys are kept. */
  count = 0;
  #cleaned = -Infinity;

  /**
   * @param {string} who
   * @param {KeysOptions & Record<string, unknown>} options
   * @param {import('../../../js/common/check-options.js').Kinds} [kinds] of its own options
   * @throws {AbpError} INVALID_PARAMS
   */
  constructor(who, options, kinds) {
    requireOptions(who, options, { ...OPTIONS, ...kinds });
    ({ rememberFor: this.rememberFor = 604_800_000, capacity: this.capacity = 100_000 } =
      options ?? {});
  }

  /**
   * What a call is told that wants to begin.
   * @param {{ at?: number | null, ended?: KeyEnded } | undefined} entry what is written of its key: how and when its call ended, if it has
   * @returns {KeyFound | undefined} undefined if its call has begun, and not ended
   */
  find(entry) {
    const { at, ended } = entry ?? {};
    if (!entry && this.count >= this.capacity) {
      const why = 'Too many calls with an idempotencyKey are remembered';
      throw new AbpError('RATE_LIMITED', why, { retryable: true });
    }
    if (entry && !ended) return undefined;
    const isOld = ended && Date.now() - Number(at) > this.rememberFor;
    if (ended && !ended.again && !isOld) return { state: 'ended', ended };
    return { state: 'begun', report: isOld ? undefined : ended?.report };
  }

  /** Whether what is too old is to be deleted, and the rest counted: now and then, and when there is no room. */
  isDue() {
    const due = performance.now() - this.#cleaned >= CLEANING || this.count >= this.capacity;
    if (due) this.#cleaned = performance.now();
    return due;
  }
}

/** Of what cannot be kept, or is too large: that it ended. @param {KeyEnded} ended @returns {KeyEnded} */
export const withoutValue = ({ value: _value, ...rest }) => rest;
