/** The logs of tasks: a stream that has a subject for each. */
import { conflict, requireRecord } from '@abp-bridge/a2a/store';
import { token } from './nats-link.js';
import { unacknowledged } from './nats-stream.js';

/** @import { AbpError } from 'abp-bridge/driver' */
/** @import { Backend, LogRecord } from '@abp-bridge/a2a/store' */
/** @import { Stream } from './nats-stream.js' */

/** Records that are requested one by one; more are read by a consumer. */
const FEW = 64;

/**
 * True if a message is a record: it has the place that its writer expected. A cluster of servers
 * before 2.9.21 may store several messages that expect the same one to be the latest
 * (https://github.com/nats-io/nats-server/issues/4320): the first of them is a record. 0 is right
 * in every version, since a server checks it again when it stores the message.
 * @param {number | undefined} expected
 * @param {number} last the message of the task before it
 */
export const isRecord = (expected, last) => !expected || expected >= last;

export class Logs {
  #link;
  #stream;

  /** @param {Stream} stream */
  constructor(stream) {
    this.#link = stream.link;
    this.#stream = stream;
  }

  /** @param {string} task */
  #subject(task) {
    return this.#link.subject('log', token(task));
  }

  /** @type {Backend['append']} */
  append = async (task, data, expected) => {
    this.#link.check(task);
    requireRecord(data, this.#stream.room);
    for (let last = expected; ;) {
      try {
        return await this.#appendAfter(task, data, last);
      } catch (error) {
        if (/** @type {AbpError} */ (error).code !== 'CONFLICT') throw error;
        // The latest message may not be a record.
        const found = await this.records(task, expected, 1);
        if (found.records.length > 0 || found.last === last) throw error;
        ({ last } = found);
      }
    }
  };

  /**
   * @param {string} task
   * @param {string} data
   * @param {number} expected the latest message
   */
  async #appendAfter(task, data, expected) {
    const subject = this.#subject(task);
    const seq = await this.#stream.publish(subject, data, expected, task);
    if (!expected || !this.#link.connection.info?.cluster) return seq;
    // Another one may have come first, and only the log knows.
    const query = { next_by_subj: subject, seq: expected + 1 };
    const next = await this.#stream.get(query).catch((/** @type {AbpError} */ { cause }) => {
      throw unacknowledged(cause);
    });
    // A new leader may not have it yet.
    if (!next || next.seq > seq) throw unacknowledged();
    if (next.seq < seq) throw conflict(task);
    return seq;
  }

  /** @type {Backend['read']} */
  read = async (task, after, limit = Infinity) => {
    this.#link.check(task);
    return (await this.records(task, after, limit)).records;
  };

  /**
   * Records, and the number of the latest message that was read.
   * @param {string} task
   * @param {number} after
   * @param {number} limit
   */
  async records(task, after, limit) {
    const subject = this.#subject(task);
    /** @type {LogRecord[]} */
    const records = [];
    for (let last = after; ;) {
      const wanted = limit - records.length;
      let found = await this.#stream.readOneByOne(subject, last + 1, Math.min(wanted, FEW));
      if (found.length === FEW && wanted > FEW) {
        const from = found[FEW - 1].seq + 1;
        found = found.concat(await this.#stream.read(subject, from, wanted - FEW));
      }
      for (const { seq, data, expected } of found) {
        // `after` may be any number, not only that of a message of the task.
        if (isRecord(expected, last) || (last === after && !(await this.#has(subject, after))))
          records.push({ seq, data });
        last = seq;
      }
      if (found.length < wanted || records.length === limit) return { records, last };
    }
  }

  /**
   * True if a message has this subject.
   * @param {string} subject
   * @param {number} seq
   */
  async #has(subject, seq) {
    return (await this.#stream.get({ seq }))?.subject === subject;
  }

  /** @param {string} task */
  async forget(task) {
    await this.#stream.purge(this.#subject(task));
  }
}
