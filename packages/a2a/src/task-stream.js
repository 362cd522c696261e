/**
 * A task as a stream of events: the events, the task that results from them, and its cancel. The
 * core decides whether an event counts, and the next step (src/watch_state.c); this file carries it
 * out.
 */
import { E_LIMIT, AbpError, limitOf, offAbort, onAbort, reasonText } from 'abp-bridge/driver';
import * as core from './tasks-boundary.js';
import { readState } from './dialects.js';
import { MAX_HISTORY_MESSAGES } from './task.js';
import { Unsent } from './unsent.js';

/**
 * @import { Artifact, Dialect, Event, Message, Metadata, Part, Status, Task } from './dialects.js'
 */
/** @import { Responses } from './client-http.js' */
/** @import { RemoteAgent } from './remote-agent.js' */

/**
 * The events of one task, as an async iterator. It ends with the task, or when the task needs input
 * (`input-required`); leaving it earlier closes the stream and lets the task go on.
 * @implements {AsyncIterableIterator<Event>}
 */
export class TaskStream {
  #begin;
  #asked;
  #signal;
  #events = this.#run();
  /** The task's id, once it is known. */
  #id;
  /** The number of the latest event; later events have not arrived. */
  #lastEventId;
  /** The parameters of the request. @type {object | undefined} */
  #params;
  /** True if the reader left before the core knew of the stream. */
  #left = false;
  /** @type {TaskView | undefined} */
  #view;
  /** @type {Responses | undefined} */
  #responses;
  /** The verdict that ends a pause, which may come before the pause begins. */
  #next = 0;
  #resume = () => {};
  /** The latest failure. @type {unknown} */
  #failure;
  /** Why the agent did not cancel. @type {unknown} */
  #refusal;
  /** @type {unknown} */
  #polling;

  /**
   * @param {() => Promise<RemoteAgent>} begin finds the agent
   * @param {object} asked
   * @param {'send' | 'stream'} [asked.operation] that sends a message
   * @param {(dialect: Dialect) => object} [asked.params] of that
   * @param {string} [asked.id] of the task, if it is known
   * @param {string} [asked.lastEventId] of an earlier stream of the task
   * @param {AbortSignal} [asked.signal]
   */
  constructor(begin, asked) {
    this.#begin = begin;
    this.#asked = asked;
    ({ id: this.#id, lastEventId: this.#lastEventId, signal: this.#signal } = asked);
  }

  /** The task so far: its status and its artifacts, each once. Undefined until the first event. */
  get task() {
    return this.#view?.task;
  }

  /** The agent's answer instead of a task. */
  get message() {
    return this.#view?.message;
  }

  /**
   * The reason why the stream could not be opened again. The task is then polled, and events may be
   * skipped. Undefined while it is a stream.
   */
  get polling() {
    return this.#polling;
  }

  /**
   * The number of the latest event, for `resubscribe`. Undefined if the agent sends none, and after
   * the task was polled.
   */
  get lastEventId() {
    return this.#lastEventId || undefined;
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /** @returns {Promise<IteratorResult<Event, void>>} */
  next() {
    return this.#events.next();
  }

  /** Closes the stream; the task goes on. A cancel that waits for the task's id is still sent. */
  return() {
    this.#left = true;
    this.#input('leave');
    return this.#events.return();
  }

  async *#run() {
    this.#signal?.throwIfAborted();
    const agent = await this.#begin();
    this.#signal?.throwIfAborted();
    if (this.#left) return;
    const view = (this.#view = agent.watch(this));
    const { table, handle } = view;
    try {
      onAbort(this.#signal, this);
      let verdict = table.watch(handle, agent.kind(this.#id !== undefined));
      for (;;) {
        switch (stepOf(verdict)) {
          case core.WATCH_OPEN:
            verdict = yield* this.#read(view);
            break;
          case core.WATCH_ASK:
            verdict = yield* this.#ask(view);
            break;
          case core.WATCH_PAUSE:
            if (!this.#next)
              await new Promise((resolve) => (this.#resume = () => resolve(undefined)));
            verdict = this.#next;
            this.#next = 0;
            break;
          case core.WATCH_DONE:
            return;
          default:
            throw this.#error(stepOf(verdict));
        }
      }
    } finally {
      offAbort(this.#signal, this);
      this.#input('stop');
      void this.#drain(view);
    }
  }

  /**
   * Opens the stream and reads it to its end.
   * @param {TaskView} view
   * @returns {AsyncGenerator<Event, number>} the verdict on its end
   */
  async *#read(view) {
    const { agent, table, handle } = view;
    this.#failure = undefined;
    try {
      const responses = (this.#responses = this.#open(agent));
      for (let response; (response = await responses.next()) !== undefined;) {
        const event = agent.read(response);
        this.#polling = undefined;
        this.#lastEventId = responses.lastEventId;
        if (!event) continue;
        const verdict = this.#apply(view, event);
        if (verdict) yield event;
        if (verdict & core.TASK_END) return verdict;
      }
      const how = this.#lastEventId ? core.WATCH_NUMBERED : core.WATCH_ENDED;
      return table.watch_ended(handle, how, 0);
    } catch (error) {
      return this.#failed('watch_ended', view, error);
    }
  }

  /**
   * @param {'watch_ended' | 'watch_asked'} step
   * @param {TaskView} view
   * @param {unknown} error
   * @returns {number} the verdict on the failure
   */
  #failed(step, { table, handle }, error) {
    this.#failure = error;
    return table[step](handle, howFailed(error), delayOf(error));
  }

  /** @param {RemoteAgent} agent */
  #open(agent) {
    const { operation = 'stream', params, signal } = this.#asked;
    const abortable = signal !== undefined;
    const id = this.#id;
    if (id !== undefined) return agent.open('resubscribe', { id }, abortable, this.#lastEventId);
    // Each attempt sends the same, even if the message was changed meanwhile: an agent recognises
    // it by its id and its content.
    this.#params ??= JSON.parse(JSON.stringify(params?.(agent.dialect)));
    return agent.open(operation, /** @type {object} */ (this.#params), abortable);
  }

  /**
   * Polls the task.
   * @param {TaskView} view
   * @returns {AsyncGenerator<Event, number>} the verdict on the answer
   */
  async *#ask(view) {
    let task;
    try {
      task = await view.agent.get(/** @type {string} */ (this.#id));
    } catch (error) {
      return this.#failed('watch_asked', view, error);
    }
    // Its number is not known, and earlier ones are past.
    this.#lastEventId = undefined;
    const event = /** @type {const} */ ({ kind: 'task', task });
    const known = JSON.stringify(view.task);
    // An unchanged task is not an event.
    if (this.#apply(view, event) && JSON.stringify(view.task) !== known) yield event;
    this.#polling = this.#failure;
    return view.table.watch_asked(view.handle, core.WATCH_ENDED, 0);
  }

  /**
   * @param {TaskView} view
   * @param {Event} event
   * @returns {number} 0 for an event that is dropped
   */
  #apply(view, event) {
    const id = event.kind === 'task' ? event.task.id : event.kind !== 'message' && event.taskId;
    const others = id && this.#id && id !== this.#id;
    const verdict = others ? 0 : view.apply(event);
    if (!verdict) view.agent.onDropped(event);
    if (id && !this.#id) {
      this.#id = id;
      this.#input('named');
    }
    return verdict;
  }

  /** Called when the signal is aborted. */
  handleEvent() {
    this.#input('cancel');
  }

  /** @param {'named' | 'cancel' | 'leave' | 'stop'} input */
  #input(input) {
    const view = this.#view;
    if (view) this.act(view.table[`watch_${input}`](view.handle));
  }

  /**
   * Carries out a verdict that interrupts a step.
   * @param {number} verdict
   */
  act(verdict) {
    if (verdict & core.WATCH_CANCEL) void this.#cancel();
    if (verdict & core.WATCH_CLOSE) this.#responses?.close();
    if (stepOf(verdict)) {
      this.#next = verdict;
      this.#resume();
    }
  }

  async #cancel() {
    const { agent, table, handle } = /** @type {TaskView} */ (this.#view);
    const answered = (/** @type {core.WatchEnd} */ how, delay = 0, state = core.TASK_UNKNOWN) =>
      this.act(table.watch_cancel_answered(handle, how, delay, state));
    try {
      const id = /** @type {string} */ (this.#id);
      const { status } = await agent.cancel(id, reasonText(this.#signal?.reason));
      answered(core.WATCH_ENDED, 0, readState(status.state));
    } catch (error) {
      this.#refusal = error;
      answered(howFailed(error), delayOf(error));
    }
  }

  /** Called when the core has failed: the task has no further events. */
  lost() {
    this.act(core.WATCH_CLOSE | (core.WATCH_STEPS << core.WATCH_STEP_SHIFT));
  }

  /**
   * Why the stream ends.
   * @param {number} step
   */
  #error(step) {
    const error = this.#reason(step);
    if (error instanceof AbpError && this.#id)
      error.details = { ...Object(error.details), taskId: this.#id, task: this.task };
    return error;
  }

  /** @param {number} step */
  #reason(step) {
    const retryable = true;
    if (step === core.WATCH_FAIL) return this.#failure;
    if (step === core.WATCH_STOPPED) return this.#signal?.reason;
    if (step === core.WATCH_LOST) {
      const cause = this.#failure;
      const why = 'The stream was lost before its task ended';
      return new AbpError('DISCONNECTED', why, { retryable, cause });
    }
    if (step !== core.WATCH_LATE)
      return new AbpError('INTERNAL_ERROR', 'The core failed', { retryable });
    const late = 'The agent did not end the task in time after the cancel';
    return this.#refusal ?? new AbpError('TIMEOUT', late);
  }

  /**
   * Agents end a stream with its task, or when the executor returns. Until then late events are
   * counted.
   * @param {TaskView} view
   */
  async #drain(view) {
    const responses = this.#responses;
    try {
      for (let response; (response = await responses?.next()) !== undefined;) {
        const event = view.agent.read(response);
        if (event) this.#apply(view, event);
      }
    } catch {
      // The task has ended, so a failure of its stream does not matter.
    } finally {
      responses?.close();
      view.agent.forget(view);
    }
  }
}

/** @param {number} verdict */
const stepOf = (verdict) => (verdict >> core.WATCH_STEP_SHIFT) & core.WATCH_STEPS;

/**
 * @param {unknown} error
 * @returns {core.WatchEnd} how a request failed
 */
function howFailed(error) {
  if (!(error instanceof AbpError) || !error.retryable) return core.WATCH_FAILED;
  return error instanceof Unsent ? core.WATCH_UNSENT : core.WATCH_BROKEN;
}

/**
 * @param {unknown} error
 * @returns {number} ms
 */
const delayOf = (error) => (error instanceof AbpError && limitOf(error.retryAfter)) || 0;

/**
 * A task as seen by one stream: its status and its artifacts. Two streams of a task carry the same
 * parts, so each has its own view.
 */
export class TaskView {
  /** @type {Task | undefined} */
  task;
  /** The agent's answer instead of a task. @type {Message | undefined} */
  message;
  #room;
  /** Characters of the history. */
  #historySize = 0;

  /**
   * @param {RemoteAgent} agent
   * @param {string} name unique in its table
   * @param {number} room for artifacts and messages, in characters
   */
  constructor(agent, name, room) {
    this.agent = agent;
    this.table = agent.table;
    this.#room = room;
    const handle = this.table.add(name, core.TASK_UNKNOWN);
    if (handle < 0)
      throw new AbpError('RATE_LIMITED', 'Too many tasks at once', { retryable: true });
    /** The task in the table. */
    this.handle = /** @type {core.Task} */ (handle);
  }

  /**
   * @param {Event} event
   * @returns {number} the core's verdict, 0 for an event that is too late
   */
  apply(event) {
    if (event.kind === 'message') {
      this.message = event.message;
      return this.table.watch_replied(this.handle);
    }
    const id = event.kind === 'task' ? event.task.id : event.taskId;
    const { contextId } = event.kind === 'task' ? event.task : event;
    const status = /** @type {const} */ ({ state: 'unknown' });
    const task = (this.task ??= { id, contextId, status, artifacts: [], history: [] });
    if (event.kind === 'artifact')
      return this.#artifact(task, event.artifact, event.append) ? core.TASK_TELL : 0;
    if (event.kind === 'status') {
      const verdict = this.#status(task, event.status, core.TASK_NEWS);
      // As agents do: the message of a status is a part of the dialogue.
      if (verdict & core.TASK_TELL && event.status.message)
        this.#remember(task, event.status.message);
      return verdict;
    }
    const { artifacts, history, metadata } = event.task;
    task.history = [];
    this.#room += this.#historySize;
    this.#historySize = 0;
    for (const message of history) this.#remember(task, message);
    // The last snapshot of a task may have artifacts that no event brought.
    for (const artifact of artifacts) this.#artifact(task, artifact, false);
    return this.#status(task, event.task.status, core.TASK_NEWS | core.TASK_SNAPSHOT, metadata);
  }

  /**
   * Keeps a message. The earliest messages of a long dialogue are dropped.
   * @param {Task} task
   * @param {Message} message
   */
  #remember({ history }, message) {
    const count = (/** @type {number} */ size) => {
      this.#historySize += size;
      this.#room -= size;
    };
    history.push(message);
    count(sizeOf(message.parts));
    while (history.length > MAX_HISTORY_MESSAGES || (this.#room < 0 && history.length > 1))
      count(-sizeOf(/** @type {Message} */ (history.shift()).parts));
  }

  /**
   * @param {Task} task
   * @param {Status} status
   * @param {number} what
   * @param {Metadata} [metadata]
   */
  #status(task, status, what, metadata) {
    const verdict = this.table.says(this.handle, 0, readState(status.state), what);
    if (verdict & core.TASK_TELL) Object.assign(task, { status, ...(metadata && { metadata }) });
    return verdict;
  }

  /**
   * @param {Task} task
   * @param {Artifact} artifact
   * @param {boolean} append
   * @returns {number} 0 if it was too late
   */
  #artifact({ artifacts }, artifact, append) {
    const verdict = this.table.artifact(this.handle, 0, artifact.artifactId, append);
    if (verdict < 0) {
      const code = verdict === E_LIMIT ? 'TOO_LARGE' : 'INVALID_AGENT_RESPONSE';
      throw new AbpError(code, `The artifact "${artifact.artifactId}" cannot be kept`);
    }
    const [what, place] = [verdict & 3, verdict >> 2];
    const { parts } = artifact;
    if (what === core.ARTIFACT_DROP) return 0;
    if (what === core.ARTIFACT_APPEND) artifacts[place].parts.push(...parts);
    else {
      this.#room += sizeOf(artifacts[place]?.parts ?? []);
      // The array of parts is ours, for later parts; the event stays unchanged.
      artifacts[place] = { ...artifact, parts: [...parts] };
    }
    this.#room -= sizeOf(parts);
    if (this.#room >= 0) return verdict;
    throw new AbpError('TOO_LARGE', 'The artifacts of the task are larger than the limit');
  }
}

/** @param {Part[]} parts */
function sizeOf(parts) {
  let size = 0;
  for (const { text, raw, data } of parts) {
    size += 64 + (text?.length ?? 0) + (raw?.length ?? 0);
    if (data !== undefined) size += JSON.stringify(data).length;
  }
  return size;
}
