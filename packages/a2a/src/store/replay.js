/**
 * What a reader of a stream has missed: the events of a task's log after a number, read a few at a time, so that however many
 * there are, few are in memory.
 */
import { printNumber, readNumber, readRecord } from './records.js';

/** @import { Backend } from '../backends/backend.js' */
/** @import { ObjectRef, TaskEvent } from './records.js' */
/** @import { Replica } from './replica.js' */

/** Records that are read at once, and characters that they shall have at most. */
const BATCH = 64;
const ROOM = 256 * 1024;

/** @typedef {{ event: TaskEvent, number: string }} Numbered */
/** @typedef {{ seq: number, events: (TaskEvent | ObjectRef)[] }} Read */

export class Replay {
  /** Records that were read. @type {Read[]} */
  #records = [];
  /** The event that is next: of the first of them, or of those that come. */
  #place = 0;
  /** The latest record that was read. */
  #at;
  #limit = 4;
  #backend;
  #replica;

  /** Use `Replay.after`. @param {Backend} backend @param {Replica} replica @param {number} at a record */
  constructor(backend, replica, at) {
    this.#backend = backend;
    this.#replica = replica;
    this.#at = at;
  }

  /** @param {Backend} backend @param {Replica} replica @param {string} number of an event @returns {Promise<Replay | undefined>} undefined for a number that the log does not have */
  static async after(backend, replica, number) {
    const from = readNumber(number);
    if (!from) return undefined;
    // Another process may have told what this one has not read.
    if (from.seq > replica.seq) await replica.catchUp();
    const replay = new Replay(backend, replica, from.seq - 1);
    await replay.#read();
    const [first] = replay.#records;
    if (first?.seq !== from.seq || from.place >= first.events.length) return undefined;
    replay.#place = from.place + 1;
    replay.#skip();
    return replay;
  }

  /** Whether all was given that is told here. A stream that begins now, in the same turn, has no gap. */
  get done() {
    return this.#records.length === 0 && this.#at >= this.#replica.seq;
  }

  /** @returns {Promise<Numbered | undefined>} the next event; undefined if the log is gone */
  async next() {
    if (this.#records.length === 0) await this.#read();
    if (this.#records.length === 0) return undefined;
    const [{ seq, events }] = this.#records;
    const number = printNumber(seq, this.#place);
    const [event] = await this.#replica.wholeEvents([events[this.#place]]);
    this.#place++;
    this.#skip();
    return { event, number };
  }

  /** Leaves records of which nothing is left. */
  #skip() {
    while (this.#records.length > 0 && this.#place >= this.#records[0].events.length) {
      this.#records.shift();
      this.#place = 0;
    }
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
      this.#records.push({ seq, events: readRecord(data).events });
    }
    this.#limit = Math.max(1, Math.min(BATCH, Math.floor((found.length * ROOM) / size)));
    this.#skip();
  }
}
