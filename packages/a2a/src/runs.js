/**
 * Runs of the executor. What an executor says is measured here, and decided by the owner of its
 * task, in the core; what became of a run is told to the owner.
 */
import {
  LIMITS,
  abortError,
  abp,
  isErrorObject,
  isGenerator,
  keptReport,
  reportError,
  safely,
  saysCancelled,
  textOf,
  toErrorObject,
} from 'abp-bridge/driver';
import * as core from './tasks-boundary.js';
import { readArtifact, readState } from './dialects.js';
import { newId } from './ids.js';
import { within } from './pause.js';
import { checkParts, plain, statusOf } from './task.js';
import { ended } from './tasks-core.js';

/** @import { Metadata, Part, State } from './dialects.js' */
/** @import { Entry } from './shown-tasks.js' */
/** @import { Parts } from './server.js' */
/** @import { Owner, Prompt } from './store/owner.js' */

export class Runs {
  /** @type {Set<ExecutorContext>} */
  #running = new Set();
  /** Called when none is left. */
  #onIdle = () => {};
  #parts;

  /** @param {Parts} parts */
  constructor(parts) {
    this.#parts = parts;
  }

  /** How many executors run whose task has ended. */
  get late() {
    return [...this.#running].filter(({ task }) => task.terminal).length;
  }

  /**
   * Resolves when no executor runs, or when the time is over.
   * @param {number} ms
   */
  async idle(ms) {
    if (this.#running.size === 0) return;
    const idle = new Promise((resolve) => (this.#onIdle = () => resolve(undefined)));
    await within(idle, ms, () => new Error('timeout')).catch(() => {});
  }

  /**
   * Runs the executor for one message.
   * @param {Entry} entry
   * @param {Owner} owner of the task: what it decides is stored before it is told
   * @param {Required<Prompt>} prompt
   */
  async run(entry, owner, prompt) {
    const { agent, reports } = this.#parts;
    const { task } = entry;
    const run = owner.table.run(owner.handle);
    owner.table.postpone(owner.handle, run);
    const context = new ExecutorContext(this.#parts, entry, owner, run, prompt);
    owner.context = context;
    owner.said = undefined;
    this.#running.add(context);
    const span = reports?.begin(task, prompt.info, context.attempt);
    const begin = () => {
      if (owner.table.begin(owner.handle) < 0) throw context.signal.reason;
    };
    const work = async () => {
      // The state of the run is told before it says anything.
      await Promise.resolve();
      // Of a generator no line runs before its first chunk is taken.
      const isLazy = isGenerator(agent.execute);
      if (!isLazy) begin();
      const given = await agent.execute(context);
      // Loaded on demand: most executors return nothing, or what an emit has returned.
      if (given !== undefined && given !== null && typeof given !== 'boolean') {
        const { tellReturned } = await import('./chunks.js');
        if (isLazy) begin();
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
      failure = { reported: core.TASK_FAILED, status: statusOf(task, wordsOf(error)) };
    }
    owner.returned(context, run, how, failure);
    this.#running.delete(context);
    if (this.#running.size === 0) this.#onIdle();
    if (!span) return;
    // The state is told when it is stored, if it ever is.
    await owner.flushed().catch(() => {});
    span.end();
  }
}

/**
 * What an executor is given. Its methods may be taken out of it:
 * `execute({ signal, emitArtifact })`.
 */
export class ExecutorContext {
  #parts;
  #entry;
  #owner;
  /** The number of the run. */
  #run;
  #controller = new AbortController();
  /** Aborted when the task is cancelled, or when another message has taken over. */
  signal = this.#controller.signal;
  /**
   * Whether another message has taken over.
   * @internal
   */
  replaced = false;

  /**
   * @param {Parts} parts
   * @param {Entry} entry
   * @param {Owner} owner
   * @param {number} run
   * @param {Required<Prompt>} prompt
   */
  constructor(parts, entry, owner, run, { prompt, info }) {
    this.#parts = parts;
    this.#entry = entry;
    this.#owner = owner;
    this.#run = run;
    /**
     * The task: `id`, `contextId`, `state`, `terminal`, `history`, `artifacts`. To be read only.
     */
    this.task = entry.task;
    /** The message that this run is to answer. */
    this.message = prompt;
    /**
     * The request that brought it: `user`, `headers`, `metadata`, `acceptedOutputModes`,
     * `extensions`, `version`.
     */
    this.request = info;
    /**
     * How often this message was worked on: more than 1 where a `store` runs tasks again whose
     * process is gone.
     */
    this.attempt = entry.replica.run?.attempt ?? 0;
    // For a pool that has this signal's work.
    /** @type {any} */ (globalThis)[LIMITS]?.set(this.signal, { grace: parts.grace });
    // An earlier run may have left artifacts, to which this one can add.
    for (const { artifactId } of entry.task.artifacts)
      owner.table.artifact(owner.handle, run, artifactId, false);
  }

  /**
   * @internal
   * @param {string} [reason]
   */
  abort(reason) {
    this.#controller.abort(abortError(reason));
  }

  /**
   * Says which state the task is in. After a terminal state, whoever it came from, nothing is told
   * any more.
   * @param {State} state `'working'`, `'input-required'`, `'completed'`, `'failed'`, …
   * @param {string | { parts: Part[], metadata?: Metadata }} [message] what to tell the client with
   *   it
   * @returns {boolean} whether it was told
   */
  emitStatus = (state, message) => {
    // A number is a state on the wire only: here it would be progress of a wrong form.
    const reported = readState(textOf(state));
    if (!reported) throw new TypeError(`"${state}" is not a task state`);
    const silent = message === undefined || message === null;
    const status = silent ? {} : statusOf(this.task, message);
    const { table, handle } = this.#owner;
    // What ends a task is always taken.
    if (!ended(reported)) this.#requireQueues();
    if (status.message) {
      const [{ text = '' }] = status.message.parts;
      if (reported === core.TASK_WORKING && text) this.#say({ progress: { message: text } });
      const { length } = JSON.stringify(status.message);
      // Earlier messages make room for it in its task.
      this.#requireRoom(this.task.artifactsSize + length, length);
    }
    const verdict = table.says(handle, this.#run, reported, silent ? 0 : core.TASK_NEWS);
    this.#owner.act(verdict, { reported, status });
    return verdict > 0;
  };

  /**
   * Keeps what the executor says of its work: what it has applied and what remains, in JSON of at
   * most 4 KB. The latest is sent if the task does not complete.
   * @param {unknown} report
   */
  report = (report) => this.#say({ report: keptReport(report, 'execute') });

  /**
   * Resolves when all that was emitted so far is stored, which without a `store` it is at once, and
   * more may be emitted. Rejects with `ABORTED` when another process has taken the task: then
   * nothing of it will be.
   */
  flushed = async () => {
    const { logs, pushes } = this.#parts;
    await this.#owner.flushed();
    await logs.room();
    await pushes?.turn(this.#entry);
  };

  /**
   * Adds an artifact, replaces the one with this id, or with `append` adds to its parts.
   * @param {{ artifactId?: string, parts: Part[], name?: string, description?: string,
   *   metadata?: Metadata,
   *   extensions?: string[] }} artifact without an id it is a new one
   * @param {{ append?: boolean, lastChunk?: boolean }} [options] `lastChunk` says that this ends
   *   the artifact
   * @returns {boolean} whether it was told
   */
  emitArtifact = (artifact, { append = false, lastChunk: last = false } = {}) => {
    const { value, size } = plain({ ...artifact });
    const read = readArtifact(value);
    checkParts(value, read.parts);
    read.artifactId ||= newId();
    const { task } = this;
    const { table, handle, pending } = this.#owner;
    const grows = task.growth(read.artifactId, size, append);
    if (!task.terminal) this.#parts.logs.requireRoom();
    this.#requireRoom(task.size + grows + pending, grows);
    const verdict = table.artifact(handle, this.#run, read.artifactId, append);
    if (verdict < 0)
      throw verdict === abp.E_ID
        ? new TypeError('The artifactId is empty, too long or not well-formed')
        : new RangeError('The task has reached its limit of artifacts');
    if ((verdict & 3) === core.ARTIFACT_DROP) return false;
    this.#owner.push({ k: 'artifact', artifact: read, append, last, size });
    return true;
  };

  /**
   * Of the work, unless another run has taken over.
   * @param {import('./outcome.js').Said} said
   */
  #say(said) {
    if (this.#owner.context === this) this.#owner.said = { ...this.#owner.said, ...said };
  }

  /** Throws if too much waits to be stored, or to be sent. */
  #requireQueues() {
    if (this.task.terminal) return;
    this.#parts.logs.requireRoom();
    this.#parts.pushes?.requireTurn(this.#entry);
  }

  /**
   * Throws if its task, or all tasks, become longer than they may be.
   * @param {number} size characters of the task then
   * @param {number} grows characters that are added
   */
  #requireRoom(size, grows) {
    const { shown } = this.#parts;
    const { maxTask } = this.#parts.limits;
    // Of a task that has ended nothing more is stored.
    if (this.task.terminal) return;
    if (size > maxTask) throw new RangeError(`The task would be longer than ${maxTask} characters`);
    if (!shown.makeRoom(grows))
      throw new RangeError("The agent's stored tasks have reached limits.maxStored");
  }
}

/**
 * How a run ended whose executor threw.
 * @param {any} thrown
 */
function returnOf(thrown) {
  const outcome = safely(() => thrown.outcome, undefined);
  // What a call of the executor's own may still do, such as one to a pool whose worker died, the
  // core does not know.
  if (outcome === 'unknown' || outcome === 'running') return core.TASK_UNSURE;
  return saysCancelled(thrown) ? core.TASK_STOPPED : core.TASK_THREW;
}

/**
 * What a client is told: what is not meant for it may say more than it is to know.
 * @param {unknown} thrown
 */
function wordsOf(thrown) {
  if (isErrorObject(thrown)) return toErrorObject(thrown).message;
  if (!saysCancelled(thrown)) reportError(thrown);
  return 'The agent failed to execute the task';
}
