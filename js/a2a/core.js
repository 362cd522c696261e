/**
 * The tasks' core: this file moves ids and numbers across the boundary (wasm/tasks_boundary.c lists it) and knows
 * nothing of what they mean. One instance of the module holds the tables of all servers and clients.
 */
import deflated from '../../dist/tasks-wasm.js';
import * as tasks from '../../dist/tasks-constants.js';
import { Instance } from '../instance.js';
import { load } from '../module.js';

/** @type {Instance} */
let instance;
/** Its exports. @type {any} */
let x;

/** Resolves when tables can be made, with what the core is: `'wasm'` or `'js'`. */
export const ready = load(deflated, () => import('../../dist/tasks-js.js')).then((module) => {
  instance = new Instance(module.instantiate);
  x = instance.x;
  return module.kind;
});
// Whoever needs a table awaits `ready`; a page that only imports us must not see an unhandled rejection.
ready.catch(() => {});

/** Frees the table of one that nobody has any more. */
const forgotten = new FinalizationRegistry((table) => x.destroy(table));

/**
 * @typedef {object} TaskLimits Each is optional and has a default; see `abp_tasks_config` in src/tasks.h.
 * @property {number} [maxTasks] tasks that have not ended, or whose executor has not returned (4096)
 * @property {number} [maxArtifacts] artifacts of one task (4096)
 * @property {number} [remembered] finished tasks that can still be asked for (1024)
 * @property {number} [rememberFor] and for how long, in ms; an agent's task that asks for something and is not
 *   answered for as long is canceled (3600000)
 */

/** A table of tasks. Its inputs return a verdict, or a negative `abp_status`; src/tasks.h is the manual. */
export class TaskTable {
  #table;

  /** @param {TaskLimits} [limits] */
  constructor({ maxTasks, maxArtifacts, remembered, rememberFor } = {}) {
    if (!x) throw new Error('await `ready` before making a table');
    instance.seed();
    const limits = [maxTasks, maxArtifacts, remembered, rememberFor].map((n) => Number(n ?? 0));
    this.#table = x.create(...limits, performance.now());
    if (!this.#table) throw new RangeError('not enough memory for a table of tasks');
    forgotten.register(this, this.#table);
  }

  /** @param {unknown} id @param {number} state @returns {number} the task, or a negative status */
  add(id, state) {
    return x.add(this.#table, instance.id(id), state);
  }

  /** @param {unknown} id @returns {number} the task, or 0 */
  find(id) {
    return x.find(this.#table, instance.id(id));
  }

  /** @param {number} task @returns {number} */
  start(task) {
    return x.start(this.#table, task);
  }

  /** @param {number} task @returns {number} */
  run(task) {
    return x.run(this.#table, task);
  }

  /**
   * @param {number} task
   * @param {number} run
   * @param {number} state
   * @param {boolean} news
   * @returns {number}
   */
  says(task, run, state, news) {
    return x.says(this.#table, task, run, state, news ? 1 : 0);
  }

  /** @param {number} task @param {number} run @param {boolean} failed @returns {number} */
  returns(task, run, failed) {
    return x.returns(this.#table, task, run, failed ? 1 : 0);
  }

  /** @param {number} task @param {number} grace @param {boolean} repeatable @returns {number} */
  cancel(task, grace, repeatable) {
    return x.cancel(this.#table, task, grace, repeatable ? 1 : 0);
  }

  /**
   * @param {number} task
   * @param {number} run
   * @param {unknown} id
   * @param {boolean} append
   * @returns {number} what becomes of it, and its place << 2
   */
  artifact(task, run, id, append) {
    return x.artifact(this.#table, task, run, instance.id(id), append ? 1 : 0);
  }

  /** @param {number} task */
  forget(task) {
    x.forget(this.#table, task);
  }

  /**
   * Passes the time, and hands over what that and the limits have done.
   * @param {(task: number, verdict: number) => void} act
   */
  advance(act) {
    x.advance(this.#table, performance.now());
    for (let verdict; (verdict = x.next(this.#table));) act(x.due_task(), verdict);
  }

  /** When to call `advance`, in ms of `performance.now()`, or 0. @returns {number} */
  get wake() {
    return x.wake(this.#table);
  }

  /** What the table counts. */
  counters() {
    return {
      live: x.count(this.#table, tasks.TASKS_LIVE),
      finished: x.count(this.#table, tasks.TASKS_FINISHED),
      dropped: x.count(this.#table, tasks.TASKS_DROPPED),
    };
  }
}

/** Whether a task in this state has ended. @param {number} state @returns {boolean} */
export const ended = (state) => x.ended(state) === 1;
