/**
 * The tasks of an agent and all that belongs to them, in bounded memory. The core decides how long a finished task is
 * remembered. If the tasks take too much room, it is forgotten earlier.
 */
import { OrderedIndex } from './backends/ordered.js';

/** @import { Place } from './backends/backend.js' */
/** @import { Source } from './lists.js' */

/** A task and all that belongs to it. */
export class Entry {
  /** @type {Set<import('./reply.js').Stream>} */
  streams = new Set();
  /** Who waits for the task to settle, and how they are answered when it will not here. @type {Map<() => void, (error: unknown) => void>} */
  waiting = new Map();
  /** The latest run. @type {import('./task.js').ExecutorContext | undefined} */
  run;
  /** What that said of its work. @type {import('./outcome.js').Said | undefined} */
  said;
  /** Where its states are sent, by the ids that clients gave. @type {Map<string, import('./store/push.js').PushConfig>} */
  pushes = new Map();
  /** The task's characters when it was last measured. */
  counted = 0;
  /** The number of the latest event that was told, where the task has a log. @type {string | undefined} */
  number;
  /** The task in a store that outlives the process. @type {import('./store/replica.js').Replica | undefined} */
  replica;

  /**
   * @param {import('./tasks-core.js').TaskTable} table
   * @param {import('./tasks-boundary.js').Task} handle
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

/** @implements {Source} */
export class TaskStore {
  /** @type {Map<number, Entry>} */
  #entries = new Map();
  /** For lists, unless another one has it. */
  #index = new OrderedIndex();
  #lists;
  /** Those that have ended, the earliest first. @type {Set<Entry>} */
  #finished = new Set();
  #size = 0;
  #limit;
  #onDelete;

  /**
   * @param {number} limit characters of all tasks
   * @param {(entry: Entry) => void} onDelete
   * @param {boolean} lists whether it is asked for lists
   */
  constructor(limit, onDelete, lists) {
    this.#lists = lists;
    this.#limit = limit;
    this.#onDelete = onDelete;
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
    if (this.#lists) this.#place(entry);
    this.makeRoom(0);
  }

  /** @param {Entry} entry */
  #place({ task }) {
    const { id, tenant = '', contextId: context, state, status } = task;
    const time = Date.parse(status.timestamp ?? '');
    const before = this.#index.get(id);
    if (before?.time === time && before.state === state) return;
    this.#index.set({ task: id, tenant, context, time, state, data: '', whole: task });
  }

  /** @param {import('./lists.js').Filter} filter @param {Place | undefined} after @param {number} limit */
  async page(filter, after, limit) {
    const found = this.#index.page(filter, after, limit);
    const tasks = found.map(({ task, context, time, state, whole }) => ({
      ...{ task, contextId: context, time, state },
      whole: /** @type {import('./task.js').StoredTask} */ (whole),
    }));
    return { tasks, next: found.length === limit ? found[limit - 1] : undefined };
  }

  /** @param {import('./lists.js').Filter} filter */
  async count(filter) {
    return this.#index.count(filter);
  }

  /** They are all here. */
  async read() {
    return undefined;
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
    this.#index.remove(entry.task.id);
    this.#size -= entry.counted;
    this.#onDelete(entry);
  }

  /** Lets go of all. @returns {Entry[]} */
  clear() {
    const entries = [...this];
    this.#entries.clear();
    this.#finished.clear();
    this.#index = new OrderedIndex();
    this.#size = 0;
    return entries;
  }
}
