/**
 * A store of keys for pages and workers of one origin, in IndexedDB. Which of them lives is known by a lock that each holds (Web
 * Locks): the browser lets it go with the page, however that ends.
 */
import { AbpError, safely } from '../../../js/common/errors.js';
import { secret } from '../../../js/common/secret.js';
import { StoredKeys, withoutValue } from './stored-keys.js';

/** @typedef {import('./stored-keys.js').KeysOptions} KeysOptions What a store remembers. */

/** @import { KeyEnded, KeyFound, KeyStore } from '../types/store.js' */

/**
 * What is written of a key: who began its call and, once that has ended, when and how.
 * @typedef {{ key: string, owner: string, at?: number, ended?: KeyEnded }} Entry
 */

/**
 * Settles with a request.
 * @template T
 * @param {IDBRequest<T>} request
 * @returns {Promise<T>}
 */
const resultOf = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** @implements {KeyStore} */
class IndexedDBKeys extends StoredKeys {
  #name;
  /** @type {Promise<{ database: IDBDatabase, id: string }> | undefined} */
  #opening;
  /** The id that agents were told. @type {string | undefined} */
  #id;
  /** Lets the lock go. */
  #release = () => {};

  /** @param {any} options */
  constructor(options) {
    super('indexedDBKeys', options, { name: 'a string' });
    this.#name = options?.name ?? 'abp-bridge-keys';
  }

  async open() {
    const { id } = await this.#opened();
    return { id, rememberFor: this.rememberFor };
  }

  #opened() {
    return (this.#opening ??= this.#open().catch((error) => {
      this.#opening = undefined;
      throw error;
    }));
  }

  async #open() {
    await this.#hold();
    const request = indexedDB.open(this.#name, 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore('keys', { keyPath: 'key' }).createIndex('at', 'at');
      // Made with it, the id lasts as long as what is in it.
      request.result.createObjectStore('about').put(secret(), 'id');
    };
    const database = await resultOf(request);
    database.onversionchange = () => database.close();
    database.onclose = () => (this.#opening = undefined);
    const id = await resultOf(database.transaction('about').objectStore('about').get('id'));
    this.#id ??= id;
    return { database, id };
  }

  /** Holds a lock as long as this page lives: the others see it. */
  #hold() {
    this.#release();
    this.self = secret();
    return new Promise((resolve, reject) => {
      // Without locks it is not known whether others live: what they have begun counts as lost.
      if (!navigator.locks) return resolve(undefined);
      const held = new Promise((release) => (this.#release = () => release(undefined)));
      navigator.locks
        .request(this.#lockOf(this.self), () => {
          resolve(undefined);
          return held;
        })
        .catch(reject);
    });
  }

  /** @param {string} owner */
  #lockOf(owner) {
    return `${this.#name} ${owner}`;
  }

  /** Whether the page that began a call lives. @param {string} owner */
  async #lives(owner) {
    const locks = await navigator.locks?.query();
    return locks?.held?.some(({ name }) => name === this.#lockOf(owner)) ?? false;
  }

  /**
   * Makes a change, which is on the disk when this resolves.
   * @template T
   * @param {(keys: IDBObjectStore) => Promise<T>} change may await nothing but requests
   * @returns {Promise<T>} rejects if nothing has changed
   */
  async #change(change) {
    const { database } = await this.#opened();
    const transaction = database.transaction(['about', 'keys'], 'readwrite', {
      durability: 'strict',
    });
    const written = new Promise((resolve, reject) => {
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error ?? new Error('It was aborted'));
    });
    written.catch(() => {});
    try {
      // Others may have deleted all of it, and with it what is known of keys.
      if ((await resultOf(transaction.objectStore('about').get('id'))) !== this.#id)
        throw new AbpError('KEYS_UNAVAILABLE', 'The store of keys was deleted: reload the app');
      const result = await change(transaction.objectStore('keys'));
      await written;
      return result;
    } catch (error) {
      // It may be over.
      safely(() => transaction.abort(), undefined);
      throw error;
    }
  }

  /** @param {string} key @returns {Promise<KeyFound>} */
  async begin(key) {
    await this.#clean();
    const isLive = this.live.has(key);
    try {
      const { found, owner } = await this.#change(async (keys) => {
        /** @type {Entry | undefined} */
        const entry = await resultOf(keys.get(key));
        const found = this.find(entry);
        if (found?.state === 'begun') {
          // Those who ask at the same time see it.
          this.live.add(key);
          await resultOf(keys.put({ key, owner: this.self }));
        }
        return { found, owner: entry?.owner ?? '' };
      });
      if (found?.state === 'begun') this.count++;
      if (found) return found;
      const lives = owner === this.self ? this.live.has(key) : await this.#lives(owner);
      if (lives) return { state: 'running' };
      // It may have ended since it was read.
      const { database } = await this.#opened();
      const now = await resultOf(database.transaction('keys').objectStore('keys').get(key));
      return now?.ended ? this.begin(key) : { state: 'lost' };
    } catch (error) {
      if (!isLive) this.live.delete(key);
      throw error;
    }
  }

  /** @param {string} key @param {KeyEnded} ended */
  async end(key, ended) {
    const write = (/** @type {KeyEnded} */ ended) =>
      this.#change(async (keys) => {
        const entry = await resultOf(keys.get(key));
        if (entry?.owner !== this.self || entry.ended) return;
        await resultOf(keys.put({ key, owner: this.self, at: Date.now(), ended }));
      });
    try {
      await write(ended).catch((error) => {
        if (!('value' in ended)) throw error;
        // It may be that which cannot be kept, or is too large.
        return write(withoutValue(ended));
      });
    } finally {
      this.live.delete(key);
    }
  }

  /** Deletes what is too old, now and then, and counts the rest. */
  async #clean() {
    if (!this.isDue()) return;
    this.count = await this.#change(async (keys) => {
      const old = IDBKeyRange.upperBound(Date.now() - this.rememberFor, true);
      for (const key of await resultOf(keys.index('at').getAllKeys(old))) keys.delete(key);
      return resultOf(keys.count());
    });
  }

  async close() {
    this.#release();
    this.live.clear();
    const opening = this.#opening;
    this.#opening = undefined;
    await opening?.then(
      ({ database }) => database.close(),
      () => {},
    );
  }
}

/**
 * A store of keys in IndexedDB, for the pages and workers of this origin. A browser may delete it when the disk is full, unless
 * `navigator.storage.persist()` was granted.
 * @param {KeysOptions & { name?: string }} [options] `name` is that of the database (`abp-bridge-keys`)
 * @returns {KeyStore}
 * @throws {AbpError} INVALID_PARAMS
 */
export function indexedDBKeys(options = {}) {
  return new IndexedDBKeys(options);
}
