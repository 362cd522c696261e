/**
 * The progress of tasks: where a request was answered with a task that goes on (MCP 2025-11-25), the progress that it
 * asked for goes on, too, until the task ends.
 */

/**
 * @typedef {object} TaskWords How a dialect speaks of tasks.
 * @property {(result: unknown) => string | undefined} started the task that a request was answered with
 * @property {(params: unknown) => string | undefined} ended the task that has ended, by a result or a notification
 */

/** Tasks whose progress is waited for: of more, the oldest is forgotten. */
const MAX_TASKS = 1024;

export class TaskProgress {
  /** By the id of the request. @type {Map<unknown, { task: string, listener: (info: unknown) => void }>} */
  #tasks = new Map();
  #words;

  /** @param {TaskWords} words */
  constructor(words) {
    this.#words = words;
  }

  /**
   * A request has been answered.
   * @param {number} id
   * @param {((info: unknown) => void) | undefined} listener takes its progress
   * @param {unknown} result
   */
  answered(id, listener, result) {
    this.noticed(result);
    const task = listener && this.#words.started(result);
    if (!listener || task === undefined) return;
    if (this.#tasks.size >= MAX_TASKS) this.#tasks.delete(this.#tasks.keys().next().value);
    this.#tasks.set(id, { task, listener });
  }

  /** A result or a notification may say that a task has ended. @param {unknown} params */
  noticed(params) {
    if (!this.#tasks.size) return;
    const ended = this.#words.ended(params);
    if (ended === undefined) return;
    for (const [id, { task }] of this.#tasks) if (task === ended) this.#tasks.delete(id);
  }

  /** Who takes the progress of the request's task. @param {unknown} id */
  listener(id) {
    return this.#tasks.get(id)?.listener;
  }
}
