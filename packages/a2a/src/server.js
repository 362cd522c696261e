/** An A2A agent: its interfaces, its options, its start and its end. */
import { AbpError, isRecord, loadOnce, milliseconds, mistyped, requireOf } from 'abp-bridge/driver';
import { Backlog } from './backlog.js';
import { printCard } from './card.js';
import { checkCard } from './check-card.js';
import { requireExactly, requireTextList } from './exact-options.js';
import { httpListener, readOrigins, respond } from './http.js';
import { Operations } from './operations.js';
import { serveTransport } from './port.js';
import { BUSY_FOR, asError, away, isAway } from './refusals.js';
import { refuse } from './requests.js';
import { Runs } from './runs.js';
import { ShownTasks, endStreams } from './shown-tasks.js';
import { processStore } from './store/process-store.js';
import { ready } from './tasks-core.js';

/** @import { Message } from './dialects.js' */
/** @import { Caller, Reply } from './reply.js' */
/** @import { Pushes } from './store/push.js' */
/** @import { Reports } from './store/telemetry.js' */
/** @import { TaskLogs } from './store/store.js' */
/** @import { ExecutorContext } from './runs.js' */
/** @import { RequestInfo, Said, StoredTask } from './task.js' */

/**
 * @typedef {'send' | 'get' | 'list' | 'cancel' | 'subscribe'} Access the operation of a request on
 *   an existing task
 */

/**
 * @typedef {object} TaskServerOptions Each is optional and has a default.
 * @property {number} [grace] ms that a cancel waits for the executor to decide how its task ends;
 *   with 0 the task is canceled at once, whatever the executor does (0)
 * @property {number} [maxRequest] characters of a request (4194304)
 * @property {number} [maxUnread] bytes that may wait for a slow reader of a stream; a reader with
 *   more is disconnected, and its task goes on (4194304)
 * @property {number} [maxBacklog] bytes that may wait for all readers; above it, the reader that
 *   has waited longest is disconnected (268435456)
 * @property {number} [keepAlive] ms between signs of life in a slow answer, for proxies that end
 *   silent connections; 0 for none (15000)
 * @property {number} [replyTimeout] ms for the agent's `reply`; 0 for no limit (60000)
 * @property {boolean} [repeats] whether a message that its user sends again is accepted once even
 *   if the client does not declare the extension for that; clients must then give each message an
 *   id of its own (false)
 * @property {string[] | '*'} [origins] whose pages may send requests over HTTP (only the agent's
 *   own)
 * @property {string[] | '*'} [hosts] accepted host names of the agent over HTTP, with or without a
 *   port (names of this machine for requests to a loopback address, any name for others)
 * @property {(task: StoredTask, access: Access, request: import('./task.js').RequestInfo) =>
 *   boolean | Promise<boolean>} [authorize] whether a request may access a task in that way. Only
 *   `true`, or a promise of it, permits; otherwise the task is not found (everything is permitted)
 * @property {import('./tasks-core.js').TaskLimits & ServerLimits} [limits] of tasks, subscribers
 *   and messages
 * @property {import('./store/push.js').Push} [push] sends push notifications, by
 *   `pushNotifications` of `@abp-bridge/a2a-store` (requests for them are rejected)
 * @property {import('./store/telemetry.js').Telemetry} [telemetry] metrics and traces, by
 *   `openTelemetry` of `@abp-bridge/a2a-store` (none)
 * @property {import('./store/index.js').TaskStore} [store] stores tasks that outlive the process,
 *   by `taskStore` of `@abp-bridge/a2a-store` (tasks are in memory, and end with the process)
 */

/**
 * @typedef {object} ServerLimits Limits of a server for its clients.
 * @property {number} [maxTask] characters of a task: its artifacts and its messages, as JSON
 *   (67108864)
 * @property {number} [maxStored] characters of all tasks; finished ones are forgotten to make room
 *   (268435456)
 * @property {number} [maxAnswer] characters of an answer; a page of a list ends before it exceeds
 *   them (67108864)
 */

/** Defaults of TaskServerOptions. */
const DEFAULTS = {
  maxRequest: 4 << 20,
  maxUnread: 4 << 20,
  maxBacklog: 256 << 20,
  keepAlive: 15_000,
  replyTimeout: 60_000,
  repeats: false,
};
const DEFAULT_LIMITS = { maxTask: 64 << 20, maxStored: 256 << 20, maxAnswer: 64 << 20 };

/**
 * The parts of an agent, for each other. `phase` says how far its end has progressed.
 * @typedef {object} Parts
 * @property {Agent} agent
 * @property {TaskServerOptions & typeof DEFAULTS} options
 * @property {import('./tasks-core.js').TaskLimits & typeof DEFAULT_LIMITS} limits
 * @property {number} grace
 * @property {{ draining: boolean, closed: boolean }} phase
 * @property {ShownTasks} shown
 * @property {TaskLogs} logs
 * @property {Runs} runs
 * @property {Operations} operations
 * @property {Pushes} [pushes]
 * @property {Reports} [reports]
 */

/** A server of A2A tasks. */
export class TaskServer {
  #agent;
  #options;
  #limits;
  /** @type {Pushes | undefined} */
  #pushes;
  /** @type {Reports | undefined} */
  #reports;
  /** The parts, once the core is loaded. @type {Parts | undefined} */
  #parts;
  #phase = { draining: false, closed: false };
  /** @type {Date | undefined} */
  #since;

  /**
   * Use {@link createTaskServer}.
   * @param {Agent} agent
   * @param {TaskServerOptions} options
   */
  constructor(agent, options) {
    if (typeof agent?.card?.name !== 'string' || typeof agent.execute !== 'function')
      throw new AbpError(
        'INVALID_PARAMS',
        'createTaskServer needs card: { name, … } and execute(context)',
      );
    checkOptions(agent, options);
    checkCard(agent.card, options.push !== undefined);
    this.#agent = agent;
    const given = { ...DEFAULTS, ...options };
    this.#options = {
      ...given,
      origins: readOrigins(options.origins),
      keepAlive: milliseconds(given.keepAlive),
      replyTimeout: milliseconds(given.replyTimeout),
    };
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
    // Their public types hide the interface between them and an agent.
    const { push, telemetry } = /** @type {any} */ (options);
    this.#pushes = push?.attach(options.store !== undefined);
    this.#reports = telemetry?.attach(() => this.counters);

    const http = { ...this.#options, backlog: new Backlog(given.maxBacklog) };
    /**
     * A listener for `http.createServer`, and middleware for Express: passes requests other than
     * A2A to `next`. Authentication that runs before it sets `user` on the request.
     */
    this.handle = httpListener(this, http);
    /**
     * For servers in the style of `fetch`: Hono, a service worker.
     * @param {Request} request
     * @param {{ user?: unknown }} [by] the sender, if authenticated
     * @returns {Promise<Response>}
     */
    this.fetch = (request, { user } = {}) => respond(this, request, http, user);
    // Tasks that other processes left are taken over before the first request.
    if (options.store) this.#whenReady().catch(() => {});
  }

  /**
   * Serves the peer of a transport: a port, a window, a socket. See packages/a2a/src/port.js.
   * @param {import('abp-bridge/driver').Transport} transport
   * @param {{ user?: unknown }} [by] the peer, if authenticated
   * @returns {() => void} stops serving it; the tasks go on
   */
  serve(transport, { user } = {}) {
    return serveTransport(this, transport, user);
  }

  /** Maximum characters of a request. */
  get maxRequest() {
    return this.#options.maxRequest;
  }

  /**
   * True if an interface of the card has this tenant.
   * @param {string} tenant
   */
  hasTenant(tenant) {
    const interfaces = /** @type {import('./card.js').AgentCard} */ (this.#agent.card)
      .supportedInterfaces;
    return interfaces?.some((one) => one.tenant === tenant) ?? false;
  }

  /** When the card last changed. */
  get since() {
    return (this.#since ??= new Date());
  }

  /** Counts for debugging. */
  get counters() {
    const { shown, logs, runs } = this.#parts ?? {};
    if (!shown) return { streams: 0 };
    const streams = [...shown].reduce((sum, { streams }) => sum + streams.size, 0);
    const { live, ...counters } = shown.table.counters();
    const stored = this.#options.store && logs?.counters;
    return { ...counters, live: live + (runs?.late ?? 0), ...stored, streams };
  }

  /**
   * Not before the first use: where a module is evaluated, randomness and timers may be missing.
   */
  #whenReady = loadOnce(async () => {
    await ready();
    this.#parts ??= this.#begin();
    await this.#parts.logs.open();
  });

  #begin() {
    const [agent, options, limits, phase] = [this.#agent, this.#options, this.#limits, this.#phase];
    const { grace = 0, store } = options;
    const parts = /** @type {Parts} */ ({ agent, options, limits, grace, phase });
    Object.assign(parts, { pushes: this.#pushes, reports: this.#reports });
    parts.shown = new ShownTasks(parts);
    parts.runs = new Runs(parts);
    const { attach } = /** @type {typeof processStore} */ (store ?? processStore);
    parts.logs = attach(parts);
    parts.operations = new Operations(parts);
    return parts;
  }

  /**
   * Ends its work before the process ends: rejects new tasks and streams with status 503 and
   * `Retry-After`, waits for running executors, and then closes. With a `store` its streams end at
   * once, so that clients resume elsewhere, and tasks that are aborted at the end go to other
   * processes.
   * @param {{ ms?: number }} [options] time to wait for running executors (30000)
   * @returns {Promise<void>} resolves when the agent is closed, and nothing more is stored
   */
  async drain({ ms = 30_000 } = {}) {
    this.#phase.draining = true;
    const { runs, logs } = this.#parts ?? {};
    if (this.#options.store) this.#endStreams();
    await runs?.idle(milliseconds(ms));
    this.close();
    await logs?.close();
  }

  /** True if it has begun to close: for a readiness probe of the process. */
  get draining() {
    return this.#phase.draining || this.#phase.closed;
  }

  #endStreams() {
    for (const entry of this.#parts?.shown ?? []) endStreams(entry);
  }

  /**
   * Cancels every task, ends every stream, and rejects further requests. Tasks of a `store` are not
   * cancelled: other processes take them over; `await drain({ ms: 0 })` resolves when they can.
   */
  close() {
    this.#phase.closed = true;
    this.#pushes?.close();
    const { operations, logs, shown } = this.#parts ?? {};
    operations?.close();
    if (!this.#options.store) logs?.endAll('The agent closes');
    void logs?.close();
    this.#endStreams();
    for (const { waiting } of shown ?? []) for (const fail of waiting.values()) fail(away());
    shown?.table.rest();
  }

  /**
   * The agent card of a version.
   * @param {import('./card.js').CardVersion | undefined} version default: the one that the agent
   *   prefers
   * @param {string} url the agent's URL, for interfaces without one
   */
  card(version, url) {
    return printCard(this.#agent.card, version, url, this.#pushes !== undefined);
  }

  /**
   * Answers one request.
   * @param {string} text
   * @param {Caller} caller
   * @param {Reply} reply
   * @param {(body: any) => object} [read] converts a body to a JSON-RPC request
   */
  async receive(text, caller, reply, read = (body) => body) {
    const { version } = caller;
    try {
      await this.#whenReady();
    } catch (thrown) {
      const error = asError(thrown);
      const { code, message } = error;
      if (isAway(error)) reply.unavailable?.(BUSY_FOR);
      refuse(reply, version, isAway(error) ? code : 'INTERNAL_ERROR', message);
      return;
    }
    const { operations } = /** @type {Parts} */ (this.#parts);
    let request;
    try {
      request = read(JSON.parse(text));
    } catch {
      refuse(reply, version, 'PARSE_ERROR', 'Invalid JSON payload.');
      return;
    }
    await operations.answer(request, caller, reply);
  }
}

/**
 * @typedef {object} Agent The agent that a card describes.
 * @property {any} card the agent card: `name`, `description`, `version`, `skills`, `capabilities`,
 *   …, in the form of 1.0; without interfaces and `url`, it gets those of the URL it was fetched
 *   from
 * @property {(context: ExecutorContext) => unknown} execute works on a message. The task is
 *   `working` when it is called and `completed` when it returns, unless it emits another state; if
 *   it throws, the task is `failed`. It may return an artifact: a text, a part, a list of these, or
 *   `{ parts, … }`. If it is a generator or returns an async iterable, the values are chunks of
 *   artifacts. Any other return value makes the task `failed`
 * @property {(asked: { message: Message, request: RequestInfo, signal: AbortSignal }) => Said |
 *   undefined | null | Promise<Said | undefined | null>} [reply] answers a message that would begin
 *   a task with another message instead; `undefined` begins the task. An error that it throws is
 *   sent to the client. The signal fires when no client waits for the reply any more
 */

/**
 * Creates an A2A agent.
 * @param {Agent} agent
 * @param {TaskServerOptions} [options]
 */
export const createTaskServer = (agent, options = {}) => new TaskServer(agent, options);

/**
 * @type {import('abp-bridge/driver').Kinds<import('./tasks-core.js').TaskLimits
 *   & ServerLimits>}
 */
const LIMITS = {
  maxAnswer: 'a number',
  maxArtifacts: 'a number',
  maxStored: 'a number',
  maxTask: 'a number',
  maxTasks: 'a number',
  rememberFor: 'a number',
  remembered: 'a number',
};
/** @type {import('abp-bridge/driver').Kinds<TaskServerOptions>} */
const OPTIONS = {
  authorize: 'a function',
  grace: 'a number',
  hosts: '"*" or an object',
  keepAlive: 'a number',
  limits: 'an object of numbers',
  maxBacklog: 'a number',
  maxRequest: 'a number',
  maxUnread: 'a number',
  origins: '"*" or an object',
  push: 'an object',
  repeats: 'a boolean',
  replyTimeout: 'a number',
  store: 'an object',
  telemetry: 'an object',
};

/** @type {import('abp-bridge/driver').Kinds<Agent>} */
const AGENT = { card: 'anything', execute: 'a function', reply: 'a function' };

/**
 * Throws unless all options are valid.
 * @param {Agent} agent
 * @param {TaskServerOptions} options
 */
function checkOptions(agent, options) {
  const who = 'createTaskServer';
  // An instance of a class has further members.
  const { reply } = agent;
  if (isRecord(agent)) requireExactly(who, agent, AGENT);
  else if (reply !== undefined) requireOf(who, 'reply', 'a function', reply);
  requireExactly(who, options, OPTIONS);
  requireExactly('limits', options.limits ?? {}, LIMITS);
  const { hosts, push, store, telemetry } = options;
  if (hosts !== '*') requireTextList(who, 'hosts', hosts);
  const parts = { openTelemetry: { telemetry }, pushNotifications: { push }, taskStore: { store } };
  for (const [maker, part] of Object.entries(parts))
    for (const [name, made] of Object.entries(part))
      if (made !== undefined && typeof made?.attach !== 'function')
        throw mistyped(who, name, `made by ${maker}`);
}
