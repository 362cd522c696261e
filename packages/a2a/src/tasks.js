/**
 * `@abp-bridge/a2a/tasks`: the core's table of tasks, for those who tell of long calls in other
 * words than A2A's, as the gateway does in MCP's. The core knows the state of each task, how many
 * there may be, how long an ended one is kept, and when nobody asks any more for one that runs.
 * Whoever uses the table keeps the values: the work, its result, a question.
 */
import { FATES } from 'abp-bridge/driver';
import { STATES } from './dialects.js';
import * as core from './tasks-boundary.js';
import { TaskTable, ready } from './tasks-core.js';

export { ready };

/** @import { State } from './dialects.js' */
/** @import { CallOutcome } from 'abp-bridge/driver' */

/**
 * @param {number} fate
 * @returns {CallOutcome | undefined}
 */
const wordOf = (fate) => (fate ? FATES[fate] : undefined);

/**
 * @typedef {object} Work What somebody has begun, which a task stands for.
 * @property {() => void} onAbort it shall stop: its task was cancelled, or nobody has asked for it
 * @property {() => void} onState its task is in another state
 */

/**
 * One task. Once it is forgotten, its state is `unknown`, and nothing comes of what is said of it.
 * @template {Work} T
 */
export class Task {
  #table;
  #handle;

  /**
   * @internal
   * @param {TaskTable} table
   * @param {core.Task} handle
   * @param {T} work
   */
  constructor(table, handle, work) {
    this.#table = table;
    this.#handle = handle;
    this.work = work;
  }

  /** @returns {State} */
  get state() {
    return STATES[this.#table.state(this.#handle)];
  }

  /**
   * @internal
   * @param {number} verdict
   */
  obey(verdict) {
    if (verdict < 0) return;
    if (verdict & core.TASK_ABORT) this.work.onAbort();
    if (verdict & core.TASK_TELL) this.work.onState();
  }

  /**
   * The work says in which state its task is.
   * @param {State} state
   */
  says(state) {
    const number = /** @type {core.TaskState} */ (STATES.indexOf(state));
    this.obey(this.#table.says(this.#handle, this.#table.run(this.#handle), number, 0));
  }

  /** The work is over: its task has completed, unless it was said how it ended. */
  returns() {
    this.obey(this.#table.returns(this.#handle, this.#table.run(this.#handle), core.TASK_RETURNED));
  }

  /**
   * What became of the work of a task that has ended, by the word of whoever did it.
   * @param {unknown} [outcome]
   */
  learn(outcome) {
    const fate = /** @type {core.Fate} */ (Math.max(0, FATES.indexOf(outcome)));
    this.#table.learn(this.#handle, fate);
  }

  /** Whoever began it gets its result by no answer of its own. */
  leave() {
    this.#table.leave(this.#handle);
  }

  /**
   * Whoever began it has the result.
   * @returns {boolean} whether nothing more can come of it: then it can be forgotten
   */
  hear() {
    return this.#table.hear(this.#handle) !== 0;
  }

  /**
   * What whoever began it is to be told with another answer, which this is part of; undefined if
   * that is nothing.
   */
  news() {
    return wordOf(this.#table.news(this.#handle));
  }

  /**
   * What to know before the same work is begun again: `running`, `unknown`, or `finished` without
   * the result; else undefined.
   */
  get doubt() {
    return wordOf(this.#table.doubt(this.#handle));
  }

  /** The work shall stop. It says how its task ends, within a grace period. */
  cancel() {
    this.obey(this.#table.cancel(this.#handle, core.TASKS_DEFAULT_GRACE_MS, true));
  }

  /**
   * It is cancelled once nobody has said this again for so long.
   * @param {number} ms 0 is for ever
   */
  lease(ms) {
    this.#table.lease(this.#handle, ms);
  }
}

/**
 * Tasks by their ids. Await `ready()` before the first table is made.
 * @template {Work} T
 */
export class Tasks {
  #table;
  /** @type {Map<number, Task<T>>} */
  #tasks = new Map();

  /** @param {import('./tasks-core.js').TaskLimits} [limits] */
  constructor(limits) {
    this.#table = new TaskTable(limits, {
      onDue: (handle, verdict) => {
        const task = this.#tasks.get(handle);
        if (verdict & core.TASK_FORGET) this.#tasks.delete(handle);
        task?.obey(verdict);
      },
      onFailure: () => {
        for (const work of this.all) work.onAbort();
        this.#tasks.clear();
      },
    });
  }

  /**
   * @param {string} id nobody else's
   * @param {T} work
   * @returns {Task<T> | undefined} undefined if there is no room for one more
   */
  begin(id, work) {
    const handle = /** @type {core.Task} */ (this.#table.add(id, core.TASK_SUBMITTED));
    if (handle <= 0) return undefined;
    const task = new Task(this.#table, handle, work);
    this.#tasks.set(handle, task);
    this.#table.start(handle);
    return task;
  }

  /**
   * @param {unknown} id
   * @returns {T | undefined} undefined for one that was forgotten
   */
  find(id) {
    return typeof id === 'string' ? this.#tasks.get(this.#table.find(id))?.work : undefined;
  }

  /**
   * All of them, ended ones included while they are kept.
   * @returns {T[]}
   */
  get all() {
    return Array.from(this.#tasks.values(), ({ work }) => work);
  }

  /**
   * Lets go of a task, whatever its state.
   * @param {string} id
   */
  forget(id) {
    const handle = this.#table.find(id);
    this.#table.forget(handle);
    this.#tasks.delete(handle);
  }
}
