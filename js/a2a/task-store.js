/**
 * The tasks of an agent and all that belongs to them, in bounded memory. The core decides how long a finished task is
 * remembered. If the tasks take too much room, it is forgotten earlier.
 */
/** A task and all that belongs to it. */
export class Entry {
  /** @type {Set<import('./reply.js').Stream>} */
  streams = new Set();
  /** Who waits for the task to settle. @type {Set<() => void>} */
  waiting = new Set();
  /** The latest run. @type {import('./task.js').ExecutorContext | undefined} */
  run;
  /** Whether the latest verdict ended the streams: a task that waits for input sends nothing. */
  silent = false;
  /** The task's characters when it was last measured. */
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
   * Call this when a task has grown or ended.
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
      // While its executor runs, the task counts as running in the core.
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
