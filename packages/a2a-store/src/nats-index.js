/**
 * The index of tasks. NATS cannot sort entries: those of a list are read, and sorted here.
 */
import { breathe, safely } from 'abp-bridge/driver';
import {
  DEFAULT_PAGE,
  OrderedIndex,
  listed,
  pageOf,
  readCursor,
  requireEntry,
  requireName,
} from '@abp-bridge/a2a/store';
import { token } from './nats-link.js';

/** @import { AbpError } from 'abp-bridge/driver' */
/** @import { Backend, ListFilter, LogRecord } from '@abp-bridge/a2a/store' */
/** @import { Stream } from './nats-stream.js' */

/**
 * Lists up to this length are read for each page; of a longer one a copy is kept, and changes are
 * read.
 */
const SHORT_LIST = 256;
/** Ms for which an unused copy is kept. */
const KEPT = 300_000;
/** Ms for which a copy is fresh enough for a further page. */
const FRESH = 1000;
/** Attempts to enter a task in the index against other writers. */
const MAX_ATTEMPTS = 16;

/** @param {string} text */
function entryIn(text) {
  const entry = JSON.parse(text);
  requireName(entry.task);
  requireEntry(entry);
  return entry;
}

/**
 * Enters messages into an index, and yields if there are many.
 * @param {OrderedIndex} index
 * @param {Pick<LogRecord, 'data'>[]} messages
 */
async function enter(index, messages) {
  for (const [i, { data }] of messages.entries()) {
    // A malformed entry of another writer is skipped.
    const entry = safely(() => entryIn(data), undefined);
    if (entry) index.set(entry);
    if (i % SHORT_LIST === SHORT_LIST - 1) await breathe();
  }
  return index;
}

/** A copy of a long list's entries. */
class Copy {
  index = new OrderedIndex();
  /** The time of the latest request. */
  asked = 0;
  /** The time when it was read. */
  #read = -Infinity;
  /** The latest message that was read. */
  #seen = 0;
  /** The read in progress. @type {Promise<void> | undefined} */
  #reading;
  /** The read after that. @type {Promise<void> | undefined} */
  #next;
  #stream;
  #subject;

  /**
   * @param {Stream} stream
   * @param {string} subject
   */
  constructor(stream, subject) {
    this.#stream = stream;
    this.#subject = subject;
  }

  /** @param {boolean} further whether an earlier page has been read */
  async entries(further) {
    this.asked = performance.now();
    if (!further || this.asked - this.#read > FRESH) await this.#refresh();
    return this.index;
  }

  /**
   * Reads all entries up to now. Requests during a read share the next one.
   * @returns {Promise<void>}
   */
  #refresh() {
    const begin = () => {
      this.#next = undefined;
      this.#reading = this.#readAll().finally(() => (this.#reading = undefined));
      return this.#reading;
    };
    return this.#reading ? (this.#next ??= this.#reading.catch(() => {}).then(begin)) : begin();
  }

  async #readAll() {
    await this.#readOn();
    if (this.#stream.hasConsumers) {
      const before = this.index.size;
      const { pending } = await this.#stream.consume(this.#subject, 1, 0);
      // More may have come since.
      if (pending > before) await this.#readOn();
      if (pending < before || pending > this.index.size) {
        // Another process has forgotten tasks, or the server has skipped entries.
        this.index = new OrderedIndex();
        this.#seen = 0;
        await this.#readOn();
      }
    }
    this.#read = performance.now();
  }

  async #readOn() {
    // An entry that changes meanwhile is missing: its new message has a later sequence.
    const found = await this.#stream.read(this.#subject, this.#seen + 1, Infinity, false);
    if (found.length > 0) this.#seen = found[found.length - 1].seq;
    await enter(this.index, found);
  }
}

export class Index {
  /** Copies of long lists, by their subjects. @type {Map<string, Copy>} */
  #copies = new Map();
  #link;
  #stream;

  /** @param {Stream} stream */
  constructor(stream) {
    this.#link = stream.link;
    this.#stream = stream;
  }

  /** @type {Backend['note']} */
  note = async (task, entry, seq) => {
    this.#link.check(task);
    requireEntry(entry);
    const { tenant, context, time, state, data } = entry;
    const subject = this.#link.subject('index', token(tenant), token(context), token(task));
    const text = JSON.stringify({ task, tenant, context, time, state, data, seq });
    for (let attempt = 1; ; attempt++) {
      const last = await this.#stream.last(subject);
      const stored = last?.string();
      if (stored && (stored === text || JSON.parse(stored).seq > seq)) return;
      try {
        return void (await this.#stream.publish(subject, text, last?.seq ?? 0, task));
      } catch (error) {
        const lost = /** @type {AbpError} */ (error).code === 'CONFLICT';
        if (!lost || attempt === MAX_ATTEMPTS) throw error;
      }
    }
  };

  /** @type {Backend['list']} */
  list = async ({ limit = DEFAULT_PAGE, cursor, ...filter }) => {
    this.#link.check();
    const after = readCursor(cursor);
    const index = await this.#entries(filter, after !== undefined);
    return pageOf(index.page(filter, after, limit + 1).map(listed), limit);
  };

  /** @type {Backend['count']} */
  count = async (filter) => {
    this.#link.check();
    return (await this.#entries(filter, false)).count(filter);
  };

  /**
   * The entries of a tenant, or of one of its contexts.
   * @param {ListFilter} filter
   * @param {boolean} further whether an earlier page has been read
   */
  async #entries({ tenant, context }, further) {
    const within = context === undefined ? '*' : token(context);
    const subject = this.#link.subject('index', token(tenant), within, '*');
    if (!this.#copies.has(subject)) {
      const few = await this.#stream.read(subject, 1, SHORT_LIST + 1);
      if (few.length <= SHORT_LIST) return enter(new OrderedIndex(), few);
    }
    // Another call may have made it meanwhile.
    const copy = this.#copies.get(subject) ?? new Copy(this.#stream, subject);
    this.#copies.set(subject, copy);
    return copy.entries(further);
  }

  /** @param {string} task */
  async forget(task) {
    await this.#stream.purge(this.#link.subject('index', '*', '*', token(task)));
    for (const { index } of this.#copies.values()) index.remove(task);
  }

  /** Drops copies that were not used for a while. */
  dropUnasked() {
    for (const [subject, { asked }] of this.#copies)
      if (performance.now() - asked > KEPT) this.#copies.delete(subject);
  }
}
