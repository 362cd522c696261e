/**
 * A backend on NATS with JetStream, for many processes, on a connection of your own. What was
 * acknowledged is as durable as the server has it: with one server its disk within `sync_interval`,
 * with three replicas a quorum has it.
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
/**
 * Bytes that a message must be allowed to have: an entry of the index has a tenant, a context and a
 * user.
 */
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
/**
 * Ms between signs of life of a consumer: one whose server is gone is made anew when two are
 * missing.
 */
const HEARTBEAT = 1000;
/** Ms between two looks at whether the consumer has what was stored at the one before. */
const LOOK = 2000;
/**
 * Entries of a list that are read anew for each page; of a longer one a copy is kept, and what has
 * changed is read.
 */
const SHORT_LIST = 256;
/** Ms for which a copy that nobody asks for is kept. */
const KEPT = 300_000;
/** Ms for which a copy is good enough for a further page. */
const FRESH = 1000;
/** Attempts to enter a task in the index while others do, too. */
const MAX_ATTEMPTS = 16;
/** The header in which a message keeps the sequence that its writer expected to be the latest. */
const EXPECTED = 'Nats-Expected-Last-Subject-Sequence';
/**
 * JetStream's numbers for "another sequence is the latest", and for "the stream takes no message of
 * that size".
 */
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

/**
 * A name as a token of a subject; an empty one is none of these.
 * @param {string} name
 */
const token = (name) =>
  toBase64(encoder.encode(name)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '') ||
  '-';

/**
 * @param {string} text a token of a subject
 * @returns {string} its name
 */
const nameIn = (text) => decoder.decode(fromBase64(text.replaceAll('-', '+').replaceAll('_', '/')));

/**
 * @param {string} subject
 * @returns {string} its last token
 */
const lastOf = (subject) => subject.slice(subject.lastIndexOf('.') + 1);

/**
 * @typedef {LogRecord & { subject: string, expected?: number, time: number }} Stored a message of a
 *   stream, and what its writer expected, if it said so
 */

/**
 * @param {Message & { time?: Date }} message
 * @returns {Stored}
 */
function storedOf({ seq, subject, data, header, headers = header, time }) {
  const expected = headers?.get(EXPECTED);
  return {
    seq,
    subject,
    data: decoder.decode(data),
    time: Number(time),
    expected: expected ? Number(expected) : undefined,
  };
}

/**
 * Whether a message is a record: whether it came where its writer expected it. A cluster of servers
 * before 2.9.21 may store several that expect the same one to be the latest
 * (https://github.com/nats-io/nats-server/issues/4320): the first of them is a record. 0 is right
 * in every version, since a server looks at it once more when it stores the message.
 * @param {number | undefined} expected
 * @param {number} last the message of the task before it
 */
const isRecord = (expected, last) => !expected || expected >= last;

/**
 * One who watches a task: reads the past, then takes what the process's consumer brings. `last` is
 * the latest message of the task that was looked at; `behind` says that there is more to be read,
 * and `come` has all that came while it was reading.
 * @typedef {object} Watcher
 * @property {string} task
 * @property {number} last
 * @property {(record: LogRecord) => void} onRecord
 * @property {boolean} stopped
 * @property {boolean} reading
 * @property {boolean} behind
 * @property {Stored[]} come
 */

/**
 * A copy of a long list's entries: the latest message that was read, when that was, and when
 * somebody asked for it; what is being read, and what is read after that.
 * @typedef {object} Copy
 * @property {OrderedIndex} index
 * @property {number} seen
 * @property {number} read
 * @property {number} asked
 * @property {Promise<void>} [reading]
 * @property {Promise<void>} [next]
 */

/** @typedef {Error & { code?: number, isNoResponders?: () => boolean }} NatsError */

/**
 * @param {any} connection
 * @param {any} js
 * @param {any} jsm
 * @param {string} namespace
 * @param {number} timeout
 * @returns {Promise<Backend>}
 */
async function backendOn(connection, js, jsm, namespace, timeout) {
  const logStream = `${namespace}_log`;
  const stateStream = `${namespace}_state`;
  /** Bytes of a message that the stream of the logs takes, and the other. */
  let limits = [0, 0];
  let maxRecord = 0;
  let connected = true;
  let closed = false;
  /** Of long lists, by their subjects. @type {Map<string, Copy>} */
  const copies = new Map();
  /** By the token of their task. @type {Map<string, Set<Watcher>>} */
  const watched = new Map();
  /** The process's consumer. @type {Promise<void> | undefined} */
  let consuming;
  /** @type {{ close: () => Promise<unknown>, closed: () => Promise<unknown> } | undefined} */
  let delivery;
  /** What it brings. @type {Feed | undefined} */
  let feed;
  /** What was stored when we looked last. */
  let storedBefore = 0;
  /** Until then all records are asked for one by one. */
  let noConsumersUntil = 0;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let timer;
  /** @type {Set<{ unsubscribe: () => void }>} */
  const subscriptions = new Set();

  /**
   * Bytes that a message may have: neither its stream nor the server takes more.
   * @param {number} limit
   */
  const room = (limit) => Math.min(limit, connection.info?.max_payload ?? 0) - HEADERS;

  /** The streams may take less than when this was opened. */
  async function measure() {
    const of = async (/** @type {string} */ stream) => {
      const { max_msg_size: size = -1 } = (await jsm.streams.info(stream)).config;
      return size > 0 ? size : Infinity;
    };
    const found = await request(() => Promise.all([of(logStream), of(stateStream)]));
    // No task fits in that, and it may be for a while only: it is no size to divide records by.
    if (room(Math.min(...found)) < MIN_MESSAGE - HEADERS) throw unavailable(TOO_SMALL);
    limits = found;
    maxRecord = room(limits[0]);
  }

  /**
   * Knows whether there is a connection: a client keeps what is published without one, and sends it
   * later.
   */
  async function observe() {
    for await (const { type } of connection.status()) {
      if (type === 'disconnect') connected = false;
      if (type !== 'reconnect') continue;
      connected = true;
      maxRecord = room(limits[0]);
      readAll();
    }
    // It was closed, and does not come back.
    await close();
  }

  /** @param {...unknown} names */
  function check(...names) {
    if (closed) throw unavailable();
    names.forEach(requireName);
    if (!connected) throw unavailable('There is no connection to NATS');
  }

  /** @param {...string} tokens */
  const subjectOf = (...tokens) => [namespace, ...tokens].join('.');
  /** @param {string} task */
  const logOf = (task) => subjectOf('log', token(task));

  /**
   * Publishes, and waits for the acknowledgement.
   * @param {string} subject
   * @param {Uint8Array | string} data
   * @param {object} [options]
   * @param {string} [task] for an error
   * @returns {Promise<number>}
   */
  async function publish(subject, data, options, task = '') {
    try {
      return (await js.publish(subject, data, { timeout, ...options })).seq;
    } catch (error) {
      const { name, code, message, cause } = /** @type {NatsError} */ (error);
      if (code === WRONG_SEQUENCE) throw conflict(task, error);
      if (code === TOO_LONG || name === 'InvalidArgumentError') {
        await measure();
        throw new AbpError('TOO_LARGE', `NATS refused it: ${message}`, { cause: error });
      }
      // The client wraps some of them.
      if (REFUSALS.includes(name) || REFUSALS.includes(/** @type {NatsError} */ (cause)?.name))
        throw unavailable(`NATS refused it: ${message}`, error);
      throw unacknowledged(error);
    }
  }

  /**
   * Resolves when the server has what was sent. A server that hangs does not answer, and its
   * connection stays.
   */
  const flush = async () => within(connection.flush(), timeout, () => new Error('timeout'));

  /**
   * Asks JetStream for something.
   * @template T
   * @param {() => Promise<T>} ask
   * @returns {Promise<T>}
   */
  async function request(ask) {
    try {
      return await ask();
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
  const getMessage = (stream, query) => request(() => jsm.streams.getMessage(stream, query));

  /**
   * The latest message of a subject.
   * @param {string} stream
   * @param {string} subject
   */
  const lastMessage = (stream, subject) => getMessage(stream, { last_by_subj: subject });

  /**
   * Deletes messages.
   * @param {string} stream
   * @param {string} filter a subject
   * @param {number} [seq] the first that stays
   */
  const purge = (stream, filter, seq) => request(() => jsm.streams.purge(stream, { filter, seq }));

  /**
   * What a stream has now.
   * @param {string} stream
   * @returns {Promise<{ last_seq: number, last_ts: string }>}
   */
  async function stateOf(stream) {
    return (await request(() => jsm.streams.info(stream))).state;
  }

  /**
   * The messages of a subject that are there now. A cluster that has lost a server may go on to
   * make consumers there, and does not answer then (2.9.10): the leader of the stream has all
   * messages, one by one.
   * @param {string} stream
   * @param {string} subject
   * @param {number} from
   * @param {number} limit
   * @param {boolean} [all] whether none that is
   *   there may be left out
   */
  async function messagesOf(stream, subject, from, limit, all = true) {
    if (performance.now() >= noConsumersUntil) {
      try {
        const { found, wanted } = await consumed(stream, subject, from, limit);
        // Some were deleted meanwhile, or left out.
        if (found.length === wanted || !all) return found;
      } catch {
        noConsumersUntil = performance.now() + WITHOUT_CONSUMERS;
      }
    }
    const { last_seq: to } = await stateOf(stream);
    return oneByOne(stream, subject, from, limit, to);
  }

  /**
   * @param {string} stream
   * @param {string} subject
   * @param {number} from
   * @param {number} limit
   * @param {number} [to] the last that is wanted: what grows as fast as it is read would be read
   *   for ever
   */
  async function oneByOne(stream, subject, from, limit, to = Infinity) {
    /** @type {Stored[]} */
    const found = [];
    for (let seq = from; found.length < limit && seq <= to;) {
      const message = await getMessage(stream, { next_by_subj: subject, seq });
      if (!message || message.seq > to) break;
      found.push(storedOf(message));
      seq = message.seq + 1;
    }
    return found;
  }

  /**
   * The same by a consumer, with how many of them the server has counted, and how many there were
   * without a limit.
   * @param {string} stream
   * @param {string} subject
   * @param {number} from
   * @param {number} limit
   * @param {object} [more] of the consumer
   */
  function consumed(stream, subject, from, limit, more = {}) {
    return request(async () => {
      const info = await jsm.consumers.add(stream, {
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
      const consumer = js.consumers.getConsumerFromInfo(info);
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
        await within(read, EXPIRES + timeout, late).finally(() => messages.stop());
      }
      void jsm.consumers.delete(stream, info.name).catch(() => {});
      return { found, wanted, pending };
    });
  }

  // --- Logs --------------------------------------------------------------------------------------

  /**
   * @param {string} task
   * @param {string} data
   * @param {number} expected the latest message
   */
  async function appendAfter(task, data, expected) {
    const subject = logOf(task);
    const options = { expect: { lastSubjectSequence: expected } };
    const seq = await publish(subject, data, options, task);
    if (!expected || !connection.info?.cluster) return seq;
    // Another one may have come first, and only the log knows.
    const query = { next_by_subj: subject, seq: expected + 1 };
    const next = await getMessage(logStream, query).catch((/** @type {AbpError} */ { cause }) => {
      throw unacknowledged(cause);
    });
    // A leader that is new may not have it yet.
    if (!next || next.seq > seq) throw unacknowledged();
    if (next.seq < seq) throw conflict(task);
    return seq;
  }

  /**
   * With the latest message that was looked at.
   * @param {string} task
   * @param {number} after
   * @param {number} limit
   */
  async function recordsOf(task, after, limit) {
    const subject = logOf(task);
    /** @type {LogRecord[]} */
    const records = [];
    for (let last = after; ;) {
      const wanted = limit - records.length;
      let found = await oneByOne(logStream, subject, last + 1, Math.min(wanted, FEW));
      if (found.length === FEW && wanted > FEW) {
        const from = found[FEW - 1].seq + 1;
        found = found.concat(await messagesOf(logStream, subject, from, wanted - FEW));
      }
      for (const message of found) {
        // What was asked for is what came after any number, which need not be that of a message of
        // the task.
        const isNext =
          isRecord(message.expected, last) || (last === after && !(await has(task, after)));
        if (isNext) records.push({ seq: message.seq, data: message.data });
        last = message.seq;
      }
      if (found.length < wanted || records.length === limit) return { records, last };
    }
  }

  /**
   * Whether a message is one of a task.
   * @param {string} task
   * @param {number} seq
   */
  async function has(task, seq) {
    const stored = await getMessage(logStream, { seq });
    return stored?.subject === logOf(task);
  }

  /**
   * @param {Watcher} watcher
   * @param {Stored} message that came
   */
  function take(watcher, message) {
    const { last } = watcher;
    const { seq, data, expected = last } = message;
    if (seq <= last) return;
    // It lacks what came before.
    if (expected > last) void readOn(watcher);
    else {
      watcher.last = seq;
      if (isRecord(expected, last)) give(watcher, { seq, data });
    }
  }

  /**
   * @param {Watcher} watcher
   * @param {LogRecord} record
   */
  function give(watcher, record) {
    if (!watcher.stopped) invokeReportingErrors(watcher.onRecord, record);
  }

  /**
   * Gives a watcher what is there, and then what came meanwhile.
   * @param {Watcher} watcher
   */
  async function readOn(watcher) {
    watcher.behind = true;
    if (watcher.reading) return;
    watcher.reading = true;
    while (watcher.behind && !watcher.stopped) {
      watcher.behind = false;
      try {
        // What is stored from now on, the consumer brings.
        await consuming;
        const { records, last } = await recordsOf(watcher.task, watcher.last, Infinity);
        watcher.last = last;
        for (const record of records) give(watcher, record);
      } catch {
        watcher.behind = true;
        await pause(RETRY);
      }
    }
    watcher.reading = false;
    for (const message of watcher.come.splice(0)) take(watcher, message);
  }

  /** Takes what is stored of all tasks. Resolves when it does; if that breaks, it begins anew. */
  async function consume() {
    while (!closed) {
      try {
        const { last_seq: received } = await stateOf(logStream);
        const consumer = await js.consumers.get(logStream, {
          deliver_policy: 'by_start_sequence',
          opt_start_seq: received + 1,
        });
        const begun = new Feed(received, (seq) => getMessage(logStream, { seq }), dispatch);
        feed = begun;
        const messages = await consumer.consume({
          expires: 4 * HEARTBEAT,
          idle_heartbeat: HEARTBEAT,
          callback: (/** @type {any} */ message) => begun.take(message),
        });
        delivery = messages;
        void messages.closed().then(() => messages === delivery && resume());
        timer ??= setInterval(() => void look(), LOOK);
        return;
      } catch {
        await pause(RETRY);
      }
    }
  }

  /** A consumer may be lost with its server, and not notice. */
  async function look() {
    const state = await stateOf(logStream).catch(() => undefined);
    if (!state || !feed || closed) return;
    const missing = !feed.filling && feed.received < storedBefore;
    storedBefore = missing ? 0 : state.last_seq;
    if (missing) resume();
  }

  /** The consumer has ended, or is lost. */
  function resume() {
    if (closed) return;
    void delivery?.close().catch(() => {});
    delivery = undefined;
    feed?.stop();
    consuming = consume();
    readAll();
  }

  function readAll() {
    for (const watchers of watched.values()) for (const watcher of watchers) void readOn(watcher);
  }

  /** @param {Message} brought */
  function dispatch(brought) {
    const watchers = watched.get(lastOf(brought.subject));
    if (!watchers) return;
    const message = storedOf(brought);
    for (const watcher of watchers) {
      if (!watcher.reading) take(watcher, message);
      // Of several that expect the same one to be the latest, the first is a record: none may be
      // missing.
      else if (watcher.come.push(message) > MAX_COME) {
        watcher.come = [];
        watcher.behind = true;
      }
    }
  }

  // --- The index -------------------------------------------------------------------------------

  /**
   * The entries of a tenant, or of one of its contexts. NATS has them in no order in which they
   * could be asked for.
   * @param {ListFilter} filter
   * @param {boolean} further whether an earlier page has been read
   */
  async function entriesOf({ tenant, context }, further) {
    const within = context === undefined ? '*' : token(context);
    const subject = subjectOf('index', token(tenant), within, '*');
    let copy = copies.get(subject);
    if (!copy) {
      const few = await messagesOf(stateStream, subject, 1, SHORT_LIST + 1);
      if (few.length <= SHORT_LIST) return enter(new OrderedIndex(), few);
      // Another one may have made it meanwhile.
      const made = { index: new OrderedIndex(), seen: 0, read: 0, asked: 0 };
      copy = copies.get(subject) ?? made;
      copies.set(subject, copy);
    }
    const now = (copy.asked = performance.now());
    if (!further || !copy.read || now - copy.read > FRESH) await refresh(copy, subject);
    return copy.index;
  }

  /**
   * Reads what was entered until now. All who ask while it is being read wait for one that begins
   * then.
   * @param {Copy} copy
   * @param {string} subject
   * @returns {Promise<void>}
   */
  function refresh(copy, subject) {
    const begin = () => {
      copy.next = undefined;
      copy.reading = readInto(copy, subject).finally(() => (copy.reading = undefined));
      return copy.reading;
    };
    return copy.reading ? (copy.next ??= copy.reading.catch(() => {}).then(begin)) : begin();
  }

  /**
   * @param {Copy} copy
   * @param {string} subject
   */
  async function readInto(copy, subject) {
    const read = async () => {
      const from = copy.seen + 1;
      // One that changes while they are read is not among them: its new message has a later
      // sequence.
      const found = await messagesOf(stateStream, subject, from, Infinity, false);
      if (found.length > 0) copy.seen = found[found.length - 1].seq;
      await enter(copy.index, found);
    };
    await read();
    if (performance.now() >= noConsumersUntil) {
      const before = copy.index.size;
      const { pending } = await consumed(stateStream, subject, 1, 0);
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

  /**
   * @param {string} name
   * @returns {Promise<{ id: string, count: number, size: number } | undefined>}
   */
  async function objectNamed(name) {
    const last = await lastMessage(stateStream, subjectOf('object', token(name)));
    return last ? JSON.parse(decoder.decode(last.data)) : undefined;
  }

  /**
   * @param {string} of the token of its name
   * @param {string} id of its chunks
   */
  const removeChunks = (of, id) => purge(stateStream, subjectOf('chunk', of, id, '*'));

  /** @param {string} name */
  async function remove(name) {
    check(name);
    const object = await objectNamed(name);
    if (!object) return;
    await purge(stateStream, subjectOf('object', token(name)));
    await removeChunks(token(name), object.id);
  }

  // --- The contract ------------------------------------------------------------------------------

  async function close() {
    if (closed) return;
    closed = true;
    for (const watchers of watched.values()) for (const watcher of watchers) watcher.stopped = true;
    watched.clear();
    for (const subscription of subscriptions) subscription.unsubscribe();
    subscriptions.clear();
    // It may be beginning.
    await consuming;
    feed?.stop();
    clearInterval(timer);
    await delivery?.close();
  }

  void observe();
  await measure();
  return {
    get maxRecord() {
      return maxRecord;
    },

    async append(task, data, expected) {
      check(task);
      requireRecord(data, maxRecord);
      for (let last = expected; ;) {
        try {
          return await appendAfter(task, data, last);
        } catch (error) {
          if (/** @type {AbpError} */ (error).code !== 'CONFLICT') throw error;
          // The latest message may be none that counts.
          const found = await recordsOf(task, expected, 1);
          if (found.records.length > 0 || found.last === last) throw error;
          ({ last } = found);
        }
      }
    },

    async read(task, after, limit = Infinity) {
      check(task);
      return (await recordsOf(task, after, limit)).records;
    },

    watch(task, after, onRecord) {
      if (closed) throw unavailable();
      requireName(task);
      const state = { last: after, stopped: false, reading: false, behind: false, come: [] };
      /** @type {Watcher} */
      const watcher = { task, onRecord, ...state };
      const key = token(task);
      const watchers = watched.get(key) ?? new Set();
      watched.set(key, watchers.add(watcher));
      consuming ??= consume();
      void readOn(watcher);
      return () => {
        watcher.stopped = true;
        watchers.delete(watcher);
        if (watchers.size === 0 && watched.get(key) === watchers) watched.delete(key);
      };
    },

    async forget(task) {
      check(task);
      await purge(stateStream, subjectOf('index', '*', '*', token(task)));
      await purge(logStream, logOf(task));
      for (const { index } of copies.values()) index.remove(task);
    },

    async renew(process) {
      check(process);
      for (const [subject, { asked }] of copies)
        if (performance.now() - asked > KEPT) copies.delete(subject);
      await publish(subjectOf('lease', token(process)), '');
    },

    async lease(process) {
      check(process);
      const last = await lastMessage(stateStream, subjectOf('lease', token(process)));
      return last?.seq ?? 0;
    },

    async leases(limit) {
      check();
      const found = await messagesOf(stateStream, subjectOf('lease', '*'), 1, limit);
      return found.map(({ seq, subject }) => ({ process: nameIn(lastOf(subject)), number: seq }));
    },

    async release(process, number) {
      check(process);
      const filter = subjectOf('lease', token(process));
      // What comes after it stays.
      await purge(stateStream, filter, number + 1);
      return (await lastMessage(stateStream, filter)) === null;
    },

    async serve(process, answer) {
      check(process);
      const subscription = connection.subscribe(subjectOf('ask', token(process)), {
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
      subscriptions.add(subscription);
      await request(() => flush());
      return async () => {
        subscriptions.delete(subscription);
        subscription.unsubscribe();
        if (connected) await flush().catch(() => {});
      };
    },

    async ask(process, text, { timeout = DEFAULT_TIMEOUT } = {}) {
      check(process);
      let reply;
      try {
        const subject = subjectOf('ask', token(process));
        reply = (await connection.request(subject, text, { timeout })).json();
      } catch (error) {
        const { name, message } = /** @type {Error} */ (error);
        if (/** @type {NatsError} */ (error).isNoResponders?.()) throw noResponders(process);
        if (name === 'TimeoutError') throw noAnswer(process, timeout);
        throw unavailable(`NATS did not carry the question: ${message}`, error);
      }
      if (reply.error !== undefined) throw new AbpError('OPERATION_FAILED', String(reply.error));
      return reply.text;
    },

    async note(task, entry, seq) {
      check(task);
      requireEntry(entry);
      const { tenant, context, time, state, data } = entry;
      const subject = subjectOf('index', token(tenant), token(context), token(task));
      const text = JSON.stringify({ task, tenant, context, time, state, data, seq });
      for (let attempt = 1; ; attempt++) {
        const last = await lastMessage(stateStream, subject);
        const stored = last && decoder.decode(last.data);
        if (stored && (stored === text || JSON.parse(stored).seq > seq)) return;
        try {
          const expect = { lastSubjectSequence: last?.seq ?? 0 };
          return void (await publish(subject, text, { expect }, task));
        } catch (error) {
          const lost = /** @type {AbpError} */ (error).code === 'CONFLICT';
          if (!lost || attempt === MAX_ATTEMPTS) throw error;
        }
      }
    },

    async list({ limit = DEFAULT_PAGE, cursor, ...filter }) {
      check();
      const after = readCursor(cursor);
      const index = await entriesOf(filter, after !== undefined);
      return pageOf(index.page(filter, after, limit + 1).map(listed), limit);
    },

    async count(filter) {
      check();
      return (await entriesOf(filter, false)).count(filter);
    },

    async put(name, bytes) {
      check(name);
      const id = crypto.randomUUID();
      const began = performance.now();
      const size = Math.min(CHUNK, room(limits[1]));
      const count = Math.ceil(bytes.length / size);
      for (let i = 0; i < count; i++) {
        const chunk = bytes.subarray(i * size, (i + 1) * size);
        await publish(subjectOf('chunk', token(name), id, String(i)), chunk);
      }
      const before = await objectNamed(name);
      // What took longer may be deleted by now.
      if (performance.now() - began > MAX_PUT) throw unavailable('NATS is too slow for the object');
      const meta = JSON.stringify({ name, id, count, size: bytes.length });
      await publish(subjectOf('object', token(name)), meta);
      if (before) await removeChunks(token(name), before.id);
    },

    async get(name) {
      for (let broken; ;) {
        check(name);
        const object = await objectNamed(name);
        if (!object || object.id === broken) throw objectNotFound(name);
        const bytes = new Uint8Array(object.size);
        let i = 0;
        let at = 0;
        for (; i < object.count; i++) {
          const subject = subjectOf('chunk', token(name), object.id, String(i));
          const chunk = await lastMessage(stateStream, subject);
          if (!chunk) break;
          bytes.set(chunk.data, at);
          at += chunk.data.length;
        }
        if (i === object.count) return bytes;
        // It was replaced or removed while it was read, unless it is still the same.
        broken = object.id;
      }
    },

    remove,

    async objects(prefix) {
      check();
      const found = await messagesOf(stateStream, subjectOf('object', '*'), 1, Infinity);
      return found
        .map(({ data }) => JSON.parse(data).name)
        .filter((name) => name.startsWith(prefix))
        .sort();
    },

    /**
     * All that is large are chunks, and they are in the order in which they came. Of them only the
     * subjects are read. How old they are is told by the server's own clock: no older than by what
     * it stored last.
     * @param {import('./backend.js').Sweep} sweep
     */
    async sweep({ age, limit, keeps, after = '0' }) {
      check();
      const { last_ts: latest } = await stateOf(stateStream);
      const before = Date.parse(latest) - age;
      const all = subjectOf('chunk', '*', '*', '*');
      const { found, wanted } = await consumed(stateStream, all, Number(after) + 1, limit, {
        headers_only: true,
      });
      const old = found.filter(({ time }) => time <= before);
      const writes = new Set(old.map(({ subject }) => subject.split('.').slice(-3, -1).join('.')));
      for (const write of writes) {
        const [of, id] = write.split('.');
        const name = nameIn(of);
        const object = await objectNamed(name);
        if (object?.id !== id) await removeChunks(of, id);
        else if (!(await keeps(name))) await remove(name);
      }
      return wanted === limit && old.length > 0 ? String(old[old.length - 1].seq) : undefined;
    },

    close,
  };
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

/**
 * Others have their turn while there are many.
 * @param {OrderedIndex} index
 * @param {LogRecord[]} messages
 */
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
 * @param {any} options.connection of `@nats-io/transport-node` 3, or another transport of NATS: it
 *   stays yours, with its TLS, its account and its permissions
 * @param {any} options.jetstream the module `@nats-io/jetstream` 3
 * @param {string} [options.namespace] two agents share one NATS if theirs differ: letters, digits,
 *   `-` and `_` (`a2a`)
 * @param {number} [options.replicas] servers that keep a copy, if the streams are not there yet (1)
 * @param {number} [options.timeout] ms for NATS to answer; then what was published may have been
 *   stored or not (5000)
 * @returns {Promise<Backend>} rejects with `UNAVAILABLE` when JetStream is, or its streams are not
 *   as this needs them
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
    return await backendOn(connection, js, jsm, namespace, timeout);
  } catch (error) {
    throw unavailable(`JetStream cannot be used: ${/** @type {Error} */ (error).message}`, error);
  }
}
