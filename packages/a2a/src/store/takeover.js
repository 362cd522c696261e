/**
 * What processes that are gone have left. Each process has a list of the tasks that it sees to, so that finding those of one
 * that is gone costs only as much as it had. And questions that nobody answers.
 */

/** @import { Backend } from '../backends/backend.js' */
/** @import { Membership } from './membership.js' */
/** @import { Replica } from './replica.js' */

/** Tasks of a process that are taken over at once. */
const BATCH = 64;

const DUTIES = 'duties:';

/**
 * What is done with tasks.
 * @typedef {object} Tasks
 * @property {(id: string) => Promise<Replica | undefined>} load call `leave` when it is no longer looked at
 * @property {(replica: Replica) => void} leave
 * @property {(replica: Replica) => Promise<boolean>} finish sees to what is left of a task that has ended; false if this process
 *   ends first
 * @property {(replica: Replica) => Promise<void>} take takes a task
 * @property {(replica: Replica, reason: string) => Promise<void>} cancel
 * @property {(replica: Replica) => number} deadline when a question that nobody answers is canceled
 */

export class Takeover {
  /** Tasks that wait for input, and when they are canceled. @type {Map<string, number>} */
  #questions = new Map();
  /** @type {Promise<void> | undefined} */
  #scanning;
  #backend;
  #membership;
  #tasks;

  /** @param {Backend} backend @param {Membership} membership @param {Tasks} tasks */
  constructor(backend, membership, tasks) {
    this.#backend = backend;
    this.#membership = membership;
    this.#tasks = tasks;
  }

  /** This process sees to a task from now on. @param {string} id @param {number} epoch */
  enlist(id, epoch) {
    const { name } = this.#membership.lease;
    const entry = { tenant: DUTIES + name, context: '', time: 0, data: id };
    return this.#backend.note(`${name}/${id}`, entry, epoch);
  }

  /** A process need not see to a task any more. @param {string} name @param {string} id */
  delist(name, id) {
    return this.#backend.forget(`${name}/${id}`);
  }

  /** A task asks for something; it is canceled when nobody answers. @param {Replica} replica */
  question(replica) {
    this.#questions.set(replica.id, this.#tasks.deadline(replica));
  }

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

  async #scan() {
    const membership = this.#membership;
    if (!membership.lease.valid || membership.closed) return;
    for await (const name of membership.gone()) {
      await this.#takeAll(name);
      await membership.forget(name);
    }
    for (const [id, deadline] of this.#questions)
      if (deadline <= Date.now()) await this.#expire(id);
  }

  /** @param {string} name of a process that is gone */
  async #takeAll(name) {
    for (;;) {
      const { tasks } = await this.#backend.list({ tenant: DUTIES + name, limit: BATCH });
      if (tasks.length === 0) return;
      const taken = tasks.map(({ data }) => this.#takeOver(data, name));
      const failed = (await Promise.allSettled(taken)).find(({ status }) => status === 'rejected');
      // The next scan goes on.
      if (failed) throw /** @type {PromiseRejectedResult} */ (failed).reason;
    }
  }

  /** @param {string} id of a task @param {string} name of its owner, which is gone */
  async #takeOver(id, name) {
    const tasks = this.#tasks;
    const replica = await tasks.load(id);
    try {
      if (replica && replica.by === name) {
        if (!replica.ended) await tasks.take(replica);
        else if (!(await tasks.finish(replica))) return;
      }
    } finally {
      if (replica) tasks.leave(replica);
    }
    await this.delist(name, id);
  }

  /** Nobody has answered in time. @param {string} id */
  async #expire(id) {
    const tasks = this.#tasks;
    this.#questions.delete(id);
    const replica = await tasks.load(id);
    if (!replica) return;
    try {
      const deadline = tasks.deadline(replica);
      if (replica.asks && deadline > Date.now()) this.#questions.set(id, deadline);
      else if (replica.asks) await tasks.cancel(replica, 'Nobody answered');
      else if (replica.by !== this.#membership.lease.name)
        await this.delist(this.#membership.lease.name, id);
    } finally {
      tasks.leave(replica);
    }
  }
}
