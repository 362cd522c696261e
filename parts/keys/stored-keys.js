/**
 * The rules of the stores that outlive their app. A store is a table (`sqlite.js`, `indexeddb.js`)
 * in which one entry is read and replaced at once, and in which each process or page holds a lock
 * as long as it lives.
 */
import { AbpError } from '../../js/common/errors.js';
import { requireOptions } from '../../js/common/check-options.js';

/** @import { KeyEnded, KeyFound, KeyStore } from './store.js' */

/**
 * @typedef {object} KeysOptions What a store remembers.
 * @property {number} [rememberFor] ms for which a key is known after its call has ended (604800000,
 *   a week). All who share the store should say the same
 * @property {number} [capacity] keys that are kept; with as many, no call with another begins
 *   (100000)
 */

/** @type {import('../../js/common/check-options.js').Kinds<KeysOptions>} */
const OPTIONS = { capacity: 'a number', rememberFor: 'a number' };

/**
 * @typedef {object} Entry Who began the call of a key, with which params and, once that has ended,
 *   when and how. Entries of earlier versions have no digest.
 * @property {string} owner
 * @property {string | null} [digest]
 * @property {number | null} [at]
 * @property {KeyEnded} [ended]
 */

/**
 * @typedef {object} Table Where the keys are. `replace`, `lives` and `clean` open it.
 * @property {string} self what names this process, or page, among those who share it
 * @property {() => string | Promise<string>} open gives its id
 * @property {(key: string, next: (entry: Entry | undefined) => Entry | undefined) => Promise<void>}
 *   replace puts what `next` returns, if that is something, in the place of what is there. It is on
 *   the disk when this resolves; nothing has changed if it rejects
 * @property {(owner: string) => boolean | Promise<boolean>} lives whether the process or page that
 *   began a call lives
 * @property {(before: number) => Promise<number>} clean deletes what ended before a time, and
 *   counts the rest
 * @property {() => void | Promise<void>} close
 */

/** How often what is too old is deleted, in ms. */
const CLEANING = 60_000;

/** @implements {KeyStore} */
export class StoredKeys {
  /** Keys whose calls run here, each with what is its run's own. @type {Map<string, object>} */
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
   * @param {import('../../js/common/check-options.js').Kinds} [own] kinds of its own options
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
    // Now and then, and when there is no room.
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
      this.#live.set(key, run); // those who ask at the same time see it
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
    // It may have ended since it was read.
    return entry?.ended ? this.begin(key, digest) : { state: 'lost' };
  }

  /**
   * What a call is told that wants to begin: undefined if one has, and has not ended.
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
      // It may be the value that cannot be kept, or is too large.
      await write(ended).catch((error) => {
        if (!isReached || value === undefined) throw error;
        return write(rest);
      });
    } finally {
      this.#leave(key, run);
    }
  }

  /**
   * A call runs no more. As soon as that is written another may have begun.
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
