/** Frames on their way out: js/entries.js says what they are. */
import * as Entry from './entries.js';

/** Entries of one frame: more are sent in further frames, and longer frames are not read. */
export const LONGEST = 4096;

/** A microtask, for a fifth of what `queueMicrotask` costs. */
const soon = Promise.resolve();

export class FrameWriter {
  /** @type {any[]} */
  #entries = [];
  /** By entry. @type {(Transferable[] | undefined)[]} */
  #transfers = [];
  #waiting = false;
  #post;
  #undeliverable;

  /**
   * @param {(frame: any[], transfer?: Transferable[]) => void} post
   * @param {(entry: any[], transfer: Transferable[] | undefined, error: unknown) => void} undeliverable
   */
  constructor(post, undeliverable) {
    this.#post = post;
    this.#undeliverable = undeliverable;
  }

  /**
   * The first entry of a turn goes at once, since a call made alone should not wait; what follows is
   * gathered until the turn's microtasks have run.
   * @param {number} kind
   * @param {unknown} key
   * @param {unknown} a
   * @param {unknown} b
   * @param {Transferable[]} [transfer]
   */
  add(kind, key, a, b, transfer) {
    if (this.#begins()) {
      this.#send([kind, key, a, b], transfer && [transfer]);
      return;
    }
    this.#entries.push(kind, key, a, b);
    if (transfer) this.#transfers[this.#entries.length / 4 - 1] = transfer;
    if (this.#entries.length >= LONGEST * 4) this.flush();
  }

  /**
   * A message that nobody waits for more than for what this turn still does: it goes when that is done.
   * @param {object} message
   */
  addLater(message) {
    this.#begins();
    this.#entries.push(Entry.MESSAGE, 0, undefined, message);
  }

  /** Whether the turn's first entry is coming. */
  #begins() {
    if (this.#waiting) return false;
    this.#waiting = true;
    soon.then(this.#settle);
    return true;
  }

  /** Handlers that settle in this turn do so a few microtasks from now: one more round gathers them. */
  #settle = () => void soon.then(this.#end);

  #end = () => {
    this.#waiting = false;
    this.flush();
  };

  flush() {
    if (!this.#entries.length) return;
    const frame = this.#entries;
    const transfers = this.#transfers;
    this.#entries = [];
    this.#transfers = [];
    this.#send(frame, transfers.length ? transfers : undefined);
  }

  /**
   * One value that cannot be cloned must not take the rest of its frame with it.
   * @param {any[]} frame
   * @param {(Transferable[] | undefined)[]} [transfers] by entry
   */
  #send(frame, transfers) {
    try {
      this.#post(frame, transfers && [...new Set(transfers.flatMap((list) => list ?? []))]);
    } catch (error) {
      if (frame.length === 4) return this.#undeliverable(frame, transfers?.[0], error);
      for (let i = 0; i < frame.length; i += 4) {
        const transfer = transfers?.[i / 4];
        this.#send(frame.slice(i, i + 4), transfer && [transfer]);
      }
    }
  }
}
