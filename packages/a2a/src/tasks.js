/**
 * `@abp-bridge/a2a/tasks`: the core's table of tasks, for protocols other than A2A that have long
 * calls; the gateway uses it for MCP. The core knows the state of each task, how many there may be,
 * how long an ended one is kept, and when a running one is no longer requested. The user of the
 * table keeps the values: the work, its result, a question.
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
const outcomeOf = (fate) => (fate ? FATES[fate] : undefined);

/**
 * @typedef {object} Work The work that a task stands for.
 * @property {() => void} onAbort called when it must stop: its task was cancelled, or is no longer
 *   requested
 * @property {() => void} onState called when the state of its task has changed
 */

/**
 * One task. Once it is forgotten, its state is `unknown`, and its methods have no effect.
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
   * Reports the state of the task.
   * @param {State} state
   */
  says(state) {
    const number = /** @type {core.TaskState} */ (STATES.indexOf(state));
    this.obey(this.#table.says(this.#handle, this.#table.run(this.#handle), number, 0));
  }

  /** Reports the end of the work: the task has completed, unless another end was reported. */
  returns() {
    this.obey(this.#table.returns(this.#handle, this.#table.run(this.#handle), core.TASK_RETURNED));
  }

  /**
   * Reports the outcome of the work of a task that has ended.
   * @param {unknown} [outcome]
   */
  learn(outcome) {
    const fate = /** @type {core.Fate} */ (Math.max(0, FATES.indexOf(outcome)));
    this.#table.learn(this.#handle, fate);
  }

  /** Reports that the requester will not get the result with an answer of its own. */
  leave() {
    this.#table.leave(this.#handle);
  }

  /**
   * Reports that the requester has the result.
   * @returns {boolean} whether the task has nothing more to report and can be forgotten
   */
  hear() {
    return this.#table.hear(this.#handle) !== 0;
  }

  /**
   * The outcome that is to be sent to the requester with another answer, which includes it from now
   * on; undefined if there is none.
   */
  news() {
    return outcomeOf(this.#table.news(this.#handle));
  }

  /**
   * What must be known before the same work is begun again: `running`, `unknown`, or `finished`
   * without the result; else undefined.
   */
  get doubt() {
    return outcomeOf(this.#table.doubt(this.#handle));
  }

  /** Cancels the work. It reports how its task ends, within a grace period. */
  cancel() {
    this.obey(this.#table.cancel(this.#handle, core.TASKS_DEFAULT_GRACE_MS, true));
  }

  /**
   * Extends the lease of the task, which is cancelled when this is not called again in time.
   * @param {number} ms 0 for no limit
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
   * @param {string} id unique
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
   * @returns {T | undefined} undefined if it was forgotten
   */
  find(id) {
    return typeof id === 'string' ? this.#tasks.get(this.#table.find(id))?.work : undefined;
  }

  /**
   * All tasks, including ended ones that are still kept.
   * @returns {T[]}
   */
  get all() {
    return Array.from(this.#tasks.values(), ({ work }) => work);
  }

  /**
   * Forgets a task, whatever its state.
   * @param {string} id
   */
  forget(id) {
    const handle = this.#table.find(id);
    this.#table.forget(handle);
    this.#tasks.delete(handle);
  }
}
