/** Deletes tasks that ended long ago, hour by hour, with everything stored beside their logs. */
import { ENDED, hourOf } from './entries.js';
import { isFence, isUnreadable } from './records.js';

/** Entries of the index that are read at once. */
const BATCH = 64;

/** The hour up to which ended tasks were deleted. */
const SWEPT = 'swept';
/**
 * Ms between two sweeps of leftover objects, the age of such objects, and the number of pieces that
 * a sweep checks.
 */
const LOOK = 60_000;
const OLD = 3_600_000;
const PIECES = 512;

export class Retention {
  #swept = 0;
  /** When objects were last swept, and where the next sweep continues. */
  #sweptAt = -Infinity;
  /** @type {string | undefined} */
  #after;
  /** @type {Promise<unknown> | undefined} */
  #sweeping;
  #closed = false;
  #logs;
  #backend;

  /** @param {import('./store.js').TaskLogs} logs */
  constructor(logs) {
    this.#logs = logs;
    this.#backend = logs.backend;
  }

  /** Deletes what is due. */
  sweep() {
    this.#sweeping ??= Promise.allSettled([this.#sweepTasks(), this.#sweepObjects()]).finally(
      () => (this.#sweeping = undefined),
    );
  }

  /** Stops deleting. Resolves when it has stopped. */
  async close() {
    this.#closed = true;
    await this.#sweeping;
  }

  /** Several processes may run this at once. */
  async #sweepTasks() {
    const { retention } = this.#logs.options;
    const last = hourOf(Date.now() - retention) - 1;
    if (!retention || this.#swept === last) return;
    const { tasks } = await this.#backend.list({ tenant: SWEPT, limit: 1 });
    // Without an earlier sweep, no task ended before. A clock that was ahead may have swept future
    // hours.
    const first = tasks.length > 0 ? Math.min(Number(tasks[0].data) + 1, last) : last;
    for (let hour = first; hour <= last; hour++) {
      await this.#sweepHour(`${hour}`);
      if (this.#closed) return;
      const mark = { tenant: SWEPT, context: '', time: 0, data: `${hour}` };
      await this.#backend.note(SWEPT, mark, hour);
    }
    this.#logs.dropEnded((time) => hourOf(time) <= last);
    this.#swept = last;
  }

  /**
   * Deletes objects of processes that ended while they stored one, or before they stored its
   * record. Objects of a log are deleted with the log.
   */
  async #sweepObjects() {
    const now = performance.now();
    if (now - this.#sweptAt < LOOK) return;
    this.#sweptAt = now;
    this.#after = await this.#backend.sweep?.({
      age: OLD,
      limit: PIECES,
      after: this.#after,
      keeps: async (name) => {
        const id = taskOf(name);
        return !id || (await this.#backend.read(id, 0, 1)).length > 0;
      },
    });
  }

  /** @param {string} hour */
  async #sweepHour(hour) {
    const filter = { tenant: ENDED, context: hour, limit: BATCH };
    /** All objects, if there is a task that may have some. @type {string[] | undefined} */
    let objects;
    for (;;) {
      const { tasks } = await this.#backend.list(filter);
      if (tasks.length === 0 || this.#closed) return;
      objects ??= await this.#backend.objects('');
      for (const { data: id } of tasks) {
        if (await this.#mayForget(id)) {
          await this.#backend.forget(id);
          for (const name of objects) if (taskOf(name) === id) await this.#backend.remove(name);
        }
        await this.#backend.forget(`${ENDED}/${id}`);
      }
    }
  }

  /**
   * A task may have begun in a log that had none. Such a log begins with a record without events.
   * @param {string} id
   */
  async #mayForget(id) {
    const [first] = await this.#backend.read(id, 0, 1);
    if (!first || !isFence(first.data)) return true;
    try {
      const replica = await this.#logs.look(id);
      if (replica) this.#logs.leave(replica);
      return !replica?.entry || replica.ended;
    } catch (error) {
      // A record that cannot be read is left to a later version.
      if (!isUnreadable(error)) throw error;
      return false;
    }
  }
}

/**
 * The task of an object.
 * @param {string} name
 */
const taskOf = (name) => name.split('/').slice(0, -2).join('/');
