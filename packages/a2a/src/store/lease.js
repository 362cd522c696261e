/**
 * The lease of a process. It decides only who tries: what is true is in the logs. It counts from before its renewal was
 * sent; one that has run out is lost for good, and the process goes on under another name.
 */
import { newId } from '../ids.js';

/** The part of a term for which an owner relies on its lease. Who would take over waits for a whole one. */
const SAFE = 2 / 3;

export class Lease {
  name = newId();
  #until = 0;
  #begun = false;
  #backend;
  #term;

  /** @param {import('../backends/backend.js').Backend} backend @param {number} term ms */
  constructor(backend, term) {
    this.#backend = backend;
    this.#term = term;
  }

  /** Whether it holds. */
  get valid() {
    return performance.now() < this.#until;
  }

  /** Whether it held once, and does no more. */
  get lost() {
    return this.#begun && !this.valid;
  }

  /** Rejects if the backend is away. */
  async renew() {
    const sent = performance.now();
    await this.#backend.renew(this.name);
    if (this.lost) return;
    this.#begun = true;
    this.#until = Math.max(this.#until, sent + this.#term * SAFE);
  }
}
