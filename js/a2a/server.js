/**
 * An A2A agent: answers requests of every version, runs an executor for each task, and tells every stream of a task
 * the same. What becomes of a task is the core's to say (src/abp_tasks.h); #act is the one place that does it.
 */
import * as abp from '../../dist/abp-constants.js';
import * as core from '../../dist/tasks-constants.js';
import { AbpError, reasonText, toErrorObject } from '../errors.js';
import { milliseconds, own } from '../messages.js';
import { TaskTable, ready } from './core.js';
import { printCard } from './card.js';
import { DIALECTS, METHODS, STATES, printError } from './dialects.js';
import { httpListener, respond } from './http.js';
import { serveTransport } from './port.js';
import {
  check,
  filterOf,
  historyOf,
  keyOf,
  messageOf,
  refuse,
  taskIdOf,
  timeOf,
  versionOf,
} from './requests.js';
import { ExecutorContext, StoredTask, statusOf } from './task.js';
import { newId } from './ids.js';

/** @import { Dialect, Event, Message, Status, Task } from './dialects.js' */

/**
 * Where the answer to one request goes.
 * @typedef {object} Reply
 * @property {(response: object) => void} answer one JSON-RPC response, and that is all
 * @property {() => void} open begins a stream
 * @property {(response: object, text: string, failed?: boolean) => void} frame
 *   one JSON-RPC response in the stream, and the same as text
 * @property {() => void} end ends the stream
 * @property {boolean} left whether nobody reads the answer any more
 * @property {undefined | (() => void)} onLeave called when that becomes so
 */

/**
 * @typedef {object} TaskServerOptions Each is optional and has a default.
 * @property {number} [grace] how long a cancel waits for the executor to say how its task ended, in ms; with 0 the
 *   task is canceled at once, whatever the executor does (0)
 * @property {number} [maxRequest] characters of a request (4194304)
 * @property {number} [maxUnread] bytes that may wait for a slow reader of a stream; one that has more is cut off,
 *   and its task goes on (4194304)
 * @property {number} [keepAlive] ms between comments in an idle stream, for proxies that end silent ones; 0 is
 *   none (0)
 * @property {import('./core.js').TaskLimits} [limits]
 */

/** What is done about a task that the core cannot be asked about any more. */
const LOST =
  core.TASK_TELL |
  core.TASK_ABORT |
  core.TASK_SETTLE |
  core.TASK_END |
  (core.TASK_FAILED << core.TASK_STATE_SHIFT);

/** One frame of a task, printed at most once for each version. */
class Frame {
  /** @type {Map<Dialect, { object: any, text: string }>} */
  #printed = new Map();

  /** @param {Event} event */
  constructor(event) {
    this.event = event;
  }

  /** @param {Dialect} dialect */
  in(dialect) {
    let printed = this.#printed.get(dialect);
    if (!printed) {
      const object = dialect.event(this.event);
      printed = { object, text: JSON.stringify(object) };
      this.#printed.set(dialect, printed);
    }
    return printed;
  }
}

/** Somebody who reads what happens to a task, in one version. */
class Stream {
  /** @param {Reply} reply @param {Dialect} dialect @param {unknown} id of the request */
  constructor(reply, dialect, id) {
    this.reply = reply;
    this.dialect = dialect;
    this.head = dialect.numbered ? { jsonrpc: '2.0', id } : { jsonrpc: '2.0' };
  }

  /** @param {Frame} frame */
  send(frame) {
    const { object, text } = frame.in(this.dialect);
    const head = JSON.stringify(this.head);
    const response = { ...this.head, result: object };
    this.reply.frame(response, `${head.slice(0, -1)},"result":${text}}`);
  }
}

/** A task and all that hangs on it. */
class Entry {
  /** @type {Set<Stream>} */
  streams = new Set();
  /** Who waits for the task to settle. @type {Set<() => void>} */
  waiting = new Set();
  /** The latest run. @type {ExecutorContext | undefined} */
  run;

  /**
   * @param {TaskTable} table
   * @param {number} handle
   * @param {StoredTask} task
   * @param {Dialect} dialect of the message that made it
   */
  constructor(table, handle, task, dialect) {
    this.table = table;
    this.handle = handle;
    this.task = task;
    this.dialect = dialect;
  }
}

export class TaskServer {
  /** @type {Map<number, Entry>} */
  #entries = new Map();
  /** Made when the core is ready. @type {TaskTable} */
  #table = /** @type {any} */ (undefined);
  #card;
  #execute;
  #options;
  #grace;
  #streaming;
  #ready;
  #closed = false;
  #timer = /** @type {any} */ (undefined);
  #wake = 0;

  /**
   * Use {@link createTaskServer}.
   * @param {{ card: any, execute: (context: ExecutorContext) => unknown }} agent
   * @param {TaskServerOptions} options
   */
  constructor({ card, execute }, options) {
    if (typeof card?.name !== 'string' || typeof execute !== 'function') {
      throw new AbpError(
        'INVALID_PARAMS',
        'createTaskServer needs card: { name, … } and execute(context)',
      );
    }
    this.#card = card;
    this.#execute = execute;
    this.#options = { maxRequest: 4 << 20, maxUnread: 4 << 20, keepAlive: 0, ...options };
    this.#grace = milliseconds(options.grace);
    this.#streaming = card.capabilities?.streaming !== false;
    this.#ready = ready.then(() => this.#begin());
    // Whoever asks something awaits it.
    this.#ready.catch(() => {});

    /** A listener for `http.createServer`, and middleware for Express: whatever is not A2A goes to `next`. */
    this.handle = httpListener(this, this.#options);
    /**
     * For servers in the style of `fetch`: Hono, a service worker.
     * @param {Request} request
     * @returns {Promise<Response>}
     */
    this.fetch = (request) => respond(this, request, this.#options);
  }

  /**
   * Serves whoever is at the other end of a transport: a port, a window, a socket. See js/a2a/frames.js.
   * @param {import('../endpoint.js').Transport} transport
   * @returns {() => void} stops serving it; the tasks go on
   */
  serve(transport) {
    return serveTransport(this, transport);
  }

  /** What is going on, for people who debug. */
  get counters() {
    const streams = [...this.#entries.values()].reduce((sum, { streams }) => sum + streams.size, 0);
    return { ...this.#table?.counters(), streams };
  }

  #begin() {
    this.#table = new TaskTable(this.#options.limits, () => this.#lost());
  }

  /** The core has failed. Whoever waits for its tasks is told, and the agent goes on without them. */
  #lost() {
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    this.#begin();
    const status = (/** @type {StoredTask} */ task) => statusOf(task, 'The agent lost the task');
    for (const entry of entries.filter(({ task }) => !task.terminal))
      this.#act(entry, LOST, { said: core.TASK_FAILED, status: status(entry.task) });
  }

  /** Cancels every task, ends every stream, and refuses what comes from now on. */
  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    for (const entry of this.#entries.values())
      this.#act(entry, entry.table.cancel(entry.handle, 0, true), { reason: 'The agent closes' });
  }

  /**
   * The agent card of a version.
   * @param {'1.0' | '0.3' | '0.2' | 'gem'} version
   * @param {string} url where the agent is asked, unless the card says so itself
   */
  card(version, url) {
    return printCard(this.#card, version, url);
  }

  /**
   * Answers one request.
   * @param {string} text
   * @param {string | undefined} version its `A2A-Version`
   * @param {Reply} reply
   */
  async receive(text, version, reply) {
    try {
      await this.#ready;
    } catch (error) {
      refuse(reply, version, 'INTERNAL_ERROR', asError(error).message);
      return;
    }
    this.#advance();
    let request;
    try {
      request = JSON.parse(text);
    } catch {
      refuse(reply, version, 'PARSE_ERROR', 'Invalid JSON payload.');
      return;
    }
    const id = own(request, 'id') ?? null;
    const method = METHODS.get(own(request, 'method'));
    const params = own(request, 'params');
    const dialect = this.#dialect(method, version, params);
    /** @param {object} body */
    const answer = (body) =>
      reply.answer({ jsonrpc: '2.0', id: typeof id === 'object' ? null : id, ...body });
    try {
      if (this.#closed) throw new AbpError('INTERNAL_ERROR', 'The agent is closing');
      check(request, version, dialect);
      const asked = { dialect, params, id, reply, answer };
      switch (method?.operation) {
        case 'send':
        case 'stream':
          return this.#send(asked, method.operation === 'stream');
        case 'get':
          return answer({ result: dialect.task(historyOf(this.#find(asked).task, params)) });
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
          throw new AbpError('METHOD_NOT_FOUND', dialect.noMethod(own(request, 'method')));
      }
    } catch (error) {
      answer({ error: printError(dialect, asError(error)) });
    }
  }

  /**
   * The version to answer in. A name that two versions share says nothing, so then the header counts; without one,
   * a task is answered for as it was begun.
   * @param {{ dialects: Dialect[] } | undefined} method
   * @param {string | undefined} version
   * @param {any} params
   * @returns {Dialect}
   */
  #dialect(method, version, params) {
    const asked = versionOf(version);
    if (!method) return DIALECTS[asked ?? '0.3'];
    if (method.dialects.length === 1) return method.dialects[0];
    if (asked) return DIALECTS[asked === '1.0' ? 'gem' : asked];
    const entry = this.#entries.get(this.#table.find(taskIdOf(params)));
    return entry && method.dialects.includes(entry.dialect) ? entry.dialect : DIALECTS['0.3'];
  }

  /**
   * @param {Asked} asked
   * @returns {Entry}
   */
  #find({ dialect, params }) {
    const id = taskIdOf(params);
    if (typeof id !== 'string' || id.trim() === '')
      throw new AbpError('INVALID_PARAMS', dialect.noId);
    return this.#entry(id, dialect);
  }

  /** @param {string} id @param {Dialect} dialect */
  #entry(id, dialect) {
    const entry = this.#entries.get(this.#table.find(id));
    if (!entry) throw new AbpError('TASK_NOT_FOUND', dialect.notFound(id));
    return entry;
  }

  // --- Operations ----------------------------------------------------------------------------------

  /**
   * @param {Asked} asked
   * @param {boolean} streams
   */
  #send(asked, streams) {
    const { dialect, params, reply, answer } = asked;
    if (streams) this.#needStreaming();
    const message = messageOf(params, dialect);
    const entry = message.taskId
      ? this.#entry(message.taskId, dialect)
      : this.#newTask(message.contextId, dialect);
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
    task.remember(message);
    const send = () =>
      answer({
        result: dialect.event({
          kind: 'task',
          task: historyOf(task, own(params, 'configuration')),
        }),
      });
    const waits = !streams && dialect.blocks(own(params, 'configuration'));
    if (streams) this.#subscribe(entry, asked, dialect.snapshot);
    else if (waits) wait(entry, reply, send);
    this.#act(entry, verdict, { prompt: message });
    if (!streams && !waits) send();
  }

  /** @param {string | undefined} contextId @param {Dialect} dialect */
  #newTask(contextId, dialect) {
    const id = newId();
    const table = this.#table;
    const handle = table.add(id, core.TASK_SUBMITTED);
    if (handle <= 0)
      throw new AbpError(
        'INTERNAL_ERROR',
        handle === abp.E_LIMIT ? 'Too many tasks are going on: try again later' : 'Out of memory',
      );
    const entry = new Entry(table, handle, new StoredTask(id, contextId ?? newId()), dialect);
    this.#entries.set(handle, entry);
    return entry;
  }

  /** @param {Asked} asked */
  #cancel(asked) {
    const { dialect, params, reply, answer } = asked;
    const entry = this.#find(asked);
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
    // It waited, so how the task ended is what it is told, in every version.
    if (verdict & core.TASK_WAIT) wait(entry, reply, () => say(table.cancel(handle, 0, true)));
    this.#act(entry, verdict, { reason: reasonText(own(own(params, 'metadata'), 'reason')) });
    if (!(verdict & core.TASK_WAIT)) say(verdict);
  }

  /** @param {Asked} asked */
  #resubscribe(asked) {
    const { dialect, reply, id } = asked;
    this.#needStreaming();
    try {
      const entry = this.#find(asked);
      if (entry.task.terminal)
        throw new AbpError(
          'UNSUPPORTED_OPERATION',
          `Task ${entry.task.id} ${whyNot(entry.task, 'subscribed to')}`,
        );
      this.#subscribe(entry, asked, true);
    } catch (error) {
      if (!dialect.streamsErrors) throw error;
      const response = { jsonrpc: '2.0', id, error: printError(dialect, asError(error)) };
      reply.open();
      reply.frame(response, JSON.stringify(response), true);
      reply.end();
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
    // It may have left while the core was still being loaded.
    if (!reply.left) entry.streams.add(stream);
    const task = historyOf(entry.task, own(params, 'configuration'));
    if (snapshot) stream.send(new Frame({ kind: 'task', task }));
  }

  /** @param {Asked} asked */
  #list({ dialect, params }) {
    const { contextId, status, after, pageSize, cursor } = filterOf(params);
    const found = [...this.#entries.values()]
      .map(({ task }) => task)
      .filter(
        (task) =>
          (contextId === undefined || task.contextId === contextId) &&
          (!status || task.state === STATES[status]) &&
          (after === undefined || Date.parse(timeOf(task)) > after),
      )
      .sort((a, b) => (keyOf(a) < keyOf(b) ? 1 : -1));
    const rest = cursor === undefined ? found : found.filter((task) => keyOf(task) < cursor);
    const page = dialect.pages ? rest.slice(0, pageSize) : rest;
    const nextPageToken = page.length < rest.length ? btoa(keyOf(page[pageSize - 1])) : '';
    const tasks = page.map((task) => historyOf(task, params));
    if (dialect.pages && own(params, 'includeArtifacts') !== true)
      for (const task of tasks) task.artifacts = [];
    return dialect.list(tasks, { nextPageToken, pageSize, totalSize: found.length });
  }

  // --- What the core said ----------------------------------------------------------------------------

  /**
   * Does what a verdict says.
   * @param {Entry | undefined} entry
   * @param {number} verdict
   * @param {{ said?: number, status?: Partial<Status>, reason?: string, prompt?: Message }} [about]
   *   what was said of which state, why it is to stop, the message for a new run
   */
  #act(entry, verdict, { said, status, reason, prompt } = {}) {
    if (!entry || verdict <= 0) return;
    const { task, streams } = entry;
    if (verdict & core.TASK_TELL) {
      const state = verdict >> core.TASK_STATE_SHIFT;
      task.status = {
        state: STATES[state],
        timestamp: new Date().toISOString(),
        // What was said of one state does not explain another.
        ...(said === state && status),
      };
      if (task.status.message) task.remember(task.status.message);
      this.#tell(entry, {
        kind: 'status',
        taskId: task.id,
        contextId: task.contextId,
        status: task.status,
      });
    }
    if (verdict & core.TASK_ABORT) entry.run?.abort(reason);
    if (verdict & core.TASK_SETTLE) {
      const waiting = [...entry.waiting];
      entry.waiting.clear();
      for (const settle of waiting) settle();
    }
    if (verdict & core.TASK_END) {
      for (const { reply } of streams) reply.end();
      streams.clear();
    }
    if (verdict & core.TASK_FORGET) this.#entries.delete(entry.handle);
    if (verdict & core.TASK_START && prompt) this.#run(entry, prompt);
    this.#arm();
  }

  /** @param {Entry} entry @param {Event} event */
  #tell({ streams }, event) {
    if (streams.size === 0) return;
    const frame = new Frame(event);
    for (const stream of streams) stream.send(frame);
  }

  /**
   * Runs the executor for one message.
   * @param {Entry} entry
   * @param {Message} prompt
   */
  async #run(entry, prompt) {
    const { table, handle, task } = entry;
    const run = table.run(handle);
    entry.run = new ExecutorContext(task, prompt, {
      status: (said, status) => {
        const verdict = table.says(handle, run, said, status.message !== undefined);
        this.#act(entry, verdict, { said, status });
        return verdict > 0;
      },
      artifact: (artifact, append, lastChunk) =>
        this.#artifact(entry, run, artifact, append, lastChunk),
    });
    let failure;
    try {
      await this.#execute(entry.run);
    } catch (error) {
      failure = { said: core.TASK_FAILED, status: failed(task, error) };
    }
    if (table.run(handle) === run) entry.run = undefined;
    this.#act(entry, table.returns(handle, run, failure !== undefined), failure);
    this.#advance();
  }

  /**
   * @param {Entry} entry
   * @param {number} run
   * @param {import('./dialects.js').Artifact} artifact
   * @param {boolean} append
   * @param {boolean} lastChunk
   */
  #artifact(entry, run, artifact, append, lastChunk) {
    const { table, task } = entry;
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

  /** Does what time and limits have done. */
  #advance() {
    this.#table.advance((handle, verdict) => this.#act(this.#entries.get(handle), verdict));
    this.#arm();
  }

  /** Wakes up for what is due: a cancel's grace period, a finished task that is kept no longer. */
  #arm() {
    const { wake } = this.#table;
    if (wake === this.#wake || this.#closed) return;
    this.#wake = wake;
    clearTimeout(this.#timer);
    if (!wake) return;
    this.#timer = setTimeout(
      () => {
        this.#wake = 0;
        this.#advance();
      },
      milliseconds(wake - performance.now()),
    );
    // A timer alone must not keep a Node process alive; what it waits for does.
    this.#timer.unref?.();
  }
}

/**
 * @typedef {object} Asked A request, read.
 * @property {Dialect} dialect
 * @property {any} params
 * @property {unknown} id
 * @property {Reply} reply
 * @property {(body: object) => void} answer
 */

/**
 * Creates an A2A agent.
 * @param {object} agent
 * @param {any} agent.card the agent card: `name`, `description`, `version`, `skills`, `capabilities`, …, in the
 *   form of 1.0; where it names no interfaces and no `url`, it is given the one that it was fetched from
 * @param {(context: ExecutorContext) => unknown} agent.execute works on a message. The task is `working` when it is
 *   called and `completed` when it returns, unless it said otherwise; what it throws makes the task `failed`.
 * @param {TaskServerOptions} [options]
 */
export const createTaskServer = (agent, options = {}) => new TaskServer(agent, options);

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
