/** A call that is watched: what was said of it, beside what it did. */
import { Moments } from './moments.js';

/** @typedef {'stopped' | 'finished' | 'running' | 'failed' | 'unstarted' | 'unknown'} Outcome */

/**
 * @typedef {object} Said One message about a call, after it was sent.
 * @property {number} at ms
 * @property {'answer' | 'cancel' | 'stream' | 'store' | 'question'} by `cancel`: the
 *   answer to the stop; `store`: the answer to who asks for the task later
 * @property {Outcome} [word] what it says of the work; absent if it says nothing of it
 * @property {boolean} isLast whether the word is meant to stay true
 * @property {string} text for people
 */

/** Characters of a text, and messages of a call, that are kept. */
const [MAX_TEXT, MAX_SAID] = [200, 10_000];

export class Call extends Moments {
  /** In order. @type {Said[]} */
  said = [];
  /** In ms. */
  begun = performance.now();
  /** When stop was pressed, in ms. @type {number | undefined} */
  pressed;
  /** When its client had its end, in ms. @type {number | undefined} */
  ended;
  /** Stops it, by the client's own means. */
  controller = new AbortController();
  /** Ms that the client gives it. @type {number | undefined} */
  limit;
  /** Whether it asks for progress. */
  wantsProgress = false;
  /** Whether its questions are left without an answer. */
  leavesQuestions = false;
  /** Whether a stop of it is sent before it. */
  isOvertaken = false;
  /** What the client knows it by. @type {any} */
  id;
  #over = () => {};
  /** Resolves when its client has its end. @type {Promise<void>} */
  over = new Promise((resolve) => (this.#over = () => resolve()));

  /**
   * @param {import('./witness.js').Work} work
   * @param {any} input arguments of a tool, or a text
   */
  constructor(work, input) {
    super();
    this.work = work;
    this.key = work.key;
    this.input = input;
  }

  /**
   * @param {Said['by']} by
   * @param {Outcome | undefined} word
   * @param {unknown} text
   */
  say(by, word, text) {
    if (by === 'stream' && this.said.length >= MAX_SAID) return;
    const isLast = word !== undefined && word !== 'running' && word !== 'unknown';
    const kept = String(text).slice(0, MAX_TEXT);
    this.said.push({ at: performance.now(), by, word, isLast, text: kept });
    this.changed();
  }

  /**
   * How often something was said so.
   * @param {Said['by']} by
   */
  count(by) {
    return this.said.filter((each) => each.by === by).length;
  }

  /**
   * The client knows it by this name.
   * @param {any} id
   */
  name(id) {
    this.id = id;
    this.changed();
  }

  /**
   * @param {() => boolean} test
   * @returns {Promise<unknown>} resolves in the turn in which it is so, or when its client has its
   *   end
   */
  untilOver(test) {
    return Promise.race([this.until(test), this.over]);
  }

  /** Its client has its end. */
  end() {
    this.ended ??= performance.now();
    this.#over();
  }
}
