/**
 * A task as a stream of events: the events, the task that results from them, and its cancel. The core decides whether an
 * event still counts. Here events are read, yielded or dropped.
 */
import * as core from '../core/tasks-boundary.js';
import { AbpError, reasonText } from '../common/errors.js';
import { onAbort, offAbort } from '../common/signals.js';
import { ended } from '../core/tasks-core.js';
import { readState } from './dialects.js';

/** @import { Event, Task } from './dialects.js' */
/** @import { Frames } from './client-http.js' */
/** @import { View } from './view.js' */

/**
 * What TaskStream needs of its client.
 * @typedef {object} StreamClient
 * @property {() => Promise<void>} begin
 * @property {() => View} view
 * @property {(frame: any) => Event | undefined} read throws the agent's error
 * @property {(operation: 'stream' | 'resubscribe', params: object, abortable: boolean) => Frames} open
 * @property {(id: string) => Promise<Task>} get
 * @property {(id: string, reason: string | undefined) => Promise<Task>} cancel
 * @property {(event: Event) => void} drop
 * @property {number} grace
 * @property {number} linger
 * @property {number} retry
 */

/** Ms between two attempts to open a stream, at most. */
const MAX_RETRY = 30_000;

/** In place of an event: the agent does not open the stream again. */
const REFUSED = Symbol('refused');

/** A stream that has ended. @type {Frames} */
const ENDED = { next: async () => undefined, close() {} };

/**
 * The events of one task, as an async iterator. It ends with the task, or when the task needs somebody
 * (`input-required`); leaving it earlier closes the stream and lets the task go on.
 * @implements {AsyncIterableIterator<Event>}
 */
export class TaskStream {
  #client;
  /** What the stream was opened with, the latest time. */
  #operation;
  #params;
  #signal;
  #events;
  /** The task's id, once it is known. */
  #id;
  /** @type {View | undefined} */
  #view;
  /** @type {Frames | undefined} */
  #frames;
  /** Ends a pause, or the next one before it begins. */
  #wake = () => {};
  #woken = false;
  #left = false;
  #finished = false;
  #wanted = false;
  #asked = false;
  #timer = /** @type {any} */ (undefined);
  #overdue = false;
  /** Why the agent did not cancel. @type {unknown} */
  #refusal;

  /**
   * @param {StreamClient} client
   * @param {'stream' | 'resubscribe'} operation
   * @param {(() => object)} params
   * @param {string | undefined} id
   * @param {AbortSignal | undefined} signal
   */
  constructor(client, operation, params, id, signal) {
    this.#client = client;
    this.#operation = operation;
    this.#params = params;
    this.#id = id;
    this.#signal = signal;
    this.#events = this.#run();
  }

  /** The task so far: its status and its artifacts, each once. Undefined until the first event. */
  get task() {
    return this.#view?.task;
  }

  /** What the agent answered instead of a task. */
  get message() {
    return this.#view?.message;
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
    this.#interrupt();
    if (!this.#wanted || this.#asked) this.#frames?.close();
    return this.#events.return();
  }

  async *#run() {
    const client = this.#client;
    this.#signal?.throwIfAborted();
    await client.begin();
    this.#signal?.throwIfAborted();
    if (this.#left) return;
    this.#view = client.view();
    try {
      const abortable = Boolean(this.#signal);
      this.#frames = client.open(this.#operation, this.#params(), abortable);
      onAbort(this.#signal, this);
      let silences = 0;
      for (let again = false; ; again = true) {
        let heard = 0;
        for (let frame; (frame = await this.#next(again)) !== undefined; heard++) {
          const event = this.#read(frame, again && heard === 0);
          if (event === REFUSED) break;
          const verdict = event ? this.#apply(event) : 0;
          if (verdict) yield /** @type {Event} */ (event);
          if (verdict & core.TASK_END) return;
        }
        if (this.#left) return;
        // The stream ended, and it did not say how the task did.
        const task = await this.#ask();
        const event = /** @type {const} */ ({ kind: 'task', task });
        const verdict = this.#apply(event);
        if (verdict) yield event;
        if (verdict & core.TASK_SETTLE) return;
        if (this.#overdue) throw this.#refusal ?? this.#tooLate();
        // One that brings nothing but the task as it stands is opened again less and less often.
        silences = heard <= (again ? 1 : 0) ? silences + 1 : 0;
        if (silences) await this.#pause(Math.min(client.retry * 2 ** (silences - 1), MAX_RETRY));
        if (this.#left) return;
        this.#operation = 'resubscribe';
        this.#frames = this.#overdue
          ? ENDED
          : client.open(this.#operation, { id: task.id }, abortable);
      }
    } finally {
      this.#finish();
    }
  }

  /** There is something to do: a pause ends, or does not begin. */
  #interrupt() {
    this.#woken = true;
    this.#wake();
  }

  /** Waits, unless there is something to do. @param {number} ms */
  async #pause(ms) {
    let timer;
    if (!this.#woken)
      await new Promise((resolve) => {
        timer = setTimeout(resolve, ms);
        this.#wake = () => resolve(undefined);
      });
    clearTimeout(timer);
    this.#woken = false;
  }

  /**
   * A stream that is opened again may find that the task has ended: asking for it will tell.
   * @param {boolean} again
   */
  async #next(again) {
    try {
      return await /** @type {Frames} */ (this.#frames).next();
    } catch (error) {
      if (again) return undefined;
      throw error;
    }
  }

  /**
   * @param {unknown} frame
   * @param {boolean} first whether it is the first of a stream that is opened again, which may be an error
   */
  #read(frame, first) {
    try {
      return this.#client.read(frame);
    } catch (error) {
      if (first) return REFUSED;
      throw error;
    }
  }

  async #ask() {
    if (!this.#id) throw this.#overdue ? this.#tooLate() : this.#broken();
    try {
      return await this.#client.get(this.#id);
    } catch (cause) {
      throw cause instanceof AbpError && cause.code === 'TASK_NOT_FOUND'
        ? cause
        : this.#broken(cause);
    }
  }

  /** @param {unknown} [cause] */
  #broken(cause) {
    const message = 'The stream broke before its task ended';
    return new AbpError('DISCONNECTED', message, { retryable: true, cause });
  }

  #tooLate() {
    const message = `The agent did not end the task within ${this.#client.grace} ms of the cancel`;
    return new AbpError('TIMEOUT', message);
  }

  /**
   * @param {Event} event
   * @returns {number} 0 for one that is dropped
   */
  #apply(event) {
    const view = /** @type {View} */ (this.#view);
    const id = event.kind === 'task' ? event.task.id : event.kind !== 'message' && event.taskId;
    const others = id && this.#id && id !== this.#id;
    const verdict = others ? 0 : view.apply(event, this.#operation === 'resubscribe');
    if (!verdict) this.#client.drop(event);
    this.#id ||= id || undefined;
    if (verdict & core.TASK_END) this.#finish(true);
    else if (this.#wanted) void this.#cancel();
    return verdict;
  }

  /** The signal is aborted. */
  handleEvent() {
    this.#wanted = true;
    this.#interrupt();
    this.#expect(this.#client.grace);
    void this.#cancel();
  }

  /** Cancels the task as soon as its id is known. */
  async #cancel() {
    if (!this.#id || this.#asked) return;
    this.#asked = true;
    try {
      const { status } = await this.#client.cancel(this.#id, reasonText(this.#signal?.reason));
      if (!ended(readState(status.state))) return;
    } catch (error) {
      this.#refusal = error;
    }
    // The task has ended or will not: the stream need not be waited for much longer.
    this.#expect(this.#client.linger);
  }

  /** @param {number} ms for the stream to end the task; then the agent is asked */
  #expect(ms) {
    if (this.#finished) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#overdue = true;
      this.#interrupt();
      this.#frames?.close();
    }, ms);
  }

  /** @param {boolean} [linger] whether what still comes is waited for, and counted */
  #finish(linger = false) {
    if (this.#finished) return;
    this.#finished = true;
    offAbort(this.#signal, this);
    clearTimeout(this.#timer);
    if (linger) void this.#drain();
    else this.#close();
  }

  #close() {
    this.#frames?.close();
    this.#view?.forget();
  }

  /** Agents end a stream with its task, or when the executor returns: until then its connection is of no use. */
  async #drain() {
    const frames = /** @type {Frames} */ (this.#frames);
    const timer = setTimeout(() => frames.close(), this.#client.linger);
    try {
      for (let frame; (frame = await frames.next()) !== undefined;) {
        const event = this.#client.read(frame);
        if (event) this.#apply(event);
      }
    } catch {
      // The task has ended; how its stream does matters to nobody.
    } finally {
      clearTimeout(timer);
      this.#close();
    }
  }
}
