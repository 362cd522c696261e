/**
 * What processes that are gone have left. Each process has a list of its duties: the tasks that it sees to, so that finding
 * those of one that is gone costs only as much as it had. And questions that nobody answers.
 *
 * By these rules every task of a process that is gone is found, whatever fails, hangs or comes late:
 * - A process enlists before it stores that a task is its own, and stores nothing under a lease that is not valid.
 * - A duty is over only when the log has a record that came after its process was gone: one by which another process takes
 *   the task, or a fence, which says nothing. What the process may still have under way expects another record to be the last
 *   one, and is refused.
 * - A question has no owner: the duty to watch it goes to the process that finds it.
 * - What one task is in the way of, or one process, is no reason to leave the others.
 *
 * packages/a2a/tests/membership.test.js explores it together with membership.js.
 */

/** @import { Backend } from '../backends/backend.js' */
/** @import { Lease } from './lease.js' */
/** @import { Membership } from './membership.js' */

/** Tasks of a process that are taken over at once. */
const BATCH = 64;

const DUTIES = 'duties:';

/**
 * A task, as its log has it.
 * @typedef {object} Found
 * @property {string} id
 * @property {string} by the process that took it last; empty where the log has no task
 * @property {number} epoch how often it was taken
 * @property {boolean} ended
 * @property {boolean} asks whether it waits for input
 * @property {boolean} wished whether it was cancelled
 * @property {object} [owner] there if this process works on it
 * @property {number} pins how many look at it
 */

/**
 * What is done with tasks.
 * @template {Found} T
 * @typedef {object} Tasks
 * @property {(id: string) => Promise<T | undefined>} look reads a task as it is stored by now; `leave` lets go of it. Undefined for
 *   an id that no task can have; rejects with `NOT_SUPPORTED` if the log cannot be read
 * @property {(task: T) => void} leave
 * @property {(task: T) => Promise<boolean>} fence stores a record that says nothing; false if another one came first
 * @property {(task: T) => Promise<unknown>} take takes a task, enlisting before. Resolves when that is stored, or another
 *   record came first
 * @property {(task: T) => Promise<{ told: Promise<boolean> }>} finish sees to what is left of a task that has ended. Resolves when
 *   that is stored; `told` is whether all who want to know were told, and false if this process ends first
 * @property {(task: T, reason: string) => Promise<void>} cancel
 * @property {(task: T) => Promise<void>} enter writes the entries of a task, which its process may have left undone
 * @property {(task: T) => number} deadline when a question that nobody answers is canceled
 */

/** @template {Found} T */
export class Takeover {
  /** Tasks that wait for input, and when they are canceled. @type {Map<string, number>} */
  #questions = new Map();
  /** Duties that this process gives up at the moment. @type {Map<string, Promise<void>>} */
  #delisting = new Map();
  /** Duties of which others are being told how their tasks ended. @type {Set<string>} */
  #telling = new Set();
  /** Duties that this version cannot see to, by their processes. @type {Map<string, Set<string>>} */
  #unreadable = new Map();
  /** @type {Promise<void> | undefined} */
  #scanning;
  #backend;
  #membership;
  #tasks;

  /** @param {Backend} backend @param {Membership} membership @param {Tasks<T>} tasks */
  constructor(backend, membership, tasks) {
    this.#backend = backend;
    this.#membership = membership;
    this.#tasks = tasks;
  }

  // --- Duties ------------------------------------------------------------------------------------------

  /** A process sees to a task from now on. @param {Lease} lease @param {string} id @param {number} epoch */
  async enlist({ name }, id, epoch) {
    await this.#delisting.get(id);
    const entry = { tenant: DUTIES + name, context: '', time: 0, data: id };
    await this.#backend.note(`${name}/${id}`, entry, epoch);
  }

  /** A process need not see to a task any more. @param {string} name @param {string} id */
  delist(name, id) {
    return this.#backend.forget(`${name}/${id}`);
  }

  // --- Processes that are gone -------------------------------------------------------------------------

  /** Takes what processes that are gone have left, and ends questions that nobody answers. Resolves when it has. */
  scan() {
    return (this.#scanning ??= this.#scan()
      .catch(() => {})
      .finally(() => (this.#scanning = undefined)));
  }

  /** Resolves when nothing is being taken. */
  async rest() {
    await this.#scanning;
  }

  get #stopped() {
    return !this.#membership.lease.valid || this.#membership.closed;
  }

  async #scan() {
    if (this.#stopped) return;
    for (const [id, deadline] of this.#questions)
      if (deadline <= Date.now())
        await this.#expire(id).catch((error) => {
          // What cannot be read is for a process of a later version. All else is tried again.
          if (isUnreadable(error)) this.#questions.delete(id);
        });
    const gone = new Set();
    for await (const name of this.#membership.gone()) {
      gone.add(name);
      // The next scan goes on.
      await this.#takeAll(name).catch(() => {});
      if (this.#stopped) return;
    }
    for (const name of this.#unreadable.keys()) if (!gone.has(name)) this.#unreadable.delete(name);
  }

  /** @param {string} name of a process that is gone */
  async #takeAll(name) {
    let over = true;
    let cursor;
    do {
      const page = await this.#backend.list({ tenant: DUTIES + name, limit: BATCH, cursor });
      const taken = page.tasks.map(({ data }) => this.#takeOver(data, name));
      for (const result of await Promise.allSettled(taken))
        if (result.status === 'rejected' || !result.value) over = false;
      if (this.#stopped) return;
      ({ cursor } = page);
    } while (cursor);
    if (!over) return;
    // More may have come late.
    const { tasks } = await this.#backend.list({ tenant: DUTIES + name, limit: 1 });
    if (tasks.length === 0) await this.#membership.forget(name);
  }

  /**
   * @param {string} id of a task
   * @param {string} name of a process that is gone
   * @returns {Promise<boolean>} whether that duty is over
   */
  async #takeOver(id, name) {
    if (this.#telling.has(`${name}/${id}`) || this.#unreadable.get(name)?.has(id)) return false;
    try {
      if (!(await this.#settle(id, name))) return false;
    } catch (error) {
      if (isUnreadable(error)) {
        // A process of a later version takes it.
        const ofName = this.#unreadable.get(name) ?? new Set();
        this.#unreadable.set(name, ofName.add(id));
      }
      throw error;
    }
    await this.delist(name, id);
    return true;
  }

  /** @param {string} id @param {string} name @returns {Promise<boolean>} whether the duty is over; if not, the next scan goes on */
  async #settle(id, name) {
    const tasks = this.#tasks;
    const task = await tasks.look(id);
    if (!task) return true;
    try {
      if (task.ended) {
        if (task.by !== name) return true;
        this.#tell((await tasks.finish(task)).told, name, id);
        return false;
      }
      if (task.asks && !task.wished) return await this.#watch(task);
      if (task.by !== name) return await tasks.fence(task);
      await tasks.take(task);
      return task.by !== name;
    } finally {
      tasks.leave(task);
    }
  }

  /** The duty is over when others were told, which may take its time. @param {Promise<boolean>} told @param {string} name @param {string} id */
  #tell(told, name, id) {
    const duty = `${name}/${id}`;
    this.#telling.add(duty);
    void told
      .then((all) => (all ? this.delist(name, id) : undefined))
      .catch(() => {})
      .finally(() => this.#telling.delete(duty));
  }

  // --- Questions ---------------------------------------------------------------------------------------

  /** A task asks for something; it is canceled when nobody answers. @param {T} task */
  question(task) {
    this.#questions.set(task.id, this.#tasks.deadline(task));
  }

  /** A question is watched by this process from now on. @param {T} task @returns {Promise<boolean>} false if another record came first */
  async #watch(task) {
    const lease = await this.#membership.living();
    // Of several who find it, one goes on.
    if (!(await this.#tasks.fence(task))) return false;
    await this.enlist(lease, task.id, task.epoch + 1);
    if (!lease.valid) return false;
    this.question(task);
    await this.#tasks.enter(task);
    return true;
  }

  /** Nobody has answered in time. @param {string} id */
  async #expire(id) {
    const tasks = this.#tasks;
    const { name } = this.#membership.lease;
    const task = await tasks.look(id);
    if (!task) return;
    try {
      if (task.asks && tasks.deadline(task) > Date.now()) return this.question(task);
      if (task.asks) await tasks.cancel(task, 'Nobody answered');
      // Somebody else has it. Unless this process is about to take it.
      else if (task.by !== name && !task.owner && task.pins === 1) {
        const delisting = this.delist(name, id).finally(() => this.#delisting.delete(id));
        this.#delisting.set(
          id,
          delisting.catch(() => {}),
        );
        await delisting;
      }
      this.#questions.delete(id);
    } finally {
      tasks.leave(task);
    }
  }
}

/** Whether the log of a task has something that only a later version knows. @param {unknown} error */
export const isUnreadable = (error) =>
  /** @type {import('../../../../js/common/errors.js').AbpError} */ (error)?.code ===
  'NOT_SUPPORTED';
