/**
 * The tasks of an agent and all that hangs on them, in bounded memory. How long a finished one is remembered is the
 * core's to say; here it is forgotten earlier when what is stored is too long.
 */
/** A task and all that hangs on it. */
export class Entry {
  /** @type {Set<import('./reply.js').Stream>} */
  streams = new Set();
  /** Who waits for the task to settle. @type {Set<() => void>} */
  waiting = new Set();
  /** The latest run. @type {import('./task.js').ExecutorContext | undefined} */
  run;
  /** Whether the core's latest word ended the streams: a task that waits for input has nothing to tell. */
  silent = false;
  /** Characters of the task when it was last looked at. */
  counted = 0;

  /**
   * @param {import('../core/tasks-core.js').TaskTable} table
   * @param {number} handle
   * @param {import('./task.js').StoredTask} task
   * @param {import('./dialects.js').Dialect} dialect of the message that made it
   */
  constructor(table, handle, task, dialect) {
    this.table = table;
    this.handle = handle;
    this.task = task;
    this.dialect = dialect;
  }
}

export class TaskStore {
  /** @type {Map<number, Entry>} */
  #entries = new Map();
  /** Those that have ended, the earliest first. @type {Set<Entry>} */
  #finished = new Set();
  #size = 0;
  #limit;

  /** @param {number} limit characters of all tasks */
  constructor(limit) {
    this.#limit = limit;
  }

  /** @param {number} handle */
  get(handle) {
    return this.#entries.get(handle);
  }

  [Symbol.iterator]() {
    return this.#entries.values();
  }

  /** @param {Entry} entry */
  add(entry) {
    this.#entries.set(entry.handle, entry);
    this.update(entry);
  }

  /**
   * A task has grown, or has ended.
   * @param {Entry} entry
   */
  update(entry) {
    if (this.#entries.get(entry.handle) !== entry) return;
    this.#size += entry.task.size - entry.counted;
    entry.counted = entry.task.size;
    if (entry.task.terminal) this.#finished.add(entry);
    this.makeRoom(0);
  }

  /**
   * Forgets finished tasks until there is room.
   * @param {number} size characters that are to come
   * @returns {boolean} whether there is
   */
  makeRoom(size) {
    for (const entry of this.#finished) {
      if (this.#size + size <= this.#limit) return true;
      // While its executor runs, the core counts it.
      if (entry.run) continue;
      entry.table.forget(entry.handle);
      this.delete(entry);
    }
    return this.#size + size <= this.#limit;
  }

  /** @param {Entry} entry */
  delete(entry) {
    if (!this.#entries.delete(entry.handle)) return;
    this.#finished.delete(entry);
    this.#size -= entry.counted;
  }

  /** Lets go of all. @returns {Entry[]} */
  clear() {
    const entries = [...this];
    this.#entries.clear();
    this.#finished.clear();
    this.#size = 0;
    return entries;
  }
}
