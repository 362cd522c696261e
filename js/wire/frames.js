/** Writes frames; js/wire/frame-kinds.js describes them. */
import { copyOf } from '../common/copy.js';
import { LARGE, TEXT, shapeOf } from '../common/snapshot.js';
import { parse, stringify } from '../common/values.js';
import * as FrameKind from './frame-kinds.js';

/**
 * The most entries in one frame. Further entries go into further frames; longer frames are
 * rejected.
 */
const MAX_FRAME_ENTRIES = 4096;

/**
 * The entries of a received frame.
 * @param {any} frame text or values
 * @returns {unknown[] | false} false if it is not a frame
 */
export function entriesOf(frame) {
  try {
    if (typeof frame === 'string') frame = parse(frame);
  } catch {
    return false;
  }
  const isWhole = Array.isArray(frame) && frame.length % 4 === 0;
  return isWhole && frame.length <= MAX_FRAME_ENTRIES * 4 && frame;
}

/**
 * True if data is meant as a frame: a program that shares the channel may post any text.
 * @param {any} data text or a list
 */
export const isFrame = (data) => (typeof data === 'string' ? /^\[+\d/.test(data) : data[0] > 0);

/** Its `then` runs a microtask for a fifth of the cost of `queueMicrotask`. */
const soon = Promise.resolve();

/** Collects the messages of a microtask, and sends them as one frame. */
export class FrameWriter {
  /** The collected entries. @type {unknown[]} */
  #entries = [];
  /** Entries as text, which follow the others. */
  #text = '';
  #texts = 0;
  /** When chunks of streams were last sent, and the bytes of the chunks collected since. */
  sentAt = 0;
  bytes = 0;
  /** True if an entry was added in this turn. */
  #hasBegun = false;
  /** The number of further microtasks for which the collected entries wait. */
  #left = 0;
  #channel;
  #undeliverable;
  #writesText;

  /**
   * @param {{ post(frame: unknown[] | string, transfer?: Transferable[]): void }} channel sends a
   *   frame
   * @param {(entry: unknown[], transfer: Transferable[] | undefined, error: unknown) => void}
   *   undeliverable called with each entry that could not be sent, and the error
   * @param {boolean} [writesText] whether the other side reads text
   */
  constructor(channel, undeliverable, writesText = false) {
    this.#channel = channel;
    this.#undeliverable = undeliverable;
    this.#writesText = writesText;
  }

  /**
   * Adds an entry. The first one of a turn is sent at once, because a single call should not wait.
   * The others are collected until the turn's microtasks have run, as text or as copies. An entry
   * that can be neither is sent together with those before it.
   * @param {number} kind see js/wire/frame-kinds.js, as for `key`, `a` and `b`
   * @param {unknown} key
   * @param {unknown} a
   * @param {unknown} b
   * @param {Transferable[]} [transfer] moved with the entry
   */
  add(kind, key, a, b, transfer) {
    const isFirst = this.#isFirst();
    let isUrgent = isFirst;
    try {
      // A getter in it may make a call, whose entry then precedes this one.
      const shape = shapeOf(b);
      if (isFirst && !this.#entries.length && !this.#texts)
        return this.#channel.post([kind, key, a, b], transfer);
      if (shape === TEXT && this.#writesText && !isFirst && !transfer)
        return this.#addText(kind, key, a, b);
      isUrgent ||= shape === LARGE || !!transfer;
      if (!isUrgent) b = copyOf(b);
    } catch (error) {
      return this.#undeliverable([kind, key, a, b], transfer, error);
    }
    this.#endText();
    const length = this.#entries.push(kind, key, a, b);
    if (isUrgent || length >= MAX_FRAME_ENTRIES * 4) this.flush(transfer);
  }

  /**
   * Adds a message that is not urgent: it is sent at the end of the turn, even if it is the first
   * entry.
   * @param {object} message
   */
  addLater(message) {
    this.#isFirst();
    this.#endText();
    this.#entries.push(FrameKind.MESSAGE, 0, undefined, message);
  }

  /**
   * @param {number} kind
   * @param {unknown} key
   * @param {unknown} a
   * @param {unknown} b
   */
  #addText(kind, key, a, b) {
    // Not as a list, since `toJSON` may have been added to all lists. A getter in it may add
    // entries before this one.
    const entry = `,${kind},${stringify(key)},${stringify(a) ?? null},${stringify(b)}`;
    this.#text += entry;
    if (++this.#texts === MAX_FRAME_ENTRIES) this.flush();
  }

  /** Moves the entries as text to the others, before another entry is added. */
  #endText() {
    if (!this.#texts) return;
    this.#entries.push(FrameKind.TEXT, 0, undefined, `[${this.#text.slice(1)}]`);
    this.#text = '';
    this.#texts = 0;
  }

  /**
   * Lets the collected entries wait for more.
   * @param {number} turns microtasks
   * @returns {boolean} whether anything was collected
   */
  wait(turns) {
    this.#left = turns;
    return this.#entries.length + this.#texts > 0;
  }

  /** True if this is the first entry of the turn; if so, schedules the flush. */
  #isFirst() {
    if (this.#hasBegun) return false;
    this.#hasBegun = true;
    this.#left = 0;
    // Handlers that settle in this turn do so a few microtasks later: one more round collects their
    // results.
    void soon.then().then(this.#settle);
    return true;
  }

  #settle = () => {
    if (this.#left-- > 0) return void soon.then(this.#settle);
    this.#hasBegun = false;
    if (this.#entries.length || this.#texts) this.flush();
  };

  /**
   * Sends the collected entries.
   * @param {Transferable[]} [transfer] moved with the last entry
   */
  flush(transfer) {
    const isText = !this.#entries.length;
    this.#endText();
    const frame = this.#entries;
    if (!frame.length) return;
    this.#entries = [];
    try {
      this.#channel.post(isText ? /** @type {string} */ (frame[3]) : frame, transfer);
    } catch {
      this.#postApart(frame, transfer);
    }
  }

  /**
   * Sends the entries of a frame one by one, because they could not be sent together.
   * @param {unknown[]} frame
   * @param {Transferable[]} [transfer] moved with the last entry
   * @param {Set<unknown>} [ended] the keys of streams with a chunk that could not be sent
   */
  #postApart(frame, transfer, ended = new Set()) {
    for (let i = 0; i < frame.length; i += 4) {
      const entry = frame.slice(i, i + 4);
      const [kind, key, , value] = entry;
      const moved = i + 4 === frame.length ? transfer : undefined;
      if (kind === FrameKind.TEXT)
        this.#postApart(parse(/** @type {string} */ (value)), undefined, ended);
      else if (kind !== FrameKind.CHUNK || !ended.has(key)) {
        try {
          this.#channel.post(entry, moved);
        } catch (error) {
          if (kind === FrameKind.CHUNK) ended.add(key);
          this.#undeliverable(entry, moved, error);
        }
      }
    }
  }
}
