/** An A2A agent: its doors, its options, and how it begins and ends. */
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
 * @typedef {'send' | 'get' | 'list' | 'cancel' | 'subscribe'} Access what a request wants to do
 *   with an existing task
 */

/**
 * @typedef {object} TaskServerOptions Each is optional and has a default.
 * @property {number} [grace] how long a cancel waits for the executor to say how its task ended, in
 *   ms; with 0 the task is canceled at once, whatever the executor does (0)
 * @property {number} [maxRequest] characters of a request (4194304)
 * @property {number} [maxUnread] bytes that may wait for a slow reader of a stream; one that has
 *   more is cut off, and its task goes on (4194304)
 * @property {number} [maxBacklog] bytes that may wait for all readers; then whoever has waited
 *   longest is cut off (268435456)
 * @property {number} [keepAlive] ms between signs of life in an answer that takes its time, for
 *   those who end silent connections; 0 is none (15000)
 * @property {number} [replyTimeout] ms for the agent's `reply`; 0 is for ever (60000)
 * @property {boolean} [repeats] whether a message that comes again from its user is taken once,
 *   also if its client does not declare the extension for that; its clients must give each message
 *   an id of its own (false)
 * @property {string[] | '*'} [origins] whose pages may ask, over HTTP (none but the agent's own)
 * @property {string[] | '*'} [hosts] under which names the agent is asked over HTTP, with a port or
 *   without; by default those of this machine where it is asked at a loopback address, and any name
 *   elsewhere
 * @property {(task: StoredTask, access: Access, request: import('./task.js').RequestInfo)
 *   => boolean | Promise<boolean>} [authorize] whether a request may do that to a task. Only
 *   `true`, or a promise of it, is yes; what it may not see is not found (everybody may)
 * @property {import('./tasks-core.js').TaskLimits & ServerLimits} [limits] of tasks, subscribers
 *   and messages
 * @property {import('./store/push.js').Push} [push] sends push notifications, by
 *   `pushNotifications` of `@abp-bridge/a2a-store` (they are refused)
 * @property {import('./store/telemetry.js').Telemetry} [telemetry] metrics and traces, by
 *   `openTelemetry` of `@abp-bridge/a2a-store` (none)
 * @property {import('./store/index.js').TaskStore} [store] where tasks are kept that outlive the
 *   process, by `taskStore` of `@abp-bridge/a2a-store` (in memory, and they end with the process)
 */

/**
 * @typedef {object} ServerLimits What a server allows its clients.
 * @property {number} [maxTask] characters of a task: its artifacts and its messages, as JSON
 *   (67108864)
 * @property {number} [maxStored] characters of all tasks; finished ones are forgotten to make room
 *   (268435456)
 * @property {number} [maxAnswer] characters of an answer; a page of a list ends before it is longer
 *   (67108864)
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
 * What the parts of an agent have of each other. `phase` says how far its end is.
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
  /** What it works with, when the core is there. @type {Parts | undefined} */
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
    // Their types are for those who use the package: they need not know what an agent and these say
    // to each other.
    const { push, telemetry } = /** @type {any} */ (options);
    this.#pushes = push?.attach(options.store !== undefined);
    this.#reports = telemetry?.attach(() => this.counters);

    const http = { ...this.#options, backlog: new Backlog(given.maxBacklog) };
    /**
     * A listener for `http.createServer`, and middleware for Express: what is not A2A goes to
     * `next`. Authentication that runs before it sets `user` on the request.
     */
    this.handle = httpListener(this, http);
    /**
     * For servers in the style of `fetch`: Hono, a service worker.
     * @param {Request} request
     * @param {{ user?: unknown }} [by] the sender, if it is authenticated
     * @returns {Promise<Response>}
     */
    this.fetch = (request, { user } = {}) => respond(this, request, http, user);
    // What others have left is taken before somebody asks.
    if (options.store) this.#whenReady().catch(() => {});
  }

  /**
   * Serves the peer of a transport: a port, a window, a socket. See packages/a2a/src/port.js.
   * @param {import('abp-bridge/driver').Transport} transport
   * @param {{ user?: unknown }} [by] the peer, if it is authenticated
   * @returns {() => void} stops serving it; the tasks go on
   */
  serve(transport, { user } = {}) {
    return serveTransport(this, transport, user);
  }

  /** At most so many characters of a request are read. */
  get maxRequest() {
    return this.#options.maxRequest;
  }

  /**
   * Whether an interface of the card has this tenant.
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
   * Not before somebody asks: where a module is evaluated there may be neither randomness nor
   * timers.
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
   * Ends its work before the process ends: new tasks and new streams are refused with status 503
   * and `Retry-After`, what runs is waited for, and then the agent closes. With a `store` its
   * streams end at once, so that clients come back elsewhere, and what is aborted then goes to
   * other processes.
   * @param {{ ms?: number }} [options] how long running executors are waited for (30000)
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

  /** Whether it has begun to close: for the answer to whoever asks if the process is ready. */
  get draining() {
    return this.#phase.draining || this.#phase.closed;
  }

  #endStreams() {
    for (const entry of this.#parts?.shown ?? []) endStreams(entry);
  }

  /**
   * Cancels every task, ends every stream, and refuses further requests. Tasks of a `store` are not
   * cancelled: other processes take them; `await drain({ ms: 0 })` says when they can.
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
   * @param {import('./card.js').CardVersion | undefined} version the default is that which the
   *   agent prefers
   * @param {string} url the agent's URL, for interfaces that name none
   */
  card(version, url) {
    return printCard(this.#agent.card, version, url, this.#pushes !== undefined);
  }

  /**
   * Answers one request.
   * @param {string} text
   * @param {Caller} caller
   * @param {Reply} reply
   * @param {(body: any) => object} [read] makes a JSON-RPC request of a body that is none
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
 * @typedef {object} Agent What the card says of an agent.
 * @property {any} card the agent card: `name`, `description`, `version`, `skills`, `capabilities`,
 *   …, in the form of 1.0; where it names no interfaces and no `url`, it is given those that it was
 *   fetched from
 * @property {(context: ExecutorContext) => unknown} execute works on a message. The task is
 *   `working` when it is called and `completed` when it returns, unless it said otherwise; what it
 *   throws makes the task `failed`. What it returns is an artifact: a text, a part, a list of
 *   these, or `{ parts, … }`. What it streams, by being a generator or returning an async iterable,
 *   are chunks of artifacts. Anything else but nothing makes the task `failed`
 * @property {(asked: { message: Message, request: RequestInfo, signal: AbortSignal }) => Said
 *   | undefined | null
 *   | Promise<Said | undefined | null>} [reply] answers a message that begins a task with another
 *   message instead; with `undefined` there is a task. What it throws is the error that the client
 *   gets. The signal fires when nobody waits for the reply any more
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
 * Throws unless all options are what they are to be.
 * @param {Agent} agent
 * @param {TaskServerOptions} options
 */
function checkOptions(agent, options) {
  const who = 'createTaskServer';
  // One that is of a class has members of its own.
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
