/**
 * What a backend does that has all its users in one process: it wakes watchers, routes questions and counts renewals. Where
 * records, entries and objects are kept is another matter: see memory.js and sqlite.js.
 */
import { breathe } from '../../../../js/common/breathe.js';
import { AbpError, invokeReportingErrors, toErrorObject } from '../../../../js/common/errors.js';
import {
  DEFAULT_PAGE,
  DEFAULT_TIMEOUT,
  conflict,
  noAnswer,
  noResponders,
  objectNotFound,
  pageOf,
  readCursor,
  requireEntry,
  requireName,
  requireRecord,
  unavailable,
} from './backend.js';
import { within } from '../pause.js';

/** @import { Backend, IndexEntry, ListFilter, LogRecord, Place } from './backend.js' */
/** @typedef {Pick<import('./memory.js').Memory, keyof import('./memory.js').Memory>} Storage */

/** Bytes of a record: as NATS has them by default, less what its headers take. */
const MAX_RECORD = 1_000_000;
/** Records that a watcher is given before others have a turn. */
const BATCH = 64;

/** @implements {Backend} */
export class LocalBackend {
  maxRecord = MAX_RECORD;
  local = true;
  alone = false;
  /** @type {Storage | undefined} */
  #storage;
  /** @type {Map<string, Set<() => void>>} */
  #watchers = new Map();
  /** @type {Map<string, (text: string) => string | Promise<string>>} */
  #servers = new Map();
  /** The one that was not renewed for longest is first. @type {Map<string, number>} */
  #leases = new Map();
  #renewals = 0;
  /** When objects were stored in this process. Who stored the others is gone. @type {Map<string, number>} */
  #written = new Map();

  /** @param {Storage} storage */
  constructor(storage) {
    this.#storage = storage;
  }

  /** @param {string[]} names that must be right */
  #open(...names) {
    if (!this.#storage) throw unavailable();
    names.forEach(requireName);
    return this.#storage;
  }

  /** @param {string} task @param {string} data @param {number} expected */
  async append(task, data, expected) {
    const storage = this.#open(task);
    requireRecord(data, this.maxRecord);
    if (storage.last(task) !== expected) throw conflict(task);
    const seq = storage.append(task, data);
    for (const wake of this.#watchers.get(task) ?? []) wake();
    return seq;
  }

  /** @param {string} task @param {number} after @param {number} [limit] */
  async read(task, after, limit = Infinity) {
    return this.#open(task).read(task, after, limit);
  }

  /** @param {string} task @param {number} after @param {(record: LogRecord) => void} onRecord */
  watch(task, after, onRecord) {
    this.#open(task);
    let awake = false;
    const pump = () => {
      awake = false;
      if (!this.#watchers.get(task)?.has(wake)) return;
      const records = /** @type {Storage} */ (this.#storage).read(task, after, BATCH);
      for (const record of records) {
        after = record.seq;
        invokeReportingErrors(onRecord, record);
        if (!this.#watchers.get(task)?.has(wake)) return;
      }
      if (records.length === BATCH) wake();
    };
    const wake = () => {
      if (awake) return;
      awake = true;
      queueMicrotask(pump);
    };
    const watchers = this.#watchers.get(task) ?? new Set();
    this.#watchers.set(task, watchers.add(wake));
    wake();
    return () => {
      watchers.delete(wake);
      if (watchers.size === 0 && this.#watchers.get(task) === watchers) this.#watchers.delete(task);
    };
  }

  /** @param {string} task */
  async forget(task) {
    this.#open(task).forget(task);
  }

  /** @param {string} process */
  async renew(process) {
    this.#open(process);
    const number = ++this.#renewals;
    this.#leases.delete(process);
    this.#leases.set(process, number);
  }

  /** @param {number} limit */
  async leases(limit) {
    this.#open();
    return Array.from(this.#leases, ([process, number]) => ({ process, number })).slice(0, limit);
  }

  /** @param {string} process @param {number} number */
  async release(process, number) {
    this.#open(process);
    if ((this.#leases.get(process) ?? number) !== number) return false;
    this.#leases.delete(process);
    return true;
  }

  /** @param {string} process */
  async lease(process) {
    this.#open(process);
    return this.#leases.get(process) ?? 0;
  }

  /** @param {string} process @param {(text: string) => string | Promise<string>} answer */
  async serve(process, answer) {
    this.#open(process);
    this.#servers.set(process, answer);
    return async () => {
      if (this.#servers.get(process) === answer) this.#servers.delete(process);
    };
  }

  /** @param {string} process @param {string} text @param {{ timeout?: number }} [options] */
  async ask(process, text, { timeout = DEFAULT_TIMEOUT } = {}) {
    this.#open(process);
    const answer = this.#servers.get(process);
    if (!answer) throw noResponders(process);
    const answered = (async () => answer(text))().catch((cause) => {
      throw new AbpError('OPERATION_FAILED', toErrorObject(cause).message, { cause });
    });
    return within(answered, timeout, () => noAnswer(process, timeout));
  }

  /** @param {string} task @param {IndexEntry} entry @param {number} seq */
  async note(task, entry, seq) {
    requireEntry(entry);
    this.#open(task).note(task, entry, seq);
  }

  /** @param {ListFilter} filter */
  async list({ limit = DEFAULT_PAGE, cursor, ...filter }) {
    return pageOf(this.#open().list(filter, readCursor(cursor), limit + 1), limit);
  }

  /** @param {ListFilter} filter */
  async count(filter) {
    let all = 0;
    /** @type {Place | undefined} */
    let after;
    do {
      const { count, last } = this.#open().count(filter, after);
      all += count;
      after = last;
      await breathe();
    } while (after);
    return all;
  }

  /** @param {string} name @param {Uint8Array} bytes */
  async put(name, bytes) {
    this.#open(name).put(name, bytes);
    this.#written.set(name, performance.now());
  }

  /** @param {string} name */
  async get(name) {
    const bytes = this.#open(name).get(name);
    if (!bytes) throw objectNotFound(name);
    return bytes;
  }

  /** @param {string} name */
  async remove(name) {
    this.#open(name).remove(name);
    this.#written.delete(name);
  }

  /** @param {string} prefix */
  async objects(prefix) {
    const names = this.#open().names('', Infinity);
    return names.filter((name) => name.startsWith(prefix));
  }

  /** An object is stored at once: nothing is left of others. @param {import('./backend.js').Sweep} sweep */
  async sweep({ age, limit, keeps, after = '' }) {
    const names = this.#open().names(after, limit);
    const isOld = (/** @type {string} */ name) =>
      performance.now() - (this.#written.get(name) ?? -Infinity) >= age;
    // It may be replaced while that is asked.
    for (const name of names)
      if (isOld(name) && !(await keeps(name)) && isOld(name)) await this.remove(name);
    return names.length === limit ? names[limit - 1] : undefined;
  }

  async close() {
    this.#watchers.clear();
    this.#servers.clear();
    this.#storage?.close();
    this.#storage = undefined;
  }
}
