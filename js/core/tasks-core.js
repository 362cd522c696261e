/** The tasks' core: a table of tasks, and what drives it. What they mean is not known here. */
import deflated from '../../dist/tasks-wasm.js';
import { Core } from './core.js';
import { CoreDriver } from './machine.js';
import { CoreModule } from './module.js';
import * as tasks from './tasks-boundary.js';

/** @type {CoreModule<tasks.Exports>} */
const module = new CoreModule(deflated, () => import('../../dist/tasks-js.js'), tasks.ABI);

/** Resolves when tables can be made, with what the core is: `'wasm'` or `'js'`. */
export const { ready } = module;

/** Frees the table of one that nobody has any more. */
const forgotten = new FinalizationRegistry(({ x, pointer }) => x.destroy(pointer));

/**
 * @typedef {object} TaskLimits Each is optional and has a default; see `abp_tasks_config` in src/abp_tasks.h.
 * @property {number} [maxTasks] tasks that have not ended, or whose executor has not returned (4096)
 * @property {number} [maxArtifacts] artifacts of one task (4096)
 * @property {number} [remembered] finished tasks that can still be asked for (1024)
 * @property {number} [rememberFor] and for how long, in ms; an agent's task that asks for something and is not
 *   answered for as long is canceled (3600000)
 */

const COUNTERS = {
  live: tasks.TASKS_LIVE,
  finished: tasks.TASKS_FINISHED,
  dropped: tasks.TASKS_DROPPED,
};

/**
 * What a table tells the one that it belongs to.
 * @typedef {object} TaskDelegate
 * @property {(task: number, verdict: number) => void} [onDue] time, or a limit, has done something to a task. Without
 *   it the table has no clock
 * @property {() => void} [onFailure] the core has failed, and its tasks are lost: from now on the table is empty, and
 *   nothing comes of what it is told
 */

/**
 * Drives a table of tasks. An input returns its verdict, for the caller to act on, or a negative `abp_status`; what
 * else it causes, and what time causes, goes to the delegate.
 */
export class TaskTable extends CoreDriver {
  #delegate;

  /**
   * @param {TaskLimits} [limits]
   * @param {TaskDelegate} [delegate]
   */
  constructor({ maxTasks, maxArtifacts, remembered, rememberFor } = {}, delegate = {}) {
    super();
    this.#delegate = delegate;
    /** @type {Core<'abp_tasks', tasks.Exports>} */
    this.core = new Core(module, tasks.CONFIG, {
      max_tasks: maxTasks,
      max_artifacts: maxArtifacts,
      remembered,
      remember_ms: rememberFor,
    });
    const { x, pointer } = this.core;
    forgotten.register(this, { x, pointer }, this);
  }

  /**
   * Gives the core an input, and tells the delegate what else has become due.
   * @param {(x: tasks.Exports, table: import('./instance.js').Pointer<'abp_tasks'>) => number | void} input
   * @returns {number} what the input returned, 0 if the core has failed
   */
  feed(input) {
    if (this.failed) return 0;
    const { x, pointer } = this.core;
    const { onDue } = this.#delegate;
    const due = [];
    let result;
    let wake = 0;
    try {
      result = input(x, pointer) ?? 0;
      if (onDue) {
        for (let verdict; (verdict = x.next(pointer));) due.push([x.due_task(), verdict]);
        wake = x.wake(pointer);
      }
    } catch (error) {
      this.giveUp(this.core, 'the core of the tasks failed, and they are lost', error);
      forgotten.unregister(this);
      this.#delegate.onFailure?.();
      return 0;
    }
    this.arm(wake);
    for (const [task, verdict] of due) onDue?.(task, verdict);
    return result;
  }

  /** @override @param {number} [now] ms */
  advance(now = performance.now()) {
    this.feed((x, table) => x.advance(table, now));
  }

  /** @param {unknown} id @param {number} state @returns {number} the task, 0 when the core fails, or a negative status */
  add(id, state) {
    return this.feed((x, table) => x.add(table, this.core.writeId(id), state));
  }

  /** @param {unknown} id @returns {number} the task, or 0 */
  find(id) {
    return this.feed((x, table) => x.find(table, this.core.writeId(id)));
  }

  /** @param {number} task @returns {number} */
  start(task) {
    return this.feed((x, table) => x.start(table, task));
  }

  /** @param {number} task @returns {number} the number of its latest run */
  run(task) {
    return this.feed((x, table) => x.run(table, task));
  }

  /**
   * @param {number} task
   * @param {number} run
   * @param {number} state
   * @param {boolean} news whether more is said than the state
   */
  says(task, run, state, news) {
    return this.feed((x, table) => x.says(table, task, run, state, Number(news)));
  }

  /** @param {number} task @param {number} run @param {boolean} failed */
  returns(task, run, failed) {
    return this.feed((x, table) => x.returns(table, task, run, Number(failed)));
  }

  /** @param {number} task @param {number} grace ms @param {boolean} repeatable */
  cancel(task, grace, repeatable) {
    return this.feed((x, table) => x.cancel(table, task, grace, Number(repeatable)));
  }

  /**
   * @param {number} task
   * @param {number} run
   * @param {unknown} id
   * @param {boolean} append
   * @returns {number} what becomes of it, and its place << 2
   */
  artifact(task, run, id, append) {
    return this.feed((x, table) =>
      x.artifact(table, task, run, this.core.writeId(id), Number(append)),
    );
  }

  /** @param {number} task */
  forget(task) {
    this.feed((x, table) => x.forget(table, task));
  }

  /** What the table counts. */
  counters() {
    return this.failed ? { live: 0, finished: 0, dropped: 0 } : this.core.count(COUNTERS);
  }
}

/** Whether a task in this state has ended. @param {number} state */
export const ended = (state) => module.instance().x.ended(state) === 1;
