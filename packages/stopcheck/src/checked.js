/** What is checked: its session, which is opened again when it was lost, and its calls. */
import { randomUUID } from 'node:crypto';
import { Call } from './call.js';
import { Processes } from './processes.js';
import { Witness } from './witness.js';

/**
 * @typedef {object} Way to what is checked.
 * @property {() => Promise<import('./trial.js').Session>} open
 * @property {() => Promise<void>} [close] what stays while sessions end and begin
 *
 * @typedef {object} Plan What is checked, and how.
 * @property {Way} way
 * @property {string} input the text, or the arguments as JSON, with placeholders
 * @property {boolean} isText whether it is a text
 * @property {boolean} byProcesses whether the work is seen by them, in place of placeholders
 */

/** Ms in which a session must begin, and answer a question without effects. */
const LATE = 60_000;

/**
 * @template T
 * @param {Promise<T> | undefined} answer
 * @param {string} [message]
 * @returns {Promise<T | undefined>}
 */
function orLate(answer, message) {
  const late = new Promise((_, reject) => {
    setTimeout(() => reject(new Error(message)), LATE).unref();
  });
  return Promise.race([answer, late]);
}

export class Checked {
  /** @type {import('./trial.js').Session | undefined} */
  session;
  /** @type {Witness | undefined} */
  #witness;
  /** @type {Processes | undefined} */
  #processes;
  /** @type {Call[]} */
  #running = [];
  /** Sessions that are being closed. @type {Promise<unknown>[]} */
  #closing = [];
  #plan;

  /** @param {Plan} plan */
  constructor(plan) {
    this.#plan = plan;
  }

  /** How the work is seen; undefined if it is not. */
  get witness() {
    return this.#plan.byProcesses ? 'processes' : this.#witness?.kind;
  }

  async open() {
    const { input, byProcesses } = this.#plan;
    this.#witness ??= await Witness.open(input);
    if (byProcesses) this.#processes ??= new Processes(() => this.#running.map(({ work }) => work));
    if (this.session) return;
    this.session = await orLate(this.#plan.way.open(), 'It did not answer');
    this.#processes?.settle(this.session?.pid);
  }

  /**
   * A call that is not made yet.
   * @param {Call} [first] that is repeated: they share their work
   */
  call(first) {
    const witness = /** @type {Witness} */ (this.#witness);
    const work = first?.work ?? witness.expect(`k${randomUUID().slice(0, 8)}`);
    const { input, isText } = this.#plan;
    const fill = (/** @type {unknown} */ value) =>
      typeof value === 'string' ? witness.fill(value, work.key) : value;
    const call = new Call(work, isText ? fill(input) : JSON.parse(input, (_, each) => fill(each)));
    this.#running.push(call);
    return call;
  }

  /** Closes the line, as a client that goes away does. */
  cut() {
    if (this.session) this.#closing.push(this.session.close().catch(() => {}));
    this.session = undefined;
  }

  /** Whether the session goes on. If it does not, it is closed. */
  async isAlive() {
    try {
      await orLate(this.session?.ping());
      return true;
    } catch {
      this.cut();
      return false;
    }
  }

  /** The calls are over. */
  forget() {
    this.#running = [];
    this.#processes?.settle(this.session?.pid);
  }

  async close() {
    this.#processes?.close();
    this.cut();
    await Promise.all(this.#closing);
    await this.#plan.way.close?.();
    this.#witness?.close();
  }
}
