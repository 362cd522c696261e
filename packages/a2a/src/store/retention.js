/** Tasks that ended long ago are deleted, hour by hour, with all that is kept beside their logs. */

import { isFence } from './records.js';
import { isUnreadable } from './takeover.js';

/** @import { Backend } from '../backends/backend.js' */

/** Entries of the index that are read at once. */
const BATCH = 64;

const ENDED = 'ended';
/** The hour up to which tasks that have ended were deleted. */
const SWEPT = 'swept';
const HOUR = 3_600_000;
/** Ms from one look at objects that may be left over to the next, and how many pieces of objects that looks at. */
const LOOK = 60_000;
const PIECES = 512;

/**
 * What the process knows of the tasks.
 * @typedef {object} Shown
 * @property {(hasExpired: (time: number) => boolean) => void} forget forgets what is still shown of deleted tasks
 * @property {(id: string) => Promise<boolean>} isOver whether a log has no task, or one that has ended
 */

export class Retention {
  #swept = 0;
  /** When objects were looked at, and where that goes on. */
  #looked = -Infinity;
  /** @type {string | undefined} */
  #after;
  /** @type {Promise<void> | undefined} */
  #sweeping;
  #closed = false;
  #backend;
  #retention;

  /** @param {Backend} backend @param {number} retention ms for which a task that has ended is kept; 0 is for ever */
  constructor(backend, retention) {
    this.#backend = backend;
    this.#retention = retention;
  }

  /** A task has ended. @param {string} id */
  async note(id) {
    await this.#note(id, 1);
  }

  /** A log has no task, unless one is begun there later. @param {string} id */
  async noteVoid(id) {
    await this.#note(id, 0);
  }

  /** @param {string} id @param {number} seq */
  async #note(id, seq) {
    if (!this.#retention) return;
    const now = Date.now();
    const hour = { tenant: ENDED, context: `${hourOf(now)}`, time: now, data: id };
    await this.#backend.note(`${ENDED}/${id}`, hour, seq);
  }

  /** Deletes what is due. @param {Shown} shown */
  sweep(shown) {
    this.#sweeping ??= Promise.allSettled([this.#sweep(shown), this.#sweepObjects()])
      .then(() => {})
      .finally(() => (this.#sweeping = undefined));
  }

  /** Deletes nothing any more. Resolves when it does not. */
  async close() {
    this.#closed = true;
    await this.#sweeping;
  }

  /** Several processes may do it at once. @param {Shown} shown */
  async #sweep({ forget, isOver }) {
    const last = hourOf(Date.now() - this.#retention) - 1;
    if (!this.#retention || this.#swept === last) return;
    const { tasks } = await this.#backend.list({ tenant: SWEPT, limit: 1 });
    // Where nothing has been swept, nothing has ended before. A clock that was ahead has swept hours that are to come.
    const first = tasks.length > 0 ? Math.min(Number(tasks[0].data) + 1, last) : last;
    for (let hour = first; hour <= last; hour++) {
      await this.#sweepHour(`${hour}`, isOver);
      if (this.#closed) return;
      const mark = { tenant: SWEPT, context: '', time: 0, data: `${hour}` };
      await this.#backend.note(SWEPT, mark, hour);
    }
    forget((time) => hourOf(time) <= last);
    this.#swept = last;
  }

  /**
   * Deletes what processes have left that ended while they stored an object, or before they stored the task that it is for.
   * What belongs to a log is deleted with it.
   */
  async #sweepObjects() {
    const now = performance.now();
    if (now - this.#looked < LOOK) return;
    this.#looked = now;
    this.#after = await this.#backend.sweep?.({
      age: HOUR,
      limit: PIECES,
      after: this.#after,
      keeps: async (name) => {
        const id = taskOf(name);
        return !id || (await this.#backend.read(id, 0, 1)).length > 0;
      },
    });
  }

  /** @param {string} hour @param {Shown['isOver']} isOver */
  async #sweepHour(hour, isOver) {
    const filter = { tenant: ENDED, context: hour, limit: BATCH };
    /** All objects by their tasks, if there is a task that may have some. @type {Map<string, string[]> | undefined} */
    let objects;
    for (;;) {
      const { tasks } = await this.#backend.list(filter);
      if (tasks.length === 0 || this.#closed) return;
      objects ??= byTasks(await this.#backend.objects(''));
      for (const { data: id } of tasks) {
        if (await this.#mayForget(id, isOver)) {
          await this.#backend.forget(id);
          for (const name of objects.get(id) ?? []) await this.#backend.remove(name);
        }
        await this.#backend.forget(`${ENDED}/${id}`);
      }
    }
  }

  /**
   * A task may have begun in a log that had none. Such a log begins with a record that says nothing.
   * @param {string} id @param {Shown['isOver']} isOver
   */
  async #mayForget(id, isOver) {
    const [first] = await this.#backend.read(id, 0, 1);
    if (!first || !isFence(first.data)) return true;
    // What cannot be read is left to a later version.
    return isOver(id).catch((error) => {
      if (!isUnreadable(error)) throw error;
      return false;
    });
  }
}

/** The task that an object was stored for. @param {string} name */
const taskOf = (name) => name.split('/').slice(0, -2).join('/');

/** @param {string[]} names of objects */
function byTasks(names) {
  /** @type {Map<string, string[]>} */
  const found = new Map();
  for (const name of names) {
    const id = taskOf(name);
    const ofTask = found.get(id) ?? [];
    found.set(id, ofTask);
    ofTask.push(name);
  }
  return found;
}

/** @param {number} ms since 1970 */
const hourOf = (ms) => Math.floor(ms / HOUR);
