/**
 * A store of keys for pages and workers of one origin, in IndexedDB. Each page or worker holds a
 * lock while it runs (Web Locks), so that the others know. The browser releases the lock when the
 * page ends, for any reason.
 */
import { AbpError, safely } from '../../js/common/errors.js';
import { secret } from '../../js/common/secret.js';
import { StoredKeys } from './stored-keys.js';

/** @import { KeyStore } from './store.js' */
/** @import { KeysOptions, Table } from './stored-keys.js' */

/**
 * Settles with the result of a request.
 * @template T
 * @param {IDBRequest<T>} request
 * @returns {Promise<T>}
 */
const resultOf = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** @implements {Table} */
class IndexedDBTable {
  self = '';
  #name;
  /** @type {Promise<{ database: IDBDatabase, id: string }> | undefined} */
  #opening;
  /** The id that agents received. @type {string | undefined} */
  #id;
  /** Releases the lock. */
  #release = () => {};

  /** @param {string} name */
  constructor(name) {
    this.#name = name;
  }

  async open() {
    return (await this.#opened()).id;
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
      // Created together with the database, the id lasts as long as its entries.
      request.result.createObjectStore('about').put(secret(), 'id');
    };
    const database = await resultOf(request);
    database.onversionchange = () => database.close();
    database.onclose = () => (this.#opening = undefined);
    const id = await resultOf(database.transaction('about').objectStore('about').get('id'));
    this.#id ??= id;
    return { database, id };
  }

  /** Holds a lock while this page runs, so that others can see that it does. */
  #hold() {
    this.#release();
    this.self = secret();
    return new Promise((resolve, reject) => {
      // Without locks it is not known whether others run: calls that they have begun count as lost.
      if (!navigator.locks) return resolve(undefined);
      const held = new Promise((release) => (this.#release = () => release(undefined)));
      navigator.locks
        .request(`${this.#name} ${this.self}`, () => {
          resolve(undefined);
          return held;
        })
        .catch(reject);
    });
  }

  /** @type {Table['lives']} */
  async lives(owner) {
    const locks = await navigator.locks?.query();
    return locks?.held?.some(({ name }) => name === `${this.#name} ${owner}`) ?? false;
  }

  /**
   * Makes a change. When this resolves it is on the disk; if it rejects, nothing has changed.
   * @template T
   * @param {(keys: IDBObjectStore) => Promise<T>} change may await only requests
   * @returns {Promise<T>}
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
      // The database may have been deleted, and with it all entries.
      if ((await resultOf(transaction.objectStore('about').get('id'))) !== this.#id)
        throw new AbpError('KEYS_UNAVAILABLE', 'The store of keys was deleted: reload the app');
      const result = await change(transaction.objectStore('keys'));
      await written;
      return result;
    } catch (error) {
      // The transaction may have ended.
      safely(() => transaction.abort(), undefined);
      throw error;
    }
  }

  /** @type {Table['replace']} */
  replace(key, next) {
    return this.#change(async (keys) => {
      const entry = next(await resultOf(keys.get(key)));
      if (entry) await resultOf(keys.put({ key, ...entry }));
    });
  }

  /** @type {Table['clean']} */
  clean(before) {
    return this.#change(async (keys) => {
      const old = IDBKeyRange.upperBound(before, true);
      for (const key of await resultOf(keys.index('at').getAllKeys(old))) keys.delete(key);
      return resultOf(keys.count());
    });
  }

  async close() {
    this.#release();
    const opening = this.#opening;
    this.#opening = undefined;
    await opening?.then(
      ({ database }) => database.close(),
      () => {},
    );
  }
}

/**
 * A store of keys in IndexedDB, for the pages and workers of this origin. A browser may delete it
 * when the disk is full, unless `navigator.storage.persist()` was granted.
 * @param {KeysOptions & { name?: string }} [options] `name` is the name of the database
 *   (`abp-bridge-keys`)
 * @returns {KeyStore}
 * @throws {AbpError} INVALID_PARAMS
 */
export function indexedDBKeys(options = {}) {
  const table = new IndexedDBTable(options?.name ?? 'abp-bridge-keys');
  return new StoredKeys('indexedDBKeys', table, options, { name: 'a string' });
}
