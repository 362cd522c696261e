/**
 * The parts of a backend whose users are all in one process: it wakes watchers, routes questions
 * and counts renewals. memory.js and sqlite.js store the records, entries and objects.
 */
import { AbpError, breathe, invokeReportingErrors, toErrorObject } from 'abp-bridge/driver';
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
import { within } from '../../pause.js';

/** @import { Backend, IndexEntry, ListFilter, LogRecord, Place } from './backend.js' */

/**
 * A synchronous storage: each method is done when it returns.
 * @typedef {object} Storage
 * @property {(task: string) => number} last the number of a task's latest record, or 0
 * @property {(task: string, data: string) => number} append
 * @property {(task: string, after: number, limit: number) => LogRecord[]} read
 * @property {(task: string) => void} forget
 * @property {(task: string, entry: IndexEntry, seq: number) => void} note
 * @property {(filter: ListFilter, after: Place | undefined, limit: number) => (IndexEntry
 *   & { task: string })[]} list
 * @property {(filter: ListFilter, after?: Place) => { count: number, last?: Place }} count counts
 *   some of them; with `last` there are more
 * @property {(name: string, bytes: Uint8Array) => void} put
 * @property {(name: string) => Uint8Array | undefined} get
 * @property {(name: string) => void} remove
 * @property {(after: string, limit: number) => string[]} names of objects after a name, in order
 * @property {() => void} close
 */

/** Bytes of a record: the default limit of NATS, less its headers. */
const MAX_RECORD = 1_000_000;
/** The tenant of leases in the index, and the number of leases that are read. */
const PROCESSES = 'processes';
const MAX_PROCESSES = 100_000;
/** @param {string} process */
const entryOf = (process) => `${PROCESSES}/${process}`;
/** Records that a watcher is given before it yields. */
const BATCH = 64;

/**
 * @param {Storage} storage
 * @returns {Backend}
 */
export function localBackend(storage) {
  let closed = false;
  /** @type {Map<string, Set<() => void>>} */
  const wakers = new Map();
  /** @type {Map<string, (text: string) => string | Promise<string>>} */
  const servers = new Map();
  /**
   * The least recently renewed is first.
   * @type {Map<string, { number: number, left: boolean }>}
   */
  const leases = new Map();
  let renewals = 0;
  // The previous user of the file is gone.
  for (const { data } of storage.list({ tenant: PROCESSES }, undefined, MAX_PROCESSES))
    leases.set(data, { number: 0, left: true });
  /**
   * When objects were stored in this process. Other objects are of earlier users.
   * @type {Map<string, number>}
   */
  const written = new Map();

  /** @param {...string} names to check */
  const open = (...names) => {
    if (closed) throw unavailable();
    names.forEach(requireName);
    return storage;
  };

  return {
    maxRecord: MAX_RECORD,

    async append(task, data, expected) {
      open(task);
      requireRecord(data, MAX_RECORD);
      if (storage.last(task) !== expected) throw conflict(task);
      const seq = storage.append(task, data);
      for (const wake of wakers.get(task) ?? []) wake();
      return seq;
    },

    async read(task, after, limit = Infinity) {
      return open(task).read(task, after, limit);
    },

    watch(task, after, onRecord) {
      open(task);
      let awake = false;
      const pump = () => {
        awake = false;
        if (!wakers.get(task)?.has(wake)) return;
        const records = storage.read(task, after, BATCH);
        for (const record of records) {
          after = record.seq;
          invokeReportingErrors(onRecord, record);
          if (!wakers.get(task)?.has(wake)) return;
        }
        if (records.length === BATCH) wake();
      };
      const wake = () => {
        if (awake) return;
        awake = true;
        queueMicrotask(pump);
      };
      const watchers = wakers.get(task) ?? new Set();
      wakers.set(task, watchers.add(wake));
      wake();
      return () => {
        watchers.delete(wake);
        if (watchers.size === 0 && wakers.get(task) === watchers) wakers.delete(task);
      };
    },

    async forget(task) {
      open(task).forget(task);
    },

    async renew(process, left = false) {
      open(process);
      const entry = { tenant: PROCESSES, context: '', time: 0, data: process };
      if (!leases.delete(process)) storage.note(entryOf(process), entry, 0);
      leases.set(process, { number: ++renewals, left });
    },

    async leases(limit) {
      open();
      return Array.from(leases, ([process, lease]) => ({ process, ...lease })).slice(0, limit);
    },

    async release(process, number) {
      open(process);
      if ((leases.get(process)?.number ?? number) !== number) return false;
      if (leases.delete(process)) storage.forget(entryOf(process));
      return true;
    },

    async lease(process) {
      open(process);
      return leases.get(process)?.number ?? 0;
    },

    async serve(process, answer) {
      open(process);
      servers.set(process, answer);
      return async () => {
        if (servers.get(process) === answer) servers.delete(process);
      };
    },

    async ask(process, text, { timeout = DEFAULT_TIMEOUT } = {}) {
      open(process);
      const answer = servers.get(process);
      if (!answer) throw noResponders(process);
      const answered = (async () => answer(text))().catch((cause) => {
        throw new AbpError('OPERATION_FAILED', toErrorObject(cause).message, { cause });
      });
      return within(answered, timeout, () => noAnswer(process, timeout));
    },

    async note(task, entry, seq) {
      requireEntry(entry);
      open(task).note(task, entry, seq);
    },

    async list({ limit = DEFAULT_PAGE, cursor, ...filter }) {
      return pageOf(open().list(filter, readCursor(cursor), limit + 1), limit);
    },

    async count(filter) {
      let all = 0;
      /** @type {Place | undefined} */
      let after;
      do {
        const { count, last } = open().count(filter, after);
        all += count;
        after = last;
        await breathe();
      } while (after);
      return all;
    },

    async put(name, bytes) {
      open(name).put(name, bytes);
      written.set(name, performance.now());
    },

    async get(name) {
      const bytes = open(name).get(name);
      if (!bytes) throw objectNotFound(name);
      return bytes;
    },

    async remove(name) {
      open(name).remove(name);
      written.delete(name);
    },

    async objects(prefix) {
      const names = open().names('', Infinity);
      return names.filter((name) => name.startsWith(prefix));
    },

    /** An object is stored in one step, so there are no pieces. */
    async sweep({ age, limit, keeps, after = '' }) {
      const names = open().names(after, limit);
      const isOld = (/** @type {string} */ name) =>
        performance.now() - (written.get(name) ?? -Infinity) >= age;
      // It may be replaced meanwhile.
      for (const name of names)
        if (isOld(name) && !(await keeps(name)) && isOld(name)) await this.remove(name);
      return names.length === limit ? names[limit - 1] : undefined;
    },

    async close() {
      wakers.clear();
      servers.clear();
      if (!closed) storage.close();
      closed = true;
    },
  };
}
