/** A backend in memory: nothing outlives the process. For tests, and for several agents in one process. */
import { listed, unavailable } from './backend.js';
import { LocalBackend } from './local.js';
import { OrderedIndex } from './ordered.js';

/** @import { IndexEntry, ListFilter, LogRecord, Place } from './backend.js' */
/** @import { Storage } from './local.js' */

/** Characters and bytes, unless the options say how many. */
const DEFAULT_MAX_STORED = 256 << 20;

/** @implements {Storage} */
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

  /** @param {string} task */
  last(task) {
    return this.#logs.get(task)?.length ?? 0;
  }

  /** @param {string} task @param {string} data */
  append(task, data) {
    this.#grow(data.length);
    const log = this.#logs.get(task) ?? [];
    this.#logs.set(task, log);
    return log.push({ seq: log.length + 1, data });
  }

  /** @param {string} task @param {number} after @param {number} limit */
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

  /** @param {ListFilter} filter @param {Place | undefined} after @param {number} limit */
  list(filter, after, limit) {
    return this.#index.page(filter, after, limit).map(listed);
  }

  /** @param {ListFilter} filter */
  count(filter) {
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

  /** @param {string} after @param {number} limit */
  names(after, limit) {
    const rest = [...this.#objects.keys()].filter((name) => name > after);
    return rest.sort().slice(0, limit);
  }

  close() {}
}

/**
 * A backend in memory.
 * @param {object} [options]
 * @param {number} [options.maxStored] characters of records and bytes of objects (268435456); then `UNAVAILABLE`
 * @returns {import('./backend.js').Backend}
 */
export const memoryBackend = ({ maxStored = DEFAULT_MAX_STORED } = {}) =>
  new LocalBackend(new Memory(maxStored));
