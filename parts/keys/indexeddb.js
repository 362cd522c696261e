/**
 * A store of keys for pages and workers of one origin, in IndexedDB. Which of them lives is known
 * by a lock that each holds (Web Locks): the browser lets it go with the page, however that ends.
 */
import { AbpError, safely } from '../../js/common/errors.js';
import { secret } from '../../js/common/secret.js';
import { StoredKeys } from './stored-keys.js';

/** @import { KeyStore } from './store.js' */
/** @import { KeysOptions, Table } from './stored-keys.js' */

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

/** @implements {Table} */
class IndexedDBTable {
  self = '';
  #name;
  /** @type {Promise<{ database: IDBDatabase, id: string }> | undefined} */
  #opening;
  /** The id that agents were told. @type {string | undefined} */
  #id;
  /** Lets the lock go. */
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
   * Makes a change, which is on the disk when this resolves; nothing has changed if it rejects.
   * @template T
   * @param {(keys: IDBObjectStore) => Promise<T>} change may await nothing but requests
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
 * @param {KeysOptions & { name?: string }} [options] `name` is that of the database
 *   (`abp-bridge-keys`)
 * @returns {KeyStore}
 * @throws {AbpError} INVALID_PARAMS
 */
export function indexedDBKeys(options = {}) {
  const table = new IndexedDBTable(options?.name ?? 'abp-bridge-keys');
  return new StoredKeys('indexedDBKeys', table, options, { name: 'a string' });
}
