/**
 * A store in memory for calls that have a key and have ended: for an app without a store of its
 * own, and for entries that its store could not write.
 */
import { AbpError } from '../../js/common/errors.js';
import { sizeOf } from '../../js/common/value-size.js';

/** @import { KeyEnded, KeyFound } from './store.js' */

/**
 * The most calls with a key in memory. An agent may have at most as many as there is room left, so
 * that no agent takes it all.
 */
const MAX_KEYED = 16_384;
/** The most bytes of the result of one call with a key, and in memory of all such results. */
export const MAX_BYTES = 4_194_304;

/**
 * The owner of a key.
 * @param {string} name the entry's name: [owner, capability, key] as JSON
 */
const ownerIn = (name) => JSON.parse(name)[0];

export class LocalStore {
  /**
   * The ended calls by key, the oldest first.
   * @type {Map<string, { at: number, ended: KeyEnded, size: number }>}
   */
  #ended = new Map();
  /** The number of such calls for each agent. @type {Map<string, number>} */
  #owned = new Map();
  #bytes = 0;
  #rememberFor;

  /** @param {number} rememberFor ms */
  constructor(rememberFor) {
    this.#rememberFor = rememberFor;
  }

  /**
   * Finds an entry that keeps a call with these params from beginning, and deletes entries that are
   * too old.
   * @param {string} key
   * @param {string} digest
   * @returns {KeyFound | undefined}
   */
  find(key, digest) {
    const now = performance.now();
    for (const [old, { at }] of this.#ended) {
      if (now - at <= this.#rememberFor) break;
      this.#delete(old);
    }
    const ended = this.#ended.get(key)?.ended;
    if (ended?.digest && ended.digest !== digest) return { state: 'reused' };
    return ended && !ended.again ? { state: 'ended', ended } : undefined;
  }

  /**
   * @param {string} key
   * @param {string} digest
   * @returns {Promise<KeyFound>}
   */
  async begin(key, digest) {
    const found = this.find(key, digest);
    if (found) return found;
    const report = this.#ended.get(key)?.ended.report;
    this.#delete(key);
    const [oldest] = this.#ended.values();
    const owned = this.#owned.get(ownerIn(key)) ?? 0;
    if (oldest && owned >= MAX_KEYED - this.#ended.size) {
      const why = 'Too many calls with an idempotencyKey are remembered';
      const retryAfter = Math.ceil(oldest.at + this.#rememberFor - performance.now()) + 1;
      throw new AbpError('RATE_LIMITED', why, { retryable: true, retryAfter });
    }
    return { state: 'begun', report };
  }

  /**
   * @param {string} key
   * @param {KeyEnded} ended
   */
  async end(key, ended) {
    this.#delete(key);
    const size = 'value' in ended ? sizeOf(ended.value, MAX_BYTES) : 0;
    this.#ended.set(key, { at: performance.now(), ended, size });
    this.#count(key, 1, size);
    for (const entry of this.#ended.values()) {
      if (this.#bytes <= MAX_BYTES) return;
      // The entry stays without its value: it still shows that the call has run.
      entry.ended = { ...entry.ended };
      delete entry.ended.value;
      this.#bytes -= entry.size;
      entry.size = 0;
    }
  }

  clear() {
    for (const key of this.#ended.keys()) this.#delete(key);
  }

  /** @param {string} key */
  #delete(key) {
    const { size = 0 } = this.#ended.get(key) ?? {};
    if (this.#ended.delete(key)) this.#count(key, -1, -size);
  }

  /**
   * @param {string} key
   * @param {1 | -1} more
   * @param {number} bytes
   */
  #count(key, more, bytes) {
    const owner = ownerIn(key);
    const owned = (this.#owned.get(owner) ?? 0) + more;
    if (owned) this.#owned.set(owner, owned);
    else this.#owned.delete(owner);
    this.#bytes += bytes;
  }
}
