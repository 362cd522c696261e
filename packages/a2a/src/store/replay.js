/**
 * The events that a reader of a stream has missed: those of a task's log after a number, read a few
 * at a time to save memory.
 */
import { printNumber, readNumber, readRecord } from './records.js';

/** @import { Backend } from './backends/backend.js' */
/** @import { ObjectRef, TaskEvent } from './records.js' */
/** @import { Replica } from './replica.js' */

/** Records that are read at once, and characters that they should have at most. */
const BATCH = 64;
const ROOM = 256 * 1024;

/** @typedef {{ event: TaskEvent, number: string }} Numbered */

export class Replay {
  /** Events that were read. @type {{ event: TaskEvent | ObjectRef, number: string }[]} */
  #events = [];
  /** The latest record that was read. */
  #at;
  #limit = 4;
  #backend;
  #replica;

  /**
   * Use `Replay.after`.
   * @param {Backend} backend
   * @param {Replica} replica
   * @param {number} at a record
   */
  constructor(backend, replica, at) {
    this.#backend = backend;
    this.#replica = replica;
    this.#at = at;
  }

  /**
   * @param {Backend} backend
   * @param {Replica} replica
   * @param {string} text the number of an event
   * @returns {Promise<Replay | undefined>} undefined for a number that the log does not have
   */
  static async after(backend, replica, text) {
    const from = readNumber(text);
    if (!from) return undefined;
    // Another process may have sent events that this one has not read.
    if (from.seq > replica.seq) await replica.catchUp();
    const replay = new Replay(backend, replica, from.seq - 1);
    await replay.#read();
    const known = printNumber(from.seq, from.place);
    const place = replay.#events.findIndex(({ number }) => number === known);
    replay.#events.splice(0, place + 1);
    return place < 0 ? undefined : replay;
  }

  /**
   * True if it has returned every event that was sent here. A stream that begins in the same turn
   * has no gap.
   */
  get done() {
    return this.#events.length === 0 && this.#at >= this.#replica.seq;
  }

  /** @returns {Promise<Numbered | undefined>} the next event; undefined if the log is gone */
  async next() {
    if (this.#events.length === 0) await this.#read();
    const next = this.#events.shift();
    if (!next) return undefined;
    const [event] = await this.#replica.wholeEvents([next.event]);
    return { event, number: next.number };
  }

  async #read() {
    const { id, seq: told } = this.#replica;
    const found = await this.#backend.read(id, this.#at, this.#limit);
    let size = 1;
    for (const { seq, data } of found) {
      size += data.length;
      // The stream brings it.
      if (seq > told) break;
      this.#at = seq;
      for (const [place, event] of readRecord(data).events.entries())
        this.#events.push({ event, number: printNumber(seq, place) });
    }
    this.#limit = Math.max(1, Math.min(BATCH, Math.floor((found.length * ROOM) / size)));
  }
}
