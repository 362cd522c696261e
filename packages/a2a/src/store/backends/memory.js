/** Backends in memory: nothing outlives the process. */
import { conflict, listed, unavailable } from './backend.js';
import { localBackend } from './local.js';
import { OrderedIndex } from './ordered.js';

/** @import { Backend, LogRecord } from './backend.js' */
/** @import { Storage } from './local.js' */

/** Default limit of characters and bytes. */
const DEFAULT_MAX_STORED = 256 << 20;

/**
 * @param {number} limit
 * @returns {Storage}
 */
function memory(limit) {
  /** @type {Map<string, LogRecord[]>} */
  const logs = new Map();
  const index = new OrderedIndex();
  /** @type {Map<string, Uint8Array>} */
  const objects = new Map();
  let size = 0;

  /** @param {number} by */
  const grow = (by) => {
    if (size + by > limit) throw unavailable('The backend is full');
    size += by;
  };

  return {
    last: (task) => logs.get(task)?.length ?? 0,

    append(task, data) {
      grow(data.length);
      const log = logs.get(task) ?? [];
      logs.set(task, log);
      return log.push({ seq: log.length + 1, data });
    },

    read(task, after, limit) {
      const from = Math.max(after, 0);
      return (logs.get(task) ?? []).slice(from, from + limit).map((record) => ({ ...record }));
    },

    forget(task) {
      for (const { data } of logs.get(task) ?? []) size -= data.length;
      logs.delete(task);
      index.remove(task);
    },

    note(task, entry, seq) {
      if ((index.get(task)?.seq ?? -1) <= seq) index.set({ ...entry, task, seq });
    },

    list: (filter, after, limit) => index.page(filter, after, limit).map(listed),
    count: (filter) => ({ count: index.count(filter) }),

    put(name, bytes) {
      grow(bytes.length - (objects.get(name)?.length ?? 0));
      objects.set(name, bytes.slice());
    },

    get: (name) => objects.get(name)?.slice(),

    remove(name) {
      size -= objects.get(name)?.length ?? 0;
      objects.delete(name);
    },

    names(after, limit) {
      const rest = [...objects.keys()].filter((name) => name > after);
      return rest.sort().slice(0, limit);
    },

    close() {},
  };
}

/**
 * A backend in memory, for tests, and for several agents in one process.
 * @param {object} [options]
 * @param {number} [options.maxStored] characters of records and bytes of objects (268435456); then
 *   `UNAVAILABLE`
 * @returns {Backend}
 */
export const memoryBackend = ({ maxStored = DEFAULT_MAX_STORED } = {}) =>
  localBackend(memory(maxStored));

/**
 * The backend of an agent without a `store`: tasks end with their process. The writer of a record
 * is its only reader, and reads it at once; so records are counted, not kept.
 * @returns {Backend}
 */
export function processBackend() {
  const whole = localBackend(memory(Infinity));
  /** Number of records of each task. @type {Map<string, number>} */
  const counts = new Map();
  return {
    ...whole,
    alone: true,
    maxRecord: Infinity,
    append(task, _data, expected) {
      const count = counts.get(task) ?? 0;
      if (count !== expected) throw conflict(task);
      counts.set(task, count + 1);
      return count + 1;
    },
    read: async () => [],
    watch: () => () => {},
    async forget(task) {
      counts.delete(task);
      await whole.forget(task);
    },
  };
}
