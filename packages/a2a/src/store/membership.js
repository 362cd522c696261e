/**
 * A process among the others: its lease, by which they see that it lives, its entry in their list, and which of them are
 * gone.
 */
import { Lease } from './lease.js';

/** @import { Backend } from '../backends/backend.js' */

/** Ms before something that failed is tried again. */
const RETRY = 100;

const PROCESSES = 'processes';
/** In the entry of a process that has ended as it should: nobody waits for its lease. */
const GONE = 'gone';

/**
 * @typedef {object} MembershipOptions
 * @property {number} term ms without a sign of life after which a process is taken for gone
 * @property {(text: string) => string | Promise<string>} answer answers what others ask of this process
 * @property {(lost: boolean) => void} onLose the process goes on under another name; what it owned is whoever's takes it.
 *   `lost` if its lease has run out
 */

export class Membership {
  lease;
  /** Whether it has left. */
  closed = false;
  /** What was seen of the leases of others. @type {Map<string, { number: number, since: number }>} */
  #seen = new Map();
  /** @type {(() => Promise<void>) | undefined} */
  #unserve;
  /** @type {Promise<void> | undefined} */
  #entering;
  #backend;
  #options;

  /** @param {Backend} backend @param {MembershipOptions} options */
  constructor(backend, options) {
    this.#backend = backend;
    this.#options = options;
    this.lease = new Lease(backend, options.term);
  }

  /** The process is there from now on: first it answers, then it lives, then it has an entry. */
  enter() {
    return (this.#entering ??= this.#begin().finally(() => (this.#entering = undefined)));
  }

  async #begin() {
    const { lease } = this;
    this.#unserve ??= await this.#backend.serve(lease.name, (text) => this.#options.answer(text));
    await lease.renew();
    await this.#note(lease.name, '', 1);
  }

  /** @param {string} name @param {string} data @param {number} seq */
  #note(name, data, seq) {
    const entry = { tenant: PROCESSES, context: '', time: Date.now(), data };
    return this.#backend.note(`${PROCESSES}/${name}`, entry, seq);
  }

  /** Shows that the process lives. */
  async tick() {
    if (this.lease.lost) this.lose();
    else await this.#renew();
  }

  /** Where the backend is busy, a renewal is tried again before the next one is due. */
  async #renew() {
    while (!this.closed && !this.lease.lost)
      try {
        return await this.lease.renew();
      } catch {
        await new Promise((resolve) => setTimeout(resolve, RETRY));
      }
  }

  /** The process goes on under another name. */
  lose() {
    const { lost } = this.lease;
    this.lease = new Lease(this.#backend, this.#options.term);
    void this.#unserve?.().catch(() => {});
    this.#unserve = undefined;
    this.#options.onLose(lost);
    void this.enter().catch(() => {});
  }

  /** Resolves when the process may begin something. Rejects if the backend is away. */
  async living() {
    if (this.lease.lost) this.lose();
    if (!this.lease.valid) await this.enter();
  }

  /** Nobody waits for this process any more. @param {string} name that it had when it began to close */
  async leave(name) {
    await this.#unserve?.().catch(() => {});
    await this.#note(name, GONE, 2).catch(() => {});
  }

  /** The processes that are gone. @returns {AsyncGenerator<string>} */
  async *gone() {
    const { tasks } = await this.#backend.list({ tenant: PROCESSES, limit: 1000 });
    for (const { task, data } of tasks) {
      const name = task.slice(PROCESSES.length + 1);
      if (name !== this.lease.name && (await this.#isGone(name, data))) yield name;
    }
  }

  /** A process that is gone has left nothing any more. @param {string} name */
  async forget(name) {
    await this.#backend.forget(`${PROCESSES}/${name}`);
    this.#seen.delete(name);
  }

  /** @param {string} name of a process @param {string} data of its entry */
  async #isGone(name, data) {
    if (data === GONE) return true;
    if (this.#backend.local && (await this.#isSilent(name))) return true;
    const number = await this.#backend.lease(name);
    const seen = this.#seen.get(name);
    if (seen?.number === number) return performance.now() - seen.since >= this.#options.term;
    this.#seen.set(name, { number, since: performance.now() });
    return false;
  }

  /** In a backend with one process, nobody else can answer later. @param {string} name */
  async #isSilent(name) {
    const asked = this.#backend.ask(name, '{}', { timeout: this.#options.term });
    const { code } = await asked.catch((error) => error);
    return code === 'NO_RESPONDERS';
  }
}
