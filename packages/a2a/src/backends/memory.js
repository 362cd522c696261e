/** Backends in memory: nothing outlives the process. */
import { conflict, listed, unavailable } from './backend.js';
import { LocalBackend } from './local.js';
import { OrderedIndex } from './ordered.js';

/** @import { IndexEntry, ListFilter, LogRecord, Place } from './backend.js' */

/** Characters and bytes, unless the options say how many. */
const DEFAULT_MAX_STORED = 256 << 20;

/** Where a backend keeps things; each method is done when it returns. */
export class Memory {
  /** @type {Map<string, LogRecord[]>} */
  #logs = new Map();
  #index = new OrderedIndex();
  /** @type {Map<string, Uint8Array>} */
  #objects = new Map();
  #size = 0;
  #limit;

  /** @param {number} limit */
  constructor(limit) {
    this.#limit = limit;
  }

  /** @param {number} by */
  #grow(by) {
    if (this.#size + by > this.#limit) throw unavailable('The backend is full');
    this.#size += by;
  }

  /** The number of a task's latest record, or 0. @param {string} task @returns {number} */
  last(task) {
    return this.#logs.get(task)?.length ?? 0;
  }

  /** @param {string} task @param {string} data @returns {number} */
  append(task, data) {
    this.#grow(data.length);
    const log = this.#logs.get(task) ?? [];
    this.#logs.set(task, log);
    return log.push({ seq: log.length + 1, data });
  }

  /** @param {string} task @param {number} after @param {number} limit @returns {LogRecord[]} */
  read(task, after, limit) {
    const from = Math.max(after, 0);
    return (this.#logs.get(task) ?? []).slice(from, from + limit).map((record) => ({ ...record }));
  }

  /** @param {string} task */
  forget(task) {
    for (const { data } of this.#logs.get(task) ?? []) this.#size -= data.length;
    this.#logs.delete(task);
    this.#index.remove(task);
  }

  /** @param {string} task @param {IndexEntry} entry @param {number} seq */
  note(task, entry, seq) {
    if ((this.#index.get(task)?.seq ?? -1) <= seq) this.#index.set({ ...entry, task, seq });
  }

  /** @param {ListFilter} filter @param {Place | undefined} after @param {number} limit @returns {(IndexEntry & { task: string })[]} */
  list(filter, after, limit) {
    return this.#index.page(filter, after, limit).map(listed);
  }

  /**
   * Counts some of them; there are more after the last.
   * @param {ListFilter} filter
   * @param {Place} [_after]
   * @returns {{ count: number, last?: Place }}
   */
  count(filter, _after) {
    return { count: this.#index.count(filter) };
  }

  /** @param {string} name @param {Uint8Array} bytes */
  put(name, bytes) {
    this.#grow(bytes.length - (this.#objects.get(name)?.length ?? 0));
    this.#objects.set(name, bytes.slice());
  }

  /** @param {string} name */
  get(name) {
    return this.#objects.get(name)?.slice();
  }

  /** @param {string} name */
  remove(name) {
    this.#size -= this.#objects.get(name)?.length ?? 0;
    this.#objects.delete(name);
  }

  /** Names of objects after a name, in order. @param {string} after @param {number} limit @returns {string[]} */
  names(after, limit) {
    const rest = [...this.#objects.keys()].filter((name) => name > after);
    return rest.sort().slice(0, limit);
  }

  close() {}
}

/**
 * A backend in memory, for tests, and for several agents in one process.
 * @param {object} [options]
 * @param {number} [options.maxStored] characters of records and bytes of objects (268435456); then `UNAVAILABLE`
 * @returns {import('./backend.js').Backend}
 */
export const memoryBackend = ({ maxStored = DEFAULT_MAX_STORED } = {}) =>
  new LocalBackend(new Memory(maxStored));

/**
 * The backend of an agent that is given none: tasks end with their process. Who writes a record is the only one to read it, at
 * once; so records are counted, not kept, and what an agent shows of a task is all there is of it.
 */
export class ProcessBackend extends LocalBackend {
  alone = true;
  maxRecord = Infinity;
  /** How many records each task has. @type {Map<string, number>} */
  #counts = new Map();

  constructor() {
    super(new Memory(Infinity));
  }

  /** @override @param {string} task @param {string} _data @param {number} expected @returns {any} the number, at once */
  append(task, _data, expected) {
    const count = this.#counts.get(task) ?? 0;
    if (count !== expected) throw conflict(task);
    this.#counts.set(task, count + 1);
    return count + 1;
  }

  /** @override */
  async read() {
    return [];
  }

  /** @override */
  watch() {
    return () => {};
  }

  /** @override @param {string} task */
  async forget(task) {
    this.#counts.delete(task);
    await super.forget(task);
  }
}
