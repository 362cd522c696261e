/**
 * The tasks' core: this file moves ids and numbers across the boundary (wasm/tasks_boundary.c lists it) and knows
 * nothing of what they mean. One instance of the module holds the tables of all servers and clients.
 */
import deflated from '../../dist/tasks-wasm.js';
import * as tasks from '../../dist/tasks-constants.js';
import { Instance } from '../instance.js';
import { limitOf } from '../messages.js';
import { load } from '../module.js';

/** @type {undefined | import('../module.js').Instantiate} */
let instantiate;
/** Where tables are made. @type {Instance | undefined} */
let shared;

function current() {
  if (!instantiate) throw new Error('await `ready` before making a table');
  return (shared ??= new Instance(instantiate));
}

/** Resolves when tables can be made, with what the core is: `'wasm'` or `'js'`. */
export const ready = load(deflated, () => import('../../dist/tasks-js.js')).then((module) => {
  instantiate = module.instantiate;
  return module.kind;
});
// Whoever needs a table awaits `ready`; a page that only imports us must not see an unhandled rejection.
ready.catch(() => {});

/** Frees the table of one that nobody has any more. */
const forgotten = new FinalizationRegistry(({ x, table }) => x.destroy(table));

/**
 * @typedef {object} TaskLimits Each is optional and has a default; see `abp_tasks_config` in src/abp_tasks.h.
 * @property {number} [maxTasks] tasks that have not ended, or whose executor has not returned (4096)
 * @property {number} [maxArtifacts] artifacts of one task (4096)
 * @property {number} [remembered] finished tasks that can still be asked for (1024)
 * @property {number} [rememberFor] and for how long, in ms; an agent's task that asks for something and is not
 *   answered for as long is canceled (3600000)
 */

/** A table of tasks. Its inputs return a verdict, or a negative `abp_status`; src/abp_tasks.h is the manual. */
export class TaskTable {
  #instance = current();
  #table;
  #onTrap;

  /**
   * @param {TaskLimits} [limits]
   * @param {() => void} [onTrap] the core has failed, and its tasks are lost: from now on the table is empty, and
   *   nothing comes of what it is told
   */
  constructor({ maxTasks, maxArtifacts, remembered, rememberFor } = {}, onTrap = () => {}) {
    this.x = this.#instance.x;
    this.#onTrap = onTrap;
    this.#instance.seed();
    const limits = [maxTasks, maxArtifacts, remembered, rememberFor].map(limitOf);
    this.#table = this.x.create(...limits, performance.now());
    if (!this.#table) throw new RangeError('not enough memory for a table of tasks');
    forgotten.register(this, { x: this.x, table: this.#table }, this);
  }

  /**
   * Calls an export; none has more arguments. When it traps, those who have the instance go on as long as they can,
   * and new tables get another.
   * @param {string} name
   * @param {number} [a]
   * @param {number} [b]
   * @param {number} [c]
   * @param {number} [d]
   * @returns {number}
   */
  #ask(name, a, b, c, d) {
    if (!this.#table) return 0;
    try {
      return this.x[name](this.#table, a, b, c, d);
    } catch (error) {
      this.#table = 0;
      forgotten.unregister(this);
      if (shared === this.#instance) shared = undefined;
      console.error('abp-bridge: the core of the tasks failed, and they are lost:', error);
      this.#onTrap();
      return 0;
    }
  }

  /** @param {unknown} id @param {number} state @returns {number} the task, 0 when the core fails, or a negative status */
  add(id, state) {
    return this.#ask('add', this.#instance.id(id), state);
  }

  /** @param {unknown} id @returns {number} the task, or 0 */
  find(id) {
    return this.#ask('find', this.#instance.id(id));
  }

  /** @param {number} task @returns {number} */
  start(task) {
    return this.#ask('start', task);
  }

  /** @param {number} task @returns {number} */
  run(task) {
    return this.#ask('run', task);
  }

  /**
   * @param {number} task
   * @param {number} run
   * @param {number} state
   * @param {boolean} news
   * @returns {number}
   */
  says(task, run, state, news) {
    return this.#ask('says', task, run, state, news ? 1 : 0);
  }

  /** @param {number} task @param {number} run @param {boolean} failed @returns {number} */
  returns(task, run, failed) {
    return this.#ask('returns', task, run, failed ? 1 : 0);
  }

  /** @param {number} task @param {number} grace @param {boolean} repeatable @returns {number} */
  cancel(task, grace, repeatable) {
    return this.#ask('cancel', task, grace, repeatable ? 1 : 0);
  }

  /**
   * @param {number} task
   * @param {number} run
   * @param {unknown} id
   * @param {boolean} append
   * @returns {number} what becomes of it, and its place << 2
   */
  artifact(task, run, id, append) {
    return this.#ask('artifact', task, run, this.#instance.id(id), append ? 1 : 0);
  }

  /** @param {number} task */
  forget(task) {
    this.#ask('forget', task);
  }

  /**
   * Passes the time, and hands over what that and the limits have done.
   * @param {(task: number, verdict: number) => void} act
   */
  advance(act) {
    this.#ask('advance', performance.now());
    for (let verdict; (verdict = this.#ask('next'));) act(this.x.due_task(), verdict);
  }

  /** When to call `advance`, in ms of `performance.now()`, or 0. @returns {number} */
  get wake() {
    return this.#ask('wake');
  }

  /** What the table counts. */
  counters() {
    return {
      live: this.#ask('count', tasks.TASKS_LIVE),
      finished: this.#ask('count', tasks.TASKS_FINISHED),
      dropped: this.#ask('count', tasks.TASKS_DROPPED),
    };
  }
}

/** Whether a task in this state has ended. @param {number} state @returns {boolean} */
export const ended = (state) => current().x.ended(state) === 1;
