/** Tasks that ended long ago are deleted, hour by hour, with all that is kept beside their logs. */

/** @import { Backend } from '../backends/backend.js' */

/** Entries of the index that are read at once. */
const BATCH = 64;

const ENDED = 'ended';
/** The hour up to which tasks that have ended were deleted. */
const SWEPT = 'swept';
const HOUR = 3_600_000;

export class Retention {
  #swept = 0;
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
    if (!this.#retention) return;
    const now = Date.now();
    const hour = { tenant: ENDED, context: `${hourOf(now)}`, time: now, data: id };
    await this.#backend.note(`${ENDED}/${id}`, hour, 1);
  }

  /** Deletes what is due. @param {(hasExpired: (time: number) => boolean) => void} forget what is still shown of it */
  sweep(forget) {
    this.#sweeping ??= this.#sweep(forget)
      .catch(() => {})
      .finally(() => (this.#sweeping = undefined));
  }

  /** Deletes nothing any more. Resolves when it does not. */
  async close() {
    this.#closed = true;
    await this.#sweeping;
  }

  /** Several processes may do it at once. @param {(hasExpired: (time: number) => boolean) => void} forget */
  async #sweep(forget) {
    const last = hourOf(Date.now() - this.#retention) - 1;
    if (!this.#retention || this.#swept >= last) return;
    const { tasks } = await this.#backend.list({ tenant: SWEPT, limit: 1 });
    // Where nothing has been swept, nothing has ended before.
    const first = tasks.length > 0 ? Number(tasks[0].data) + 1 : last;
    for (let hour = first; hour <= last; hour++) {
      await this.#sweepHour(`${hour}`);
      if (this.#closed) return;
      const mark = { tenant: SWEPT, context: '', time: 0, data: `${hour}` };
      await this.#backend.note(SWEPT, mark, hour);
    }
    forget((time) => hourOf(time) <= last);
    this.#swept = last;
  }

  /** @param {string} hour */
  async #sweepHour(hour) {
    const filter = { tenant: ENDED, context: hour, limit: BATCH };
    /** All objects by their tasks, if there is a task that may have some. @type {Map<string, string[]> | undefined} */
    let objects;
    for (;;) {
      const { tasks } = await this.#backend.list(filter);
      if (tasks.length === 0 || this.#closed) return;
      objects ??= byTasks(await this.#backend.objects(''));
      for (const { data: id } of tasks) {
        await this.#backend.forget(id);
        for (const name of objects.get(id) ?? []) await this.#backend.remove(name);
        await this.#backend.forget(`${ENDED}/${id}`);
      }
    }
  }
}

/** @param {string[]} names of objects */
function byTasks(names) {
  /** @type {Map<string, string[]>} */
  const found = new Map();
  for (const name of names) {
    const id = name.split('/').slice(0, -2).join('/');
    const ofTask = found.get(id) ?? [];
    found.set(id, ofTask);
    ofTask.push(name);
  }
  return found;
}

/** @param {number} ms since 1970 */
const hourOf = (ms) => Math.floor(ms / HOUR);
