/**
 * Requests that were answered with a task that goes on (MCP). What they asked for goes on, too, until the task ends: their
 * progress (2025-11-25), and that they can be stopped, for which MCP has a request of its own.
 */
import { offAbort, onAbort } from '../../../js/common/signals.js';

/**
 * @typedef {object} TaskWords How a dialect speaks of tasks.
 * @property {(result: unknown) => string | undefined} started the task whose progress goes on that a request was answered with
 * @property {(result: unknown) => string | undefined} named the task that a request was answered with, whatever goes on
 * @property {(params: unknown) => string | undefined} ended the task that has ended, by a result or a notification
 * @property {string} cancel the request that stops a task
 * @property {(params: unknown) => string | undefined} stopped the task that it names
 */

/** Tasks that are kept, of either side: of more, the oldest is forgotten. */
const MAX_TASKS = 1024;

/**
 * Keeps something under a key.
 * @template K, V
 * @param {Map<K, V>} map
 * @param {K} key
 * @param {V} value
 * @returns {V | undefined} what is forgotten for it
 */
function keep(map, key, value) {
  const [oldest] = map;
  const forgotten = map.size >= MAX_TASKS ? oldest : undefined;
  if (forgotten) map.delete(forgotten[0]);
  map.set(key, value);
  return forgotten?.[1];
}

/** A task that a request of this side was answered with. It is its request's own abort listener. */
class OpenTask {
  #stop;

  /**
   * @param {string} task
   * @param {import('./peer.js').RequestOptions} options of the request
   * @param {(task: string) => void} stop
   */
  constructor(task, { onProgress, signal }, stop) {
    this.task = task;
    this.listener = onProgress;
    this.signal = signal;
    this.#stop = stop;
    if (signal?.aborted) this.handleEvent();
    else onAbort(signal, this);
  }

  handleEvent() {
    this.#stop(this.task);
  }
}

export class TaskProgress {
  /** By the id of the request. @type {Map<unknown, OpenTask>} */
  #made = new Map();
  /** What the other side asked for, by its task. @type {Map<string, import('./incoming-request.js').IncomingRequest>} */
  #received = new Map();
  #words;
  #stop;

  /**
   * @param {TaskWords} words
   * @param {(task: string) => void} stop asks the other side to stop a task
   */
  constructor(words, stop) {
    this.#words = words;
    this.#stop = stop;
  }

  /**
   * A request of this side has been answered.
   * @param {import('./pending-request.js').PendingRequest} pending
   * @param {unknown} result
   */
  answered({ number, options }, result) {
    this.noticed(result);
    const task = this.#words.named(result);
    if (task === undefined) return;
    this.#leave(keep(this.#made, number, new OpenTask(task, options, this.#stop)));
  }

  /** An answer came when nobody waited for it any more: nobody knows of its task. @param {unknown} result */
  late(result) {
    const named = this.#words.named(result);
    if (named === undefined) return;
    for (const { task } of this.#made.values()) if (task === named) return;
    this.#stop(named);
  }

  /**
   * This side has answered a request.
   * @param {import('./incoming-request.js').IncomingRequest} request
   * @param {unknown} result
   */
  given(request, result) {
    this.noticed(result);
    const task = this.#words.named(result);
    if (task !== undefined) keep(this.#received, task, request);
  }

  /** The other side stops a task. @param {unknown} params */
  stopped(params) {
    const task = this.#words.stopped(params) ?? '';
    this.#received.get(task)?.abort(undefined);
    this.#received.delete(task);
  }

  /** A result or a notification, of either side, may say that a task has ended. @param {unknown} params */
  noticed(params) {
    if (!this.#made.size && !this.#received.size) return;
    const ended = this.#words.ended(params);
    if (ended === undefined) return;
    this.#received.delete(ended);
    for (const [id, open] of this.#made) {
      if (open.task !== ended) continue;
      this.#made.delete(id);
      this.#leave(open);
    }
  }

  /** The connection has ended: the other side can be asked no more. */
  close() {
    for (const open of this.#made.values()) this.#leave(open);
    this.#made.clear();
    this.#received.clear();
  }

  /** @param {OpenTask | undefined} open */
  #leave(open) {
    if (open) offAbort(open.signal, open);
  }

  /** Who takes the progress of the request's task. @param {unknown} id */
  listener(id) {
    return this.#made.get(id)?.listener;
  }
}
