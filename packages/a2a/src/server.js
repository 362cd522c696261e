/**
 * An A2A agent: answers requests of every version, runs an executor for each task, and sends every stream of a task
 * the same events. The core decides what happens to a task (src/abp_tasks.h), and #act carries that out.
 */
import * as abp from '../../../js/driver/abp-boundary.js';
import * as core from './tasks-boundary.js';
import {
  AbpError,
  reasonText,
  safely,
  reportError,
  saysCancelled,
} from '../../../js/common/errors.js';
import { mistyped, requireOf } from '../../../js/common/check-options.js';
import { abortError } from '../../../js/common/signals.js';
import { getOwn, limitOf, milliseconds } from '../../../js/common/values.js';
import { TaskTable, ended, ready } from './tasks-core.js';
import { Backlog } from './backlog.js';
import { preferredVersion, printCard } from './card.js';
import { DIALECTS, METHODS, STATES, getField, printError, readState } from './dialects.js';
import { httpListener, readOrigins, respond } from './http.js';
import { TaskLists } from './lists.js';
import { serveTransport } from './port.js';
import { check, historyOf, idsOf, refuse, taskIdOf, timeOf, versionOf } from './requests.js';
import { Repeats, identityOf, markOf, reused } from './repeats.js';
import { outcomeOf } from './outcome.js';
import { PrintedEvent, Stream, unsendable } from './reply.js';
import { ExecutorContext, StoredTask, replyOf, statusOf, withOutcome } from './task.js';
import { Entry, TaskStore } from './task-store.js';
import { checkExtensions, pushOf, readSend, requestInfo } from './validation.js';
import { REPEATS, newId } from './ids.js';
import { requireExactly, requireTextList } from './exact-options.js';

/** @import { Dialect, Event, Message, Status } from './dialects.js' */
/** @import { Caller, Reply } from './reply.js' */
/** @import { Reports } from './store/telemetry.js' */
/** @import { Host, TaskLogs } from './store/store.js' */
/** @import { Identity } from './repeats.js' */
/** @import { RequestInfo, Said } from './task.js' */

/** @typedef {'send' | 'get' | 'list' | 'cancel' | 'subscribe'} Access what a request wants to do with an existing task */

/**
 * @typedef {object} TaskServerOptions Each is optional and has a default.
 * @property {number} [grace] how long a cancel waits for the executor to say how its task ended, in ms; with 0 the
 *   task is canceled at once, whatever the executor does (0)
 * @property {number} [maxRequest] characters of a request (4194304)
 * @property {number} [maxUnread] bytes that may wait for a slow reader of a stream; one that has more is cut off,
 *   and its task goes on (4194304)
 * @property {number} [maxBacklog] bytes that may wait for all readers; then whoever has waited longest is cut off
 *   (268435456)
 * @property {number} [keepAlive] ms between signs of life in an answer that takes its time, for those who end silent
 *   connections; 0 is none (15000)
 * @property {number} [replyTimeout] ms for the agent's `reply`; 0 is for ever (60000)
 * @property {boolean} [repeats] whether a message that comes again from its user is taken once, also if its client does not declare
 *   the extension for that; its clients must give each message an id of its own (false)
 * @property {string[] | '*'} [origins] whose pages may ask, over HTTP (none but the agent's own)
 * @property {string[] | '*'} [hosts] under which names the agent is asked over HTTP, with a port or without; by default
 *   those of this machine where it is asked at a loopback address, and any name elsewhere
 * @property {(task: StoredTask, access: Access, request: import('./task.js').RequestInfo) => boolean | Promise<boolean>} [authorize]
 *   whether a request may do that to a task. Only `true`, or a promise of it, is yes; what it may not see is not found (everybody may)
 * @property {import('./tasks-core.js').TaskLimits & ServerLimits} [limits] of tasks, subscribers and messages
 * @property {import('./store/push.js').Push} [push] sends push notifications, by `pushNotifications` of
 *   `abp-bridge/a2a-store` (they are refused)
 * @property {import('./store/telemetry.js').Telemetry} [telemetry] metrics and traces, by `openTelemetry` of
 *   `abp-bridge/a2a-store` (none)
 * @property {import('./store/index.js').TaskStore} [store] where tasks are kept that outlive the process, by `taskStore` of
 *   `abp-bridge/a2a-store` (in memory, and they end with the process)
 */

/**
 * @typedef {object} ServerLimits What a server allows its clients.
 * @property {number} [maxTask] characters of a task: its artifacts and its messages, as JSON (67108864)
 * @property {number} [maxStored] characters of all tasks; finished ones are forgotten to make room (268435456)
 * @property {number} [maxAnswer] characters of an answer; a page of a list ends before it is longer (67108864)
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

/** ms that `drain` waits for executors. */
const DRAIN_MS = 30_000;
/** ms after which a client that was refused may try again. */
const BUSY_FOR = 1000;

/** The verdict on a task whose core has failed. */
const LOST =
  core.TASK_TELL |
  core.TASK_ABORT |
  core.TASK_SETTLE |
  core.TASK_END |
  (core.TASK_FAILED << core.TASK_STATE_SHIFT);

/** A server of A2A tasks. */
export class TaskServer {
  /** @type {TaskStore} */
  #entries;
  /** The tasks in a store, if there is one: then the table has what is told of them. @type {TaskLogs | undefined} */
  #logs;
  /** Made when its tasks can be had. @type {TaskLists} */
  #lists = /** @type {TaskLists} */ (/** @type {unknown} */ (undefined));
  /** @type {import('./store/push.js').Pushes | undefined} */
  #pushes;
  /** @type {Reports | undefined} */
  #reports;
  /** Made when the core is ready. @type {TaskTable} */
  #table = /** @type {TaskTable} */ (/** @type {unknown} */ (undefined));
  #card;
  #execute;
  #options;
  #limits;
  #grace;
  #streaming;
  /** Resolves when the table has been made. @type {Promise<void> | undefined} */
  #ready;
  #closed = false;
  #draining = false;
  /** Executors that have not returned. */
  #running = 0;
  /** Called when none is left. */
  #drained = () => {};
  #extensions;
  #repeats = new Repeats();
  /** Ends the replies that are being thought about. @type {Set<(error: AbpError) => void>} */
  #replying = new Set();
  #reply;
  /** @type {Date | undefined} */
  #since;

  /**
   * Use {@link createTaskServer}.
   * @param {Agent} agent
   * @param {TaskServerOptions} options
   */
  constructor({ card, execute, reply }, options) {
    if (typeof card?.name !== 'string' || typeof execute !== 'function') {
      throw new AbpError(
        'INVALID_PARAMS',
        'createTaskServer needs card: { name, … } and execute(context)',
      );
    }
    checkOptions(reply, options);
    this.#card = card;
    this.#execute = execute;
    const given = { ...DEFAULTS, ...options };
    this.#options = {
      ...given,
      origins: readOrigins(options.origins),
      keepAlive: milliseconds(given.keepAlive),
      replyTimeout: milliseconds(given.replyTimeout),
    };
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#entries = new TaskStore(
      this.#limits.maxStored,
      ({ replica }) => replica && this.#logs?.forget(replica),
      !options.store,
    );
    this.#reply = reply;
    const attach =
      /** @type {((stored: boolean) => import('./store/push.js').Pushes) | undefined} */ (
        options.push?.attach
      );
    this.#pushes = attach?.(options.store !== undefined);
    const report = /** @type {((counters: () => object) => Reports) | undefined} */ (
      options.telemetry?.attach
    );
    this.#reports = report?.(() => this.counters);
    this.#extensions = card.capabilities?.extensions ?? [];
    this.#grace = limitOf(options.grace ?? 0);
    this.#streaming = card.capabilities?.streaming !== false;

    const backlog = new Backlog(this.#options.maxBacklog);
    /**
     * A listener for `http.createServer`, and middleware for Express: what is not A2A goes to `next`. Authentication
     * that runs before it sets `user` on the request.
     */
    this.handle = httpListener(this, this.#options, backlog);
    /**
     * For servers in the style of `fetch`: Hono, a service worker.
     * @param {Request} request
     * @param {{ user?: unknown }} [by] the sender, if it is authenticated
     * @returns {Promise<Response>}
     */
    this.fetch = (request, { user } = {}) => respond(this, request, this.#options, backlog, user);
    // What others have left is taken before somebody asks.
    if (options.store) this.#whenReady().catch(() => {});
  }

  /**
   * Serves the peer of a transport: a port, a window, a socket. See packages/a2a/src/port-messages.js.
   * @param {import('../../../js/transports/transport.js').Transport} transport
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

  /** Whether an interface of the card has this tenant. @param {string} tenant */
  hasTenant(tenant) {
    const interfaces = /** @type {import('./card.js').AgentCard} */ (this.#card)
      .supportedInterfaces;
    return interfaces?.some((one) => one.tenant === tenant) ?? false;
  }

  /** When the card last changed. */
  get since() {
    return (this.#since ??= new Date());
  }

  /** Counts for debugging. */
  get counters() {
    const streams = [...this.#entries].reduce((sum, { streams }) => sum + streams.size, 0);
    return { ...this.#table?.counters(), ...this.#logs?.counters, streams };
  }

  /** Not before somebody asks: where a module is evaluated there may be neither randomness nor timers. */
  #whenReady() {
    const begin = async () => {
      await ready();
      if (!this.#table) this.#begin();
      const { store } = this.#options;
      // Its type is for those who use the package: they need not know what an agent and its store say to each other.
      const attach = /** @type {((host: Host) => TaskLogs) | undefined} */ (store?.attach);
      this.#logs ??= attach?.(this.#host());
      this.#lists ??= this.#newLists();
      await this.#logs?.open();
    };
    return (this.#ready ??= begin().catch((error) => {
      this.#ready = undefined;
      throw error;
    }));
  }

  #newLists() {
    return new TaskLists(this.#logs?.source ?? this.#entries, {
      allows: (task, info, refuse) => this.#allows(task, 'list', info, refuse),
      asks: this.#options.authorize !== undefined,
      maxAnswer: this.#limits.maxAnswer,
    });
  }

  #begin() {
    this.#table = new TaskTable(this.#options.limits, {
      onDue: (task, verdict) => this.#act(this.#entries.get(task), verdict),
      onFailure: () => this.#lost(),
    });
  }

  /** The core has failed: its tasks fail, and the agent goes on with a new one. */
  #lost() {
    const entries = this.#entries.clear();
    this.#begin();
    // What is stored is so still: whoever reads it comes back.
    if (this.#logs) {
      this.#logs.reset();
      for (const { streams } of entries) for (const stream of streams) stream.end();
      return;
    }
    const metadata = outcomeOf(abp.FATE_UNKNOWN);
    const lost = { parts: [{ text: 'The agent lost the task' }], metadata };
    for (const entry of entries.filter(({ task }) => !task.terminal)) {
      const status = statusOf(entry.task, lost);
      this.#act(entry, LOST, { reported: core.TASK_FAILED, status });
    }
  }

  /**
   * Ends its work before the process ends: new tasks and new streams are refused with status 503 and `Retry-After`, what
   * runs is waited for, and then the agent closes. With a `store` its streams end at once, so that clients come back
   * elsewhere, and what is aborted then goes to other processes.
   * @param {{ ms?: number }} [options] how long running executors are waited for (30000)
   * @returns {Promise<void>} resolves when the agent is closed, and nothing more is stored
   */
  async drain({ ms = DRAIN_MS } = {}) {
    this.#draining = true;
    if (this.#logs) this.#endStreams();
    const over = new Promise((resolve) => {
      this.#drained = () => resolve(undefined);
    });
    const timer = setTimeout(this.#drained, milliseconds(ms));
    this.#checkDrained();
    await over;
    clearTimeout(timer);
    this.close();
    await this.#logs?.close();
  }

  /** Whether it has begun to close: for the answer to whoever asks if the process is ready. */
  get draining() {
    return this.#draining || this.#closed;
  }

  #checkDrained() {
    if (this.#running === 0) this.#drained();
  }

  #endStreams() {
    for (const { streams } of this.#entries) {
      for (const stream of streams) stream.end();
      streams.clear();
    }
  }

  /**
   * Cancels every task, ends every stream, and refuses further requests. Tasks of a `store` are not cancelled: other
   * processes take them; `await drain({ ms: 0 })` says when they can.
   */
  close() {
    this.#closed = true;
    for (const end of this.#replying) end(new AbpError('INTERNAL_ERROR', 'The agent is closing'));
    this.#pushes?.close();
    if (this.#logs) {
      void this.#logs.close();
      this.#endStreams();
      for (const { waiting } of this.#entries) for (const [, fail] of waiting) fail(away());
    }
    for (const entry of this.#logs ? [] : this.#entries)
      this.#act(entry, entry.table.cancel(entry.handle, 0, true), { reason: 'The agent closes' });
    this.#table?.rest();
  }

  /**
   * The agent card of a version.
   * @param {import('./card.js').CardVersion | undefined} version the default is that which the agent prefers
   * @param {string} url the agent's URL, for interfaces that name none
   */
  card(version, url) {
    const push = this.#pushes !== undefined;
    return printCard(this.#card, version ?? preferredVersion(this.#card), url, push);
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
    } catch (error) {
      const { code, message } = asError(error);
      const away = isAway(error);
      if (away) reply.unavailable?.(BUSY_FOR);
      refuse(reply, version, away ? code : 'INTERNAL_ERROR', message);
      return;
    }
    this.#table.advance();
    let request;
    try {
      request = read(JSON.parse(text));
    } catch {
      refuse(reply, version, 'PARSE_ERROR', 'Invalid JSON payload.');
      return;
    }
    const params = getOwn(request, 'params');
    if (!this.#logs) return this.#respond(request, params, caller, reply);
    /** @type {import('./store/replica.js').Replica[]} */
    const replicas = [];
    let failure;
    try {
      for (const id of this.#closed ? [] : idsOf(params)) {
        const replica = await this.#logs.load(id);
        if (replica) replicas.push(replica);
      }
    } catch (error) {
      failure = error;
    }
    await this.#respond(request, params, caller, reply, failure);
    for (const replica of replicas) this.#logs.leave(replica);
  }

  /**
   * @param {unknown} request
   * @param {unknown} params
   * @param {Caller} caller
   * @param {Reply} reply
   * @param {unknown} [failure] why its task could not be read
   */
  async #respond(request, params, caller, reply, failure) {
    const { version } = caller;
    const id = getOwn(request, 'id') ?? null;
    const method = METHODS.get(getOwn(request, 'method'));
    const info = requestInfo(caller, params, this.#extensions);
    const dialect = await this.#dialect(method, info, params);
    /** @param {object} body */
    const answer = (body) => {
      const response = (/** @type {object} */ body) => ({
        jsonrpc: '2.0',
        id: typeof id === 'object' ? null : id,
        ...body,
      });
      try {
        reply.answer(response(body));
      } catch (thrown) {
        const error = printError(dialect, unsendable(thrown));
        try {
          reply.answer(response({ error }));
        } catch {
          safely(() => reply.end(), undefined);
        }
      }
    };
    const fail = (/** @type {unknown} */ thrown) => {
      const error = asError(thrown);
      if (isAway(error)) reply.unavailable?.(BUSY_FOR);
      answer({ error: printError(dialect, error) });
    };
    try {
      if (this.#closed && this.#logs) throw away();
      if (this.#closed) throw new AbpError('INTERNAL_ERROR', 'The agent is closing');
      check(request, version);
      if (failure) throw failure;
      const declared = caller.extensions.includes(REPEATS);
      reply.extensions = declared ? [...info.extensions, REPEATS] : info.extensions;
      const repeats = declared || this.#options.repeats;
      const asked = { dialect, params, id, reply, answer, fail, info, repeats };
      switch (method?.operation) {
        case 'send':
        case 'stream':
          return await this.#send(asked, method.operation === 'stream');
        case 'get': {
          const { task } = await this.#find(asked, 'get');
          return answer({ result: dialect.task(this.#fitting(historyOf(task, params), task)) });
        }
        case 'list':
          return answer({ result: await this.#lists.list(asked) });
        case 'cancel':
          return await this.#cancel(asked);
        case 'resubscribe':
          return await this.#resubscribe(asked);
        case 'push':
          return answer({
            result: await this.#configurePush(asked, String(getOwn(request, 'method'))),
          });
        case 'extendedCard':
          throw new AbpError(
            'UNSUPPORTED_OPERATION',
            'Agent does not support authenticated extended card.',
          );
        default:
          throw new AbpError('METHOD_NOT_FOUND', dialect.noMethod(getOwn(request, 'method')));
      }
    } catch (error) {
      fail(error);
    }
  }

  /**
   * The version to answer in: that of the method's name, or of the header if two versions share the name. Without a
   * header it is the version in which the task was begun.
   * @param {{ operation: string, dialects: Dialect[] } | undefined} method
   * @param {RequestInfo} info
   * @param {unknown} params
   * @returns {Promise<Dialect>}
   */
  async #dialect(method, info, params) {
    const asked = versionOf(info.version);
    if (!method) return DIALECTS[asked ?? '0.3'];
    if (method.dialects.length === 1) return method.dialects[0];
    if (asked) return DIALECTS[asked === '1.0' ? 'gem' : asked];
    // A task that the request may not see must not influence the answer.
    const entry = await this.#visible(taskIdOf(params), ACCESS[method.operation], info);
    return entry && method.dialects.includes(entry.dialect) ? entry.dialect : DIALECTS['0.3'];
  }

  /**
   * The task of this id, if the request is allowed that access.
   * @param {unknown} id
   * @param {Access} access
   * @param {RequestInfo} info
   */
  async #visible(id, access, info) {
    const entry = this.#entries.get(this.#table.find(id));
    return entry && (await this.#allows(entry.task, access, info)) ? entry : undefined;
  }

  /**
   * @param {StoredTask} task
   * @param {Access} access
   * @param {RequestInfo} info
   * @param {(error: unknown) => boolean} [refuse] what is said where the hook throws
   * @returns {boolean | Promise<boolean>}
   */
  #allows(task, access, info, refuse = refused) {
    if (task.tenant !== info.tenant) return false;
    const { authorize } = this.#options;
    if (!authorize) return true;
    try {
      const verdict = authorize(task, access, info);
      if (typeof verdict !== 'object' || verdict === null) return verdict === true;
      return Promise.resolve(verdict).then((one) => one === true, refuse);
    } catch (error) {
      return refuse(error);
    }
  }

  /**
   * @param {Asked} asked
   * @param {Access} access
   * @returns {Promise<Entry>}
   */
  async #find({ dialect, params, info }, access) {
    const id = taskIdOf(params);
    if (typeof id !== 'string' || id.trim() === '')
      throw new AbpError('INVALID_PARAMS', dialect.noId);
    return this.#entry(id, access, dialect, info);
  }

  /** @param {string} id @param {Access} access @param {Dialect} dialect @param {RequestInfo} info */
  async #entry(id, access, dialect, info) {
    const entry = await this.#visible(id, access, info);
    if (!entry) throw new AbpError('TASK_NOT_FOUND', dialect.notFound(id));
    return entry;
  }

  /**
   * Throws if a task is too long for an answer.
   * @template T
   * @param {T} shown
   * @param {StoredTask} task
   */
  #fitting(shown, task) {
    const { maxAnswer } = this.#limits;
    if (task.size <= maxAnswer) return shown;
    throw new AbpError('TOO_LARGE', `The task is longer than ${maxAnswer} characters`);
  }

  // --- Operations ----------------------------------------------------------------------------------

  /**
   * @param {Asked} asked
   * @param {boolean} streams
   */
  async #send(asked, streams) {
    const { dialect, params, info, repeats } = asked;
    this.#requireOpen();
    if (streams) this.#needStreaming();
    checkExtensions(this.#extensions, info, params);
    const read = readSend(params, dialect, this.#pushes !== undefined);
    const wanted = pushOf(read.configuration);
    if (wanted) asked.push = await this.#pushes?.read(wanted, dialect, newId());
    const identity = repeats ? await identityOf(read.message, info) : undefined;
    const taken = identity && this.#repeats.get(identity);
    if (taken) return this.#answerAgain(asked, streams, await taken, read.configuration);
    const taking = this.#take(asked, streams, read, identity);
    if (identity) this.#repeats.add(identity, taking);
    await taking;
  }

  /**
   * Begins what a message asks for.
   * @param {Asked} asked
   * @param {boolean} streams
   * @param {ReturnType<typeof readSend>} read
   * @param {Identity} [identity] of the message, if it may come again
   * @returns {Promise<import('./repeats.js').Taken>}
   */
  async #take(asked, streams, { message, configuration, size }, identity) {
    const { dialect, info } = asked;
    if (!message.taskId && this.#reply) {
      const replied = await this.#replyTo(asked, streams, message);
      if (replied !== undefined && replied !== null) {
        const answer = replyOf(message.contextId ?? newId(), replied);
        this.#answerWith(asked, streams, answer);
        return answer;
      }
    }
    const known = message.taskId && (await this.#entry(message.taskId, 'send', dialect, info));
    if (!this.#entries.makeRoom(0)) throw busy();
    if (known && message.contextId) checkContext(known.task, message.contextId);
    if (known) this.#pushes?.requireTurn(known);
    // It may have begun to close since the message came.
    this.#requireOpen();
    if (this.#logs)
      return this.#takeStored(asked, streams, { message, configuration }, known, identity);
    const entry = known || this.#newTask(message, dialect, info);
    const { task } = entry;
    this.#addPush(asked, entry);
    const verdict = entry.table.start(entry.handle);
    if (!(verdict & core.TASK_START)) throw unwanted(task);
    message.taskId = task.id;
    message.contextId = task.contextId;
    task.remember(message, size);
    this.#entries.update(entry);
    const send = this.#follow(entry, asked, streams, configuration, dialect.snapshot);
    this.#act(entry, verdict, { prompt: message, info });
    send?.();
    return task.id;
  }

  /**
   * Begins what a message asks for, in a store. It is told when that is stored.
   * @param {Asked} asked
   * @param {boolean} streams
   * @param {{ message: Message, configuration: unknown }} read
   * @param {Entry | '' | undefined} known the task that the message is for
   * @param {Identity} [identity] of the message, if it may come again, to another process as well
   * @returns {Promise<string>}
   */
  async #takeStored(asked, streams, { message, configuration }, known, identity) {
    const { dialect, info } = asked;
    const logs = /** @type {TaskLogs} */ (this.#logs);
    let send = /** @type {(() => void) | undefined} */ (undefined);
    const begins = (/** @type {Entry} */ entry) => {
      this.#addPush(asked, entry);
      send = this.#follow(entry, asked, streams, configuration, dialect.snapshot);
    };
    const mark = identity && (await markOf(identity));
    const id = known ? known.task.id : (mark?.name ?? newId());
    // The task that a message of this id has begun, at whichever process.
    const begun = mark && (await logs.load(mark.name));
    try {
      const replica = known ? known.replica : begun;
      if (begun && replica !== begun) throw reused();
      if (mark && replica?.took(mark, message)) {
        await this.#answerAgain(asked, streams, id, configuration);
        return id;
      }
      message.taskId = id;
      message.contextId = known ? known.task.contextId : (message.contextId ?? newId());
      if (known && known.replica) await logs.answer(known.replica, message, info, begins, mark);
      else {
        const { contextId } = message;
        const { tenant, user } = info;
        const origin = { contextId, tenant, user, dialect: dialect.name };
        await logs.begin(id, origin, message, info, begins, mark);
      }
    } catch (error) {
      if (!isPassed(error)) throw error;
      await this.#requireTaken({ id, message, mark, known: !!known }, error);
      await this.#answerAgain(asked, streams, id, configuration);
      return id;
    } finally {
      if (begun) logs.leave(begun);
    }
    send?.();
    return id;
  }

  /**
   * Others have stored something where a message was to be, or this process has lost its lease: its log says what became of it.
   * Throws what its sender is told, unless another process has taken it.
   * @param {{ id: string, message: Message, mark?: import('./repeats.js').Mark, known: boolean }} sent `known` for an answer to a task
   * @param {AbpError} error
   */
  async #requireTaken({ id, message, mark, known }, error) {
    const logs = /** @type {TaskLogs} */ (this.#logs);
    const replica = await logs.load(id).catch(() => undefined);
    try {
      if (mark && replica?.took(mark, message)) return;
      const task = replica?.entry?.task;
      if (known && task && !ASKING.includes(task.state)) throw unwanted(task);
      // The next process knows, when the message comes again.
      throw mark && error.code !== 'UNSUPPORTED_OPERATION' ? again() : error;
    } finally {
      if (replica) logs.leave(replica);
    }
  }

  /**
   * What the agent replies, in time and while somebody waits for it.
   * @param {Asked} asked
   * @param {boolean} streams
   * @param {Message} message
   * @returns {Promise<Said | undefined | null>}
   */
  #replyTo({ reply, info, repeats }, streams, message) {
    const controller = new AbortController();
    const { replyTimeout } = this.#options;
    let timer = /** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined);
    /** @type {(error: AbpError) => void} */
    let end = () => {};
    const ended = new Promise((_resolve, reject) => {
      end = (error) => {
        reject(error);
        controller.abort(abortError(error.message));
      };
    });
    this.#replying.add(end);
    // Who may send the message again may be on the way back.
    if (!repeats) reply.onLeave = () => end(new AbpError('DISCONNECTED', 'The client has left'));
    if (replyTimeout)
      timer = setTimeout(
        () => end(new AbpError('TIMEOUT', 'The agent did not reply in time')),
        replyTimeout,
      );
    reply.wait?.(streams);
    const { signal } = controller;
    const replied = (async () => this.#reply?.({ message, request: info, signal }))();
    return Promise.race([replied, ended]).finally(() => {
      clearTimeout(timer);
      this.#replying.delete(end);
    });
  }

  /**
   * Answers a message that has come before.
   * @param {Asked} asked
   * @param {boolean} streams
   * @param {import('./repeats.js').Taken} taken
   * @param {unknown} configuration
   */
  async #answerAgain(asked, streams, taken, configuration) {
    if (typeof taken !== 'string') return this.#answerWith(asked, streams, taken);
    // The request does not name its task.
    const replica = await this.#logs?.load(taken);
    try {
      const entry = await this.#entry(taken, 'get', asked.dialect, asked.info);
      this.#fitting(entry, entry.task);
      this.#follow(entry, asked, streams, configuration, true)?.();
    } finally {
      if (replica) this.#logs?.leave(replica);
    }
  }

  /**
   * Has the sender of a message learn what becomes of its task.
   * @param {Entry} entry
   * @param {Asked} asked
   * @param {boolean} streams
   * @param {unknown} configuration
   * @param {boolean} snapshot whether a stream begins with the task itself
   * @returns {(() => void) | undefined} sends the answer, if that need not wait
   */
  #follow(entry, asked, streams, configuration, snapshot) {
    const { dialect, reply, answer } = asked;
    const { table, handle, task } = entry;
    const verdict = table.subscribe(handle, false);
    if (streams) {
      this.#subscribe(entry, asked, verdict, snapshot);
      return undefined;
    }
    const send = () =>
      answer({
        result: dialect.event({ kind: 'task', task: historyOf(task, configuration) }),
      });
    if (!verdict || verdict & core.TASK_SETTLE || !dialect.blocks(configuration)) return send;
    wait(entry, asked, send);
    reply.wait?.();
    return undefined;
  }

  /**
   * Answers with a message in place of a task.
   * @param {Asked} asked
   * @param {boolean} streams
   * @param {Message} message
   */
  #answerWith({ dialect, id, reply, answer }, streams, message) {
    const event = /** @type {const} */ ({ kind: 'message', message });
    if (!streams) return answer({ result: dialect.event(event) });
    const stream = new Stream(reply, dialect, id);
    reply.open();
    if (stream.send(new PrintedEvent(event))) stream.end();
  }

  /** @param {Message} message @param {Dialect} dialect @param {RequestInfo} info */
  #newTask(message, dialect, info) {
    return this.#enter(newId(), core.TASK_SUBMITTED, message.contextId ?? newId(), dialect, info);
  }

  /**
   * @param {string} id
   * @param {core.TaskState} state
   * @param {string} contextId
   * @param {Dialect} dialect
   * @param {{ user: unknown, tenant?: string }} by
   */
  #enter(id, state, contextId, dialect, by) {
    const table = this.#table;
    const handle = table.add(id, state);
    if (handle <= 0) throw refusal(handle);
    const task = new StoredTask(id, contextId, this.#limits.maxTask, by);
    const entry = new Entry(table, /** @type {core.Task} */ (handle), task, dialect);
    this.#entries.add(entry);
    return entry;
  }

  /** @param {Asked} asked */
  async #cancel(asked) {
    const { dialect, params, reply, answer } = asked;
    const entry = await this.#find(asked, 'cancel');
    const { table, handle, task, replica } = entry;
    const reason = reasonText(getOwn(getOwn(params, 'metadata'), 'reason'));
    const began = performance.now();
    /** @param {number} verdict */
    const say = (verdict) => {
      this.#reports?.cancelled(performance.now() - began, task.state);
      if (verdict & core.TASK_ACK) answer({ result: dialect.task(task) });
      else
        answer({
          error: printError(
            dialect,
            new AbpError('TASK_NOT_CANCELABLE', dialect.notCancelable(task.id)),
          ),
        });
    };
    if (replica && !task.terminal) {
      // It is a record in the log, and the log says what came first.
      const settle = () => {
        if (task.terminal) say(table.cancel(handle, 0, true));
        else wait(entry, asked, settle);
      };
      settle();
      reply.wait?.();
      try {
        await this.#logs?.cancel(replica, reason);
      } catch (error) {
        if (entry.waiting.delete(settle)) throw error;
      }
      return;
    }
    const verdict = table.cancel(handle, this.#grace, dialect.repeatable);
    // The client waited for the end, so in every version it gets the task as it ended.
    if (verdict & core.TASK_WAIT) wait(entry, asked, () => say(table.cancel(handle, 0, true)));
    this.#act(entry, verdict, { reason });
    if (!(verdict & core.TASK_WAIT)) say(verdict);
  }

  /** @param {Asked} asked */
  async #resubscribe(asked) {
    const { dialect, reply, id } = asked;
    if (this.#draining && this.#logs) throw away();
    this.#needStreaming();
    try {
      const entry = await this.#find(asked, 'subscribe');
      const { replica, task } = entry;
      const { lasting } = dialect;
      const number = asked.info.headers['last-event-id'];
      const replay = number && replica && (await this.#logs?.replay(replica, number));
      /** @type {PrintedEvent[]} */
      let missed = [];
      for (let next; replay && !replay.done && missed.length === 0; missed = eventsOf(task, next))
        if (!(next = await replay.next())) break;
      if (replay && missed.length > 0)
        return await this.#replay(entry, asked, replay, missed, lasting);
      // Not where there is nothing that it has missed.
      const snapshot = !replay || !replay.done;
      if (snapshot) this.#fitting(entry, task);
      const verdict = entry.table.subscribe(entry.handle, lasting);
      if (!verdict)
        throw new AbpError(
          'UNSUPPORTED_OPERATION',
          `Task ${task.id} ${whyNot(task, 'subscribed to')}`,
        );
      this.#subscribe(entry, asked, verdict, snapshot, lasting);
    } catch (error) {
      if (!dialect.streamsErrors) throw error;
      reply.open();
      new Stream(reply, dialect, id).fail(printError(dialect, asError(error)));
    }
  }

  /**
   * Tells a reader what it has missed, as fast as it reads, and then what comes.
   * @param {Entry} entry
   * @param {Asked} asked
   * @param {import('./store/replay.js').Replay} replay
   * @param {PrintedEvent[]} missed the first of it
   * @param {boolean} lasting whether the stream goes on while the task waits for input
   */
  async #replay(entry, { dialect, reply, id }, replay, missed, lasting) {
    const stream = new Stream(reply, dialect, id, lasting);
    reply.open();
    try {
      for (;;) {
        for (const event of missed) if (!stream.send(event)) return;
        await reply.room?.();
        if (reply.left) return;
        // It comes back elsewhere.
        if (this.draining) return stream.end();
        if (replay.done) break;
        const next = await replay.next();
        if (!next) return stream.end();
        missed = eventsOf(entry.task, next);
      }
    } catch {
      // The backend is away: the reader comes back with the number of what it has.
      return stream.end();
    }
    this.#join(entry, stream, entry.table.subscribe(entry.handle, lasting));
  }

  /** Throws once the agent has begun to close: what begins then would be nobody's. */
  #requireOpen() {
    if (this.draining) throw away();
  }

  #needStreaming() {
    if (!this.#streaming)
      throw new AbpError('UNSUPPORTED_OPERATION', 'Streaming is not supported.');
  }

  /**
   * @param {Entry} entry
   * @param {Asked} asked
   * @param {number} verdict on the subscription; 0 is that of a task which has ended
   * @param {boolean} snapshot whether the task itself comes first
   * @param {boolean} [lasting] whether the stream goes on while the task waits for input
   */
  #subscribe(entry, { dialect, params, reply, id }, verdict, snapshot, lasting = false) {
    const stream = new Stream(reply, dialect, id, lasting);
    reply.open();
    // The reader may have left while the core was being loaded.
    if (reply.left) return;
    const shown = historyOf(entry.task, getOwn(params, 'configuration'));
    if (snapshot && !stream.send(new PrintedEvent({ kind: 'task', task: shown }, entry.number)))
      return;
    this.#join(entry, stream, verdict);
  }

  /**
   * A stream brings what is told from now on.
   * @param {Entry} entry
   * @param {Stream} stream
   * @param {number} verdict on its subscription; 0 is that of a task which has ended
   */
  #join(entry, stream, verdict) {
    if (verdict <= 0 || verdict & core.TASK_END) return stream.end();
    stream.reply.onLeave = () => entry.streams.delete(stream);
    entry.streams.add(stream);
    entry.replica?.watch();
  }

  // --- Push notifications ------------------------------------------------------------------------------

  /** What a message says of them. @param {Asked} asked @param {Entry} entry of its task */
  #addPush({ push }, { pushes, replica }) {
    if (!push) return;
    this.#pushes?.requireRoom(pushes, push);
    pushes.set(push.id, push);
    replica?.owner?.push({ k: 'push', config: push });
  }

  /**
   * @param {Asked} asked
   * @param {string} method
   * @returns {Promise<unknown>} the result
   */
  async #configurePush({ dialect, params, info }, method) {
    const pushes = this.#pushes;
    if (!pushes)
      throw new AbpError('PUSH_NOTIFICATION_NOT_SUPPORTED', 'Push Notification is not supported');
    const taskId = getField(params, 'taskId') ?? getField(params, 'id');
    if (typeof taskId !== 'string' || !taskId) throw new AbpError('INVALID_PARAMS', dialect.noId);
    const changes = /set$|delete$|^Create|^Delete/.test(method);
    const entry = await this.#entry(taskId, changes ? 'subscribe' : 'get', dialect, info);
    const { replica, pushes: configs, task } = entry;
    const flat = dialect === DIALECTS['1.0'];
    if (/list$|^List/.test(method)) {
      const all = [...configs.values()].map((one) =>
        pushes.print({ ...one, version: dialect.name }, taskId),
      );
      const printed = await Promise.all(all);
      return flat ? { configs: printed, nextPageToken: '' } : printed;
    }
    if (/set$|^Create/.test(method)) {
      if (task.terminal) throw unwanted(task);
      const given = getField(params, 'pushNotificationConfig') ?? (flat ? params : undefined);
      const config = await pushes.read(given, dialect, flat ? newId() : taskId);
      pushes.requireRoom(configs, config);
      if (replica) await this.#logs?.change(replica, { k: 'push', config });
      else configs.set(config.id, config);
      return pushes.print(config, taskId);
    }
    const named = flat ? getOwn(params, 'id') : getOwn(params, 'pushNotificationConfigId');
    const id = String(named ?? configs.keys().next().value);
    const config = configs.get(id);
    if (changes) {
      if (config && replica && !task.terminal)
        await this.#logs?.change(replica, { k: 'unpush', id });
      configs.delete(id);
      return flat ? {} : null;
    }
    if (!config) throw new AbpError('TASK_NOT_FOUND', dialect.notFound(`${taskId}, ${id}`));
    return pushes.print({ ...config, version: dialect.name }, taskId);
  }

  // --- The store ---------------------------------------------------------------------------------------

  /** What a store needs of this server. @returns {Host} */
  #host() {
    const { limits } = this.#options;
    return {
      limits: limits ?? {},
      grace: this.#grace,
      busy: refusal,
      lost: () => {},
      notify: (entry, status) => this.#notify(entry, status),
      leaseLost: () => this.#reports?.leaseLost(),
      unreadable: () => this.#reports?.unreadable(),
      delivered: async (entry) => this.#pushes?.delivered(entry) ?? true,
      adopt: (replica, { contextId, tenant, user, dialect }) => {
        const entry = this.#enter(replica.id, core.TASK_UNKNOWN, contextId, DIALECTS[dialect], {
          user,
          tenant,
        });
        entry.replica = replica;
        return entry;
      },
      drop: (entry) => {
        entry.table.forget(entry.handle);
        this.#entries.delete(entry);
      },
      status: (entry, status, number, before) => {
        const reported = readState(status.state);
        const verdict = entry.table.says(entry.handle, 0, reported, core.TASK_NEWS);
        before?.(entry);
        this.#act(entry, verdict, { reported, status, number });
      },
      learn: (entry, metadata) => this.#learn(entry, metadata),
      artifact: (entry, { artifact, size, append, last }, number) => {
        const { artifactId } = artifact;
        const place = entry.table.artifact(entry.handle, 0, artifactId, append);
        if (place < 0) return;
        const grows = entry.task.growth(artifactId, size, append);
        this.#addArtifact(entry, place, grows, artifact, append, last, number);
      },
      run: ({ entry }, owner, { prompt, info }) => {
        if (entry && prompt && info) void this.#run(entry, prompt, info, owner);
      },
      requestOf: (entry, saved, traceparent) => ({
        headers: /** @type {Record<string, string>} */ (traceparent ? { traceparent } : {}),
        user: entry?.task.user,
        tenant: entry?.task.tenant,
        extensions: [],
        metadata: undefined,
        acceptedOutputModes: [],
        ...saved,
      }),
      deadline: (entry) => {
        const since = entry ? Date.parse(timeOf(entry.task)) : Date.now();
        return since + (limits?.rememberFor ?? core.TASKS_DEFAULT_REMEMBER_MS);
      },
    };
  }

  // --- Verdicts of the core ----------------------------------------------------------------------------

  /**
   * Carries out a verdict.
   * @param {Entry | undefined} entry
   * @param {number} verdict
   * @param {{ reported?: number, status?: Partial<Status>, reason?: string, prompt?: Message, info?: RequestInfo, number?: string }} [about]
   *   the status and the state that it belongs to, why the task is to stop, the message for a new run and its request, and
   *   the number of the event
   */
  #act(entry, verdict, { reported, status, reason, prompt, info, number } = {}) {
    if (!entry || verdict <= 0) return;
    const { task, streams } = entry;
    if (verdict & core.TASK_TELL) {
      const state = verdict >> core.TASK_STATE_SHIFT;
      task.status = {
        state: STATES[state],
        timestamp: new Date().toISOString(),
        // A status for one state does not describe another.
        ...(reported === state && status),
      };
      // In a store, the status says it already.
      if (verdict & core.TASK_END && !entry.replica)
        task.status = withOutcome(task, task.status, entry.table.fate(entry.handle), entry.said);
      if (task.status.message) task.remember(task.status.message);
      this.#entries.update(entry);
      if (!entry.replica) this.#notify(entry, task.status);
      const final = (verdict & (core.TASK_END | core.TASK_PARK)) !== 0;
      this.#tell(entry, statusEvent(task, task.status, final), number);
    }
    if (verdict & core.TASK_ABORT) entry.run?.abort(reason);
    if (verdict & core.TASK_SETTLE) {
      const waiting = [...entry.waiting.keys()];
      entry.waiting.clear();
      for (const settle of waiting) settle();
    }
    for (const stream of streams) {
      if (!(verdict & core.TASK_END) && !(verdict & core.TASK_PARK && !stream.lasting)) continue;
      stream.end();
      streams.delete(stream);
    }
    if (verdict & core.TASK_LEARN)
      this.#learn(entry, outcomeOf(entry.table.fate(entry.handle), entry.said));
    if (verdict & core.TASK_FORGET) this.#entries.delete(entry);
    if (verdict & core.TASK_START && prompt && info) void this.#run(entry, prompt, info);
  }

  /** What became of the work of a task that has ended is known. @param {Entry} entry @param {import('./dialects.js').Metadata} metadata */
  #learn(entry, metadata) {
    entry.task.learn(metadata);
    this.#entries.update(entry);
  }

  /** A state of a task of this process was told. @param {Entry} entry @param {Status} status */
  #notify(entry, status) {
    this.#reports?.told(status.state);
    this.#pushes?.notify(entry, status);
  }

  /** @param {Entry} entry @param {Event} event @param {string} [number] */
  #tell({ streams }, event, number) {
    if (streams.size === 0) return;
    const printed = new PrintedEvent(event, number);
    for (const stream of streams) if (!stream.send(printed)) streams.delete(stream);
  }

  /**
   * Runs the executor for one message.
   * @param {Entry} entry
   * @param {Message} prompt
   * @param {RequestInfo} info
   * @param {import('./store/owner.js').Owner} [owner] of a stored task: what it decides is stored before it is told
   */
  async #run(entry, prompt, info, owner) {
    const teller = owner ?? entry;
    const { table, handle } = teller;
    const { task } = entry;
    const run = table.run(handle);
    const act = (/** @type {number} */ verdict, /** @type {object} */ about) =>
      owner ? owner.act(verdict, about) : this.#act(entry, verdict, about);
    const say = (/** @type {import('./outcome.js').Said} */ said) => {
      if (entry.run === context) teller.said = { ...teller.said, ...said };
    };
    const context = new ExecutorContext(task, prompt, info, {
      report: (report) => say({ report }),
      status: (reported, status) => {
        // What ends a task is always taken.
        if (!ended(reported)) this.#requireQueues(entry, owner);
        if (status.message) {
          const [{ text: message = '' }] = status.message.parts;
          if (reported === core.TASK_WORKING && message) say({ progress: { message } });
          const { length } = JSON.stringify(status.message);
          // Earlier messages make room for it in its task.
          this.#requireRoom(task, task.artifactsSize + length, length);
        }
        const verdict = table.says(handle, run, reported, status.message ? core.TASK_NEWS : 0);
        act(verdict, { reported, status });
        return verdict > 0;
      },
      artifact: (artifact, size, append, lastChunk) =>
        this.#artifact(entry, run, artifact, size, append, lastChunk, owner),
      flushed: () => this.#flushed(entry, owner),
    });
    context.attempt = entry.replica?.attempt ?? 1;
    entry.run = context;
    teller.said = undefined;
    if (owner) {
      owner.context = context;
      // An earlier run may have left artifacts, to which this one can add.
      for (const { artifactId } of task.artifacts) table.artifact(handle, run, artifactId, false);
    }
    const execute = async () => {
      const given = await this.#execute(context);
      // Loaded on demand: most executors return nothing, or what an emit has returned.
      if (given !== undefined && given !== null && typeof given !== 'boolean') {
        const { tellReturned } = await import('./chunks.js');
        await tellReturned(context, given);
      }
    };
    let failure;
    /** @type {core.TaskReturn} */
    let how = core.TASK_RETURNED;
    this.#running++;
    const span = this.#reports?.begin(task, info, context.attempt);
    try {
      await (span ? span.run(execute) : execute());
    } catch (error) {
      how = returnOf(error);
      span?.failed(error);
      failure = { reported: core.TASK_FAILED, status: failed(task, error) };
    }
    if (table.run(handle) === run && entry.run === context) entry.run = undefined;
    act(table.returns(handle, run, how), failure ?? {});
    owner?.returned(context);
    if (task.terminal && !entry.run) teller.said = undefined;
    this.#running--;
    this.#checkDrained();
    if (!span) return;
    // The state is told when it is stored, if it ever is.
    await owner?.flushed().catch(() => {});
    span.end();
  }

  /**
   * Throws if too much waits to be stored, or to be sent.
   * @param {Entry} entry
   * @param {import('./store/owner.js').Owner | undefined} owner of a stored task
   */
  #requireQueues(entry, owner) {
    if (entry.task.terminal) return;
    if (owner) this.#logs?.requireRoom();
    this.#pushes?.requireTurn(entry);
  }

  /**
   * @param {Entry} entry
   * @param {import('./store/owner.js').Owner | undefined} owner of a stored task
   */
  async #flushed(entry, owner) {
    await owner?.flushed();
    if (owner) await this.#logs?.room();
    await this.#pushes?.turn(entry);
  }

  /**
   * Throws if what an executor gives makes its task, or all tasks, longer than they may be.
   * @param {StoredTask} task
   * @param {number} size characters of the task with it
   * @param {number} grows characters that are added
   */
  #requireRoom(task, size, grows) {
    // Of a task that has ended nothing more is stored.
    if (task.terminal) return;
    if (size > this.#limits.maxTask)
      throw new RangeError(`The task would be longer than ${this.#limits.maxTask} characters`);
    if (!this.#entries.makeRoom(grows))
      throw new RangeError("The agent's stored tasks have reached limits.maxStored");
  }

  /**
   * @param {Entry} entry
   * @param {number} run
   * @param {import('./dialects.js').Artifact} artifact
   * @param {number} size characters
   * @param {boolean} append
   * @param {boolean} lastChunk
   * @param {import('./store/owner.js').Owner} [owner] of a stored task
   */
  #artifact(entry, run, artifact, size, append, lastChunk, owner) {
    const { task } = entry;
    const { table, handle } = owner ?? entry;
    const grows = task.growth(artifact.artifactId, size, append);
    if (owner && !task.terminal) this.#logs?.requireRoom();
    this.#requireRoom(task, task.size + grows + (owner?.pending ?? 0), grows);
    const verdict = table.artifact(handle, run, artifact.artifactId, append);
    if (verdict < 0)
      throw verdict === abp.E_ID
        ? new TypeError('The artifactId is empty, too long or not well-formed')
        : new RangeError('The task has reached its limit of artifacts');
    if ((verdict & 3) === core.ARTIFACT_DROP) return false;
    if (owner) owner.push({ k: 'artifact', artifact, append, last: lastChunk, size });
    else this.#addArtifact(entry, verdict, grows, artifact, append, lastChunk);
    return true;
  }

  /**
   * Adds an artifact to its task, and tells it.
   * @param {Entry} entry
   * @param {number} verdict what becomes of it, and its place << 2
   * @param {number} grows characters
   * @param {import('./dialects.js').Artifact} artifact
   * @param {boolean} append
   * @param {boolean} lastChunk
   * @param {string} [number] of the event
   */
  #addArtifact(entry, verdict, grows, artifact, append, lastChunk, number) {
    const { task } = entry;
    const place = verdict >> 2;
    switch (verdict & 3) {
      case core.ARTIFACT_DROP:
        return;
      case core.ARTIFACT_APPEND: {
        const stored = task.artifacts[place];
        const { parts, metadata, ...rest } = artifact;
        Object.assign(stored, rest);
        stored.parts.push(...parts);
        if (metadata) stored.metadata = { ...stored.metadata, ...metadata };
        break;
      }
      default:
        task.artifacts[place] = { ...artifact, parts: [...artifact.parts] };
    }
    task.grow(artifact.artifactId, grows);
    this.#entries.update(entry);
    this.#tell(entry, artifactEvent(task, artifact, append, lastChunk), number);
  }
}

/** @param {StoredTask} task @param {Status} status @param {boolean} final @returns {Event} */
const statusEvent = ({ id: taskId, contextId }, status, final) => ({
  kind: 'status',
  taskId,
  contextId,
  status,
  final,
});

/**
 * @param {StoredTask} task
 * @param {import('./dialects.js').Artifact} artifact
 * @param {boolean} append
 * @param {boolean} lastChunk
 * @returns {Event}
 */
const artifactEvent = ({ id: taskId, contextId }, artifact, append, lastChunk) => ({
  kind: 'artifact',
  taskId,
  contextId,
  artifact,
  append,
  lastChunk,
});

/**
 * What streams were told of an event of a task's log.
 * @param {StoredTask} task
 * @param {import('./store/replay.js').Numbered} one
 * @returns {PrintedEvent[]} none, or one
 */
function eventsOf(task, { event, number }) {
  if (event.k === 'artifact')
    return [
      new PrintedEvent(artifactEvent(task, event.artifact, event.append, event.last), number),
    ];
  if (event.k !== 'run' && event.k !== 'status') return [];
  const state = readState(event.status.state);
  const final = ended(state) || state === core.TASK_INPUT_REQUIRED;
  return [new PrintedEvent(statusEvent(task, event.status, final), number)];
}

/**
 * @typedef {object} Asked A request, read.
 * @property {Dialect} dialect
 * @property {any} params
 * @property {unknown} id
 * @property {Reply} reply
 * @property {(body: object) => void} answer
 * @property {(error: unknown) => void} fail answers with an error
 * @property {RequestInfo} info
 * @property {import('./store/push.js').PushConfig} [push] what its message says of push notifications
 * @property {boolean} repeats whether a message that comes again is recognised
 */

/**
 * @typedef {object} Agent What the card says of an agent.
 * @property {any} card the agent card: `name`, `description`, `version`, `skills`, `capabilities`, …, in the form of 1.0;
 *   where it names no interfaces and no `url`, it is given those that it was fetched from
 * @property {(context: ExecutorContext) => unknown} execute works on a message. The task is `working` when it is called
 *   and `completed` when it returns, unless it said otherwise; what it throws makes the task `failed`. What it returns is
 *   an artifact: a text, a part, a list of these, or `{ parts, … }`. What it streams, by being a generator or returning an
 *   async iterable, are chunks of artifacts. Anything else but nothing makes the task `failed`
 * @property {(asked: { message: Message, request: RequestInfo, signal: AbortSignal }) => Said | undefined | null
 *   | Promise<Said | undefined | null>} [reply] answers a message that begins a task with another message instead; with
 *   `undefined` there is a task. What it throws is the error that the client gets. The signal fires when nobody waits
 *   for the reply any more
 */

/**
 * Creates an A2A agent.
 * @param {Agent} agent
 * @param {TaskServerOptions} [options]
 */
export const createTaskServer = (agent, options = {}) => new TaskServer(agent, options);

/** @type {import('../../../js/common/check-options.js').Kinds<import('./tasks-core.js').TaskLimits & ServerLimits>} */
// prettier-ignore
const LIMITS = {
  maxAnswer: 'a number', maxArtifacts: 'a number', maxStored: 'a number', maxTask: 'a number', maxTasks: 'a number',
  rememberFor: 'a number', remembered: 'a number',
};
/** @type {import('../../../js/common/check-options.js').Kinds<TaskServerOptions>} */
// prettier-ignore
const OPTIONS = {
  authorize: 'a function', grace: 'a number', hosts: '"*" or an object', keepAlive: 'a number', limits: 'an object of numbers',
  maxBacklog: 'a number', maxRequest: 'a number', maxUnread: 'a number', origins: '"*" or an object', push: 'an object',
  repeats: 'a boolean', replyTimeout: 'a number', store: 'an object', telemetry: 'an object',
};

/**
 * Throws unless all options are what they are to be.
 * @param {unknown} reply
 * @param {TaskServerOptions} options
 */
function checkOptions(reply, options) {
  const who = 'createTaskServer';
  requireExactly(who, options, OPTIONS);
  requireExactly('limits', options.limits ?? {}, LIMITS);
  if (reply !== undefined) requireOf(who, 'reply', 'a function', reply);
  const { hosts, push, store, telemetry } = options;
  if (hosts !== '*') requireTextList(who, 'hosts', hosts);
  if (telemetry !== undefined && typeof telemetry?.attach !== 'function')
    throw mistyped(who, 'telemetry', 'made by openTelemetry');
  if (push !== undefined && typeof push?.attach !== 'function')
    throw mistyped(who, 'push', 'made by pushNotifications');
  if (store !== undefined && typeof store?.attach !== 'function')
    throw mistyped(who, 'store', 'made by taskStore');
}

/** What the methods want of a task whose names versions share. @type {Record<string, Access>} */
const ACCESS = { get: 'get', cancel: 'cancel', resubscribe: 'subscribe' };

/** @param {unknown} error of a hook */
function refused(error) {
  reportError(error);
  return false;
}

/** Nothing has been done, and somewhere else, or later, it can be. */
const away = () => new AbpError('UNAVAILABLE', 'The agent is closing', { retryable: true });

/** It may have been taken, and comes again without harm. */
const again = () =>
  new AbpError('UNAVAILABLE', 'Nobody knows yet whether the message was taken: send it again', {
    retryable: true,
  });

/** Another record came first, the task is there by now, or has taken a message. @type {string[]} */
const PASSED = ['ABORTED', 'CONFLICT', 'UNSUPPORTED_OPERATION'];

/** @param {unknown} error @returns {error is AbpError} */
const isPassed = (error) => error instanceof AbpError && PASSED.includes(error.code);

/** States in which a task takes messages. @type {string[]} */
const ASKING = ['input-required', 'auth-required'];

/** A task that takes no message. @param {StoredTask} task */
const unwanted = (task) =>
  new AbpError('UNSUPPORTED_OPERATION', `Task ${task.id} ${whyNot(task, 'modified')}`);

/** @param {unknown} error */
const isAway = (error) => error instanceof AbpError && error.code === 'UNAVAILABLE';

const busy = () =>
  new AbpError('RATE_LIMITED', 'Too many tasks are in flight: try again later', {
    retryable: true,
    retryAfter: BUSY_FOR,
  });

/** Why the core takes no task. @param {number} [status] */
const refusal = (status = abp.E_LIMIT) =>
  status === abp.E_LIMIT ? busy() : new AbpError('INTERNAL_ERROR', 'Out of memory');

/** @param {StoredTask} task @param {string} contextId */
function checkContext(task, contextId) {
  if (contextId === task.contextId) return;
  throw new AbpError(
    'INVALID_PARAMS',
    `contextId mismatch: message contextId '${contextId}' does not match task '${task.id}' contextId '${task.contextId}'`,
  );
}

/** @param {Entry} entry @param {Asked} asked @param {() => void} settle */
function wait({ waiting, replica }, { reply, fail }, settle) {
  // It may have left while the task was looked for.
  if (reply.left) return;
  waiting.set(settle, fail);
  replica?.watch();
  reply.onLeave = () => waiting.delete(settle);
}

/** @param {unknown} error */
function asError(error) {
  if (error instanceof AbpError) return error;
  console.error('abp-bridge: answering a request failed:', error);
  return new AbpError('INTERNAL_ERROR', 'The agent failed to answer');
}

/** How a run ended whose executor threw. @param {any} thrown */
function returnOf(thrown) {
  const outcome = safely(() => thrown.outcome, undefined);
  // What a call of the executor's own may still do, such as one to a pool whose worker died, the core does not know.
  if (outcome === 'unknown' || outcome === 'running') return core.TASK_UNSURE;
  return saysCancelled(thrown) ? core.TASK_STOPPED : core.TASK_THREW;
}

/** @param {StoredTask} task @param {unknown} thrown */
function failed(task, thrown) {
  // What is not meant for the client may say more than the client is to know.
  if (thrown instanceof AbpError) return statusOf(task, thrown.message);
  if (!saysCancelled(thrown)) reportError(thrown);
  return statusOf(task, 'The agent failed to execute the task');
}

/** @param {StoredTask} task @param {string} what */
const whyNot = ({ state, terminal }, what) =>
  terminal
    ? `is in a terminal state (${state}) and cannot be ${what}.`
    : `is ${state} and accepts messages only when it asks for one.`;
