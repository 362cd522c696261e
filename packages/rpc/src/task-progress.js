/**
 * Calls that were answered with a task that goes on (MCP). Until the task ends, their progress goes
 * on (2025-11-25), and they can be stopped, for which MCP has a request of its own.
 */
import { getOwn, safely, textOf, whenAborted } from 'abp-bridge/driver';

/** The request that stops a task. */
export const CANCEL_TASK = 'tasks/cancel';
/** @type {Set<unknown>} */
const ENDS = new Set(['completed', 'failed', 'cancelled']);
/** Ms to wait for the answer to a request that stops a task. */
const STOP_TIMEOUT = 5000;
/** Tasks that are kept, of either side: beyond it, the oldest is forgotten. */
const MAX_TASKS = 1024;

/**
 * The id of the task that a value names. Its getters may throw.
 * @param {unknown} of
 */
const taskIdOf = (of) => textOf(getOwn(of, 'taskId'));

/**
 * The id of the task in a result whose progress goes on.
 * @param {unknown} result
 */
export const reportingTaskOf = (result) => taskIdOf(getOwn(result, 'task'));

/**
 * The id of the task in a result. From 2026-07-28 on it is beside the result's type, and has no
 * progress.
 * @param {unknown} result
 */
export const taskOf = (result) =>
  reportingTaskOf(result) ??
  (getOwn(result, 'resultType') === 'task' ? taskIdOf(result) : undefined);

/**
 * The id of the task that has ended, according to a result or a notification.
 * @param {unknown} params
 */
const endedIn = (params) =>
  ENDS.has(getOwn(params, 'status'))
    ? taskIdOf(params)
    : taskIdOf(getOwn(getOwn(params, '_meta'), 'io.modelcontextprotocol/related-task'));

/**
 * The task of a call of this side; `release` stops listening to its signal.
 * @typedef {{ task: string, onProgress: any, release(): void }} OpenTask
 */

export class TaskProgress {
  /** By the id of the call. @type {Map<unknown, OpenTask>} */
  #made = new Map();
  /**
   * The received calls with tasks, by task.
   * @type {Map<string, import('./received-call.js').ReceivedCall>}
   */
  #received = new Map();
  #peer;

  /** @param {import('./peer.js').Peer} peer */
  constructor(peer) {
    this.#peer = peer;
  }

  /**
   * Requests that the other side stop a task. Its answer is not needed.
   * @param {string} taskId
   */
  #stop(taskId) {
    const { envelope } = this.#peer;
    const params = { taskId, ...(envelope && { _meta: envelope }) };
    this.#peer.request(CANCEL_TASK, params, { timeout: STOP_TIMEOUT }).catch(() => {});
  }

  /**
   * Call this when a call of this side has been answered.
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
   * Handles an answer that came too late: its task must not go on unnoticed.
   * @param {unknown} result
   */
  late(result) {
    const named = safely(() => taskOf(result));
    const known = [...this.#made.values()].some(({ task }) => task === named);
    if (named !== undefined && !known) this.#stop(named);
  }

  /**
   * Call this when this side has answered a call.
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
   * Call this when the other side stops a task.
   * @param {unknown} params
   */
  stopped(params) {
    const task = safely(() => taskIdOf(params)) ?? '';
    this.#received.get(task)?.abort(undefined);
    this.#received.delete(task);
  }

  /**
   * Reads a result or a notification, of either side, which may report that a task has ended.
   * @param {unknown} params
   */
  noticed(params) {
    if (!this.#made.size && !this.#received.size) return;
    const ended = safely(() => endedIn(params));
    if (ended === undefined) return;
    this.#received.delete(ended);
    for (const [id, { task }] of this.#made) if (task === ended) this.#forget(id);
  }

  /** Call this when the connection has ended: the other side cannot be reached any more. */
  close() {
    for (const id of this.#made.keys()) this.#forget(id);
    this.#received.clear();
  }

  /**
   * The callback for the progress of a call's task.
   * @param {unknown} id
   */
  listener(id) {
    return this.#made.get(id)?.onProgress;
  }
}
