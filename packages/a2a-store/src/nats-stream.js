/** A stream of JetStream: stores messages in it, and reads them from its leader. */
import { AbpError } from 'abp-bridge/driver';
import { conflict, unavailable, within } from '@abp-bridge/a2a/store';

/** @import { Message } from './nats-feed.js' */
/** @import { Link } from './nats-link.js' */

/** Bytes of a message reserved for its headers and its subject. */
const HEADERS = 2048;
/**
 * Bytes that a message must be allowed to have: an entry of the index has a tenant, a context and a
 * user.
 */
const MIN_MESSAGE = 16 * 1024;
const TOO_SMALL = `the server (max_payload) and its streams (max_msg_size) must take messages of ${MIN_MESSAGE} bytes`;
/** Ms before the next attempt to make a consumer, after one has failed. */
const WITHOUT_CONSUMERS = 30_000;
/** Messages that are pulled at once, and ms to wait for some of them. */
const PULL = 256;
const EXPIRES = 1000;
/** Ns after which the server forgets an unused consumer. */
const FORGOTTEN_AFTER = 30_000_000_000;
/** The header in which a message keeps the sequence that its writer expected to be the latest. */
const EXPECTED = 'Nats-Expected-Last-Subject-Sequence';
/**
 * JetStream's codes for "another sequence is the latest", and for "the stream takes no message of
 * that size".
 */
const WRONG_SEQUENCE = 10071;
const TOO_LONG = 10054;
/** Errors of messages that were not stored, and will not be. */
const REFUSALS = [
  'JetStreamApiError',
  'NoRespondersError',
  'JetStreamNotEnabled',
  'PermissionViolationError',
];

const decoder = new TextDecoder();

/** @typedef {Error & { code?: number }} NatsError */
/**
 * @typedef {object} Stored a message, and the sequence that its writer expected, if any
 * @property {number} seq
 * @property {string} data
 * @property {string} subject
 * @property {number} [expected]
 * @property {number} time
 */

/**
 * @param {Message & { time?: Date }} message
 * @returns {Stored}
 */
export function storedOf({ seq, subject, data, header, headers = header, time }) {
  const expected = headers?.get(EXPECTED);
  return {
    seq,
    subject,
    data: decoder.decode(data),
    time: Number(time),
    expected: expected ? Number(expected) : undefined,
  };
}

/** @param {unknown} [cause] */
export const unacknowledged = (cause) =>
  new AbpError('UNACKNOWLEDGED', 'NATS did not acknowledge what was published', { cause });

export class Stream {
  /** Bytes of a message that the stream accepts. */
  #limit = 0;
  /** Until then all messages are requested one by one. */
  #noConsumersUntil = 0;

  /**
   * @param {Link} link
   * @param {string} name
   */
  constructor(link, name) {
    this.link = link;
    this.name = name;
  }

  /**
   * Makes the stream if it does not exist.
   * @param {object} config
   */
  async open(config) {
    const { streams } = this.link.jsm;
    const found = await streams
      .info(this.name)
      .catch(() => streams.add({ ...config, name: this.name }));
    // A direct get may be answered by a server that does not have the latest message.
    if (found.config.allow_direct)
      throw new Error(`the stream ${this.name} must not have allow_direct`);
    this.#measure(found.config);
  }

  /** @param {{ max_msg_size?: number }} config */
  #measure({ max_msg_size: size = -1 }) {
    const limit = size > 0 ? size : Infinity;
    // No task fits in that, and the limit may be temporary: records must not be divided by it.
    if (Math.min(limit, this.link.maxPayload) < MIN_MESSAGE) throw unavailable(TOO_SMALL);
    this.#limit = limit;
  }

  /** Bytes that a message may have, by the limits of the stream and of the server. */
  get room() {
    return Math.min(this.#limit, this.link.maxPayload) - HEADERS;
  }

  async #info() {
    return this.link.request(() => this.link.jsm.streams.info(this.name));
  }

  /**
   * The current state of the stream.
   * @returns {Promise<{ last_seq: number, last_ts: string }>}
   */
  async state() {
    return (await this.#info()).state;
  }

  /**
   * Publishes, and waits for the acknowledgement.
   * @param {string} subject
   * @param {Uint8Array | string} data
   * @param {number} [expected] the latest message of the subject; if it is another, the error is a
   *   conflict
   * @param {string} [task] for the error
   * @returns {Promise<number>}
   */
  async publish(subject, data, expected, task = '') {
    const { js, timeout } = this.link;
    const expect = expected === undefined ? undefined : { lastSubjectSequence: expected };
    try {
      return (await js.publish(subject, data, { timeout, expect })).seq;
    } catch (error) {
      const { name, code, message, cause } = /** @type {NatsError} */ (error);
      if (code === WRONG_SEQUENCE) throw conflict(task, error);
      if (code === TOO_LONG || name === 'InvalidArgumentError') {
        // The limit may have decreased since the start.
        this.#measure((await this.#info()).config);
        throw new AbpError('TOO_LARGE', `NATS refused it: ${message}`, { cause: error });
      }
      // The client wraps some of them.
      if (REFUSALS.includes(name) || REFUSALS.includes(/** @type {NatsError} */ (cause)?.name))
        throw unavailable(`NATS refused it: ${message}`, error);
      throw unacknowledged(error);
    }
  }

  /**
   * A message; null if it does not exist.
   * @param {{ seq?: number, next_by_subj?: string, last_by_subj?: string }} query
   */
  get(query) {
    return this.link.request(() => this.link.jsm.streams.getMessage(this.name, query));
  }

  /**
   * The latest message of a subject.
   * @param {string} subject
   */
  last(subject) {
    return this.get({ last_by_subj: subject });
  }

  /**
   * Deletes messages.
   * @param {string} filter a subject
   * @param {number} [seq] the first message that stays
   */
  purge(filter, seq) {
    return this.link.request(() => this.link.jsm.streams.purge(this.name, { filter, seq }));
  }

  // --- Many messages -----------------------------------------------------------------------------

  /** True if messages can be read by a consumer now. */
  get hasConsumers() {
    return performance.now() >= this.#noConsumersUntil;
  }

  /**
   * The current messages of a subject. A cluster that has lost a server may still place consumers
   * there, and then does not answer (2.9.10): the leader of the stream has all messages, one by
   * one.
   * @param {string} subject
   * @param {number} from
   * @param {number} limit
   * @param {boolean} [all] whether the result must be complete
   */
  async read(subject, from, limit, all = true) {
    if (this.hasConsumers) {
      try {
        const { found, wanted } = await this.consume(subject, from, limit);
        // Some were deleted meanwhile, or skipped.
        if (found.length === wanted || !all) return found;
      } catch {
        this.#noConsumersUntil = performance.now() + WITHOUT_CONSUMERS;
      }
    }
    const { last_seq: to } = await this.state();
    return this.readOneByOne(subject, from, limit, to);
  }

  /**
   * @param {string} subject
   * @param {number} from
   * @param {number} limit
   * @param {number} [to] the last message to read: a stream that grows as fast as it is read would
   *   be read for ever
   */
  async readOneByOne(subject, from, limit, to = Infinity) {
    /** @type {Stored[]} */
    const found = [];
    for (let seq = from; found.length < limit && seq <= to;) {
      const message = await this.get({ next_by_subj: subject, seq });
      if (!message || message.seq > to) break;
      found.push(storedOf(message));
      seq = message.seq + 1;
    }
    return found;
  }

  /**
   * Reads the same by a consumer. Also returns the number of messages that the server has counted,
   * and the number without the limit.
   * @param {string} subject
   * @param {number} from
   * @param {number} limit
   * @param {object} [more] options of the consumer
   */
  consume(subject, from, limit, more = {}) {
    const { js, jsm, timeout } = this.link;
    return this.link.request(async () => {
      const info = await jsm.consumers.add(this.name, {
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
      void jsm.consumers.delete(this.name, info.name).catch(() => {});
      return { found, wanted, pending };
    });
  }
}
