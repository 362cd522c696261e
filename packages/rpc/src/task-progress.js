/**
 * Calls that were answered with a task that goes on (MCP). What they asked for goes on, too, until
 * the task ends: their progress (2025-11-25), and that they can be stopped, for which MCP has a
 * request of its own.
 */
import { getOwn, safely, textOf, whenAborted } from 'abp-bridge/driver';

/** The request that stops a task. */
export const CANCEL_TASK = 'tasks/cancel';
/** @type {Set<unknown>} */
const ENDS = new Set(['completed', 'failed', 'cancelled']);
/** Ms in which the other side answers that it stops a task. */
const STOP_TIMEOUT = 5000;
/** Tasks that are kept, of either side: of more, the oldest is forgotten. */
const MAX_TASKS = 1024;

/**
 * Reads which task something names. Its getters may throw.
 * @param {unknown} of
 */
const taskIdOf = (of) => textOf(getOwn(of, 'taskId'));

/**
 * The task whose progress goes on that a call was answered with.
 * @param {unknown} result
 */
export const reportingTaskOf = (result) => taskIdOf(getOwn(result, 'task'));

/**
 * The task that a call was answered with. From 2026-07-28 on it is named beside its type, and has
 * no progress.
 * @param {unknown} result
 */
export const taskOf = (result) =>
  reportingTaskOf(result) ??
  (getOwn(result, 'resultType') === 'task' ? taskIdOf(result) : undefined);

/**
 * The task that has ended, by a result or a notification.
 * @param {unknown} params
 */
const endedIn = (params) =>
  ENDS.has(getOwn(params, 'status'))
    ? taskIdOf(params)
    : taskIdOf(getOwn(getOwn(params, '_meta'), 'io.modelcontextprotocol/related-task'));

/**
 * What a call of this side left behind; `release` stops listening to its signal.
 * @typedef {{ task: string, onProgress: any, release(): void }} OpenTask
 */

export class TaskProgress {
  /** By the id of the call. @type {Map<unknown, OpenTask>} */
  #made = new Map();
  /**
   * What the other side asked for, by its task.
   * @type {Map<string, import('./received-call.js').ReceivedCall>}
   */
  #received = new Map();
  #peer;

  /** @param {import('./peer.js').Peer} peer */
  constructor(peer) {
    this.#peer = peer;
  }

  /**
   * Asks the other side to stop a task. Its answer says nothing that somebody waits for.
   * @param {string} taskId
   */
  #stop(taskId) {
    const { envelope } = this.#peer;
    const params = { taskId, ...(envelope && { _meta: envelope }) };
    this.#peer.request(CANCEL_TASK, params, { timeout: STOP_TIMEOUT }).catch(() => {});
  }

  /**
   * A call of this side has been answered.
   * @param {import('./made-call.js').MadeCall} call
   * @param {unknown} result
   */
  answered({ number, options: { onProgress, signal } }, result) {
    this.noticed(result);
    const task = safely(() => taskOf(result));
    if (task === undefined) return;
    const release = whenAborted(signal, () => this.#stop(task));
    const [oldest] = this.#made.keys();
    if (this.#made.size >= MAX_TASKS) this.#forget(oldest);
    this.#made.set(number, { task, onProgress, release });
  }

  /** @param {unknown} id of a call of this side */
  #forget(id) {
    this.#made.get(id)?.release();
    this.#made.delete(id);
  }

  /**
   * An answer came when nobody waited for it any more: nobody knows of its task.
   * @param {unknown} result
   */
  late(result) {
    const named = safely(() => taskOf(result));
    const known = [...this.#made.values()].some(({ task }) => task === named);
    if (named !== undefined && !known) this.#stop(named);
  }

  /**
   * This side has answered a call.
   * @param {import('./received-call.js').ReceivedCall} call
   * @param {unknown} result
   */
  given(call, result) {
    this.noticed(result);
    const task = safely(() => taskOf(result));
    if (task === undefined) return;
    const [oldest] = this.#received.keys();
    if (this.#received.size >= MAX_TASKS) this.#received.delete(oldest);
    this.#received.set(task, call);
  }

  /**
   * The other side stops a task.
   * @param {unknown} params
   */
  stopped(params) {
    const task = safely(() => taskIdOf(params)) ?? '';
    this.#received.get(task)?.abort(undefined);
    this.#received.delete(task);
  }

  /**
   * A result or a notification, of either side, may say that a task has ended.
   * @param {unknown} params
   */
  noticed(params) {
    if (!this.#made.size && !this.#received.size) return;
    const ended = safely(() => endedIn(params));
    if (ended === undefined) return;
    this.#received.delete(ended);
    for (const [id, { task }] of this.#made) if (task === ended) this.#forget(id);
  }

  /** The connection has ended: the other side can be asked no more. */
  close() {
    for (const id of this.#made.keys()) this.#forget(id);
    this.#received.clear();
  }

  /**
   * Who takes the progress of a call's task.
   * @param {unknown} id
   */
  listener(id) {
    return this.#made.get(id)?.onProgress;
  }
}
