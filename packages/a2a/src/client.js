/**
 * The client of A2A agents: tasks as promises and async iterators, cancelled by an AbortSignal.
 * remote-agent.js holds the knowledge about the agent, client-http.js and port.js make the
 * connection, and the core decides what happens to a task.
 */
import {
  AbpError,
  exactOrigin,
  getOwn,
  invokeReportingErrors,
  isObject,
  limitOf,
  loadOnce,
  mistyped,
  requireOf,
  requireOptions,
  textOf,
} from 'abp-bridge/driver';
import { TASKS_DEFAULT_GRACE_MS } from './tasks-boundary.js';
import { httpConnection } from './client-http.js';
import { DIALECTS, readMessage, readTasks } from './dialects.js';
import { requireExactly, requireTextList } from './exact-options.js';
import { REPEATS, newId } from './ids.js';
import { portConnection } from './port.js';
import { RemoteAgent, malformed, readCard } from './remote-agent.js';
import { TaskStream } from './task-stream.js';
import { ready } from './tasks-core.js';

/** @import { Dialect, Event, Message, Part, Task } from './dialects.js' */
/** @import { Transport } from 'abp-bridge/driver' */

/**
 * @typedef {object} ClientLimits Each is optional and has a default.
 * @property {number} [timeout] ms to wait for an answer to `get`, `cancel`, `list` and for the card
 *   (30000)
 * @property {number} [grace] ms that an agent has to end a task after its cancel (30000)
 * @property {number} [retry] ms before a stream that sent nothing is opened again; doubles each
 *   time, up to 30 s (1000)
 * @property {number} [linger] ms that a stream may stay open after its task has ended (5000)
 * @property {number} [outage] ms that an agent may be unreachable before its streams give up
 *   (60000)
 * @property {number} [maxEvent] characters of one event of a stream (134217728)
 * @property {number} [maxBody] bytes of one answer (268435456)
 * @property {number} [maxTask] characters of all artifacts of a streamed task together (67108864)
 * @property {number} [maxTasks] streams at once (4096)
 * @property {number} [maxArtifacts] artifacts of a streamed task (4096)
 * @property {number} [maxQueue] over a transport: events that may wait to be read (4096)
 */

/**
 * @typedef {object} ClientOptions Options of a client of an A2A agent.
 * @property {Dialect['name']} [version] of the agent. If given, requests go to the URL itself and
 *   no card is fetched
 * @property {HeadersInit} [headers] sent with every request to the URL's origin, and to no other
 * @property {typeof fetch} [fetch] used in place of the global `fetch`
 * @property {string[] | ((url: URL) => boolean)} [endpoints] where else the agent's card may direct
 *   requests: origins besides the URL's own, or a function that returns `true` for the URL of an
 *   allowed interface (none)
 * @property {string[]} [extensions] URIs of the extensions that this client knows, declared with
 *   every request
 * @property {ClientLimits} [limits] of the agent's answers
 * @property {(event: Event) => void} [onDropped] called with events that came after the end of
 *   their task
 */

/**
 * @typedef {object} SendOptions Options of a message that is sent.
 * @property {AbortSignal} [signal] cancels the task
 * @property {any} [configuration] of the protocol
 * @property {Record<string, any>} [metadata] sent with the message
 */

/**
 * @typedef {string | Partial<Message> & { parts: Part[] }} Sendable text, or a message: its
 *   `taskId` continues a task
 */

const WHO = 'createTaskClient';
/** @type {import('abp-bridge/driver').Kinds<ClientLimits>} */
const LIMITS = {
  grace: 'a number',
  linger: 'a number',
  maxArtifacts: 'a number',
  maxBody: 'a number',
  maxEvent: 'a number',
  maxQueue: 'a number',
  maxTask: 'a number',
  maxTasks: 'a number',
  outage: 'a number',
  retry: 'a number',
  timeout: 'a number',
};
/** @type {import('abp-bridge/driver').Kinds<ClientOptions>} */
const OPTIONS = {
  endpoints: 'a function or an object',
  extensions: 'an object',
  fetch: 'a function',
  headers: 'an object',
  limits: 'an object of numbers',
  onDropped: 'a function',
  version: '"0.3", "1.0" or "gem"',
};
/** @type {import('abp-bridge/driver').Kinds<SendOptions>} */
const SEND_OPTIONS = { configuration: 'anything', metadata: 'an object', signal: 'an AbortSignal' };
/**
 * @type {import('abp-bridge/driver').Kinds<{ signal?: AbortSignal,
 *   lastEventId?: string }>}
 */
const RESUBSCRIBE_OPTIONS = { lastEventId: 'a string', signal: 'an AbortSignal' };

/**
 * A client of one agent. Nothing is sent before the first request.
 * @param {string | URL | Transport} to the URL of the agent, of its card, or with `version` of
 *   where it takes requests; or a transport to an agent in another window, worker or process
 * @param {ClientOptions} [options]
 */
export const createTaskClient = (to, options) => new TaskClient(to, options);

/** A client of an A2A agent, as `createTaskClient` returns it. */
export class TaskClient {
  #options;
  #limits;
  #connection;
  /** @type {unknown} */
  #card;
  #dropped = 0;

  /**
   * Use {@link createTaskClient}.
   * @param {string | URL | Transport} to
   * @param {ClientOptions} [options]
   */
  constructor(to, options = {}) {
    requireOptions(WHO, options, {}, true);
    const { version, extensions = [], limits = {} } = options;
    const endpoints = readEndpoints(options.endpoints);
    if (version !== undefined && !Object.hasOwn(DIALECTS, version)) {
      throw new AbpError(
        'NOT_SUPPORTED',
        `A2A ${version} is not supported. Supported versions: ${Object.keys(DIALECTS)}`,
      );
    }
    requireExactly(WHO, options, OPTIONS);
    requireExactly('limits', limits, LIMITS);
    requireTextList(WHO, 'extensions', extensions);
    this.#options = options;
    this.#limits = {
      timeout: limitOf(limits.timeout ?? 30_000) || 30_000,
      grace: limitOf(limits.grace ?? 0) || TASKS_DEFAULT_GRACE_MS,
      event: limits.maxEvent ?? 2 ** 27,
      body: limits.maxBody ?? 2 ** 28,
      task: limits.maxTask ?? 2 ** 26,
      queue: limits.maxQueue ?? 4096,
    };
    const given = { ...options, endpoints };
    this.#connection =
      typeof to === 'string' || to instanceof URL
        ? httpConnection(new URL(to, globalThis.location?.href), given, this.#limits)
        : portConnection(to, this.#limits);
    this.#connection.declared = extensions;
  }

  /** Number of events that came after the end of their task, or that belonged to no task. */
  get dropped() {
    return this.#dropped;
  }

  /** The extensions in use with this agent, according to its latest answer. */
  get extensions() {
    return this.#connection.used.filter((uri) => uri !== REPEATS);
  }

  /** @returns {Promise<any>} the agent card, as the agent sent it */
  async card() {
    this.#card ??= await this.#connection.card(this.#limits.timeout);
    return this.#card;
  }

  /**
   * Sends a message and waits for the outcome: a task that has ended or needs input, or a message.
   * If the agent has streams, the request is a stream: only a stream gives the task's id early
   * enough to cancel it, or to find it again after the connection breaks.
   * @param {Sendable} message
   * @param {SendOptions} [options]
   * @returns {Promise<Task | Message>} a task has a `status`
   */
  async send(message, options = {}) {
    checkSend('send', message, options);
    const { signal } = options;
    signal?.throwIfAborted();
    const streams = sendsStreams(await this.#begin(), message, options);
    signal?.throwIfAborted();
    const stream = this.#stream(streams ? 'stream' : 'send', message, options);
    const { value } = await stream.next();
    if (!streams) {
      if (value?.kind !== 'message' && value?.kind !== 'task') throw malformed('send');
      // Without a stream, the answer is complete, unless the task is to be cancelled.
      if (!signal?.aborted) await stream.return();
    }
    while (!(await stream.next()).done);
    return /** @type {Task | Message} */ (stream.task ?? stream.message);
  }

  /**
   * Sends a message and streams the events of its task. Aborting the signal cancels the task as
   * soon as its id is known. The stream goes on to the event that ends the task: usually
   * `canceled`, but the task may have completed by then. If the signal is aborted before the first
   * event is requested, nothing is sent and the stream throws the signal's reason.
   * @param {Sendable} message
   * @param {SendOptions} [options]
   */
  subscribe(message, options = {}) {
    checkSend('subscribe', message, options);
    return this.#stream('stream', message, options);
  }

  /**
   * @param {'send' | 'stream'} operation
   * @param {Sendable} message
   * @param {SendOptions} options
   */
  #stream(operation, message, { configuration, metadata, signal }) {
    const messageId = newId();
    const params = (/** @type {Dialect} */ dialect) => {
      const given =
        typeof message === 'string'
          ? { parts: [{ text: message, mediaType: 'text/plain' }] }
          : message;
      const read = readMessage({ role: 'user', messageId, ...given });
      const about = { ...dialect.sendParams(read), message: dialect.message(read) };
      return { ...about, ...(configuration && { configuration }), ...(metadata && { metadata }) };
    };
    return new TaskStream(() => this.#begin(), { operation, params, signal });
  }

  /**
   * Streams a running task. The first event is the task as it is now; with the `lastEventId` of an
   * earlier stream, and an agent that numbers its events, it is the event after that one.
   * @param {string} id
   * @param {{ signal?: AbortSignal, lastEventId?: string }} [options]
   */
  resubscribe(id, options = {}) {
    requireOptions('resubscribe', options, RESUBSCRIBE_OPTIONS, true);
    if (typeof id !== 'string') throw mistyped('resubscribe', 'the id', 'a string');
    const { signal, lastEventId } = options;
    return new TaskStream(() => this.#begin(), { id, signal, lastEventId });
  }

  /**
   * @param {string} id
   * @param {{ historyLength?: number }} [options]
   * @returns {Promise<Task>}
   */
  async get(id, options) {
    return (await this.#begin()).get(id, options);
  }

  /**
   * Cancels a task. The state of the returned task says whether it has ended. Cancelling a canceled
   * task is no error in any version.
   * @param {string} id
   * @param {{ reason?: string }} [options] `reason` is sent in the request's metadata, since the
   *   protocol has no other place for it
   * @returns {Promise<Task>}
   */
  async cancel(id, { reason } = {}) {
    const agent = await this.#begin();
    try {
      return await agent.cancel(id, reason);
    } catch (error) {
      if (getOwn(error, 'code') !== 'TASK_NOT_CANCELABLE') throw error;
      const task = await agent.get(id).catch(() => undefined);
      if (task?.status.state !== 'canceled') throw error;
      return task;
    }
  }

  /**
   * @param {object} [filter] of the protocol: `contextId`, `pageSize`, `pageToken`, …
   * @returns {Promise<{ tasks: Task[], nextPageToken?: string, totalSize?: number }>} `totalSize`
   *   is the number of tasks on all pages, if the agent sends it
   */
  async list(filter = {}) {
    const result = await (await this.#begin()).request('list', filter);
    const total = getOwn(result, 'totalSize');
    return {
      tasks: readTasks(result),
      nextPageToken: textOf(getOwn(result, 'nextPageToken')),
      totalSize: typeof total === 'number' ? total : undefined,
    };
  }

  /**
   * Closes the transport, if the client has one. Streams end as if the connection had broken; tasks
   * go on.
   */
  close() {
    this.#connection.close?.();
  }

  #begin = loadOnce(() => this.#find());

  /** Loads the core and finds the agent. */
  async #find() {
    const { version, limits, extensions = [], onDropped } = this.#options;
    await ready();
    const card = version
      ? { interfaces: [{ dialect: DIALECTS[version], rest: false }], repeats: false }
      : readCard(await this.card());
    // Other agents do not get the header: their answers to browsers may not allow it.
    if (card.repeats) this.#connection.declared = [...extensions, REPEATS];
    return new RemoteAgent(this.#connection, card, this.#limits, {
      limits,
      onDropped: (event) => {
        this.#dropped++;
        invokeReportingErrors(onDropped, event);
      },
      onFailure: () => (this.#begin = loadOnce(() => this.#find())),
    });
  }
}

/**
 * @param {RemoteAgent} agent
 * @param {Sendable} message
 * @param {SendOptions} options
 */
function sendsStreams({ dialect, streaming }, message, { signal, configuration }) {
  const answers = typeof message !== 'string' && message.taskId;
  if (answers && !dialect.streamsAnswers) return false;
  if (signal) return streaming !== false;
  return streaming === true && dialect.blocks(configuration);
}

/**
 * @param {string} who
 * @param {Sendable} message
 * @param {SendOptions} options
 */
function checkSend(who, message, options) {
  const isMessage = isObject(message) && Array.isArray(message.parts);
  if (typeof message !== 'string' && !isMessage)
    throw mistyped(who, 'the message', 'a string or { parts }');
  requireExactly(who, options, SEND_OPTIONS);
  const { configuration = {} } = options;
  requireOf(who, 'configuration', 'an object', configuration);
}

/**
 * @param {unknown} given
 * @returns {import('./client-http.js').Endpoints}
 */
function readEndpoints(given = []) {
  if (typeof given === 'function') return /** @type {(url: URL) => boolean} */ (given);
  if (!Array.isArray(given)) throw mistyped(WHO, 'endpoints', 'a list of origins or a function');
  return given.map((origin) => exactOrigin(origin));
}
