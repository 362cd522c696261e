/**
 * A process among the others: its lease, by which they see that it lives, its entry in their list,
 * and which of them are gone. It has no timers: its owner calls `tick` a few times in a term.
 * packages/a2a-store/tests/membership.test.js explores it with a backend that refuses, hangs and is
 * late at every step.
 */
import { unavailable } from './backends/backend.js';
import { newId, pause, RETRY } from '../../a2a/src/store-door.js';

/** @import { Backend } from './backends/backend.js' */

/**
 * The part of a term for which an owner relies on its lease. Who would take over waits for a whole
 * one.
 */
const SAFE = 2 / 3;
/** Entries of the list that are read at once. */
const PAGE = 1000;
/** Leases that are looked at in a sweep. */
const MAX_LEASES = 1000;
/** Looks at the others from one sweep of leases to the next. */
const LOOKS = 5;

const PROCESSES = 'processes';
/** In the entry of a process that has ended as it should: nobody waits for its lease. */
const GONE = 'gone';

/**
 * @typedef {object} MembershipOptions
 * @property {number} term ms without a sign of life after which a process is taken for gone
 * @property {(text: string) => string | Promise<string>} answer answers what others ask of this
 *   process
 * @property {(lost: boolean) => void} onLose the process goes on under another name; `lost` if its
 *   lease has run out
 * @property {() => number} [now] ms of a clock that only goes forward
 * @property {(ms: number) => Promise<unknown>} [pause]
 */

/**
 * The lease of a process. It decides only who tries: what is true is in the logs. It counts from
 * before its renewal was sent; one that has run out is lost for good, and the process goes on under
 * another name. Nothing begins under a lease before others can find what it leaves.
 */
export class Lease {
  name = newId();
  /**
   * Whether its entry is written: then others look at it, and take what is left when it is gone.
   */
  entered = false;
  /** Stops answering what is asked of this name. @type {(() => Promise<void>) | undefined} */
  unserve;
  /** @type {Promise<void> | undefined} */
  entering;
  /** Until when it holds, if it was renewed once. @type {number | undefined} */
  until;
  #now;

  /** @param {() => number} now ms of a clock that only goes forward */
  constructor(now) {
    this.#now = now;
  }

  /** Whether something may begin under it. */
  get valid() {
    return this.entered && this.#now() < (this.until ?? 0);
  }

  /** Whether it held once, and does no more. */
  get lost() {
    return this.until !== undefined && this.#now() >= this.until;
  }

  /**
   * Rejects if the backend is away.
   * @param {Backend} backend
   * @param {number} term ms
   */
  async renew(backend, term) {
    const sent = this.#now();
    await backend.renew(this.name);
    if (!this.lost) this.until = Math.max(this.until ?? 0, sent + term * SAFE);
  }
}

export class Membership {
  lease;
  /** Whether it leaves: its lease is not renewed any more. */
  closed = false;
  /**
   * The numbers of the leases of others, and since when they have not changed.
   * @type {Map<string, { number: number, since: number }>}
   */
  #seen = new Map();
  #looks = 0;
  #backend;
  #options;

  /**
   * @param {Backend} backend
   * @param {MembershipOptions} options
   */
  constructor(backend, options) {
    this.#backend = backend;
    this.#options = { now: () => performance.now(), pause, ...options };
    this.lease = new Lease(this.#options.now);
  }

  // --- This process ------------------------------------------------------------------------------

  /**
   * The process is there from now on: first it answers, then it lives, then it has an entry. Others
   * count from when they first see that, so they find it gone later than it does itself.
   */
  enter() {
    const { lease } = this;
    return (lease.entering ??= this.#begin(lease).finally(() => (lease.entering = undefined)));
  }

  /** @param {Lease} lease */
  async #begin(lease) {
    if (!lease.unserve) {
      lease.unserve = await this.#backend.serve(lease.name, (text) => this.#options.answer(text));
      // It was given up meanwhile.
      if (lease !== this.lease) this.#unserve(lease);
    }
    await lease.renew(this.#backend, this.#options.term);
    await this.#note(lease.name, '', 1);
    lease.entered = true;
  }

  /** @param {Lease} lease */
  #unserve({ unserve }) {
    void unserve?.().catch(() => {});
  }

  /**
   * @param {string} name
   * @param {string} data
   * @param {number} seq
   */
  #note(name, data, seq) {
    const entry = { tenant: PROCESSES, context: '', time: Date.now(), data };
    return this.#backend.note(`${PROCESSES}/${name}`, entry, seq);
  }

  /** Shows that the process lives, and enters it again where that has failed. */
  async tick() {
    const { lease } = this;
    if (lease.lost) return this.lose();
    if (!lease.entered) void this.enter().catch(() => {});
    // An entry may take its time; the lease it is for is kept meanwhile.
    if (lease.until !== undefined) await this.#renew(lease);
  }

  /**
   * Where the backend is busy, a renewal is tried again before the next one is due.
   * @param {Lease} lease
   */
  async #renew(lease) {
    while (!this.closed && !lease.lost)
      try {
        return await lease.renew(this.#backend, this.#options.term);
      } catch {
        await this.#options.pause(RETRY);
      }
  }

  /** The process goes on under another name. */
  lose() {
    const before = this.lease;
    const { lost } = before;
    before.until = 0;
    this.lease = new Lease(this.#options.now);
    this.#unserve(before);
    this.#options.onLose(lost);
    if (!this.closed) void this.enter().catch(() => {});
  }

  /**
   * The lease under which something may begin now. What is begun under it is stored with its name,
   * and only as long as it is valid. Rejects if the backend is away.
   */
  async living() {
    if (this.lease.lost) this.lose();
    if (!this.lease.valid) await this.enter();
    const { lease } = this;
    if (!lease.valid) throw unavailable('The backend is too slow for the lease of this process');
    return lease;
  }

  /**
   * Nobody waits for this process any more.
   * @param {string} name that it had when it began to close
   */
  async leave(name) {
    await this.lease.unserve?.().catch(() => {});
    await this.#note(name, GONE, 2).catch(() => {});
  }

  // --- The others --------------------------------------------------------------------------------

  /**
   * The processes that are gone.
   * @returns {AsyncGenerator<string>}
   */
  async *gone() {
    const { lease } = this;
    const { valid } = lease;
    const listed = new Set();
    let cursor;
    do {
      const page = await this.#backend.list({ tenant: PROCESSES, limit: PAGE, cursor });
      for (const { task, data } of page.tasks) {
        const name = task.slice(PROCESSES.length + 1);
        listed.add(name);
        if (name !== this.lease.name && (await this.#isGone(name, data))) yield name;
      }
      ({ cursor } = page);
    } while (cursor);
    // Its entry was deleted: without one, nobody would find what it leaves.
    if (valid && lease.valid && !this.closed && !listed.has(lease.name))
      await this.#note(lease.name, '', 1);
    if (this.#looks++ % LOOKS === 0) await this.#sweep(listed);
  }

  /**
   * A process that is gone has left nothing any more. One that has renewed its lease nevertheless
   * is not gone.
   * @param {string} name
   */
  async forget(name) {
    const number = this.#seen.get(name)?.number ?? (await this.#backend.lease(name));
    this.#seen.delete(name);
    if ((await this.#backend.release?.(name, number)) === false) return;
    await this.#backend.forget(`${PROCESSES}/${name}`);
  }

  /**
   * @param {string} name of a process
   * @param {string} data of its entry
   */
  async #isGone(name, data) {
    if (data === GONE) return true;
    if (this.#backend.local && (await this.#isSilent(name))) return true;
    // This process may be stopped at any point: what it reads was so when it asked, or later.
    const asked = this.#options.now();
    return this.#isUnchanged(name, await this.#backend.lease(name), asked);
  }

  /**
   * Whether a lease has not changed for a term.
   * @param {string} name
   * @param {number} number of the lease
   * @param {number} asked when it was asked for
   */
  #isUnchanged(name, number, asked) {
    const seen = this.#seen.get(name);
    if (seen?.number === number) return asked - seen.since >= this.#options.term;
    this.#seen.set(name, { number, since: this.#options.now() });
    return false;
  }

  /**
   * In a backend with one process, nobody else can answer later.
   * @param {string} name
   */
  async #isSilent(name) {
    const asked = this.#backend.ask(name, '{}', { timeout: this.#options.term });
    const { code } = await asked.catch((error) => error);
    return code === 'NO_RESPONDERS';
  }

  /**
   * Deletes leases that nobody renews and that have no entry: of processes that ended before they
   * had one, and of renewals that came late.
   * @param {Set<string>} listed
   */
  async #sweep(listed) {
    const asked = this.#options.now();
    const leases = (await this.#backend.leases?.(MAX_LEASES)) ?? [];
    const found = new Set(listed);
    for (const { process, number } of leases) {
      found.add(process);
      if (listed.has(process) || process === this.lease.name) continue;
      if (this.#isUnchanged(process, number, asked)) await this.#backend.release?.(process, number);
    }
    for (const name of this.#seen.keys()) if (!found.has(name)) this.#seen.delete(name);
  }
}
