/** Tasks that ended long ago are deleted, hour by hour, with all that is kept beside their logs. */
import { ENDED, hourOf } from './entries.js';
import { isFence, isUnreadable } from './records.js';

/** Entries of the index that are read at once. */
const BATCH = 64;

/** The hour up to which tasks that have ended were deleted. */
const SWEPT = 'swept';
/**
 * Ms from one look at objects that may be left over to the next, how old they are, and how many
 * pieces that looks at.
 */
const LOOK = 60_000;
const OLD = 3_600_000;
const PIECES = 512;

export class Retention {
  #swept = 0;
  /** When objects were looked at, and where that goes on. */
  #looked = -Infinity;
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

  /** Deletes nothing any more. Resolves when it does not. */
  async close() {
    this.#closed = true;
    await this.#sweeping;
  }

  /** Several processes may do it at once. */
  async #sweepTasks() {
    const { retention } = this.#logs.options;
    const last = hourOf(Date.now() - retention) - 1;
    if (!retention || this.#swept === last) return;
    const { tasks } = await this.#backend.list({ tenant: SWEPT, limit: 1 });
    // Where nothing has been swept, nothing has ended before. A clock that was ahead has swept
    // hours that are to come.
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
   * Deletes what processes have left that ended while they stored an object, or before they stored
   * the task that it is for. What belongs to a log is deleted with it.
   */
  async #sweepObjects() {
    const now = performance.now();
    if (now - this.#looked < LOOK) return;
    this.#looked = now;
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
   * A task may have begun in a log that had none. Such a log begins with a record that says
   * nothing.
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
      // What cannot be read is left to a later version.
      if (!isUnreadable(error)) throw error;
      return false;
    }
  }
}

/**
 * The task that an object was stored for.
 * @param {string} name
 */
const taskOf = (name) => name.split('/').slice(0, -2).join('/');
