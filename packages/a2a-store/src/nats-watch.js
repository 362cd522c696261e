/**
 * The watchers of tasks: all watchers of a process share one consumer, for the records of any task.
 */
import { invokeReportingErrors } from 'abp-bridge/driver';
import { pause, requireName, unavailable } from '@abp-bridge/a2a/store';
import { Feed, RETRY } from './nats-feed.js';
import { lastOf, token } from './nats-link.js';
import { isRecord } from './nats-log.js';
import { storedOf } from './nats-stream.js';

/** @import { Backend, LogRecord } from '@abp-bridge/a2a/store' */
/** @import { Message } from './nats-feed.js' */
/** @import { Logs } from './nats-log.js' */
/** @import { Stored, Stream } from './nats-stream.js' */

/** Records that may arrive while a watcher reads the past; beyond that, it reads on. */
const MAX_COME = 1024;
/**
 * Ms between a consumer's signs of life: when two are missing, its server is gone, and it is made
 * anew.
 */
const HEARTBEAT = 1000;
/**
 * Ms between two checks whether the consumer has received the messages stored by the previous
 * check.
 */
const LOOK = 2000;

/** Watches a task: reads its past, then takes new records from the consumer. */
class Watcher {
  stopped = false;
  #reading = false;
  /** True if there is more to read. */
  #behind = false;
  /** Messages that arrived while it was reading. @type {Stored[]} */
  #arrived = [];
  #read;
  #last;
  #onRecord;

  /**
   * @param {(after: number) => Promise<{ records: LogRecord[], last: number }>} read reads the
   *   stored records, once the consumer delivers later ones
   * @param {number} last the latest message that was read
   * @param {(record: LogRecord) => void} onRecord
   */
  constructor(read, last, onRecord) {
    this.#read = read;
    this.#last = last;
    this.#onRecord = onRecord;
  }

  /** @param {Stored} message from the consumer */
  take(message) {
    const { seq, data, expected = this.#last } = message;
    if (this.#reading) this.#keep(message);
    // An earlier record is missing.
    else if (expected > this.#last && seq > this.#last) void this.readOn();
    else if (seq > this.#last) {
      if (isRecord(expected, this.#last)) this.#give({ seq, data });
      this.#last = seq;
    }
  }

  /**
   * Of several messages that expect the same one to be the latest, the first is a record, so no
   * message may be missing.
   * @param {Stored} message
   */
  #keep(message) {
    if (this.#arrived.push(message) <= MAX_COME) return;
    this.#arrived = [];
    this.#behind = true;
  }

  /** @param {LogRecord} record */
  #give(record) {
    if (!this.stopped) invokeReportingErrors(this.#onRecord, record);
  }

  /** Delivers the stored records, and then those that arrived meanwhile. */
  async readOn() {
    this.#behind = true;
    if (this.#reading) return;
    this.#reading = true;
    while (this.#behind && !this.stopped) {
      this.#behind = false;
      try {
        const { records, last } = await this.#read(this.#last);
        this.#last = last;
        for (const record of records) this.#give(record);
      } catch {
        this.#behind = true;
        await pause(RETRY);
      }
    }
    this.#reading = false;
    for (const message of this.#arrived.splice(0)) this.take(message);
  }
}

export class Watchers {
  /** By the token of their task. @type {Map<string, Set<Watcher>>} */
  #watched = new Map();
  /** Resolves when there is a consumer. @type {Promise<void> | undefined} */
  #consuming;
  /** @type {{ close: () => Promise<unknown>, closed: () => Promise<unknown> } | undefined} */
  #delivery;
  /** The consumer's messages, in order. @type {Feed | undefined} */
  #feed;
  /** The latest message stored at the previous check. */
  #storedBefore = 0;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer;
  #link;
  #stream;
  #logs;

  /**
   * @param {Stream} stream of the logs
   * @param {Logs} logs
   */
  constructor(stream, logs) {
    this.#link = stream.link;
    this.#stream = stream;
    this.#logs = logs;
  }

  /** @type {Backend['watch']} */
  watch = (task, after, onRecord) => {
    if (this.#link.closed) throw unavailable();
    requireName(task);
    const read = async (/** @type {number} */ last) => {
      await this.#consuming;
      return this.#logs.records(task, last, Infinity);
    };
    const watcher = new Watcher(read, after, onRecord);
    const key = token(task);
    const watchers = this.#watched.get(key) ?? new Set();
    this.#watched.set(key, watchers.add(watcher));
    this.#consuming ??= this.#consume();
    void watcher.readOn();
    return () => {
      watcher.stopped = true;
      watchers.delete(watcher);
      if (watchers.size === 0 && this.#watched.get(key) === watchers) this.#watched.delete(key);
    };
  };

  /** Has all watchers read on, since a message may be missing. */
  readAll() {
    for (const watchers of this.#watched.values())
      for (const watcher of watchers) void watcher.readOn();
  }

  /** Stops all watchers. */
  async stop() {
    for (const watchers of this.#watched.values())
      for (const watcher of watchers) watcher.stopped = true;
    this.#watched.clear();
    // It may be starting.
    await this.#consuming;
    this.#feed?.stop();
    clearInterval(this.#timer);
    await this.#delivery?.close();
  }

  /** Consumes the records of all tasks. Resolves when it does; starts again when it breaks. */
  async #consume() {
    while (!this.#link.closed) {
      try {
        const { last_seq: received } = await this.#stream.state();
        const consumer = await this.#link.js.consumers.get(this.#stream.name, {
          deliver_policy: 'by_start_sequence',
          opt_start_seq: received + 1,
        });
        const feed = new Feed(
          received,
          (seq) => this.#stream.get({ seq }),
          (message) => this.#dispatch(message),
        );
        this.#feed = feed;
        const delivery = await consumer.consume({
          expires: 4 * HEARTBEAT,
          idle_heartbeat: HEARTBEAT,
          callback: (/** @type {any} */ message) => feed.take(message),
        });
        this.#delivery = delivery;
        void delivery.closed().then(() => delivery === this.#delivery && this.#resume());
        this.#timer ??= setInterval(() => void this.#look(), LOOK);
        return;
      } catch {
        await pause(RETRY);
      }
    }
  }

  /** Checks the consumer, which may be lost with its server without notice. */
  async #look() {
    const state = await this.#stream.state().catch(() => undefined);
    if (!state || !this.#feed || this.#link.closed) return;
    const missing = !this.#feed.filling && this.#feed.received < this.#storedBefore;
    this.#storedBefore = missing ? 0 : state.last_seq;
    if (missing) this.#resume();
  }

  /** Starts again after the consumer has ended, or is lost. */
  #resume() {
    if (this.#link.closed) return;
    void this.#delivery?.close().catch(() => {});
    this.#delivery = undefined;
    this.#feed?.stop();
    this.#consuming = this.#consume();
    this.readAll();
  }

  /** @param {Message} message */
  #dispatch(message) {
    const watchers = this.#watched.get(lastOf(message.subject));
    if (!watchers) return;
    const stored = storedOf(message);
    for (const watcher of watchers) watcher.take(stored);
  }
}
