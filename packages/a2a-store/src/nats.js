/**
 * A backend on NATS with JetStream, for many processes, on your own connection. An acknowledged
 * record is as durable as the server makes it: with one server it is on the disk within
 * `sync_interval`, with three replicas a quorum has it.
 *
 * It has two streams: one for the logs of tasks (nats-log.js, and nats-watch.js for watchers), and
 * one that keeps only the latest message of a subject: leases, the index (nats-index.js) and
 * objects (nats-objects.js). The methods of the contract are fields of these classes.
 */
import { AbpError, toErrorObject } from 'abp-bridge/driver';
import { DEFAULT_TIMEOUT, noAnswer, noResponders, unavailable } from '@abp-bridge/a2a/store';
import { Index } from './nats-index.js';
import { Link, lastOf, nameIn, token } from './nats-link.js';
import { Logs } from './nats-log.js';
import { Objects } from './nats-objects.js';
import { Stream } from './nats-stream.js';
import { Watchers } from './nats-watch.js';

/** @import { Backend } from '@abp-bridge/a2a/store' */

/** The content of a lease whose process has left. */
const LEFT = 'left';

/**
 * The leases of processes, and the questions between them. The number of a lease is that of the
 * latest message of its subject.
 */
class Processes {
  /** @type {Set<{ unsubscribe: () => void }>} */
  #subscriptions = new Set();
  #link;
  #stream;

  /** @param {Stream} stream */
  constructor(stream) {
    this.#link = stream.link;
    this.#stream = stream;
  }

  /**
   * @param {'lease' | 'ask'} kind
   * @param {string} process
   */
  #subject(kind, process) {
    this.#link.check(process);
    return this.#link.subject(kind, token(process));
  }

  /** @type {Backend['renew']} */
  renew = async (process, left = false) => {
    await this.#stream.publish(this.#subject('lease', process), left ? LEFT : '');
  };

  /** @type {Backend['lease']} */
  lease = async (process) => (await this.#stream.last(this.#subject('lease', process)))?.seq ?? 0;

  /** @type {Backend['leases']} */
  leases = async (limit) => {
    this.#link.check();
    const found = await this.#stream.read(this.#link.subject('lease', '*'), 1, limit);
    return found.map(({ seq, subject, data }) => {
      return { process: nameIn(lastOf(subject)), number: seq, left: data === LEFT };
    });
  };

  /** @type {Backend['release']} */
  release = async (process, number) => {
    const subject = this.#subject('lease', process);
    // Later messages stay.
    await this.#stream.purge(subject, number + 1);
    return (await this.#stream.last(subject)) === null;
  };

  /** @type {Backend['serve']} */
  serve = async (process, answer) => {
    const subscription = this.#link.connection.subscribe(this.#subject('ask', process), {
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
          // It is too long, or the connection is gone: the question times out.
        }
      },
    });
    this.#subscriptions.add(subscription);
    await this.#link.flush();
    return async () => {
      this.#subscriptions.delete(subscription);
      subscription.unsubscribe();
      if (this.#link.connected) await this.#link.flush().catch(() => {});
    };
  };

  /** @type {Backend['ask']} */
  ask = async (process, text, { timeout = DEFAULT_TIMEOUT } = {}) => {
    const subject = this.#subject('ask', process);
    let reply;
    try {
      reply = (await this.#link.connection.request(subject, text, { timeout })).json();
    } catch (thrown) {
      const error = /** @type {Error & { isNoResponders?: () => boolean }} */ (thrown);
      if (error.isNoResponders?.()) throw noResponders(process);
      if (error.name === 'TimeoutError') throw noAnswer(process, timeout);
      throw unavailable(`NATS did not carry the question: ${error.message}`, error);
    }
    if (reply.error !== undefined) throw new AbpError('OPERATION_FAILED', String(reply.error));
    return reply.text;
  };

  /** Stops answering. */
  stop() {
    for (const subscription of this.#subscriptions) subscription.unsubscribe();
    this.#subscriptions.clear();
  }
}

/**
 * @param {Stream} log
 * @param {Stream} latest
 * @returns {Backend}
 */
function backendOn(log, latest) {
  const { link } = log;
  const logs = new Logs(log);
  const watchers = new Watchers(log, logs);
  const index = new Index(latest);
  const processes = new Processes(latest);
  async function close() {
    if (link.closed) return;
    link.closed = true;
    processes.stop();
    await watchers.stop();
  }
  void link.observe(() => watchers.readAll()).then(close);
  return {
    ...logs,
    ...watchers,
    ...index,
    ...processes,
    ...new Objects(latest),
    get maxRecord() {
      return log.room;
    },
    async forget(task) {
      link.check(task);
      await index.forget(task);
      await logs.forget(task);
    },
    async renew(...given) {
      index.dropUnasked();
      await processes.renew(...given);
    },
    close,
  };
}

/**
 * A backend on NATS.
 * @param {object} options
 * @param {any} options.connection of `@nats-io/transport-node` 3, or another transport of NATS: it
 *   stays yours, with its TLS, its account and its permissions
 * @param {any} options.jetstream the module `@nats-io/jetstream` 3
 * @param {string} [options.namespace] separates agents that share one NATS: letters, digits, `-`
 *   and `_` (`a2a`)
 * @param {number} [options.replicas] servers that keep a copy, if the streams do not exist yet (1)
 * @param {number} [options.timeout] ms for NATS to answer; after that it is unknown whether a
 *   published record was stored (5000)
 * @returns {Promise<Backend>} rejects with `UNAVAILABLE` when JetStream is unavailable, or its
 *   streams have a wrong configuration
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
    const link = new Link(connection, js, jsm, namespace, timeout);
    const all = { storage: 'file', num_replicas: replicas, allow_direct: false };
    const open = async (/** @type {string} */ name, /** @type {object} */ config) => {
      const stream = new Stream(link, `${namespace}_${name}`);
      await stream.open({ ...all, ...config });
      return stream;
    };
    const subjects = (/** @type {string[]} */ ...kinds) =>
      kinds.map((kind) => link.subject(kind, '>'));
    const log = await open('log', { subjects: subjects('log') });
    const state = await open('state', {
      subjects: subjects('lease', 'index', 'object', 'chunk'),
      max_msgs_per_subject: 1,
    });
    return backendOn(log, state);
  } catch (error) {
    throw unavailable(`JetStream cannot be used: ${/** @type {Error} */ (error).message}`, error);
  }
}
