/**
 * Runs of the executor. Limits what an executor emits, passes it to the owner of the task, for
 * which the core decides, and reports the end of each run to the owner.
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
  /** Called when the last executor has returned. */
  #onIdle = () => {};
  #parts;

  /** @param {Parts} parts */
  constructor(parts) {
    this.#parts = parts;
  }

  /** Number of running executors whose task has ended. */
  get late() {
    return [...this.#running].filter(({ task }) => task.terminal).length;
  }

  /**
   * Resolves when no executor runs, or after a time.
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
   * @param {Owner} owner of the task: stores its decisions before they are sent
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
      // The state of the run is emitted before anything else.
      await Promise.resolve();
      // A generator runs no line before its first chunk is requested.
      const isLazy = isGenerator(agent.execute);
      if (!isLazy) begin();
      const given = await agent.execute(context);
      // Loaded on demand: most executors return nothing, or the result of an emit.
      if (given !== undefined && given !== null && typeof given !== 'boolean') {
        const { emitReturned } = await import('./chunks.js');
        if (isLazy) begin();
        await emitReturned(context, given);
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
      failure = { reported: core.TASK_FAILED, status: statusOf(task, messageFor(error)) };
    }
    owner.returned(context, run, how, failure);
    this.#running.delete(context);
    if (this.#running.size === 0) this.#onIdle();
    if (!span) return;
    // The span ends when the state is stored, if it ever is.
    await owner.flushed().catch(() => {});
    span.end();
  }
}

/**
 * The argument of an executor. Its methods can be destructured: `execute({ signal, emitArtifact
 * })`.
 */
export class ExecutorContext {
  #parts;
  #entry;
  #owner;
  /** The number of the run. */
  #run;
  #controller = new AbortController();
  /** Aborted when the task is cancelled, or when a newer message has taken over. */
  signal = this.#controller.signal;
  /**
   * True if a newer message has taken over.
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
     * The task: `id`, `contextId`, `state`, `terminal`, `history`, `artifacts`. Read-only.
     */
    this.task = entry.task;
    /** The message that this run answers. */
    this.message = prompt;
    /**
     * The request with the message: `user`, `headers`, `metadata`, `acceptedOutputModes`,
     * `extensions`, `version`.
     */
    this.request = info;
    /**
     * Number of the attempt at this message: more than 1 if a `store` runs a task again whose
     * process is gone.
     */
    this.attempt = entry.replica.run?.attempt ?? 0;
    // For a pool that gets this signal with its work.
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
   * Sets the state of the task. After a terminal state, whatever its source, nothing is sent any
   * more.
   * @param {State} state `'working'`, `'input-required'`, `'completed'`, `'failed'`, …
   * @param {string | { parts: Part[], metadata?: Metadata }} [message] for the client, with the
   *   state
   * @returns {boolean} whether it was accepted
   */
  emitStatus = (state, message) => {
    // A number is a state on the wire only: here it would be malformed progress.
    const reported = readState(textOf(state));
    if (!reported) throw new TypeError(`"${state}" is not a task state`);
    const silent = message === undefined || message === null;
    const status = silent ? {} : statusOf(this.task, message);
    const { table, handle } = this.#owner;
    // A terminal state is always accepted.
    if (!ended(reported)) this.#requireQueues();
    if (status.message) {
      const [{ text = '' }] = status.message.parts;
      if (reported === core.TASK_WORKING && text) this.#record({ progress: { message: text } });
      const { length } = JSON.stringify(status.message);
      // Earlier messages are dropped to make room for it in its task.
      this.#requireRoom(this.task.artifactsSize + length, length);
    }
    const verdict = table.says(handle, this.#run, reported, silent ? 0 : core.TASK_NEWS);
    this.#owner.act(verdict, { reported, status });
    return verdict > 0;
  };

  /**
   * Records a report on the work: what was applied and what remains, in JSON of at most 4 KB. The
   * latest report is sent if the task does not complete.
   * @param {unknown} report
   */
  report = (report) => this.#record({ report: keptReport(report, 'execute') });

  /**
   * Resolves when everything emitted so far is stored (without a `store`, at once) and more may be
   * emitted. Rejects with `ABORTED` when another process has taken the task: then nothing more of
   * it will be stored.
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
   * @param {{ append?: boolean, lastChunk?: boolean }} [options] `lastChunk` marks the end of the
   *   artifact
   * @returns {boolean} whether it was accepted
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
   * Records a statement on the work, unless a newer run has taken over.
   * @param {import('./outcome.js').Said} said
   */
  #record(said) {
    if (this.#owner.context === this) this.#owner.said = { ...this.#owner.said, ...said };
  }

  /** Throws if too much waits to be stored, or to be sent. */
  #requireQueues() {
    if (this.task.terminal) return;
    this.#parts.logs.requireRoom();
    this.#parts.pushes?.requireTurn(this.#entry);
  }

  /**
   * Throws if its task, or all tasks together, would exceed their limit.
   * @param {number} size characters of the task afterwards
   * @param {number} grows additional characters
   */
  #requireRoom(size, grows) {
    const { shown } = this.#parts;
    const { maxTask } = this.#parts.limits;
    // Nothing more is stored of a task that has ended.
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
  // The executor's own call may still run, for example in a pool whose worker died; the core cannot
  // know.
  if (outcome === 'unknown' || outcome === 'running') return core.TASK_UNSURE;
  return saysCancelled(thrown) ? core.TASK_STOPPED : core.TASK_THREW;
}

/**
 * The message for the client. Other errors than AbpErrors may contain details that it must not see.
 * @param {unknown} thrown
 */
function messageFor(thrown) {
  if (isErrorObject(thrown)) return toErrorObject(thrown).message;
  if (!saysCancelled(thrown)) reportError(thrown);
  return 'The agent failed to execute the task';
}
