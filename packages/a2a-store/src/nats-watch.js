/** Who watches tasks: all of a process by one consumer, which brings what is stored of any task. */
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

/** Records that may come while a watcher reads the past; it then reads on. */
const MAX_COME = 1024;
/**
 * Ms between signs of life of a consumer: one whose server is gone is made anew when two are
 * missing.
 */
const HEARTBEAT = 1000;
/** Ms between two looks at whether the consumer has what was stored at the one before. */
const LOOK = 2000;

/** One who watches a task: reads the past, then takes what the consumer brings. */
class Watcher {
  stopped = false;
  #reading = false;
  /** Whether there is more to be read. */
  #behind = false;
  /** What has come while it was reading. @type {Stored[]} */
  #come = [];
  #read;
  #last;
  #onRecord;

  /**
   * @param {(after: number) => Promise<{ records: LogRecord[], last: number }>} read what is there,
   *   when the consumer brings what comes later
   * @param {number} last the latest message that was looked at
   * @param {(record: LogRecord) => void} onRecord
   */
  constructor(read, last, onRecord) {
    this.#read = read;
    this.#last = last;
    this.#onRecord = onRecord;
  }

  /** @param {Stored} message that the consumer brings */
  take(message) {
    const { seq, data, expected = this.#last } = message;
    if (this.#reading) this.#keep(message);
    // It lacks what came before.
    else if (expected > this.#last && seq > this.#last) void this.readOn();
    else if (seq > this.#last) {
      if (isRecord(expected, this.#last)) this.#give({ seq, data });
      this.#last = seq;
    }
  }

  /**
   * Of several that expect the same one to be the latest, the first is a record: none may be
   * missing.
   * @param {Stored} message
   */
  #keep(message) {
    if (this.#come.push(message) <= MAX_COME) return;
    this.#come = [];
    this.#behind = true;
  }

  /** @param {LogRecord} record */
  #give(record) {
    if (!this.stopped) invokeReportingErrors(this.#onRecord, record);
  }

  /** Gives what is there, and then what came meanwhile. */
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
    for (const message of this.#come.splice(0)) this.take(message);
  }
}

export class Watchers {
  /** By the token of their task. @type {Map<string, Set<Watcher>>} */
  #watched = new Map();
  /** Resolves when there is a consumer. @type {Promise<void> | undefined} */
  #consuming;
  /** @type {{ close: () => Promise<unknown>, closed: () => Promise<unknown> } | undefined} */
  #delivery;
  /** What it brings. @type {Feed | undefined} */
  #feed;
  /** What was stored when we looked last. */
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

  /** Something may not have come. */
  readAll() {
    for (const watchers of this.#watched.values())
      for (const watcher of watchers) void watcher.readOn();
  }

  /** Nobody is given anything more. */
  async stop() {
    for (const watchers of this.#watched.values())
      for (const watcher of watchers) watcher.stopped = true;
    this.#watched.clear();
    // It may be beginning.
    await this.#consuming;
    this.#feed?.stop();
    clearInterval(this.#timer);
    await this.#delivery?.close();
  }

  /** Takes what is stored of all tasks. Resolves when it does; if that breaks, it begins anew. */
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

  /** A consumer may be lost with its server, and not notice. */
  async #look() {
    const state = await this.#stream.state().catch(() => undefined);
    if (!state || !this.#feed || this.#link.closed) return;
    const missing = !this.#feed.filling && this.#feed.received < this.#storedBefore;
    this.#storedBefore = missing ? 0 : state.last_seq;
    if (missing) this.#resume();
  }

  /** The consumer has ended, or is lost. */
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
