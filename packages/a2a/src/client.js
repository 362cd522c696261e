/**
 * The client of A2A agents: tasks as promises and async iterators, cancelled by an AbortSignal. dialects.js has what
 * differs between versions, client-http.js and client-port.js the ways to the agent, and the core decides what happens
 * to a task.
 */
import * as core from './tasks-boundary.js';
import { mistyped, requireOf, requireOptions } from '../../../js/common/check-options.js';
import { AbpError, invokeReportingErrors } from '../../../js/common/errors.js';
import { exactOrigin } from '../../../js/common/origins.js';
import { firstOf, getOwn, isObject, limitOf, textOf } from '../../../js/common/values.js';
import { PortConnection } from './client-port.js';
import { TaskTable, ready } from './tasks-core.js';
import { DIALECTS, readError, readEvent, readMessage, readTask, readTasks } from './dialects.js';
import { MAX_EXTENSIONS } from './port-messages.js';
import { HttpConnection, within } from './client-http.js';
import { TaskStream } from './task-stream.js';
import { TaskView } from './task-view.js';
import { REPEATS, newId } from './ids.js';
import { requireExactly, requireTextList } from './exact-options.js';

/** @import { Dialect, Event, Message, Operation, Part, State, Task } from './dialects.js' */

/**
 * @typedef {object} ClientLimits Each is optional and has a default.
 * @property {number} [timeout] ms for an answer to `get`, `cancel`, `list` and for the card (30000)
 * @property {number} [grace] ms that an agent has to end a task after its cancel (30000)
 * @property {number} [retry] ms before a stream that brought nothing is opened again; each time twice as long, up to
 *   30 s (1000)
 * @property {number} [linger] ms that a stream may stay open after its task has ended (5000)
 * @property {number} [outage] ms that an agent may be out of reach before its streams give up (60000)
 * @property {number} [maxEvent] characters of one event of a stream (134217728)
 * @property {number} [maxBody] bytes of one answer (268435456)
 * @property {number} [maxTask] characters of all artifacts of a streamed task together (67108864)
 * @property {number} [maxTasks] streams at once (4096)
 * @property {number} [maxArtifacts] artifacts of a streamed task (4096)
 * @property {number} [maxQueue] over a transport, events that wait to be read (4096)
 */

/**
 * @typedef {object} ClientOptions What a client of an A2A agent may be given.
 * @property {Dialect['name']} [version] of the agent. If it is given, the URL is that for requests, and no card
 *   is fetched
 * @property {HeadersInit} [headers] sent with every request to the URL's origin, and to no other
 * @property {typeof fetch} [fetch] used in place of the global `fetch`
 * @property {string[] | ((url: URL) => boolean)} [endpoints] origins besides the URL's own to which the agent's card may lead
 *   requests, or what says of the URL of an interface, with `true`, that it may (none)
 * @property {string[]} [extensions] URIs of the extensions that this client knows, declared with every request
 * @property {ClientLimits} [limits] of what the agent's answers may hold
 * @property {(event: Event) => void} [onDropped] called with events that came after the end of their task
 */

/**
 * @typedef {object} SendOptions How a message is sent.
 * @property {AbortSignal} [signal] cancels the task
 * @property {any} [configuration] the protocol's own
 * @property {import('./dialects.js').Metadata} [metadata] sent with the message
 */

/** @typedef {string | Partial<Message> & { parts: Part[] }} Sendable text, or a message: its `taskId` continues a task */

const WHO = 'createTaskClient';
/** Interfaces of a card that are looked at. */
const MAX_INTERFACES = 64;
/** @type {import('../../../js/common/check-options.js').Kinds<ClientLimits>} */
// prettier-ignore
const LIMITS = {
  grace: 'a number', linger: 'a number', maxArtifacts: 'a number', maxBody: 'a number', maxEvent: 'a number',
  maxQueue: 'a number', maxTask: 'a number', maxTasks: 'a number', outage: 'a number', retry: 'a number', timeout: 'a number',
};
/** @type {import('../../../js/common/check-options.js').Kinds<ClientOptions>} */
// prettier-ignore
const OPTIONS = {
  endpoints: 'a function or an object', extensions: 'an object', fetch: 'a function', headers: 'an object',
  limits: 'an object of numbers', onDropped: 'a function', version: '"0.3", "1.0" or "gem"',
};
/** @type {import('../../../js/common/check-options.js').Kinds<SendOptions>} */
// prettier-ignore
const SEND_OPTIONS = {
  configuration: 'anything', metadata: 'an object', signal: 'an AbortSignal',
};
/** @type {import('../../../js/common/check-options.js').Kinds<{ signal?: AbortSignal, lastEventId?: string }>} */
// prettier-ignore
const RESUBSCRIBE_OPTIONS = {
  lastEventId: 'a string', signal: 'an AbortSignal',
};

/**
 * A client of one agent. Nothing is sent before the first request.
 * @param {string | URL | import('../../../js/transports/transport.js').Transport} to the URL of the agent, of its card, or with
 *   `version` of where it takes requests; or a transport to an agent in another window, worker or process
 * @param {ClientOptions} [options]
 */
export const createTaskClient = (to, options) => new TaskClient(to, options);

/** A client of an A2A agent, as `createTaskClient` returns it. */
export class TaskClient {
  #options;
  #limits;
  /** @type {import('./client-http.js').Binding} */
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
  /** That of the interface in use: 1.0 has it in every request. @type {string | undefined} */
  #tenant;
  /** Whether the agent recognises a message that comes again. */
  #repeats = false;
  /** Requests and views so far, which are named by that. */
  #named = 0;
  /** The streams that are open, by their tasks in the table. @type {Map<core.Task, TaskStream>} */
  #watched = new Map();
  #dropped = 0;
  #streams;

  /**
   * @param {string | URL | import('../../../js/transports/transport.js').Transport} to
   * @param {ClientOptions} [options]
   */
  constructor(to, options = {}) {
    requireOptions(WHO, options, {}, true);
    const { version, headers, fetch, extensions = [], limits = {} } = options;
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
      grace: limitOf(limits.grace ?? 0) || core.TASKS_DEFAULT_GRACE_MS,
      event: limits.maxEvent ?? 2 ** 27,
      body: limits.maxBody ?? 2 ** 28,
      task: limits.maxTask ?? 2 ** 26,
      queue: limits.maxQueue ?? 4096,
    };
    const negotiation = {
      extensions,
      onExtensions: (/** @type {string[]} */ used) =>
        void (this.#extensions = used.filter((uri) => uri !== REPEATS)),
    };
    this.#connection =
      typeof to === 'string' || to instanceof URL
        ? new HttpConnection(
            new URL(to, globalThis.location?.href),
            { fetch, headers, endpoints, ...negotiation },
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
    checkSend('send', message, options);
    const { signal } = options;
    signal?.throwIfAborted();
    await this.#begin();
    signal?.throwIfAborted();
    const streams = this.#sendsStreams(message, options);
    const stream = this.#stream(streams ? 'stream' : 'send', message, options);
    const { value } = await stream.next();
    if (!streams) {
      if (value?.kind !== 'message' && value?.kind !== 'task') throw malformed('send');
      // Without a stream the answer is all there is, unless it is to be cancelled.
      if (!signal?.aborted) await stream.return();
    }
    while (!(await stream.next()).done);
    return /** @type {Task | Message} */ (stream.task ?? stream.message);
  }

  /** @param {Sendable} message @param {SendOptions} options */
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
    checkSend('subscribe', message, options);
    return this.#stream('stream', message, options);
  }

  /** @param {'send' | 'stream'} operation @param {Sendable} message @param {SendOptions} options */
  #stream(operation, message, { configuration, metadata, signal }) {
    // Each attempt sends the same message, whatever its owner does with it meanwhile: it is known by its id and its content.
    const messageId = newId();
    /** @type {object | undefined} */
    let sent;
    const params = () => {
      if (sent) return sent;
      const given =
        typeof message === 'string'
          ? { parts: [{ text: message, mediaType: 'text/plain' }] }
          : message;
      const read = readMessage({ role: 'user', messageId, ...given });
      const dialect = /** @type {Dialect} */ (this.#dialect);
      const about = { ...dialect.sendParams(read), message: dialect.message(read) };
      const how = { ...(configuration && { configuration }), ...(metadata && { metadata }) };
      return (sent = JSON.parse(JSON.stringify({ ...about, ...how })));
    };
    return new TaskStream(this.#streams, operation, params, undefined, signal);
  }

  /**
   * Streams a running task. The first event is the task as it is now; with the `lastEventId` of an earlier stream, and an
   * agent that has numbers, it is the one that came after.
   * @param {string} id
   * @param {{ signal?: AbortSignal, lastEventId?: string }} [options]
   */
  resubscribe(id, options = {}) {
    requireOptions('resubscribe', options, RESUBSCRIBE_OPTIONS, true);
    const { signal, lastEventId } = options;
    if (typeof id !== 'string') throw mistyped('resubscribe', 'the id', 'a string');
    return new TaskStream(this.#streams, 'resubscribe', () => ({ id }), id, signal, lastEventId);
  }

  /** @param {string} id @param {{ historyLength?: number }} [options] @returns {Promise<Task>} */
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
  async cancel(id, { reason } = {}) {
    try {
      return await this.#cancel(id, reason);
    } catch (error) {
      if (getOwn(error, 'code') !== 'TASK_NOT_CANCELABLE') throw error;
      const task = await this.get(id).catch(() => undefined);
      if (task?.status.state !== 'canceled') throw error;
      return task;
    }
  }

  /**
   * @param {object} [filter] the protocol's own: `contextId`, `pageSize`, `pageToken`, …
   * @returns {Promise<{ tasks: Task[], nextPageToken?: string, totalSize?: number }>} `totalSize` is how many there are on all
   *   pages, where the agent says so
   */
  async list(filter = {}) {
    const result = await this.#request('list', filter, this.#limits.timeout);
    const total = getOwn(result, 'totalSize');
    return {
      tasks: readTasks(result),
      nextPageToken: textOf(getOwn(result, 'nextPageToken')),
      totalSize: typeof total === 'number' ? total : undefined,
    };
  }

  /** Closes the transport, if the client has one. Streams end as if the connection had broken; tasks go on. */
  close() {
    this.#connection.close?.();
  }

  // --- For streams ----------------------------------------------------------------------------

  /** @returns {import('./task-stream.js').StreamClient} */
  #side() {
    const { task: room } = this.#limits;
    return {
      begin: () => this.#begin(),
      view: (stream) => {
        const view = new TaskView(/** @type {TaskTable} */ (this.#table), `${++this.#named}`, room);
        this.#watched.set(view.handle, stream);
        view.table.wait(1);
        return view;
      },
      kind: (known) => {
        if (!known) return core.WATCH_MESSAGE | (this.#repeats ? core.WATCH_REPEATS : 0);
        const { lasting } = /** @type {Dialect} */ (this.#dialect);
        return core.WATCH_TASK | (lasting ? core.WATCH_LASTING : 0);
      },
      forget: (view) => {
        if (this.#watched.delete(view.handle)) view.table.wait(-1);
        view.forget();
      },
      read: (response) => readEvent(this.#result(response)),
      open: (...given) => this.#open(...given),
      get: (id) => this.get(id),
      cancel: (id, reason) => this.#cancel(id, reason),
      drop: (event) => {
        this.#dropped++;
        invokeReportingErrors(this.#options.onDropped, event);
      },
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
    await ready();
    this.#table = new TaskTable(limits, {
      onDue: (task, verdict) => this.#watched.get(task)?.act(verdict),
      onFailure: () => {
        this.#begun = undefined;
        const streams = [...this.#watched.values()];
        this.#watched.clear();
        for (const stream of streams) stream.lost();
      },
    });
    if (version) {
      this.#dialect = DIALECTS[version];
      return;
    }
    const card = await this.card();
    const capabilities = getOwn(card, 'capabilities');
    this.#streaming = getOwn(capabilities, 'streaming') === true;
    const theirs = firstOf(getOwn(capabilities, 'extensions'), MAX_EXTENSIONS);
    this.#repeats = theirs.some((extension) => getOwn(extension, 'uri') === REPEATS);
    const { extensions = [] } = this.#options;
    // Not declared to others: their answers to browsers may not allow for the header.
    if (this.#repeats) this.#connection.extensions = [...extensions, REPEATS];
    const spoken = interfacesOf(card);
    const { dialect, tenant } = this.#connection.use?.(spoken) ?? spoken[0];
    this.#tenant = tenant;
    this.#dialect = dialect;
  }

  /** @param {Operation} operation @param {object} params @param {boolean} [abortable] @param {string} [lastEventId] */
  #open(operation, params, abortable = true, lastEventId = undefined) {
    const dialect = /** @type {Dialect} */ (this.#dialect);
    const method = dialect.methods[operation];
    if (!method) {
      throw new AbpError(
        'NOT_SUPPORTED',
        `A2A ${dialect.name} has no method to ${operation} tasks`,
      );
    }
    const tenant = this.#tenant;
    const about = tenant ? { tenant, ...params } : params;
    const request = { jsonrpc: '2.0', id: ++this.#named, method, params: about };
    const stream = operation === 'stream' || operation === 'resubscribe';
    return this.#connection.open(dialect, request, { stream, abortable, lastEventId });
  }

  /** @param {Operation} operation @param {object} params @param {number} timeout ms */
  async #request(operation, params, timeout) {
    await this.#begin();
    return this.#result(await within(timeout, this.#open(operation, params)));
  }

  /** @param {Operation} operation @param {object} params @param {number} timeout @returns {Promise<Task>} */
  async #task(operation, params, timeout) {
    const result = await this.#request(operation, params, timeout);
    if (!getOwn(result, 'status')) throw malformed(operation);
    return readTask(result);
  }

  /** @param {string} id @param {string | undefined} reason */
  #cancel(id, reason) {
    const { timeout, grace } = this.#limits;
    const params = { id, ...(reason && { metadata: { reason } }) };
    // An agent may wait for its executor before it answers.
    return this.#task('cancel', params, Math.max(timeout, grace));
  }

  /** @param {unknown} response @returns {unknown} its result */
  #result(response) {
    const error = getOwn(response, 'error');
    if (error) throw readError(/** @type {Dialect} */ (this.#dialect), error);
    const result = getOwn(response, 'result');
    if (result === undefined) throw malformed('a request');
    return result;
  }
}

/** @param {string} who @param {Sendable} message @param {SendOptions} options */
function checkSend(who, message, options) {
  const isMessage = isObject(message) && Array.isArray(message.parts);
  if (typeof message !== 'string' && !isMessage)
    throw mistyped(who, 'the message', 'a string or { parts }');
  requireExactly(who, options, SEND_OPTIONS);
  const { configuration = {} } = options;
  requireOf(who, 'configuration', 'an object', configuration);
}

/** @param {unknown} given @returns {import('./client-http.js').Endpoints} */
function readEndpoints(given = []) {
  if (typeof given === 'function') return /** @type {(url: URL) => boolean} */ (given);
  if (!Array.isArray(given)) throw mistyped(WHO, 'endpoints', 'a list of origins or a function');
  return given.map((origin) => exactOrigin(origin));
}

/** @param {string} what */
const malformed = (what) =>
  new AbpError('INVALID_AGENT_RESPONSE', `The agent's answer to ${what} is malformed`);

/** @typedef {import('./client-http.js').Interface & { dialect: Dialect, tenant?: string }} Spoken an interface that we speak */

/**
 * The interfaces of an agent that we speak, the preferred one first.
 * @param {unknown} card
 * @returns {Spoken[]} at least one
 */
function interfacesOf(card) {
  // The URL in the gem's cards is whatever the author typed. The gem's clients use the card's own address.
  if (Array.isArray(getOwn(card, 'interfaces'))) return [{ dialect: DIALECTS.gem, rest: false }];
  const listed = getOwn(card, 'supportedInterfaces');
  const spoken = Array.isArray(listed)
    ? firstOf(listed, MAX_INTERFACES).flatMap(spokenAt)
    : legacyInterfaces(card).flatMap(spokenAt);
  if (spoken.length > 0) return spoken;
  throw new AbpError(
    'NOT_SUPPORTED',
    'The agent card lists no interface with a supported version and binding',
  );
}

/** @param {unknown} one of the interfaces of a card of 1.0 @returns {Spoken[]} none if we do not speak it */
function spokenAt(one) {
  const version = /^\d+\.\d+/.exec(textOf(getOwn(one, 'protocolVersion')) ?? '')?.[0] ?? '';
  const binding = getOwn(one, 'protocolBinding');
  const rest = binding === 'HTTP+JSON' && version === '1.0';
  if ((!rest && binding !== 'JSONRPC') || !Object.hasOwn(DIALECTS, version)) return [];
  const dialect = DIALECTS[/** @type {keyof typeof DIALECTS} */ (version)];
  const tenant = textOf(getOwn(one, 'tenant'));
  return [{ dialect, url: textOf(getOwn(one, 'url')), tenant, rest }];
}

/** Those of a card of 0.3, as 1.0 writes them. @param {unknown} card */
const legacyInterfaces = (card) =>
  [
    { url: getOwn(card, 'url'), transport: getOwn(card, 'preferredTransport') ?? 'JSONRPC' },
    ...firstOf(getOwn(card, 'additionalInterfaces'), MAX_INTERFACES),
  ]
    .map((one) => ({ url: getOwn(one, 'url'), protocolBinding: getOwn(one, 'transport') }))
    .map((one) => ({ ...one, protocolVersion: '0.3' }));
