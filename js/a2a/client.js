/**
 * The client of A2A agents: tasks as promises and async iterators, cancelled by an AbortSignal. dialects.js has what
 * differs between versions, client-http.js and client-port.js the ways to the agent, and the core decides what happens
 * to a task.
 */
import { AbpError, invokeReportingErrors, reasonText } from '../common/errors.js';
import { getOwn, milliseconds, textOf } from '../common/values.js';
import { PortConnection } from './client-port.js';
import { TaskTable, ended, ready } from '../core/tasks-core.js';
import {
  DIALECTS,
  readError,
  readEvent,
  readMessage,
  readState,
  readTask,
  readTasks,
} from './dialects.js';
import { HttpConnection, disconnected, within } from './client-http.js';
import { TaskStream } from './task-stream.js';
import { View } from './view.js';
import { newId } from './ids.js';

/** @import { Dialect, Event, Message, Operation, Part, State, Task } from './dialects.js' */

/**
 * @typedef {object} ClientLimits Each is optional and has a default.
 * @property {number} [timeout] ms for an answer to `get`, `cancel`, `list` and for the card (30000)
 * @property {number} [grace] ms that an agent has to end a task after its cancel (30000)
 * @property {number} [retry] ms before a stream that brought nothing is opened again; each time twice as long, up to
 *   30 s (1000)
 * @property {number} [linger] ms that a stream may stay open after its task has ended (5000)
 * @property {number} [maxEvent] characters of one event of a stream (1048576)
 * @property {number} [maxBody] bytes of one answer (16777216)
 * @property {number} [maxTask] characters of all artifacts of a streamed task together (67108864)
 * @property {number} [maxTasks] streams at once (4096)
 * @property {number} [maxArtifacts] artifacts of a streamed task (4096)
 * @property {number} [maxQueue] over a transport, events that wait to be read (4096)
 */

/**
 * @typedef {object} ClientOptions
 * @property {keyof typeof DIALECTS} [version] of the agent. If it is given, the URL is that for requests, and no card
 *   is fetched
 * @property {HeadersInit} [headers] sent with every request to the URL's origin, and to no other
 * @property {typeof fetch} [fetch]
 * @property {string[]} [extensions] URIs of the extensions that this client knows, declared with every request
 * @property {ClientLimits} [limits]
 * @property {(event: Event) => void} [onDropped] called with events that came after the end of their task
 */

/**
 * @typedef {object} SendOptions
 * @property {AbortSignal} [signal] cancels the task
 * @property {any} [configuration] the protocol's own
 * @property {import('./dialects.js').Metadata} [metadata]
 */

/** @typedef {string | Partial<Message> & { parts: Part[] }} Sendable text, or a message: its `taskId` continues a task */

/**
 * A client of one agent. Nothing is sent before the first request.
 * @param {string | URL | import('../transports/transport.js').Transport} to the URL of the agent, of its card, or with
 *   `version` of where it takes requests; or a transport to an agent in another frame, worker or process
 * @param {ClientOptions} [options]
 */
export const createTaskClient = (to, options) => new TaskClient(to, options);

export class TaskClient {
  #options;
  #limits;
  /** @type {import('./client-http.js').Connection} */
  #connection;
  /** @type {Promise<void> | undefined} */
  #begun;
  /** @type {Dialect | undefined} */
  #dialect;
  /** @type {TaskTable | undefined} */
  #table;
  /** @type {unknown} */
  #card;
  /** Whether the agent's card says that it streams; undefined without a card. @type {boolean | undefined} */
  #streaming;
  /** @type {string[]} */
  #extensions = [];
  #requests = 0;
  #views = 0;
  #dropped = 0;
  #streams;

  /**
   * @param {string | URL | import('../transports/transport.js').Transport} to
   * @param {ClientOptions} [options]
   */
  constructor(to, options = {}) {
    const { version, headers, extensions = [], limits = {} } = options;
    if (version !== undefined && !Object.hasOwn(DIALECTS, version)) {
      throw new AbpError('NOT_SUPPORTED', `A2A ${version} is not known: ${Object.keys(DIALECTS)}`);
    }
    this.#options = options;
    this.#limits = {
      timeout: milliseconds(limits.timeout) || 30_000,
      grace: milliseconds(limits.grace) || 30_000,
      linger: milliseconds(limits.linger) || 5_000,
      retry: milliseconds(limits.retry) || 1_000,
      event: limits.maxEvent ?? 2 ** 20,
      body: limits.maxBody ?? 2 ** 24,
      task: limits.maxTask ?? 2 ** 26,
      queue: limits.maxQueue ?? 4096,
    };
    const negotiation = {
      extensions,
      onExtensions: (/** @type {string[]} */ used) => void (this.#extensions = used),
    };
    this.#connection =
      typeof to === 'string' || to instanceof URL
        ? new HttpConnection(
            new URL(to, globalThis.location?.href),
            { fetch: options.fetch, headers, ...negotiation },
            this.#limits,
          )
        : new PortConnection(to, negotiation, this.#limits);
    this.#streams = this.#side();
  }

  /** How many events came after the end of their task, or did not belong to it. */
  get dropped() {
    return this.#dropped;
  }

  /** The extensions in use with this agent, as its latest answer said. */
  get extensions() {
    return this.#extensions;
  }

  /** @returns {Promise<any>} the agent card, as the agent sent it */
  async card() {
    this.#card ??= await this.#connection.card(this.#limits.timeout);
    return this.#card;
  }

  /**
   * Sends a message and waits for the outcome: a task that has ended or needs input, or a message. If the agent has
   * streams, the request is a stream: only a stream tells the task's id early enough to cancel it, or to find it again
   * when the connection breaks.
   * @param {Sendable} message
   * @param {SendOptions} [options]
   * @returns {Promise<Task | Message>} a task has a `status`
   */
  async send(message, options = {}) {
    const { signal } = options;
    signal?.throwIfAborted();
    await this.#begin();
    signal?.throwIfAborted();
    if (this.#sendsStreams(message, options)) {
      const stream = this.subscribe(message, options);
      while (!(await stream.next()).done);
      return /** @type {Task | Message} */ (stream.task ?? stream.message);
    }
    const frames = this.#open('send', this.#sendParams(message, options));
    const frame = await frames.next();
    if (frame === undefined) throw disconnected();
    const event = readEvent(this.#result(frame));
    if (event?.kind === 'message') return event.message;
    if (event?.kind !== 'task') throw malformed('send');
    const { id, status } = event.task;
    if (!signal?.aborted || hasEnded(status.state)) return event.task;
    return this.#stop(id, reasonText(signal.reason), hasEnded);
  }

  /**
   * @param {Sendable} message
   * @param {SendOptions} options
   */
  #sendsStreams(message, { signal, configuration }) {
    const { streamsAnswers, blocks } = /** @type {Dialect} */ (this.#dialect);
    if (typeof message !== 'string' && message.taskId && !streamsAnswers) return false;
    if (signal) return this.#streaming !== false;
    return this.#streaming === true && blocks(configuration);
  }

  /**
   * Sends a message and streams the events of its task. Aborting the signal cancels the task as soon as its id is known.
   * The stream goes on to the event that ends the task: usually `canceled`, but the task may have completed by then. If
   * the signal is aborted before the first event is asked for, nothing is sent and the stream throws the signal's reason.
   * @param {Sendable} message
   * @param {SendOptions} [options]
   */
  subscribe(message, options = {}) {
    const params = () => this.#sendParams(message, options);
    return new TaskStream(this.#streams, 'stream', params, undefined, options.signal);
  }

  /**
   * Streams a running task. The first event is the task as it is now.
   * @param {string} id
   * @param {{ signal?: AbortSignal }} [options]
   */
  resubscribe(id, { signal } = {}) {
    return new TaskStream(this.#streams, 'resubscribe', () => ({ id }), id, signal);
  }

  /**
   * @param {string} id
   * @param {{ historyLength?: number }} [options]
   * @returns {Promise<Task>}
   */
  get(id, options) {
    return this.#task('get', { id, ...options }, this.#limits.timeout);
  }

  /**
   * Cancels a task. The state of the resulting task tells whether it has ended already. To cancel a canceled task is no
   * error in any version.
   * @param {string} id
   * @param {{ reason?: string }} [options] why; sent in the request's metadata, since the protocol has no other place for it
   * @returns {Promise<Task>}
   */
  cancel(id, { reason } = {}) {
    return this.#stop(id, reason, (state) => state === 'canceled');
  }

  /**
   * @param {object} [filter] the protocol's own: `contextId`, `pageSize`, `pageToken`, …
   * @returns {Promise<{ tasks: Task[], nextPageToken?: string }>}
   */
  async list(filter = {}) {
    const result = await this.#request('list', filter, this.#limits.timeout);
    return { tasks: readTasks(result), nextPageToken: textOf(getOwn(result, 'nextPageToken')) };
  }

  /** Closes the transport, if the client has one. Streams end as if the connection had broken; tasks go on. */
  close() {
    this.#connection.close?.();
  }

  // --- For streams ----------------------------------------------------------------------------

  /** @returns {import('./task-stream.js').StreamClient} */
  #side() {
    const { grace, linger, retry, task: room } = this.#limits;
    return {
      begin: () => this.#begin(),
      view: () => new View(/** @type {TaskTable} */ (this.#table), `${++this.#views}`, room),
      read: (frame) => readEvent(this.#result(frame)),
      open: (operation, params, abortable) => this.#open(operation, params, abortable),
      get: (id) => this.get(id),
      cancel: (id, reason) => this.#cancel(id, reason),
      drop: (event) => {
        this.#dropped++;
        invokeReportingErrors(this.#options.onDropped, event);
      },
      grace,
      linger,
      retry,
    };
  }

  // --- Requests --------------------------------------------------------------------------------------

  /** Loads the core and finds the agent, once. After a failure the next request tries again. */
  #begin() {
    this.#begun ??= this.#prepare().catch((error) => {
      this.#begun = undefined;
      throw error;
    });
    return this.#begun;
  }

  async #prepare() {
    const { version, limits } = this.#options;
    await ready;
    this.#table = new TaskTable(limits, {
      onFailure: () => {
        this.#begun = undefined;
        throw new AbpError('INTERNAL_ERROR', 'The core failed', { retryable: true });
      },
    });
    if (version) {
      this.#dialect = DIALECTS[version];
      return;
    }
    const card = await this.card();
    this.#streaming = getOwn(getOwn(card, 'capabilities'), 'streaming') === true;
    const { dialect, url, rest = false } = spokenAt(card);
    this.#dialect = dialect;
    this.#connection.use?.(url, rest);
  }

  /** @param {Sendable} message @param {SendOptions} options */
  #sendParams(message, { configuration, metadata }) {
    const given =
      typeof message === 'string'
        ? { parts: [{ text: message, mediaType: 'text/plain' }] }
        : message;
    const read = readMessage({ role: 'user', messageId: newId(), ...given });
    const { message: print, sendParams } = /** @type {Dialect} */ (this.#dialect);
    return {
      ...sendParams(read),
      message: print(read),
      ...(configuration && { configuration }),
      ...(metadata && { metadata }),
    };
  }

  /**
   * @param {Operation} operation
   * @param {object} params
   * @param {boolean} [abortable]
   */
  #open(operation, params, abortable = true) {
    const dialect = /** @type {Dialect} */ (this.#dialect);
    const method = dialect.methods[operation];
    if (!method) {
      throw new AbpError(
        'NOT_SUPPORTED',
        `A2A ${dialect.name} has no method to ${operation} tasks`,
      );
    }
    const request = { jsonrpc: '2.0', id: ++this.#requests, method, params };
    const stream = operation === 'stream' || operation === 'resubscribe';
    return this.#connection.open(dialect, request, { stream, abortable });
  }

  /**
   * @param {Operation} operation
   * @param {object} params
   * @param {number} timeout ms
   */
  async #request(operation, params, timeout) {
    await this.#begin();
    return this.#result(await within(timeout, this.#open(operation, params)));
  }

  /**
   * @param {Operation} operation
   * @param {object} params
   * @param {number} timeout
   * @returns {Promise<Task>}
   */
  async #task(operation, params, timeout) {
    const result = await this.#request(operation, params, timeout);
    if (!getOwn(result, 'status')) throw malformed(operation);
    return readTask(result);
  }

  /**
   * Cancels a task, and fetches it if the cancel is refused.
   * @param {string} id
   * @param {string | undefined} reason
   * @param {(state: State) => boolean} isFine whether the refusal is no error when the task is in this state
   */
  async #stop(id, reason, isFine) {
    try {
      return await this.#cancel(id, reason);
    } catch (error) {
      if (getOwn(error, 'code') !== 'TASK_NOT_CANCELABLE') throw error;
      const task = await this.get(id).catch(() => undefined);
      if (!task || !isFine(task.status.state)) throw error;
      return task;
    }
  }

  /**
   * @param {string} id
   * @param {string | undefined} reason
   */
  #cancel(id, reason) {
    const { timeout, grace } = this.#limits;
    const params = { id, ...(reason && { metadata: { reason } }) };
    // An agent may wait for its executor before it answers.
    return this.#task('cancel', params, Math.max(timeout, grace));
  }

  /**
   * @param {unknown} frame
   * @returns {unknown} its result
   */
  #result(frame) {
    const error = getOwn(frame, 'error');
    if (error) throw readError(/** @type {Dialect} */ (this.#dialect), error);
    const result = getOwn(frame, 'result');
    if (result === undefined) throw malformed('a request');
    return result;
  }
}

/** @param {State} state */
const hasEnded = (state) => ended(readState(state));

/** @param {string} what */
const malformed = (what) =>
  new AbpError('INVALID_AGENT_RESPONSE', `The agent's answer to ${what} is malformed`);

/**
 * The dialect and the URL for an agent: those of its first interface that we speak.
 * @param {unknown} card
 * @returns {{ dialect: Dialect, url?: string, rest?: boolean }}
 */
function spokenAt(card) {
  const url = getOwn(card, 'url');
  // The URL in the gem's cards is whatever the author typed. The gem's clients use the card's own address.
  if (Array.isArray(getOwn(card, 'interfaces'))) return { dialect: DIALECTS.gem };
  const interfaces = getOwn(card, 'supportedInterfaces');
  if (!Array.isArray(interfaces)) {
    const others = getOwn(card, 'additionalInterfaces');
    const preferred = getOwn(card, 'preferredTransport') ?? 'JSONRPC';
    const all = [{ url, transport: preferred }, ...(Array.isArray(others) ? others : [])];
    const found = all.find((one) => getOwn(one, 'transport') === 'JSONRPC');
    if (found) return { dialect: DIALECTS['0.3'], url: textOf(getOwn(found, 'url')) };
  } else {
    for (const one of interfaces) {
      const version = /^\d+\.\d+/.exec(textOf(getOwn(one, 'protocolVersion')) ?? '')?.[0] ?? '';
      const binding = getOwn(one, 'protocolBinding');
      const rest = binding === 'HTTP+JSON' && version === '1.0';
      if (!rest && binding !== 'JSONRPC') continue;
      if (!Object.hasOwn(DIALECTS, version)) continue;
      const dialect = DIALECTS[/** @type {keyof typeof DIALECTS} */ (version)];
      return { dialect, url: textOf(getOwn(one, 'url')), rest };
    }
  }
  throw new AbpError(
    'NOT_SUPPORTED',
    'The agent card has no interface of a known version and binding',
  );
}
