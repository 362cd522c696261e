/**
 * The lease of a process. It decides only who tries: what is true is in the logs. It counts from before its renewal was
 * sent; one that has run out is lost for good, and the process goes on under another name. Nothing begins under a lease
 * before others can find what it leaves.
 */
import { newId } from '../ids.js';

/** The part of a term for which an owner relies on its lease. Who would take over waits for a whole one. */
const SAFE = 2 / 3;

export class Lease {
  name = newId();
  /** Whether its entry is written: then others look at it, and take what is left when it is gone. */
  entered = false;
  /** Stops answering what is asked of this name. @type {(() => Promise<void>) | undefined} */
  unserve;
  /** @type {Promise<void> | undefined} */
  entering;
  #until = 0;
  #begun = false;
  #backend;
  #term;
  #now;

  /**
   * @param {import('../backends/backend.js').Backend} backend
   * @param {number} term ms
   * @param {() => number} now ms of a clock that only goes forward
   */
  constructor(backend, term, now) {
    this.#backend = backend;
    this.#term = term;
    this.#now = now;
  }

  /** Whether something may begin under it. */
  get valid() {
    return this.entered && this.#now() < this.#until;
  }

  /** Whether it was renewed once. */
  get begun() {
    return this.#begun;
  }

  /** Whether it held once, and does no more. */
  get lost() {
    return this.#begun && this.#now() >= this.#until;
  }

  /** It does not hold any more, and never will. */
  end() {
    this.#begun = true;
    this.#until = 0;
  }

  /** Rejects if the backend is away. */
  async renew() {
    const sent = this.#now();
    await this.#backend.renew(this.name);
    if (this.lost) return;
    this.#begun = true;
    this.#until = Math.max(this.#until, sent + this.#term * SAFE);
  }
}
