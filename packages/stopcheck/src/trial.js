/** One press, as it is carried out: its calls, and how long they are watched. */
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * @typedef {import('./call.js').Call} Call
 *
 * @typedef {object} Session A client's connection to what is checked. It records what is said of a
 *   call with `call.say`, and calls `call.end` when the call's promise or stream has ended.
 * @property {string} client library and version, and the revision of the protocol
 * @property {number} [pid] of the program, if it was started for this
 * @property {Record<string, string>} lacks presses that this client cannot make, and why
 * @property {boolean} [keys] whether a repeated call is known by its key
 * @property {boolean} [limits] whether the client has time limits of its own
 * @property {(call: Call) => void} start it, for the time of its limit
 * @property {(call: Call, reason?: unknown) => void} stop by the client's own means
 * @property {(call: Call) => unknown} stopById once more, or when the call has ended
 * @property {(call: Call) => unknown} stopUnknown a call that never was; the answer is said of it
 * @property {(call: Call) => unknown} [look] what is known of a call afterwards
 * @property {() => Promise<unknown>} ping rejects if the session has ended
 * @property {() => Promise<unknown>} close
 */

/**
 * @typedef {object} Whole The work of a call that is not stopped.
 * @property {number} length ms to its end
 * @property {number} amount of effects and beats; ms, if it is seen by processes
 * @property {boolean} isRough whether it is seen by processes, which end, and do not show why
 * @property {number} starts effects, and things that begin
 * @property {number} gap ms between two signs, at most
 */

/** Ms that work must be quiet to have ended, at least. */
const QUIET = 500;
/** Ms for which calls, and work that does not end, are watched besides what the work takes. */
const PATIENCE = 10_000;
/** Ms that work may take. */
const LONGEST = 60_000;

export class Trial {
  /** The calls, the pressed one first. @type {Call[]} */
  calls = [];
  /** @type {Call[]} */
  neighbours = [];
  /** Whether the line was closed by the press. */
  isCut = false;
  /** Why the press could not be made. @type {string | undefined} */
  untried;
  /** Whether the session went on; undefined if the press ended it. @type {boolean | undefined} */
  lives;
  started = 0;
  /** Whether a repeated call is known by its key. */
  keys = false;

  /**
   * @param {object} given
   * @param {import('./presses.js').Press} given.press
   * @param {import('./checked.js').Checked} given.checked
   * @param {Whole} [given.whole]
   * @param {number} given.within ms in which work must end
   * @param {number} [given.quiet] ms
   */
  constructor({ press, checked, whole, within, quiet }) {
    this.press = press;
    this.checked = checked;
    this.whole = whole;
    this.within = within;
    this.quiet = quiet ?? Math.max(QUIET, 3 * (whole?.gap ?? 0));
  }

  get #session() {
    return /** @type {Session} */ (this.checked.session);
  }

  async run() {
    this.started = performance.now();
    this.keys = this.#session.keys === true;
    this.untried = this.#session.lacks[this.press.name];
    if (this.untried) return;
    // What breaks in a press is the session, and that is asked below.
    const running = Promise.resolve(this.press.run(this)).catch(() => {});
    await Promise.race([running, this.#tooLong()]);
    await this.#watch();
    if (!this.isCut) {
      const looks = this.calls.map((call) => this.#session.look?.(call));
      await Promise.race([Promise.all(looks), this.#tooLong()]);
      this.lives = await this.checked.isAlive();
    }
    this.checked.forget();
  }

  async #tooLong() {
    const { length } = this.whole ?? { length: LONGEST };
    await sleep(4 * length + PATIENCE, undefined, { ref: false });
  }

  /**
   * Makes a call.
   * @param {(call: Call) => void} [prepare] before it is sent
   * @param {Call[]} [among] the calls that are pressed, or their neighbours
   */
  call(prepare, among = this.calls) {
    const call = this.checked.call();
    among.push(call);
    prepare?.(call);
    if (call.isOvertaken) call.pressed = call.begun;
    this.#session.start(call);
    return call;
  }

  /** @param {number} part of the time that the work takes, after which the client gives up */
  callFor(part) {
    const limit = Math.ceil(part * (this.whole?.length ?? 0));
    const call = this.call((each) => void (each.limit = limit));
    if (!this.#session.limits) setTimeout(() => this.stop(call), limit).unref();
    else
      void call.over.then(() => {
        if (performance.now() - call.begun >= limit) call.pressed = call.begun + limit;
      });
    return call;
  }

  /**
   * @param {Call} call
   * @param {number} part of the work; of the time, if the work is not seen
   */
  async reached(call, part) {
    const { amount = 0, length = 0 } = this.whole ?? {};
    const done = amount
      ? call.work.until(() => call.work.amount >= Math.ceil(part * amount))
      : sleep(part * length, undefined, { ref: false });
    await Promise.race([done, call.over]);
  }

  /**
   * Until something was said so often.
   * @param {Call} call
   * @param {import('./call.js').Said['by']} by
   * @param {number} count
   */
  async heard(call, by, count) {
    await call.untilOver(() => call.count(by) >= count);
    if (call.count(by) < count) this.untried = `it had no ${by}`;
  }

  /**
   * @param {Call} call
   * @param {unknown} [reason]
   */
  stop(call, reason) {
    if (call.ended !== undefined || this.untried) return;
    call.pressed = performance.now();
    this.#session.stop(call, reason);
  }

  /**
   * By its name: when it was stopped, or has ended.
   * @param {Call} call
   */
  async stopById(call) {
    if (call.pressed === undefined && this.press.when !== 'never') return;
    call.pressed ??= performance.now();
    await this.#session.stopById(call);
  }

  async stopUnknown() {
    const call = this.checked.call();
    call.pressed = performance.now();
    this.calls.push(call);
    await this.#session.stopUnknown(call);
    call.end();
  }

  /** @param {Call} call */
  cut(call) {
    if (call.ended !== undefined) return;
    call.pressed = performance.now();
    this.isCut = true;
    this.checked.cut();
  }

  /**
   * The same call, on a new line.
   * @param {Call} first
   */
  async repeat(first) {
    if (!this.isCut) return;
    await this.checked.open();
    const again = this.checked.call(first);
    this.calls.push(again);
    this.#session.start(again);
    await again.over;
  }

  /**
   * Until the work would have been finished, all calls are over, or late, and it is quiet.
   */
  async #watch() {
    const all = [...this.calls, ...this.neighbours];
    const isStop = this.press.when === 'early' || this.press.when === 'race';
    const length = isStop ? (this.whole?.length ?? 0) : 0;
    const begun = Math.max(0, ...all.map((call) => call.begun));
    await sleep(Math.max(0, begun + length - performance.now()));
    const over = Promise.all(all.map((call) => call.over));
    if (isStop && !this.isCut) await Promise.race([over, sleep(PATIENCE)]);
    for (const last = performance.now() + 2 * length + PATIENCE; performance.now() < last;) {
      const signs = all.map(({ work }) => work.signs.at(-1)?.at ?? 0);
      const rest = Math.max(...signs) + this.quiet - performance.now();
      if (!(rest > 0)) return;
      await sleep(rest);
    }
  }
}
