/**
 * A process among the others: its lease, by which they find it and see that it lives, and which of
 * them are gone. It has no timers: its owner calls `tick` a few times in a term.
 * packages/a2a-store/tests/membership.test.js explores it with a backend that rejects, hangs and is
 * late at every step.
 */
import { unavailable } from './backends/backend.js';
import { newId } from '../ids.js';
import { pause, RETRY } from '../pause.js';

/** @import { Backend } from './backends/backend.js' */

/**
 * The part of a term for which an owner relies on its lease. Other processes wait for a whole term
 * before they take over.
 */
const SAFE = 2 / 3;
/** Leases that are checked. They are sorted, so those of processes that are gone come first. */
const MAX_LEASES = 1000;

/**
 * @typedef {object} MembershipOptions
 * @property {number} term ms without a sign of life after which a process is considered gone
 * @property {(text: string) => string | Promise<string>} answer answers questions of other
 *   processes
 * @property {(lost: boolean) => void} onLose called when the process continues under another name;
 *   `lost` if its lease has run out
 * @property {() => number} [now] ms of a monotonic clock
 * @property {(ms: number) => Promise<unknown>} [pause]
 */

/**
 * The lease of a process. It only decides which process tries; the logs decide the result. It
 * counts from before its renewal was sent. One that has run out stays lost, and the process
 * continues under another name. Nothing begins under a lease before it was stored: by it others
 * find the tasks that the process leaves.
 */
export class Lease {
  name = newId();
  /** Stops answering questions under this name. @type {(() => Promise<void>) | undefined} */
  unserve;
  /** @type {Promise<void> | undefined} */
  entering;
  /** When it runs out; undefined before its first renewal. @type {number | undefined} */
  until;
  #now;

  /** @param {() => number} now ms of a monotonic clock */
  constructor(now) {
    this.#now = now;
  }

  /** True if work may begin under it. */
  get valid() {
    return this.#now() < (this.until ?? 0);
  }

  /** True if it has run out. */
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
  /** True once the process leaves: its lease is not renewed any more. */
  closed = false;
  /**
   * The lease numbers of other processes, and the time since when they have not changed.
   * @type {Map<string, { number: number, since: number }>}
   */
  #seen = new Map();
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
   * Enters the process: it first serves questions, then stores its lease. Others count from when
   * they first see the lease, so they consider it gone later than the process itself does.
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
  }

  /** @param {Lease} lease */
  #unserve({ unserve }) {
    void unserve?.().catch(() => {});
  }

  /** Shows that the process lives, and enters it again if that has failed. */
  async tick() {
    const { lease } = this;
    if (lease.lost) return this.lose();
    if (lease.until === undefined) void this.enter().catch(() => {});
    else await this.#renew(lease);
  }

  /**
   * If the backend is busy, a renewal is tried again before the next one is due.
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

  /** Continues under another name. Other processes may take the tasks of the old name. */
  lose() {
    const before = this.lease;
    const { lost, until } = before;
    before.until = 0;
    this.lease = new Lease(this.#options.now);
    this.#unserve(before);
    if (until !== undefined) void this.#leave(before.name);
    this.#options.onLose(lost);
    if (!this.closed) void this.enter().catch(() => {});
  }

  /**
   * The lease under which work may begin now. Everything begun under it is stored with its name,
   * and only while it is valid. Rejects if the backend is away.
   */
  async living() {
    if (this.lease.lost) this.lose();
    if (!this.lease.valid) await this.enter();
    const { lease } = this;
    if (!lease.valid) throw unavailable('The backend is too slow for the lease of this process');
    return lease;
  }

  /**
   * Marks the lease as left, so that no process waits for it.
   * @param {string} name that it had when it began to close
   */
  async leave(name) {
    await this.lease.unserve?.().catch(() => {});
    await this.#leave(name);
  }

  /** @param {string} name */
  #leave(name) {
    return this.#backend.renew(name, true).catch(() => {});
  }

  // --- The others --------------------------------------------------------------------------------

  /**
   * The processes that are gone.
   * @returns {AsyncGenerator<string>}
   */
  async *gone() {
    const leases = await this.#backend.leases(MAX_LEASES);
    const names = new Set(leases.map(({ process }) => process));
    for (const name of this.#seen.keys()) if (!names.has(name)) this.#seen.delete(name);
    for (const { process, left } of leases)
      if (process !== this.lease.name && (left || (await this.#isGone(process)))) yield process;
  }

  /**
   * Deletes the lease of a process that is gone and has left nothing, unless it was renewed
   * nevertheless.
   * @param {string} name
   */
  async forget(name) {
    const number = this.#seen.get(name)?.number ?? (await this.#backend.lease(name));
    this.#seen.delete(name);
    await this.#backend.release(name, number);
  }

  /**
   * True if a lease has not changed for a term.
   * @param {string} name of a process
   */
  async #isGone(name) {
    // This process may pause at any point: what it reads was true when it asked, or later.
    const asked = this.#options.now();
    const number = await this.#backend.lease(name);
    const seen = this.#seen.get(name);
    if (seen?.number === number) return asked - seen.since >= this.#options.term;
    this.#seen.set(name, { number, since: this.#options.now() });
    return false;
  }
}
