/**
 * An A2A agent: answers requests of every version, runs an executor for each task, and sends every stream of a task
 * the same events. The core decides what happens to a task (src/abp_tasks.h), and #act carries that out.
 */
import * as abp from '../core/abp-boundary.js';
import * as core from '../core/tasks-boundary.js';
import {
  AbpError,
  invokeReportingErrors,
  reasonText,
  safely,
  toErrorObject,
} from '../common/errors.js';
import { isStream } from '../common/transfer.js';
import { milliseconds, getOwn } from '../common/values.js';
import { TaskTable, ready } from '../core/tasks-core.js';
import { Backlog } from './backlog.js';
import { preferredVersion, printCard } from './card.js';
import { DIALECTS, METHODS, STATES, printError } from './dialects.js';
import { httpListener, readOrigins, respond } from './http.js';
import { serveTransport } from './port.js';
import {
  check,
  filterOf,
  historyOf,
  keyOf,
  refuse,
  taskIdOf,
  timeOf,
  versionOf,
} from './requests.js';
import { Frame, Stream, unsendable } from './reply.js';
import { ExecutorContext, StoredTask, replyOf, statusOf } from './task.js';
import { Entry, TaskStore } from './task-store.js';
import { checkExtensions, extensionsOf, readSend, requestInfo } from './validation.js';
import { newId } from './ids.js';

/** @import { Dialect, Event, Message, Status } from './dialects.js' */
/** @import { Caller, Reply } from './reply.js' */
/** @import { RequestInfo } from './task.js' */

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
 * @property {string[] | '*'} [origins] whose pages may ask, over HTTP (none but the agent's own)
 * @property {(task: StoredTask, access: Access, request: import('./task.js').RequestInfo) => boolean} [authorize]
 *   whether a request may do that to a task. Only `true` is yes; what it may not see is not found (everybody may)
 * @property {import('../core/tasks-core.js').TaskLimits & ServerLimits} [limits]
 */

/**
 * @typedef {object} ServerLimits
 * @property {number} [maxTask] characters of a task: its artifacts and its messages, as JSON (67108864)
 * @property {number} [maxStored] characters of all tasks; finished ones are forgotten to make room (268435456)
 * @property {number} [maxAnswer] characters of an answer; a page of a list ends before it is longer (67108864)
 */

/** Defaults of TaskServerOptions. */
const DEFAULTS = { maxRequest: 4 << 20, maxUnread: 4 << 20, maxBacklog: 256 << 20 };
const DEFAULT_KEEP_ALIVE = 15_000;
const DEFAULT_LIMITS = { maxTask: 64 << 20, maxStored: 256 << 20, maxAnswer: 64 << 20 };

/** The verdict on a task whose core has failed. */
const LOST =
  core.TASK_TELL |
  core.TASK_ABORT |
  core.TASK_SETTLE |
  core.TASK_END |
  (core.TASK_FAILED << core.TASK_STATE_SHIFT);

export class TaskServer {
  /** @type {TaskStore} */
  #entries;
  /** Made when the core is ready. @type {TaskTable} */
  #table = /** @type {any} */ (undefined);
  #card;
  #execute;
  #options;
  #limits;
  #grace;
  #streaming;
  /** Resolves when the table has been made. @type {Promise<void> | undefined} */
  #ready;
  #closed = false;
  #extensions;
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
    this.#card = card;
    this.#execute = execute;
    const origins = readOrigins(options.origins);
    this.#options = { ...DEFAULTS, ...options, origins, keepAlive: keepAliveOf(options) };
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#entries = new TaskStore(this.#limits.maxStored);
    this.#reply = reply;
    this.#extensions = extensionsOf(card);
    this.#grace = milliseconds(options.grace);
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
  }

  /**
   * Serves the peer of a transport: a port, a window, a socket. See js/a2a/frames.js.
   * @param {import('../transports/transport.js').Transport} transport
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

  /** When the card last changed. */
  get since() {
    return (this.#since ??= new Date());
  }

  /** Counts for debugging. */
  get counters() {
    const streams = [...this.#entries].reduce((sum, { streams }) => sum + streams.size, 0);
    return { ...this.#table?.counters(), streams };
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
    const status = (/** @type {StoredTask} */ task) => statusOf(task, 'The agent lost the task');
    for (const entry of entries.filter(({ task }) => !task.terminal))
      this.#act(entry, LOST, { said: core.TASK_FAILED, status: status(entry.task) });
  }

  /** Cancels every task, ends every stream, and refuses further requests. */
  close() {
    this.#closed = true;
    for (const entry of this.#entries)
      this.#act(entry, entry.table.cancel(entry.handle, 0, true), { reason: 'The agent closes' });
    this.#table?.arm(0);
  }

  /**
   * The agent card of a version.
   * @param {import('./card.js').CardVersion | undefined} version the default is that which the agent prefers
   * @param {string} url the agent's URL, for interfaces that name none
   */
  card(version, url) {
    return printCard(this.#card, version ?? preferredVersion(this.#card), url);
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
      // Not before somebody asks: where a module is evaluated there may be neither randomness nor timers.
      await (this.#ready ??= ready.then(() => this.#begin()));
    } catch (error) {
      refuse(reply, version, 'INTERNAL_ERROR', asError(error).message);
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
    const id = getOwn(request, 'id') ?? null;
    const method = METHODS.get(getOwn(request, 'method'));
    const params = getOwn(request, 'params');
    const info = requestInfo(caller, params, this.#extensions);
    const dialect = this.#dialect(method, info, params);
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
    try {
      if (this.#closed) throw new AbpError('INTERNAL_ERROR', 'The agent is closing');
      check(request, version, dialect);
      reply.extensions = info.extensions;
      const asked = { dialect, params, id, reply, answer, info };
      switch (method?.operation) {
        case 'send':
        case 'stream':
          return await this.#send(asked, method.operation === 'stream');
        case 'get': {
          const { task } = this.#find(asked, 'get');
          return answer({ result: dialect.task(this.#fitting(historyOf(task, params), task)) });
        }
        case 'list':
          return answer({ result: this.#list(asked) });
        case 'cancel':
          return this.#cancel(asked);
        case 'resubscribe':
          return this.#resubscribe(asked);
        case 'push':
          throw new AbpError(
            'PUSH_NOTIFICATION_NOT_SUPPORTED',
            'Push Notification is not supported',
          );
        case 'extendedCard':
          throw new AbpError(
            'UNSUPPORTED_OPERATION',
            'Agent does not support authenticated extended card.',
          );
        default:
          throw new AbpError('METHOD_NOT_FOUND', dialect.noMethod(getOwn(request, 'method')));
      }
    } catch (error) {
      answer({ error: printError(dialect, asError(error)) });
    }
  }

  /**
   * The version to answer in: that of the method's name, or of the header if two versions share the name. Without a
   * header it is the version in which the task was begun.
   * @param {{ operation: string, dialects: Dialect[] } | undefined} method
   * @param {RequestInfo} info
   * @param {unknown} params
   * @returns {Dialect}
   */
  #dialect(method, info, params) {
    const asked = versionOf(info.version);
    if (!method) return DIALECTS[asked ?? '0.3'];
    if (method.dialects.length === 1) return method.dialects[0];
    if (asked) return DIALECTS[asked === '1.0' ? 'gem' : asked];
    // A task that the request may not see must not influence the answer.
    const entry = this.#visible(taskIdOf(params), ACCESS[method.operation], info);
    return entry && method.dialects.includes(entry.dialect) ? entry.dialect : DIALECTS['0.3'];
  }

  /**
   * The task of this id, if the request is allowed that access.
   * @param {unknown} id
   * @param {Access} access
   * @param {RequestInfo} info
   */
  #visible(id, access, info) {
    const entry = this.#entries.get(this.#table.find(id));
    return entry && this.#allows(entry.task, access, info) ? entry : undefined;
  }

  /** @param {StoredTask} task @param {Access} access @param {RequestInfo} info */
  #allows(task, access, info) {
    const { authorize } = this.#options;
    return !authorize || invokeReportingErrors(authorize, task, access, info) === true;
  }

  /**
   * @param {Asked} asked
   * @param {Access} access
   * @returns {Entry}
   */
  #find({ dialect, params, info }, access) {
    const id = taskIdOf(params);
    if (typeof id !== 'string' || id.trim() === '')
      throw new AbpError('INVALID_PARAMS', dialect.noId);
    return this.#entry(id, access, dialect, info);
  }

  /** @param {string} id @param {Access} access @param {Dialect} dialect @param {RequestInfo} info */
  #entry(id, access, dialect, info) {
    const entry = this.#visible(id, access, info);
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
    const { dialect, params, reply, answer, info } = asked;
    if (streams) this.#needStreaming();
    checkExtensions(this.#extensions, info, params);
    const { message, configuration, size } = readSend(params, dialect);
    if (!message.taskId && this.#reply && (await this.#replied(asked, streams, message))) return;
    const known = message.taskId && this.#entry(message.taskId, 'send', dialect, info);
    if (!this.#entries.makeRoom(0)) throw busy();
    const entry = known || this.#newTask(message, dialect, info);
    const { task } = entry;
    if (message.contextId && message.contextId !== task.contextId)
      throw new AbpError(
        'INVALID_PARAMS',
        `contextId mismatch: message contextId '${message.contextId}' does not match task '${task.id}' contextId '${task.contextId}'`,
      );
    const verdict = entry.table.start(entry.handle);
    if (!(verdict & core.TASK_START))
      throw new AbpError('UNSUPPORTED_OPERATION', `Task ${task.id} ${whyNot(task, 'modified')}`);
    message.taskId = task.id;
    message.contextId = task.contextId;
    task.remember(message, size);
    this.#entries.update(entry);
    const send = () =>
      answer({
        result: dialect.event({ kind: 'task', task: historyOf(task, configuration) }),
      });
    const waits = !streams && dialect.blocks(configuration);
    entry.silent = false;
    if (streams) this.#subscribe(entry, asked, dialect.snapshot);
    else if (waits) {
      wait(entry, reply, send);
      reply.wait?.();
    }
    this.#act(entry, verdict, { prompt: message, info });
    if (!streams && !waits) send();
  }

  /**
   * Answers with a message instead of a task, if the agent has one.
   * @param {Asked} asked
   * @param {boolean} streams
   * @param {Message} message
   * @returns {Promise<boolean>}
   */
  async #replied({ dialect, id, reply, answer, info }, streams, message) {
    const said = await this.#reply?.({ message, request: info });
    if (this.#closed) throw new AbpError('INTERNAL_ERROR', 'The agent is closing');
    if (said === undefined || said === null) return false;
    const event = /** @type {const} */ ({
      kind: 'message',
      message: replyOf(message.contextId ?? newId(), said),
    });
    if (streams) {
      const stream = new Stream(reply, dialect, id);
      reply.open();
      if (stream.send(new Frame(event))) stream.end();
    } else answer({ result: dialect.event(event) });
    return true;
  }

  /** @param {Message} message @param {Dialect} dialect @param {RequestInfo} info */
  #newTask(message, dialect, info) {
    const id = newId();
    const table = this.#table;
    const handle = table.add(id, core.TASK_SUBMITTED);
    if (handle <= 0)
      throw handle === abp.E_LIMIT ? busy() : new AbpError('INTERNAL_ERROR', 'Out of memory');
    const task = new StoredTask(id, message.contextId ?? newId(), this.#limits.maxTask, info.user);
    const entry = new Entry(table, handle, task, dialect);
    this.#entries.add(entry);
    return entry;
  }

  /** @param {Asked} asked */
  #cancel(asked) {
    const { dialect, params, reply, answer } = asked;
    const entry = this.#find(asked, 'cancel');
    const { table, handle, task } = entry;
    /** @param {number} verdict */
    const say = (verdict) => {
      if (verdict & core.TASK_ACK) answer({ result: dialect.task(task) });
      else
        answer({
          error: printError(
            dialect,
            new AbpError('TASK_NOT_CANCELABLE', dialect.notCancelable(task.id)),
          ),
        });
    };
    const verdict = table.cancel(handle, this.#grace, dialect.repeatable);
    // The client waited for the end, so in every version it gets the task as it ended.
    if (verdict & core.TASK_WAIT) wait(entry, reply, () => say(table.cancel(handle, 0, true)));
    this.#act(entry, verdict, { reason: reasonText(getOwn(getOwn(params, 'metadata'), 'reason')) });
    if (!(verdict & core.TASK_WAIT)) say(verdict);
  }

  /** @param {Asked} asked */
  #resubscribe(asked) {
    const { dialect, reply, id } = asked;
    this.#needStreaming();
    try {
      const entry = this.#find(asked, 'subscribe');
      this.#fitting(entry, entry.task);
      if (entry.task.terminal)
        throw new AbpError(
          'UNSUPPORTED_OPERATION',
          `Task ${entry.task.id} ${whyNot(entry.task, 'subscribed to')}`,
        );
      this.#subscribe(entry, asked, true);
    } catch (error) {
      if (!dialect.streamsErrors) throw error;
      reply.open();
      new Stream(reply, dialect, id).fail(printError(dialect, asError(error)));
    }
  }

  #needStreaming() {
    if (!this.#streaming)
      throw new AbpError('UNSUPPORTED_OPERATION', 'Streaming is not supported.');
  }

  /**
   * @param {Entry} entry
   * @param {Asked} asked
   * @param {boolean} snapshot whether the task itself comes first
   */
  #subscribe(entry, { dialect, params, reply, id }, snapshot) {
    const stream = new Stream(reply, dialect, id);
    reply.onLeave = () => entry.streams.delete(stream);
    reply.open();
    // The reader may have left while the core was being loaded.
    if (reply.left) return;
    const task = historyOf(entry.task, getOwn(params, 'configuration'));
    if (snapshot && !stream.send(new Frame({ kind: 'task', task }))) return;
    if (entry.silent) stream.end();
    else entry.streams.add(stream);
  }

  /** @param {Asked} asked */
  #list({ dialect, params, info }) {
    const { contextId, status, after, pageSize, cursor, artifacts } = filterOf(params);
    const withArtifacts = artifacts || !dialect.pages;
    const found = [...this.#entries]
      .map(({ task }) => task)
      .filter(
        (task) =>
          (contextId === undefined || task.contextId === contextId) &&
          (!status || task.state === STATES[status]) &&
          (after === undefined || Date.parse(timeOf(task)) >= after) &&
          this.#allows(task, 'list', info),
      )
      .sort((a, b) => (keyOf(a) < keyOf(b) ? 1 : -1));
    const rest = cursor === undefined ? found : found.filter((task) => keyOf(task) < cursor);
    let room = this.#limits.maxAnswer;
    const tooLong = rest.findIndex(
      (task) => (room -= withArtifacts ? task.size : task.size - task.artifactsSize) < 0,
    );
    const fitting = tooLong < 0 ? rest.length : tooLong;
    const length = dialect.pages ? Math.min(pageSize, fitting) : fitting;
    if (length < rest.length && (length === 0 || !dialect.pages))
      throw new AbpError('TOO_LARGE', 'The tasks are too long for one answer');
    const page = rest.slice(0, length);
    const nextPageToken = length < rest.length ? btoa(keyOf(page[length - 1])) : '';
    const tasks = page.map((task) => historyOf(task, params));
    if (!withArtifacts) for (const task of tasks) task.artifacts = [];
    return dialect.list(tasks, { nextPageToken, pageSize, totalSize: found.length });
  }

  // --- Verdicts of the core ----------------------------------------------------------------------------

  /**
   * Carries out a verdict.
   * @param {Entry | undefined} entry
   * @param {number} verdict
   * @param {{ said?: number, status?: Partial<Status>, reason?: string, prompt?: Message, info?: RequestInfo }} [about]
   *   the status and the state that it belongs to, why the task is to stop, the message for a new run and its request
   */
  #act(entry, verdict, { said, status, reason, prompt, info } = {}) {
    if (!entry || verdict <= 0) return;
    const { task, streams } = entry;
    if (verdict & core.TASK_TELL) {
      const state = verdict >> core.TASK_STATE_SHIFT;
      task.status = {
        state: STATES[state],
        timestamp: new Date().toISOString(),
        // A status for one state does not describe another.
        ...(said === state && status),
      };
      if (task.status.message) task.remember(task.status.message);
      this.#entries.update(entry);
      entry.silent = (verdict & core.TASK_END) !== 0;
      this.#tell(entry, {
        kind: 'status',
        taskId: task.id,
        contextId: task.contextId,
        status: task.status,
        final: entry.silent,
      });
    }
    if (verdict & core.TASK_ABORT) entry.run?.abort(reason);
    if (verdict & core.TASK_SETTLE) {
      const waiting = [...entry.waiting];
      entry.waiting.clear();
      for (const settle of waiting) settle();
    }
    if (verdict & core.TASK_END) {
      for (const stream of streams) stream.end();
      streams.clear();
    }
    if (verdict & core.TASK_FORGET) this.#entries.delete(entry);
    if (verdict & core.TASK_START && prompt && info) void this.#run(entry, prompt, info);
  }

  /** @param {Entry} entry @param {Event} event */
  #tell({ streams }, event) {
    if (streams.size === 0) return;
    const frame = new Frame(event);
    for (const stream of streams) if (!stream.send(frame)) streams.delete(stream);
  }

  /**
   * Runs the executor for one message.
   * @param {Entry} entry
   * @param {Message} prompt
   * @param {RequestInfo} info
   */
  async #run(entry, prompt, info) {
    const { table, handle, task } = entry;
    const run = table.run(handle);
    const context = new ExecutorContext(task, prompt, info, {
      status: (said, status) => {
        if (status.message) {
          const { length } = JSON.stringify(status.message);
          // Earlier messages make room for it in its task.
          this.#requireRoom(task, task.artifactsSize + length, length);
        }
        const verdict = table.says(handle, run, said, status.message !== undefined);
        this.#act(entry, verdict, { said, status });
        return verdict > 0;
      },
      artifact: (artifact, size, append, lastChunk) =>
        this.#artifact(entry, run, artifact, size, append, lastChunk),
    });
    entry.run = context;
    let failure;
    try {
      const given = await this.#execute(context);
      if (isStream(given)) {
        // Loaded on demand: few executors stream.
        const { streamChunks } = await import('./chunks.js');
        await streamChunks(context, given);
      }
    } catch (error) {
      failure = { said: core.TASK_FAILED, status: failed(task, error) };
    }
    if (table.run(handle) === run) entry.run = undefined;
    this.#act(entry, table.returns(handle, run, failure !== undefined), failure);
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
      throw new RangeError('The tasks of the agent are as long as they may be');
  }

  /**
   * @param {Entry} entry
   * @param {number} run
   * @param {import('./dialects.js').Artifact} artifact
   * @param {number} size characters
   * @param {boolean} append
   * @param {boolean} lastChunk
   */
  #artifact(entry, run, artifact, size, append, lastChunk) {
    const { table, task } = entry;
    const grows = task.growth(artifact.artifactId, size, append);
    this.#requireRoom(task, task.size + grows, grows);
    const verdict = table.artifact(entry.handle, run, artifact.artifactId, append);
    if (verdict < 0)
      throw verdict === abp.E_ID
        ? new TypeError('The artifactId is empty, too long or not well-formed')
        : new RangeError('The task has as many artifacts as it may have');
    const place = verdict >> 2;
    switch (verdict & 3) {
      case core.ARTIFACT_DROP:
        return false;
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
    this.#tell(entry, {
      kind: 'artifact',
      taskId: task.id,
      contextId: task.contextId,
      artifact,
      append,
      lastChunk,
    });
    return true;
  }
}

/**
 * @typedef {object} Asked A request, read.
 * @property {Dialect} dialect
 * @property {any} params
 * @property {unknown} id
 * @property {Reply} reply
 * @property {(body: object) => void} answer
 * @property {RequestInfo} info
 */

/**
 * @typedef {object} Agent
 * @property {any} card the agent card: `name`, `description`, `version`, `skills`, `capabilities`, …, in the form of 1.0;
 *   where it names no interfaces and no `url`, it is given those that it was fetched from
 * @property {(context: ExecutorContext) => unknown} execute works on a message. The task is `working` when it is called
 *   and `completed` when it returns, unless it said otherwise; what it throws makes the task `failed`. What it streams, by
 *   being an async generator or returning an async iterable, are chunks of artifacts
 * @property {(asked: { message: Message, request: RequestInfo }) => import('./task.js').Said | undefined | null
 *   | Promise<import('./task.js').Said | undefined | null>} [reply] answers a message that begins a task with another
 *   message instead; with `undefined` there is a task. What it throws is the error that the client gets
 */

/**
 * Creates an A2A agent.
 * @param {Agent} agent
 * @param {TaskServerOptions} [options]
 */
export const createTaskServer = (agent, options = {}) => new TaskServer(agent, options);

/** @param {TaskServerOptions} options */
const keepAliveOf = ({ keepAlive = DEFAULT_KEEP_ALIVE }) => milliseconds(keepAlive);

/** What the methods want of a task whose names versions share. @type {Record<string, Access>} */
const ACCESS = { get: 'get', cancel: 'cancel', resubscribe: 'subscribe' };

const busy = () =>
  new AbpError('RATE_LIMITED', 'Too many tasks are going on: try again later', { retryable: true });

/** @param {Entry} entry @param {Reply} reply @param {() => void} settle */
function wait({ waiting }, reply, settle) {
  waiting.add(settle);
  reply.onLeave = () => waiting.delete(settle);
}

/** @param {unknown} error */
function asError(error) {
  if (error instanceof AbpError) return error;
  console.error('abp-bridge: a request could not be answered:', error);
  return new AbpError('INTERNAL_ERROR', 'The agent failed to answer');
}

/** @param {StoredTask} task @param {unknown} thrown */
const failed = (task, thrown) =>
  statusOf(task, `Agent execution error: ${toErrorObject(thrown).message}`);

/** @param {StoredTask} task @param {string} what */
const whyNot = ({ state, terminal }, what) =>
  terminal
    ? `is in a terminal state (${state}) and cannot be ${what}.`
    : `is ${state} and takes no message until it asks for one.`;
