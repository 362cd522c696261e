/**
 * Runs of the executor. What it says is decided by the owner of its task, in the core; here it is measured, and what became of
 * the run is told to the owner.
 */
import * as abp from '../../../js/driver/abp-boundary.js';
import * as core from './tasks-boundary.js';
import { AbpError, reportError, safely, saysCancelled } from '../../../js/common/errors.js';
import { ExecutorContext, statusOf } from './task.js';
import { ended } from './tasks-core.js';

/** @import { Artifact } from './dialects.js' */
/** @import { Entry, ShownTasks } from './shown-tasks.js' */
/** @import { Owner, Prompt } from './store/owner.js' */
/** @import { TaskLogs } from './store/store.js' */
/** @import { StoredTask } from './task.js' */

export class Runs {
  /** @type {Set<ExecutorContext>} */
  #running = new Set();
  /** Called when none is left. */
  #onIdle = () => {};
  #parts;

  /**
   * @param {object} parts
   * @param {(context: ExecutorContext) => unknown} parts.execute
   * @param {number} parts.grace ms that a cancel waits
   * @param {number} parts.maxTask characters
   * @param {ShownTasks} parts.shown
   * @param {TaskLogs} parts.logs
   * @param {import('./store/push.js').Pushes} [parts.pushes]
   * @param {import('./store/telemetry.js').Reports} [parts.reports]
   */
  constructor(parts) {
    this.#parts = parts;
  }

  /** How many executors run whose task has ended. */
  get late() {
    return [...this.#running].filter(({ task }) => task.terminal).length;
  }

  /** Resolves when no executor runs, or when the time is over. @param {number} ms */
  async idle(ms) {
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    await new Promise((resolve) => {
      this.#onIdle = () => resolve(undefined);
      timer = setTimeout(this.#onIdle, ms);
      this.#checkIdle();
    });
    clearTimeout(timer);
  }

  #checkIdle() {
    if (this.#running.size === 0) this.#onIdle();
  }

  /**
   * Runs the executor for one message.
   * @param {Entry} entry
   * @param {Owner} owner of the task: what it decides is stored before it is told
   * @param {Required<Prompt>} prompt
   */
  async run(entry, owner, { prompt, info }) {
    const { execute, reports } = this.#parts;
    const { table, handle } = owner;
    const { task, replica } = entry;
    const run = table.run(handle);
    const say = (/** @type {import('./outcome.js').Said} */ said) => {
      if (owner.context === context) owner.said = { ...owner.said, ...said };
    };
    const context = new ExecutorContext(task, prompt, info, {
      grace: this.#parts.grace,
      report: (report) => say({ report }),
      status: (reported, status) => {
        // What ends a task is always taken.
        if (!ended(reported)) this.#requireQueues(entry);
        if (status.message) {
          const [{ text: message = '' }] = status.message.parts;
          if (reported === core.TASK_WORKING && message) say({ progress: { message } });
          const { length } = JSON.stringify(status.message);
          // Earlier messages make room for it in its task.
          this.#requireRoom(task, task.artifactsSize + length, length);
        }
        const verdict = table.says(handle, run, reported, status.message ? core.TASK_NEWS : 0);
        owner.act(verdict, { reported, status });
        return verdict > 0;
      },
      artifact: (...artifact) => this.#artifact(entry, owner, run, ...artifact),
      flushed: () => this.#flushed(entry, owner),
    });
    context.attempt = replica.attempt;
    owner.context = context;
    owner.said = undefined;
    // An earlier run may have left artifacts, to which this one can add.
    for (const { artifactId } of task.artifacts) table.artifact(handle, run, artifactId, false);
    this.#running.add(context);
    const span = reports?.begin(task, info, context.attempt);
    const work = async () => {
      // The state of the run is told before it says anything.
      await Promise.resolve();
      const given = await execute(context);
      // Loaded on demand: most executors return nothing, or what an emit has returned.
      if (given !== undefined && given !== null && typeof given !== 'boolean') {
        const { tellReturned } = await import('./chunks.js');
        await tellReturned(context, given);
      }
    };
    let failure;
    /** @type {core.TaskReturn} */
    let how = core.TASK_RETURNED;
    try {
      await (span ? span.run(work) : work());
    } catch (error) {
      how = returnOf(error);
      span?.failed(error);
      failure = { reported: core.TASK_FAILED, status: failed(task, error) };
    }
    owner.returned(context, run, how, failure);
    this.#running.delete(context);
    this.#checkIdle();
    if (!span) return;
    // The state is told when it is stored, if it ever is.
    await owner.flushed().catch(() => {});
    span.end();
  }

  /** Throws if too much waits to be stored, or to be sent. @param {Entry} entry */
  #requireQueues(entry) {
    if (entry.task.terminal) return;
    this.#parts.logs.requireRoom();
    this.#parts.pushes?.requireTurn(entry);
  }

  /** @param {Entry} entry @param {Owner} owner */
  async #flushed(entry, owner) {
    const { logs, pushes } = this.#parts;
    await owner.flushed();
    await logs.room();
    await pushes?.turn(entry);
  }

  /**
   * Throws if what an executor gives makes its task, or all tasks, longer than they may be.
   * @param {StoredTask} task
   * @param {number} size characters of the task with it
   * @param {number} grows characters that are added
   */
  #requireRoom(task, size, grows) {
    const { maxTask, shown } = this.#parts;
    // Of a task that has ended nothing more is stored.
    if (task.terminal) return;
    if (size > maxTask) throw new RangeError(`The task would be longer than ${maxTask} characters`);
    if (!shown.makeRoom(grows))
      throw new RangeError("The agent's stored tasks have reached limits.maxStored");
  }

  /**
   * @param {Entry} entry
   * @param {Owner} owner
   * @param {number} run
   * @param {Artifact} artifact
   * @param {number} size characters
   * @param {boolean} append
   * @param {boolean} last
   * @returns {boolean} whether it will be told
   */
  #artifact({ task }, owner, run, artifact, size, append, last) {
    const { table, handle, pending } = owner;
    const { artifactId } = artifact;
    const grows = task.growth(artifactId, size, append);
    if (!task.terminal) this.#parts.logs.requireRoom();
    this.#requireRoom(task, task.size + grows + pending, grows);
    const verdict = table.artifact(handle, run, artifactId, append);
    if (verdict < 0)
      throw verdict === abp.E_ID
        ? new TypeError('The artifactId is empty, too long or not well-formed')
        : new RangeError('The task has reached its limit of artifacts');
    if ((verdict & 3) === core.ARTIFACT_DROP) return false;
    owner.push({ k: 'artifact', artifact, append, last, size });
    return true;
  }
}

/** How a run ended whose executor threw. @param {any} thrown */
function returnOf(thrown) {
  const outcome = safely(() => thrown.outcome, undefined);
  // What a call of the executor's own may still do, such as one to a pool whose worker died, the core does not know.
  if (outcome === 'unknown' || outcome === 'running') return core.TASK_UNSURE;
  return saysCancelled(thrown) ? core.TASK_STOPPED : core.TASK_THREW;
}

/** @param {StoredTask} task @param {unknown} thrown */
function failed(task, thrown) {
  // What is not meant for the client may say more than the client is to know.
  if (thrown instanceof AbpError) return statusOf(task, thrown.message);
  if (!saysCancelled(thrown)) reportError(thrown);
  return statusOf(task, 'The agent failed to execute the task');
}
