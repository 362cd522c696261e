/** The tasks' core: a table of tasks, and its driver. It does not know what the tasks mean. */
import { Core, CoreDriver, CoreModule } from 'abp-bridge/driver';
import deflated from '../../../dist/tasks-wasm.js';
import * as tasks from './tasks-boundary.js';

/** @type {CoreModule<tasks.Exports>} */
const module = new CoreModule(
  // Not by `import()`, which service workers do not have.
  async () => ({ default: deflated }),
  () => import('../../../dist/tasks-js.js'),
  tasks.ABI,
);

/**
 * Resolves when tables can be made, with the kind of the core: `'wasm'` or `'js'`. See {@link
 * CoreModule.load}.
 */
export const ready = () => module.load();

/** Frees the table of an unreachable owner. */
const forgotten = new FinalizationRegistry(({ x, pointer }) => x.destroy(pointer));

/**
 * @typedef {object} TaskLimits Each is optional and has a default; see `abp_tasks_config` in
 *   src/abp_tasks.h.
 * @property {number} [maxTasks] tasks that have not ended, or whose executor has not returned
 *   (4096)
 * @property {number} [maxArtifacts] artifacts of one task (4096)
 * @property {number} [remembered] finished tasks that can still be requested (1024)
 * @property {number} [rememberFor] ms that they are remembered; an agent's task that waits for
 *   input for as long is canceled (3600000)
 */

/**
 * @typedef {object} WatchLimits Of tasks that are watched, in ms. Each is optional and has a
 *   default.
 * @property {number} [grace] for an agent to end a task after its cancel (30000)
 * @property {number} [linger] for a stream to end after its task, and for the event that ends the
 *   task after the answer to its cancel (5000)
 * @property {number} [retry] before a second attempt; doubles each time, up to 30 s (1000)
 * @property {number} [outage] that an agent may be unreachable (60000)
 */

const COUNTERS = {
  live: tasks.TASKS_LIVE,
  finished: tasks.TASKS_FINISHED,
  dropped: tasks.TASKS_DROPPED,
};

/**
 * Inputs with numbers as arguments, each a method of a table: see wasm/tasks_boundary.c. Written as
 * `x.NAME`, since the published module has shorter names (scripts/short-exports.js).
 * @satisfies {Record<string, (x: any) => any>}
 */
const INPUTS = {
  start: (x) => x.start,
  run: (x) => x.run,
  subscribe: (x) => x.subscribe,
  state: (x) => x.state,
  forget: (x) => x.forget,
  own: (x) => x.own,
  read: (x) => x.read,
  lost: (x) => x.lost,
  postpone: (x) => x.postpone,
  begin: (x) => x.begin,
  learn: (x) => x.learn,
  leave: (x) => x.leave,
  hear: (x) => x.hear,
  news: (x) => x.news,
  doubt: (x) => x.doubt,
};
/**
 * Inputs that start a timer.
 * @satisfies {Record<string, (x: any) => any>}
 */
const TIMED = {
  says: (x) => x.says,
  returns: (x) => x.returns,
  committed: (x) => x.committed,
  cancel: (x) => x.cancel,
  wish: (x) => x.wish,
  lease: (x) => x.lease,
  watch: (x) => x.watch,
  watch_named: (x) => x.watch_named,
  watch_replied: (x) => x.watch_replied,
  watch_cancel: (x) => x.watch_cancel,
  watch_leave: (x) => x.watch_leave,
  watch_stop: (x) => x.watch_stop,
  watch_ended: (x) => x.watch_ended,
  watch_asked: (x) => x.watch_asked,
  watch_cancel_answered: (x) => x.watch_cancel_answered,
};

/**
 * Inputs whose first argument is the id of a task.
 * @satisfies {Record<string, (x: any) => any>}
 */
const NAMED = { add: (x) => x.add, find: (x) => x.find, became: (x) => x.became };

/**
 * @template Given
 * @template R
 * @typedef {(...given: Given extends [any, ...infer Rest]
 *   ? { [I in keyof Rest]: number extends Rest[I] ? number | boolean : Rest[I] }
 *   : never) => R} Input
 */
/**
 * @template Given
 * @template R
 * @typedef {(...given: Given extends [any, any, ...infer Rest]
 *   ? [id: unknown, ...Rest]
 *   : never) => R} NamedInput
 */
/**
 * @typedef {{
 *   [Name in keyof typeof INPUTS | keyof typeof TIMED]:
 *     Input<Parameters<tasks.Exports[Name]>, ReturnType<tasks.Exports[Name]>>
 * } & {
 *   [Name in keyof typeof NAMED]:
 *     NamedInput<Parameters<tasks.Exports[Name]>, ReturnType<tasks.Exports[Name]>>
 * }} Inputs
 */

const Driver = /** @type {new () => CoreDriver & Inputs} */ (
  /** @type {unknown} */ (class extends CoreDriver {})
);
for (const [name, input] of Object.entries({ ...INPUTS, ...TIMED, ...NAMED }))
  Object.assign(Driver.prototype, {
    /**
     * @this {TaskTable}
     * @param {any[]} given
     */
    [name](...given) {
      // Due events come first: a caller that learned of them later would act on an outdated state.
      if (name in TIMED) this.advance(performance.now());
      return this.feed((/** @type {any} */ x, at) => {
        if (name in NAMED) given[0] = this.core.writeId(given[0]);
        return input(x)(at, ...given);
      });
    },
  });

/**
 * The callbacks of a table's owner.
 * @typedef {object} TaskDelegate
 * @property {boolean} [commits] each task has an external log: a state is sent when `committed`
 *   reports that it is stored
 * @property {(task: tasks.Task, verdict: number) => void} [onDue] called when time, or a limit, has
 *   changed a task. Without it the table has no clock
 * @property {() => void} [onFailure] called when the core has failed and its tasks are lost: from
 *   then on the table is empty, and inputs have no effect
 */

/**
 * Drives a table of tasks. An input returns its verdict, on which the caller acts, or a negative
 * `abp_status`, and 0 if the core has failed; further effects, and those of time, go to the
 * delegate.
 */
export class TaskTable extends Driver {
  #delegate;
  #rests = false;

  /**
   * @param {TaskLimits & WatchLimits} [limits]
   * @param {TaskDelegate} [delegate]
   */
  constructor(limits = {}, delegate = {}) {
    super();
    this.#delegate = delegate;
    const config = { ...limits, commits: Number(delegate.commits ?? false) };
    /** @type {Core<'abp_tasks', tasks.Exports, tasks.Config>} */
    this.core = new Core(module, tasks.CONFIG, config);
    const { x, pointer } = this.core;
    forgotten.register(this, { x, pointer }, this);
  }

  /**
   * Gives the core an input, and reports to the delegate what else has become due.
   * @template {number} R
   * @param {(x: tasks.Exports,
   *   table: import('abp-bridge/driver').Pointer<'abp_tasks'>) => R | void} input
   * @returns {R | 0} what the input returned, 0 if the core has failed
   */
  feed(input) {
    if (this.failed) return 0;
    const { x, pointer } = this.core;
    const { onDue } = this.#delegate;
    /** @type {[tasks.Task, number][]} */
    const due = [];
    /** @type {any} */
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

  /** From now on nothing becomes due, and no timer is set. */
  rest() {
    this.#rests = true;
    this.arm(0);
  }

  /**
   * @override
   * @param {number} at
   */
  arm(at) {
    super.arm(this.#rests ? 0 : at);
  }

  /**
   * @override
   * @param {number} now ms
   */
  advance(now) {
    this.feed((x, table) => x.advance(table, now));
  }

  /**
   * @param {tasks.Task} task
   * @param {number} run
   * @param {unknown} id
   * @param {boolean} append
   * @returns {number} the action for it, and its index << 2
   */
  artifact(task, run, id, append) {
    return this.feed((x, table) =>
      x.artifact(table, task, run, this.core.writeId(id), Number(append)),
    );
  }

  /** Counters of the table. */
  counters() {
    return this.failed ? { live: 0, finished: 0, dropped: 0 } : this.core.counters(COUNTERS);
  }
}

/**
 * True if a task in this state has ended.
 * @param {tasks.TaskState} state
 */
export const ended = (state) => module.instance().x.ended(state) === 1;
