/**
 * The rules of the stores that outlive their app. A store is a table (`sqlite.js`, `indexeddb.js`)
 * in which an entry is read and replaced in one step. Each process or page holds a lock while it
 * runs.
 */
import { AbpError } from '../../js/common/errors.js';
import { requireOptions } from '../../js/common/check-options.js';

/** @import { KeyEnded, KeyFound, KeyStore } from './store.js' */

/**
 * @typedef {object} KeysOptions The options of a store.
 * @property {number} [rememberFor] how long a key is remembered after its call has ended, in ms
 *   (604800000, a week). All users of a store should have the same value
 * @property {number} [capacity] the most keys; when it is reached, no call with a new key begins
 *   (100000)
 */

/** @type {import('../../js/common/check-options.js').Kinds<KeysOptions>} */
const OPTIONS = { capacity: 'a number', rememberFor: 'a number' };

/**
 * @typedef {object} Entry The owner of the call of a key, the digest of its params and, once it has
 *   ended, the time and the outcome. Entries of earlier versions have no digest.
 * @property {string} owner
 * @property {string | null} [digest]
 * @property {number | null} [at]
 * @property {KeyEnded} [ended]
 */

/**
 * @typedef {object} Table The table of keys. `replace`, `lives` and `clean` open it.
 * @property {string} self the name of this process or page among the users of the table
 * @property {() => string | Promise<string>} open returns its id
 * @property {(key: string, next: (entry: Entry | undefined) => Entry | undefined) => Promise<void>}
 *   replace replaces an entry by the result of `next`, unless that is undefined. When this resolves
 *   the change is on the disk; if it rejects, nothing has changed
 * @property {(owner: string) => boolean | Promise<boolean>} lives whether the process or page that
 *   began a call still runs
 * @property {(before: number) => Promise<number>} clean deletes entries that ended before a time,
 *   and returns the number of the rest
 * @property {() => void | Promise<void>} close
 */

/** How often old entries are deleted, in ms. */
const CLEANING = 60_000;

/** @implements {KeyStore} */
export class StoredKeys {
  /**
   * The keys of calls that run here, each with an object for its run. @type {Map<string, object>}
   */
  #live = new Map();
  #count = 0;
  #cleaned = -Infinity;
  #table;
  #rememberFor;
  #capacity;

  /**
   * @param {string} who
   * @param {Table} table
   * @param {KeysOptions} options
   * @param {import('../../js/common/check-options.js').Kinds} [own] the kinds of the store's own
   *   options
   */
  constructor(who, table, options, own) {
    requireOptions(who, options, { ...OPTIONS, ...own });
    this.#table = table;
    this.#rememberFor = options?.rememberFor ?? 604_800_000;
    this.#capacity = options?.capacity ?? 100_000;
  }

  async open() {
    return { id: await this.#table.open(), rememberFor: this.#rememberFor };
  }

  /**
   * @param {string} key
   * @param {string} digest
   * @returns {Promise<KeyFound>}
   */
  async begin(key, digest) {
    const table = this.#table;
    // From time to time, and when there is no room.
    if (performance.now() - this.#cleaned >= CLEANING || this.#count >= this.#capacity) {
      this.#cleaned = performance.now();
      this.#count = await table.clean(Date.now() - this.#rememberFor);
    }
    const run = {};
    /** @type {Entry | undefined} */
    let entry;
    /** @type {KeyFound | undefined} */
    let found;
    const begin = (/** @type {Entry | undefined} */ written) => {
      entry = written;
      found = this.#find(written, digest);
      if (found?.state !== 'begun') return undefined;
      this.#live.set(key, run); // visible to calls that ask at the same time
      return { owner: table.self, digest };
    };
    await table.replace(key, begin).catch((error) => {
      this.#leave(key, run);
      throw error;
    });
    if (found?.state === 'begun') this.#count++;
    if (found) return found;
    const owner = entry?.owner ?? '';
    const lives = owner === table.self ? this.#live.has(key) : await table.lives(owner);
    if (lives) return { state: 'running' };
    await table.replace(key, (written) => void (entry = written));
    // The call may have ended since the entry was read.
    return entry?.ended ? this.begin(key, digest) : { state: 'lost' };
  }

  /**
   * The state of a key for a call that wants to begin; undefined if another call has begun and not
   * ended.
   * @param {Entry | undefined} entry
   * @param {string} digest
   * @returns {KeyFound | undefined}
   */
  #find(entry, digest) {
    const { at, ended } = entry ?? {};
    if (!entry && this.#count >= this.#capacity) {
      const why = 'Too many calls with an idempotencyKey are remembered';
      throw new AbpError('RATE_LIMITED', why, { retryable: true });
    }
    const isOld = ended && Date.now() - Number(at) > this.#rememberFor;
    if (entry?.digest && entry.digest !== digest && !isOld) return { state: 'reused' };
    if (entry && !ended) return undefined;
    if (ended && !ended.again && !isOld) return { state: 'ended', ended };
    return { state: 'begun', report: isOld ? undefined : ended?.report };
  }

  /**
   * @param {string} key
   * @param {KeyEnded} ended
   */
  async end(key, ended) {
    const run = this.#live.get(key);
    let isReached = false;
    const write = (/** @type {KeyEnded} */ ended) =>
      this.#table.replace(key, (entry) => {
        isReached = true;
        const isOwn = entry?.owner === this.#table.self && !entry.ended;
        return isOwn ? { ...entry, digest: ended.digest, at: Date.now(), ended } : undefined;
      });
    const { value, ...rest } = ended;
    try {
      // Perhaps only the value cannot be kept, or is too large.
      await write(ended).catch((error) => {
        if (!isReached || value === undefined) throw error;
        return write(rest);
      });
    } finally {
      this.#leave(key, run);
    }
  }

  /**
   * Removes a call that no longer runs, unless another with its key has begun since.
   * @param {string} key
   * @param {object} [run]
   */
  #leave(key, run) {
    if (this.#live.get(key) === run) this.#live.delete(key);
  }

  close() {
    this.#live.clear();
    return this.#table.close();
  }
}
