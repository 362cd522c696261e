/**
 * A backend on NATS with JetStream, for many processes, on a connection of your own. What was
 * acknowledged is as durable as the server has it: with one server its disk within `sync_interval`, with three replicas
 * a quorum has it.
 */
import { fromBase64, toBase64 } from '../../../binary/src/base64.js';
import { breathe } from '../../../../js/common/breathe.js';
import {
  AbpError,
  invokeReportingErrors,
  safely,
  toErrorObject,
} from '../../../../js/common/errors.js';
import {
  DEFAULT_PAGE,
  DEFAULT_TIMEOUT,
  MAX_PUT,
  conflict,
  noAnswer,
  noResponders,
  objectNotFound,
  pageOf,
  listed,
  readCursor,
  requireEntry,
  requireName,
  requireRecord,
  unavailable,
} from './backend.js';
import { pause, within } from '../pause.js';
import { Feed, RETRY } from './nats-feed.js';
import { OrderedIndex } from './ordered.js';

/** @import { Backend, IndexEntry, ListFilter, LogRecord } from './backend.js' */
/** @import { Message } from './nats-feed.js' */

/** Bytes of a message that its headers and its subject may take. */
const HEADERS = 2048;
/** Bytes of a piece of an object, where NATS takes messages of that size. */
const CHUNK = 256 * 1024;
/** Bytes that a message must be allowed to have: an entry of the index has a tenant, a context and a user. */
const MIN_MESSAGE = 16 * 1024;
const TOO_SMALL = `the server (max_payload) and its streams (max_msg_size) must take messages of ${MIN_MESSAGE} bytes`;
/** Records that are asked for one by one; for more there is a consumer. */
const FEW = 64;
/** Ms for which no other consumer is made when one could not be. */
const WITHOUT_CONSUMERS = 30_000;
/** Messages that are pulled at once, and ms for some of them to come. */
const PULL = 256;
const EXPIRES = 1000;
/** Ns after which the server forgets a consumer that nobody asks. */
const FORGOTTEN_AFTER = 30_000_000_000;
/** Records that may come while a watcher reads the past; it then reads on. */
const MAX_COME = 1024;
/** Ms between signs of life of a consumer: one whose server is gone is made anew when two are missing. */
const HEARTBEAT = 1000;
/** Ms between two looks at whether the consumer has what was stored at the one before. */
const LOOK = 2000;
/** Entries of a list that are read anew for each page; of a longer one a copy is kept, and what has changed is read. */
const SHORT_LIST = 256;
/** Ms for which a copy that nobody asks for is kept. */
const KEPT = 300_000;
/** Ms for which a copy is good enough for a further page. */
const FRESH = 1000;
/** Attempts to enter a task in the index while others do, too. */
const MAX_ATTEMPTS = 16;
/** The header in which a message keeps the sequence that its writer expected to be the latest. */
const EXPECTED = 'Nats-Expected-Last-Subject-Sequence';
/** JetStream's numbers for "another sequence is the latest", and for "the stream takes no message of that size". */
const WRONG_SEQUENCE = 10071;
const TOO_LONG = 10054;
/** Errors of what was not stored, and will not be. */
const REFUSALS = [
  'JetStreamApiError',
  'NoRespondersError',
  'JetStreamNotEnabled',
  'PermissionViolationError',
];

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** A name as a token of a subject; an empty one is none of these. @param {string} name */
const token = (name) =>
  toBase64(encoder.encode(name)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '') ||
  '-';

/** @param {string} text a token of a subject @returns {string} its name */
const nameIn = (text) => decoder.decode(fromBase64(text.replaceAll('-', '+').replaceAll('_', '/')));

/** @param {string} subject @returns {string} its last token */
const lastOf = (subject) => subject.slice(subject.lastIndexOf('.') + 1);

/** @typedef {LogRecord & { subject: string, expected?: number, time: number }} Stored a message of a stream, and what its writer expected, if it said so */

/** @param {Message & { time?: Date }} message @returns {Stored} */
function storedOf({ seq, subject, data, header, headers = header, time }) {
  const expected = headers?.get(EXPECTED);
  return {
    ...{ seq, subject, data: decoder.decode(data), time: Number(time) },
    expected: expected ? Number(expected) : undefined,
  };
}

/**
 * Whether a message is a record: whether it came where its writer expected it. A cluster of servers before 2.9.21 may store
 * several that expect the same one to be the latest (https://github.com/nats-io/nats-server/issues/4320): the first of them is
 * a record. 0 is right in every version, since a server looks at it once more when it stores the message.
 * @param {number | undefined} expected
 * @param {number} last the message of the task before it
 */
const isRecord = (expected, last) => !expected || expected >= last;

/**
 * One who watches a task: reads the past, then takes what the process's consumer brings. `last` is the latest message of the
 * task that was looked at; `behind` says that there is more to be read, and `come` has all that came while it was reading.
 * @typedef {{ task: string, last: number, onRecord: (record: LogRecord) => void, stopped: boolean, reading: boolean, behind: boolean, come: Stored[] }} Watcher
 */

/**
 * A copy of a long list's entries: the latest message that was read, when that was, and when somebody asked for it; what is being
 * read, and what is read after that.
 * @typedef {{ index: OrderedIndex, seen: number, read: number, asked: number, reading?: Promise<void>, next?: Promise<void> }} Copy
 */

/** @typedef {Error & { code?: number, isNoResponders?: () => boolean }} NatsError */

/** @implements {Backend} */
class NatsBackend {
  #connection;
  #js;
  #jsm;
  #namespace;
  #timeout;
  /** Bytes of a message that the stream of the logs takes, and the other. */
  #limits = [0, 0];
  maxRecord = 0;
  #connected = true;
  #closed = false;
  /** Of long lists, by their subjects. @type {Map<string, Copy>} */
  #copies = new Map();
  /** By the token of their task. @type {Map<string, Set<Watcher>>} */
  #watchers = new Map();
  /** The process's consumer. @type {Promise<void> | undefined} */
  #consuming;
  /** @type {{ close: () => Promise<unknown>, closed: () => Promise<unknown> } | undefined} */
  #messages;
  /** What it brings. @type {Feed | undefined} */
  #feed;
  /** What was stored when we looked last. */
  #stored = 0;
  /** Until then all records are asked for one by one. */
  #noConsumers = 0;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer;
  /** @type {Set<{ unsubscribe: () => void }>} */
  #subscriptions = new Set();

  /** @param {any} connection @param {any} js @param {any} jsm @param {string} namespace @param {number} timeout */
  constructor(connection, js, jsm, namespace, timeout) {
    this.#connection = connection;
    this.#js = js;
    this.#jsm = jsm;
    this.#namespace = namespace;
    this.#timeout = timeout;
    void this.#observe();
  }

  /** Bytes that a message may have: neither its stream nor the server takes more. @param {number} limit */
  #room(limit) {
    return Math.min(limit, this.#connection.info?.max_payload ?? 0) - HEADERS;
  }

  /** The streams may take less than when this was opened. */
  async measure() {
    const of = async (/** @type {string} */ stream) => {
      const { max_msg_size: size = -1 } = (await this.#jsm.streams.info(stream)).config;
      return size > 0 ? size : Infinity;
    };
    const limits = await this.#request(() => Promise.all([of(this.#log), of(this.#state)]));
    // No task fits in that, and it may be for a while only: it is no size to divide records by.
    if (this.#room(Math.min(...limits)) < MIN_MESSAGE - HEADERS) throw unavailable(TOO_SMALL);
    this.#limits = limits;
    this.maxRecord = this.#room(limits[0]);
  }

  /** Knows whether there is a connection: a client keeps what is published without one, and sends it later. */
  async #observe() {
    for await (const { type } of this.#connection.status()) {
      if (type === 'disconnect') this.#connected = false;
      if (type !== 'reconnect') continue;
      this.#connected = true;
      this.maxRecord = this.#room(this.#limits[0]);
      this.#readAll();
    }
    // It was closed, and does not come back.
    await this.close();
  }

  /** @param {...unknown} names */
  #check(...names) {
    if (this.#closed) throw unavailable();
    names.forEach(requireName);
    if (!this.#connected) throw unavailable('There is no connection to NATS');
  }

  /** @param {...string} tokens */
  #subject(...tokens) {
    return [this.#namespace, ...tokens].join('.');
  }

  get #log() {
    return `${this.#namespace}_log`;
  }

  get #state() {
    return `${this.#namespace}_state`;
  }

  /**
   * Publishes, and waits for the acknowledgement.
   * @param {string} subject
   * @param {Uint8Array | string} data
   * @param {object} [options]
   * @param {string} [task] for an error
   * @returns {Promise<number>}
   */
  async #publish(subject, data, options, task = '') {
    try {
      return (await this.#js.publish(subject, data, { timeout: this.#timeout, ...options })).seq;
    } catch (error) {
      const { name, code, message, cause } = /** @type {NatsError} */ (error);
      if (code === WRONG_SEQUENCE) throw conflict(task, error);
      if (code === TOO_LONG || name === 'InvalidArgumentError') {
        await this.measure();
        throw new AbpError('TOO_LARGE', `NATS refused it: ${message}`, { cause: error });
      }
      // The client wraps some of them.
      if (REFUSALS.includes(name) || REFUSALS.includes(/** @type {NatsError} */ (cause)?.name))
        throw unavailable(`NATS refused it: ${message}`, error);
      throw unacknowledged(error);
    }
  }

  /** Resolves when the server has what was sent. A server that hangs does not answer, and its connection stays. */
  async #flush() {
    await within(this.#connection.flush(), this.#timeout, () => new Error('timeout'));
  }

  /** Asks JetStream for something. @template T @param {() => Promise<T>} request @returns {Promise<T>} */
  async #request(request) {
    try {
      return await request();
    } catch (error) {
      if (error instanceof AbpError) throw error;
      throw unavailable(`NATS did not answer: ${/** @type {Error} */ (error).message}`, error);
    }
  }

  /**
   * A message of a stream, by its leader.
   * @param {string} stream
   * @param {{ seq?: number, next_by_subj?: string, last_by_subj?: string }} query
   */
  #message(stream, query) {
    return this.#request(() => this.#jsm.streams.getMessage(stream, query));
  }

  /** The latest message of a subject. @param {string} stream @param {string} subject */
  #last(stream, subject) {
    return this.#message(stream, { last_by_subj: subject });
  }

  /** Deletes messages. @param {string} stream @param {string} filter a subject @param {number} [seq] the first that stays */
  #purge(stream, filter, seq) {
    return this.#request(() => this.#jsm.streams.purge(stream, { filter, seq }));
  }

  /** What a stream has now. @param {string} stream @returns {Promise<{ last_seq: number, last_ts: string }>} */
  async #stateOf(stream) {
    return (await this.#request(() => this.#jsm.streams.info(stream))).state;
  }

  /**
   * The messages of a subject that are there now. A cluster that has lost a server may go on to make consumers there, and
   * does not answer then (2.9.10): the leader of the stream has all messages, one by one.
   * @param {string} stream @param {string} subject @param {number} from @param {number} limit @param {boolean} [all] whether none that is
   *   there may be left out
   */
  async #messagesOf(stream, subject, from, limit, all = true) {
    if (performance.now() >= this.#noConsumers) {
      try {
        const { found, wanted } = await this.#consumed(stream, subject, from, limit);
        // Some were deleted meanwhile, or left out.
        if (found.length === wanted || !all) return found;
      } catch {
        this.#noConsumers = performance.now() + WITHOUT_CONSUMERS;
      }
    }
    const { last_seq: to } = await this.#stateOf(stream);
    return this.#oneByOne(stream, subject, from, limit, to);
  }

  /**
   * @param {string} stream
   * @param {string} subject
   * @param {number} from
   * @param {number} limit
   * @param {number} [to] the last that is wanted: what grows as fast as it is read would be read for ever
   */
  async #oneByOne(stream, subject, from, limit, to = Infinity) {
    /** @type {Stored[]} */
    const found = [];
    for (let seq = from; found.length < limit && seq <= to;) {
      const message = await this.#message(stream, { next_by_subj: subject, seq });
      if (!message || message.seq > to) break;
      found.push(storedOf(message));
      seq = message.seq + 1;
    }
    return found;
  }

  /**
   * The same by a consumer, with how many of them the server has counted, and how many there were without a limit.
   * @param {string} stream @param {string} subject @param {number} from @param {number} limit @param {object} [more] of the consumer
   */
  #consumed(stream, subject, from, limit, more = {}) {
    return this.#request(async () => {
      const info = await this.#jsm.consumers.add(stream, {
        filter_subject: subject,
        deliver_policy: 'by_start_sequence',
        opt_start_seq: Math.max(from, 1),
        ack_policy: 'none',
        mem_storage: true,
        num_replicas: 1,
        inactive_threshold: FORGOTTEN_AFTER,
        ...more,
      });
      const pending = Number(info.num_pending);
      const wanted = Math.min(pending, limit);
      const consumer = this.#js.consumers.getConsumerFromInfo(info);
      /** @type {Stored[]} */
      const found = [];
      for (let before = -1; found.length < wanted && found.length > before;) {
        before = found.length;
        const count = Math.min(wanted - before, PULL);
        const messages = await consumer.fetch({ max_messages: count, expires: EXPIRES });
        const read = (async () => {
          for await (const message of messages) found.push(storedOf(message));
        })();
        // While there is no connection, the client waits for one.
        const late = () => new Error('timeout');
        await within(read, EXPIRES + this.#timeout, late).finally(() => messages.stop());
      }
      void this.#jsm.consumers.delete(stream, info.name).catch(() => {});
      return { found, wanted, pending };
    });
  }

  // --- Logs ------------------------------------------------------------------------------------

  /** @param {string} task @param {string} data @param {number} expected */
  async append(task, data, expected) {
    this.#check(task);
    requireRecord(data, this.maxRecord);
    for (let last = expected; ;) {
      try {
        return await this.#append(task, data, last);
      } catch (error) {
        if (/** @type {AbpError} */ (error).code !== 'CONFLICT') throw error;
        // The latest message may be none that counts.
        const found = await this.#records(task, expected, 1);
        if (found.records.length > 0 || found.last === last) throw error;
        ({ last } = found);
      }
    }
  }

  /** @param {string} task @param {string} data @param {number} expected the latest message */
  async #append(task, data, expected) {
    const subject = this.#subject('log', token(task));
    const options = { expect: { lastSubjectSequence: expected } };
    const seq = await this.#publish(subject, data, options, task);
    if (!expected || !this.#connection.info?.cluster) return seq;
    // Another one may have come first, and only the log knows.
    const query = { next_by_subj: subject, seq: expected + 1 };
    const next = await this.#message(this.#log, query).catch(
      (/** @type {AbpError} */ { cause }) => {
        throw unacknowledged(cause);
      },
    );
    // A leader that is new may not have it yet.
    if (!next || next.seq > seq) throw unacknowledged();
    if (next.seq < seq) throw conflict(task);
    return seq;
  }

  /** @param {string} task @param {number} after @param {number} [limit] @returns {Promise<LogRecord[]>} */
  async read(task, after, limit = Infinity) {
    this.#check(task);
    return (await this.#records(task, after, limit)).records;
  }

  /** With the latest message that was looked at. @param {string} task @param {number} after @param {number} limit */
  async #records(task, after, limit) {
    const subject = this.#subject('log', token(task));
    /** @type {LogRecord[]} */
    const records = [];
    for (let last = after; ;) {
      const wanted = limit - records.length;
      let found = await this.#oneByOne(this.#log, subject, last + 1, Math.min(wanted, FEW));
      if (found.length === FEW && wanted > FEW) {
        const from = found[FEW - 1].seq + 1;
        found = found.concat(await this.#messagesOf(this.#log, subject, from, wanted - FEW));
      }
      for (const message of found) {
        // What was asked for is what came after any number, which need not be that of a message of the task.
        const isNext =
          isRecord(message.expected, last) || (last === after && !(await this.#has(task, after)));
        if (isNext) records.push({ seq: message.seq, data: message.data });
        last = message.seq;
      }
      if (found.length < wanted || records.length === limit) return { records, last };
    }
  }

  /** Whether a message is one of a task. @param {string} task @param {number} seq */
  async #has(task, seq) {
    const stored = await this.#message(this.#log, { seq });
    return stored?.subject === this.#subject('log', token(task));
  }

  /** @param {string} task @param {number} after @param {(record: LogRecord) => void} onRecord */
  watch(task, after, onRecord) {
    if (this.#closed) throw unavailable();
    requireName(task);
    const state = { last: after, stopped: false, reading: false, behind: false, come: [] };
    /** @type {Watcher} */
    const watcher = { task, onRecord, ...state };
    const key = token(task);
    const watchers = this.#watchers.get(key) ?? new Set();
    this.#watchers.set(key, watchers.add(watcher));
    this.#consuming ??= this.#consume();
    void this.#read(watcher);
    return () => {
      watcher.stopped = true;
      watchers.delete(watcher);
      if (watchers.size === 0 && this.#watchers.get(key) === watchers) this.#watchers.delete(key);
    };
  }

  /** @param {Watcher} watcher @param {Stored} message that came */
  #take(watcher, message) {
    const { last } = watcher;
    const { seq, data, expected = last } = message;
    if (seq <= last) return;
    // It lacks what came before.
    if (expected > last) void this.#read(watcher);
    else {
      watcher.last = seq;
      if (isRecord(expected, last)) this.#give(watcher, { seq, data });
    }
  }

  /** @param {Watcher} watcher @param {LogRecord} record */
  #give(watcher, record) {
    if (!watcher.stopped) invokeReportingErrors(watcher.onRecord, record);
  }

  /** Gives a watcher what is there, and then what came meanwhile. @param {Watcher} watcher */
  async #read(watcher) {
    watcher.behind = true;
    if (watcher.reading) return;
    watcher.reading = true;
    while (watcher.behind && !watcher.stopped) {
      watcher.behind = false;
      try {
        // What is stored from now on, the consumer brings.
        await this.#consuming;
        const { records, last } = await this.#records(watcher.task, watcher.last, Infinity);
        watcher.last = last;
        for (const record of records) this.#give(watcher, record);
      } catch {
        watcher.behind = true;
        await pause(RETRY);
      }
    }
    watcher.reading = false;
    for (const message of watcher.come.splice(0)) this.#take(watcher, message);
  }

  /** Takes what is stored of all tasks. Resolves when it does; if that breaks, it begins anew. */
  async #consume() {
    while (!this.#closed) {
      try {
        const { last_seq: received } = await this.#stateOf(this.#log);
        const consumer = await this.#js.consumers.get(this.#log, {
          deliver_policy: 'by_start_sequence',
          opt_start_seq: received + 1,
        });
        const feed = new Feed(
          received,
          (seq) => this.#message(this.#log, { seq }),
          (message) => this.#dispatch(message),
        );
        this.#feed = feed;
        const messages = await consumer.consume({
          expires: 4 * HEARTBEAT,
          idle_heartbeat: HEARTBEAT,
          callback: (/** @type {any} */ message) => feed.take(message),
        });
        this.#messages = messages;
        void messages.closed().then(() => messages === this.#messages && this.#resume());
        this.#timer ??= setInterval(() => void this.#look(), LOOK);
        return;
      } catch {
        await pause(RETRY);
      }
    }
  }

  /** A consumer may be lost with its server, and not notice. */
  async #look() {
    const state = await this.#stateOf(this.#log).catch(() => undefined);
    if (!state || !this.#feed || this.#closed) return;
    const missing = !this.#feed.filling && this.#feed.received < this.#stored;
    this.#stored = missing ? 0 : state.last_seq;
    if (missing) this.#resume();
  }

  /** The consumer has ended, or is lost. */
  #resume() {
    if (this.#closed) return;
    void this.#messages?.close().catch(() => {});
    this.#messages = undefined;
    this.#feed?.stop();
    this.#consuming = this.#consume();
    this.#readAll();
  }

  #readAll() {
    for (const watchers of this.#watchers.values())
      for (const watcher of watchers) void this.#read(watcher);
  }

  /** @param {Message} brought */
  #dispatch(brought) {
    const watchers = this.#watchers.get(lastOf(brought.subject));
    if (!watchers) return;
    const message = storedOf(brought);
    for (const watcher of watchers) {
      if (!watcher.reading) this.#take(watcher, message);
      // Of several that expect the same one to be the latest, the first is a record: none may be missing.
      else if (watcher.come.push(message) > MAX_COME) {
        watcher.come = [];
        watcher.behind = true;
      }
    }
  }

  /** @param {string} task */
  async forget(task) {
    this.#check(task);
    await this.#purge(this.#state, this.#subject('index', '*', '*', token(task)));
    await this.#purge(this.#log, this.#subject('log', token(task)));
    for (const { index } of this.#copies.values()) index.remove(task);
  }

  // --- Processes -------------------------------------------------------------------------------

  /** @param {string} process */
  async renew(process) {
    this.#check(process);
    for (const [subject, { asked }] of this.#copies)
      if (performance.now() - asked > KEPT) this.#copies.delete(subject);
    await this.#publish(this.#subject('lease', token(process)), '');
  }

  /** @param {string} process */
  async lease(process) {
    this.#check(process);
    const last = await this.#last(this.#state, this.#subject('lease', token(process)));
    return last?.seq ?? 0;
  }

  /** @param {number} limit */
  async leases(limit) {
    this.#check();
    const found = await this.#messagesOf(this.#state, this.#subject('lease', '*'), 1, limit);
    return found.map(({ seq, subject }) => ({ process: nameIn(lastOf(subject)), number: seq }));
  }

  /** @param {string} process @param {number} number */
  async release(process, number) {
    this.#check(process);
    const filter = this.#subject('lease', token(process));
    // What comes after it stays.
    await this.#purge(this.#state, filter, number + 1);
    return (await this.#last(this.#state, filter)) === null;
  }

  /** @param {string} process @param {(text: string) => string | Promise<string>} answer */
  async serve(process, answer) {
    this.#check(process);
    const subscription = this.#connection.subscribe(this.#subject('ask', token(process)), {
      callback: async (/** @type {unknown} */ error, /** @type {any} */ message) => {
        if (error) return;
        let reply;
        try {
          reply = { text: await answer(message.string()) };
        } catch (thrown) {
          reply = { error: toErrorObject(thrown).message };
        }
        try {
          message.respond(JSON.stringify(reply));
        } catch {
          // It is too long, or the connection is gone: the one who asks gets no answer in time.
        }
      },
    });
    this.#subscriptions.add(subscription);
    await this.#request(() => this.#flush());
    return async () => {
      this.#subscriptions.delete(subscription);
      subscription.unsubscribe();
      if (this.#connected) await this.#flush().catch(() => {});
    };
  }

  /** @param {string} process @param {string} text @param {{ timeout?: number }} [options] */
  async ask(process, text, { timeout = DEFAULT_TIMEOUT } = {}) {
    this.#check(process);
    let reply;
    try {
      const subject = this.#subject('ask', token(process));
      reply = (await this.#connection.request(subject, text, { timeout })).json();
    } catch (error) {
      const { name, message } = /** @type {Error} */ (error);
      if (/** @type {NatsError} */ (error).isNoResponders?.()) throw noResponders(process);
      if (name === 'TimeoutError') throw noAnswer(process, timeout);
      throw unavailable(`NATS did not carry the question: ${message}`, error);
    }
    if (reply.error !== undefined) throw new AbpError('OPERATION_FAILED', String(reply.error));
    return reply.text;
  }

  // --- The index -------------------------------------------------------------------------------

  /** @param {string} task @param {IndexEntry} entry @param {number} seq */
  async note(task, entry, seq) {
    this.#check(task);
    requireEntry(entry);
    const { tenant, context, time, state, data } = entry;
    const subject = this.#subject('index', token(tenant), token(context), token(task));
    const text = JSON.stringify({ task, tenant, context, time, state, data, seq });
    for (let attempt = 1; ; attempt++) {
      const last = await this.#last(this.#state, subject);
      const stored = last && decoder.decode(last.data);
      if (stored && (stored === text || JSON.parse(stored).seq > seq)) return;
      try {
        const expect = { lastSubjectSequence: last?.seq ?? 0 };
        return void (await this.#publish(subject, text, { expect }, task));
      } catch (error) {
        const lost = /** @type {AbpError} */ (error).code === 'CONFLICT';
        if (!lost || attempt === MAX_ATTEMPTS) throw error;
      }
    }
  }

  /** @param {ListFilter} filter */
  async list({ limit = DEFAULT_PAGE, cursor, ...filter }) {
    this.#check();
    const after = readCursor(cursor);
    const index = await this.#entries(filter, after !== undefined);
    return pageOf(index.page(filter, after, limit + 1).map(listed), limit);
  }

  /** @param {ListFilter} filter */
  async count(filter) {
    this.#check();
    return (await this.#entries(filter, false)).count(filter);
  }

  /**
   * The entries of a tenant, or of one of its contexts. NATS has them in no order in which they could be asked for.
   * @param {ListFilter} filter
   * @param {boolean} further whether an earlier page has been read
   */
  async #entries({ tenant, context }, further) {
    const within = context === undefined ? '*' : token(context);
    const subject = this.#subject('index', token(tenant), within, '*');
    let copy = this.#copies.get(subject);
    if (!copy) {
      const few = await this.#messagesOf(this.#state, subject, 1, SHORT_LIST + 1);
      if (few.length <= SHORT_LIST) return enter(new OrderedIndex(), few);
      // Another one may have made it meanwhile.
      const made = { index: new OrderedIndex(), seen: 0, read: 0, asked: 0 };
      copy = this.#copies.get(subject) ?? made;
      this.#copies.set(subject, copy);
    }
    const now = (copy.asked = performance.now());
    if (!further || !copy.read || now - copy.read > FRESH) await this.#refresh(copy, subject);
    return copy.index;
  }

  /**
   * Reads what was entered until now. All who ask while it is being read wait for one that begins then.
   * @param {Copy} copy
   * @param {string} subject
   * @returns {Promise<void>}
   */
  #refresh(copy, subject) {
    const begin = () => {
      copy.next = undefined;
      copy.reading = this.#readInto(copy, subject).finally(() => (copy.reading = undefined));
      return copy.reading;
    };
    return copy.reading ? (copy.next ??= copy.reading.catch(() => {}).then(begin)) : begin();
  }

  /** @param {Copy} copy @param {string} subject */
  async #readInto(copy, subject) {
    const read = async () => {
      const from = copy.seen + 1;
      // One that changes while they are read is not among them: its new message has a later sequence.
      const found = await this.#messagesOf(this.#state, subject, from, Infinity, false);
      if (found.length > 0) copy.seen = found[found.length - 1].seq;
      await enter(copy.index, found);
    };
    await read();
    if (performance.now() >= this.#noConsumers) {
      const before = copy.index.size;
      const { pending } = await this.#consumed(this.#state, subject, 1, 0);
      // More may have come since.
      if (pending > before) await read();
      if (pending < before || pending > copy.index.size) {
        // Another process has forgotten tasks, or the server has left entries out.
        Object.assign(copy, { index: new OrderedIndex(), seen: 0 });
        await read();
      }
    }
    copy.read = performance.now();
  }

  // --- Objects ---------------------------------------------------------------------------------

  /** @param {string} name @param {Uint8Array} bytes */
  async put(name, bytes) {
    this.#check(name);
    const id = crypto.randomUUID();
    const began = performance.now();
    const size = Math.min(CHUNK, this.#room(this.#limits[1]));
    const count = Math.ceil(bytes.length / size);
    for (let i = 0; i < count; i++) {
      const chunk = bytes.subarray(i * size, (i + 1) * size);
      await this.#publish(this.#subject('chunk', token(name), id, String(i)), chunk);
    }
    const before = await this.#object(name);
    // What took longer may be deleted by now.
    if (performance.now() - began > MAX_PUT) throw unavailable('NATS is too slow for the object');
    const meta = JSON.stringify({ name, id, count, size: bytes.length });
    await this.#publish(this.#subject('object', token(name)), meta);
    if (before) await this.#removeChunks(token(name), before.id);
  }

  /** @param {string} name @returns {Promise<{ id: string, count: number, size: number } | undefined>} */
  async #object(name) {
    const last = await this.#last(this.#state, this.#subject('object', token(name)));
    return last ? JSON.parse(decoder.decode(last.data)) : undefined;
  }

  /** @param {string} of the token of its name @param {string} id of its chunks */
  #removeChunks(of, id) {
    return this.#purge(this.#state, this.#subject('chunk', of, id, '*'));
  }

  /** @param {string} name */
  async get(name) {
    for (let broken; ;) {
      this.#check(name);
      const object = await this.#object(name);
      if (!object || object.id === broken) throw objectNotFound(name);
      const bytes = new Uint8Array(object.size);
      let i = 0;
      let at = 0;
      for (; i < object.count; i++) {
        const subject = this.#subject('chunk', token(name), object.id, String(i));
        const chunk = await this.#last(this.#state, subject);
        if (!chunk) break;
        bytes.set(chunk.data, at);
        at += chunk.data.length;
      }
      if (i === object.count) return bytes;
      // It was replaced or removed while it was read, unless it is still the same.
      broken = object.id;
    }
  }

  /** @param {string} name */
  async remove(name) {
    this.#check(name);
    const object = await this.#object(name);
    if (!object) return;
    await this.#purge(this.#state, this.#subject('object', token(name)));
    await this.#removeChunks(token(name), object.id);
  }

  /** @param {string} prefix */
  async objects(prefix) {
    this.#check();
    const found = await this.#messagesOf(this.#state, this.#subject('object', '*'), 1, Infinity);
    return found
      .map(({ data }) => JSON.parse(data).name)
      .filter((name) => name.startsWith(prefix))
      .sort();
  }

  /**
   * All that is large are chunks, and they are in the order in which they came. Of them only the subjects are read. How old they
   * are is told by the server's own clock: no older than by what it stored last.
   * @param {import('./backend.js').Sweep} sweep
   */
  async sweep({ age, limit, keeps, after = '0' }) {
    this.#check();
    const { last_ts: latest } = await this.#stateOf(this.#state);
    const before = Date.parse(latest) - age;
    const all = this.#subject('chunk', '*', '*', '*');
    const { found, wanted } = await this.#consumed(this.#state, all, Number(after) + 1, limit, {
      headers_only: true,
    });
    const old = found.filter(({ time }) => time <= before);
    const writes = new Set(old.map(({ subject }) => subject.split('.').slice(-3, -1).join('.')));
    for (const write of writes) {
      const [of, id] = write.split('.');
      const name = nameIn(of);
      const object = await this.#object(name);
      if (object?.id !== id) await this.#removeChunks(of, id);
      else if (!(await keeps(name))) await this.remove(name);
    }
    return wanted === limit && old.length > 0 ? String(old[old.length - 1].seq) : undefined;
  }

  async close() {
    if (this.#closed) return;
    this.#closed = true;
    for (const watchers of this.#watchers.values())
      for (const watcher of watchers) watcher.stopped = true;
    this.#watchers.clear();
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    this.#subscriptions.clear();
    // It may be beginning.
    await this.#consuming;
    this.#feed?.stop();
    clearInterval(this.#timer);
    await this.#messages?.close();
  }
}

/** @param {unknown} [cause] */
const unacknowledged = (cause) =>
  new AbpError('UNACKNOWLEDGED', 'NATS did not acknowledge what was published', { cause });

/** @param {string} text */
function entryIn(text) {
  const entry = JSON.parse(text);
  requireName(entry.task);
  requireEntry(entry);
  return entry;
}

/** Others have their turn while there are many. @param {OrderedIndex} index @param {LogRecord[]} messages */
async function enter(index, messages) {
  for (const [i, { data }] of messages.entries()) {
    // What somebody else has put there costs the others nothing.
    const entry = safely(() => entryIn(data), undefined);
    if (entry) index.set(entry);
    if (i % SHORT_LIST === SHORT_LIST - 1) await breathe();
  }
  return index;
}

/**
 * A backend on NATS.
 * @param {object} options
 * @param {any} options.connection of `@nats-io/transport-node` 3, or another transport of NATS: it stays yours, with its TLS,
 *   its account and its permissions
 * @param {any} options.jetstream the module `@nats-io/jetstream` 3
 * @param {string} [options.namespace] two agents share one NATS if theirs differ: letters, digits, `-` and `_` (`a2a`)
 * @param {number} [options.replicas] servers that keep a copy, if the streams are not there yet (1)
 * @param {number} [options.timeout] ms for NATS to answer; then what was published may have been stored or not (5000)
 * @returns {Promise<Backend>} rejects with `UNAVAILABLE` when JetStream is, or its streams are not as this needs them
 */
export async function natsBackend({
  connection,
  jetstream: { jetstream, jetstreamManager },
  namespace = 'a2a',
  replicas = 1,
  timeout = DEFAULT_TIMEOUT,
}) {
  if (!/^[\w-]{1,64}$/.test(namespace))
    throw new AbpError('INVALID_PARAMS', 'A namespace has letters, digits, - and _, at most 64');
  try {
    const js = jetstream(connection, { timeout });
    const jsm = await jetstreamManager(connection, { timeout });
    const all = { storage: 'file', num_replicas: replicas, allow_direct: false };
    const names = (/** @type {string[]} */ kinds) => kinds.map((kind) => `${namespace}.${kind}.>`);
    const streams = [
      { name: `${namespace}_log`, subjects: names(['log']) },
      {
        name: `${namespace}_state`,
        subjects: names(['lease', 'index', 'object', 'chunk']),
        max_msgs_per_subject: 1,
      },
    ];
    for (const stream of streams) {
      // Adding one that is there, and the same, does nothing.
      const { config } = await jsm.streams
        .info(stream.name)
        .catch(() => jsm.streams.add(/** @type {any} */ ({ ...all, ...stream })));
      // A direct get may be answered by a server that does not have the latest.
      if (config.allow_direct)
        throw new Error(`the stream ${stream.name} must not have allow_direct`);
    }
    const backend = new NatsBackend(connection, js, jsm, namespace, timeout);
    await backend.measure();
    return backend;
  } catch (error) {
    throw unavailable(`JetStream cannot be used: ${/** @type {Error} */ (error).message}`, error);
  }
}
