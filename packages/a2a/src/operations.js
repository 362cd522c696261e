/** What an agent does for each request: one method for each operation of the protocol, which reads it and answers. */
import * as core from './tasks-boundary.js';
import { AbpError, reasonText, reportError, safely } from '../../../js/common/errors.js';
import { abortError } from '../../../js/common/signals.js';
import { getOwn } from '../../../js/common/values.js';
import { DIALECTS, METHODS, getField, printError } from './dialects.js';
import { REPEATS, newId } from './ids.js';
import { TaskLists } from './lists.js';
import { changesPushes, configurePush } from './push-requests.js';
import { BUSY_FOR, again, asError, away, isAway, refusal, unsupported } from './refusals.js';
import { Repeats, identityOf, markOf, reused } from './repeats.js';
import { PrintedEvent, Stream, unsendable } from './reply.js';
import { check, historyOf, idsOf, taskIdOf, versionOf } from './requests.js';
import { eventsOf } from './shown-tasks.js';
import { replyOf } from './task.js';
import { checkExtensions, pushOf, readSend, requestInfo } from './validation.js';

/** @import { Dialect, Message } from './dialects.js' */
/** @import { Identity, Mark, Taken } from './repeats.js' */
/** @import { Caller, Reply } from './reply.js' */
/** @import { Access, Agent, TaskServerOptions } from './server.js' */
/** @import { Entry, ShownTasks } from './shown-tasks.js' */
/** @import { Replica } from './store/replica.js' */
/** @import { Replay } from './store/replay.js' */
/** @import { TaskLogs } from './store/store.js' */
/** @import { RequestInfo, Said, StoredTask } from './task.js' */

/**
 * A request, read.
 * @typedef {object} Asked
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
 * What requests need of an agent.
 * @typedef {object} Parts
 * @property {Agent} agent
 * @property {TaskServerOptions & { replyTimeout: number, repeats: boolean }} options
 * @property {number} maxAnswer characters
 * @property {{ draining: boolean, closed: boolean }} phase
 * @property {ShownTasks} shown
 * @property {TaskLogs} logs
 * @property {import('./store/push.js').Pushes} [pushes]
 * @property {import('./store/telemetry.js').Reports} [reports]
 */

/** What the methods want of a task whose names versions share. @type {Record<string, Access>} */
const ACCESS = { get: 'get', cancel: 'cancel', resubscribe: 'subscribe' };

/** Another record came first, the task is there by now, or has taken a message. @type {string[]} */
const PASSED = ['ABORTED', 'CONFLICT', 'UNSUPPORTED_OPERATION'];

/** States in which a task takes messages. @type {string[]} */
const ASKING = ['input-required', 'auth-required'];

export class Operations {
  #parts;
  #lists;
  #extensions;
  #repeats = new Repeats();
  /** Ends the replies that are being thought about. @type {Set<(error: AbpError) => void>} */
  #replying = new Set();

  /** @param {Parts} parts */
  constructor(parts) {
    this.#parts = parts;
    const { agent, logs, options, maxAnswer } = parts;
    this.#extensions = agent.card.capabilities?.extensions ?? [];
    this.#lists = new TaskLists(logs.entries, {
      allows: (task, info, refuse) => this.#allows(task, 'list', info, refuse),
      asks: options.authorize !== undefined,
      maxAnswer,
    });
  }

  /** Nobody waits for replies any more. */
  close() {
    for (const end of this.#replying) end(new AbpError('INTERNAL_ERROR', 'The agent is closing'));
  }

  /**
   * Answers a request. The tasks that it names are held until it is answered.
   * @param {unknown} request
   * @param {Caller} caller
   * @param {Reply} reply
   */
  async answer(request, caller, reply) {
    const { logs, phase } = this.#parts;
    const params = getOwn(request, 'params');
    /** @type {Replica[]} */
    const replicas = [];
    let failure;
    try {
      for (const id of phase.closed ? [] : idsOf(params)) {
        const replica = await logs.load(id);
        if (replica) replicas.push(replica);
      }
    } catch (error) {
      failure = error;
    }
    await this.#respond(request, params, caller, reply, failure);
    for (const replica of replicas) logs.leave(replica);
  }

  /**
   * @param {unknown} request
   * @param {unknown} params
   * @param {Caller} caller
   * @param {Reply} reply
   * @param {unknown} failure why its task could not be read
   */
  async #respond(request, params, caller, reply, failure) {
    const id = getOwn(request, 'id') ?? null;
    const name = getOwn(request, 'method');
    const method = METHODS.get(name);
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
      if (this.#parts.phase.closed) throw away();
      check(request, caller.version);
      if (failure) throw failure;
      const declared = caller.extensions.includes(REPEATS);
      reply.extensions = declared ? [...info.extensions, REPEATS] : info.extensions;
      const repeats = declared || this.#parts.options.repeats;
      const asked = { dialect, params, id, reply, answer, fail, info, repeats };
      switch (method?.operation) {
        case 'send':
        case 'stream':
          return await this.#send(asked, method.operation === 'stream');
        case 'get':
          return await this.#get(asked);
        case 'list':
          return answer({ result: await this.#lists.list(asked) });
        case 'cancel':
          return await this.#cancel(asked);
        case 'resubscribe':
          return await this.#resubscribe(asked);
        case 'push':
          return await this.#configurePush(asked, String(name));
        case 'extendedCard':
          throw new AbpError(
            'UNSUPPORTED_OPERATION',
            'Agent does not support authenticated extended card.',
          );
        default:
          throw new AbpError('METHOD_NOT_FOUND', dialect.noMethod(name));
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

  // --- The task of a request -----------------------------------------------------------------------------

  /**
   * The task of this id, if the request is allowed that access.
   * @param {unknown} id
   * @param {Access} access
   * @param {RequestInfo} info
   */
  async #visible(id, access, info) {
    const entry = this.#parts.shown.find(id);
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
    const { authorize } = this.#parts.options;
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
   * @param {string} [id] of the task
   * @returns {Promise<Entry>}
   */
  async #find(asked, access, id = requireId(asked)) {
    const entry = await this.#visible(id, access, asked.info);
    if (!entry) throw new AbpError('TASK_NOT_FOUND', asked.dialect.notFound(id));
    return entry;
  }

  /** Throws if a task is too long for an answer. @param {StoredTask} task */
  #requireFitting({ size }) {
    const { maxAnswer } = this.#parts;
    if (size > maxAnswer)
      throw new AbpError('TOO_LARGE', `The task is longer than ${maxAnswer} characters`);
  }

  /** Throws once the agent has begun to close: what begins then would be nobody's. */
  #requireOpen() {
    const { phase } = this.#parts;
    if (phase.draining || phase.closed) throw away();
  }

  #requireStreaming() {
    if (this.#parts.agent.card.capabilities?.streaming === false)
      throw new AbpError('UNSUPPORTED_OPERATION', 'Streaming is not supported.');
  }

  // --- A message -----------------------------------------------------------------------------------------

  /** @param {Asked} asked @param {boolean} streams */
  async #send(asked, streams) {
    const { dialect, params, info, repeats } = asked;
    const { pushes } = this.#parts;
    this.#requireOpen();
    if (streams) this.#requireStreaming();
    checkExtensions(this.#extensions, info, params);
    const { message, configuration } = readSend(params, dialect, pushes !== undefined);
    const wanted = pushOf(configuration);
    if (wanted) asked.push = await pushes?.read(wanted, dialect, newId());
    const identity = repeats ? await identityOf(message, info) : undefined;
    const taken = identity && this.#repeats.get(identity);
    if (taken) return this.#answerAgain(asked, streams, await taken, configuration);
    const taking = this.#take(asked, streams, message, configuration, identity);
    if (identity) this.#repeats.add(identity, taking);
    await taking;
  }

  /**
   * Begins what a message asks for. Its sender is told when that is stored.
   * @param {Asked} asked
   * @param {boolean} streams
   * @param {Message} message
   * @param {unknown} configuration
   * @param {Identity} [identity] of the message, if it may come again, to another process as well
   * @returns {Promise<Taken>}
   */
  async #take(asked, streams, message, configuration, identity) {
    const { dialect, info } = asked;
    const { agent, logs, pushes, shown } = this.#parts;
    if (!message.taskId && agent.reply) {
      const replied = await this.#replyTo(asked, streams, message);
      if (replied !== undefined && replied !== null) {
        const answer = replyOf(message.contextId ?? newId(), replied);
        this.#answerWith(asked, streams, answer);
        return answer;
      }
    }
    const known = message.taskId ? await this.#find(asked, 'send', message.taskId) : undefined;
    if (!shown.makeRoom(0)) throw refusal();
    if (known && message.contextId) checkContext(known.task, message.contextId);
    if (known) pushes?.requireTurn(known);
    const mark = identity && (await markOf(identity));
    // It may have begun to close since the message came.
    this.#requireOpen();
    const id = known ? known.task.id : (mark?.name ?? newId());
    // The task that a message of this id has begun, at whichever process.
    const begun = mark && (await logs.load(mark.name));
    let send = /** @type {(() => void) | undefined} */ (undefined);
    const begins = (/** @type {Entry} */ entry) => {
      this.#addPush(asked, entry);
      send = this.#follow(entry, asked, streams, configuration, dialect.snapshot);
    };
    try {
      const replica = known ? known.replica : begun;
      if (begun && replica !== begun) throw reused();
      if (mark && replica?.took(mark, message)) {
        await this.#answerAgain(asked, streams, id, configuration);
        return id;
      }
      const contextId = (known?.task ?? message).contextId ?? newId();
      Object.assign(message, { taskId: id, contextId });
      const { tenant, user } = info;
      const origin = { contextId, tenant, user, dialect: dialect.name };
      if (known) await logs.answer(known.replica, message, info, begins, mark);
      else await logs.begin(id, origin, message, info, begins, mark);
    } catch (error) {
      if (!(error instanceof AbpError) || !PASSED.includes(error.code)) throw error;
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
   * @param {{ id: string, message: Message, mark?: Mark, known: boolean }} sent `known` for an answer to a task
   * @param {AbpError} error
   */
  async #requireTaken({ id, message, mark, known }, error) {
    const { logs } = this.#parts;
    const replica = await logs.load(id).catch(() => undefined);
    try {
      if (mark && replica?.took(mark, message)) return;
      const task = replica?.entry?.task;
      if (known && task && !ASKING.includes(task.state)) throw unsupported(task, 'modified');
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
    const { agent, options } = this.#parts;
    const { replyTimeout } = options;
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
    const replied = (async () => agent.reply?.({ message, request: info, signal }))();
    return Promise.race([replied, ended]).finally(() => {
      clearTimeout(timer);
      this.#replying.delete(end);
    });
  }

  /** Answers with a message in place of a task. @param {Asked} asked @param {boolean} streams @param {Message} message */
  #answerWith({ dialect, id, reply, answer }, streams, message) {
    const event = /** @type {const} */ ({ kind: 'message', message });
    if (!streams) return answer({ result: dialect.event(event) });
    const stream = new Stream(reply, dialect, id);
    reply.open();
    if (stream.send(new PrintedEvent(event))) stream.end();
  }

  /**
   * Answers a message that has come before.
   * @param {Asked} asked
   * @param {boolean} streams
   * @param {Taken} taken
   * @param {unknown} configuration
   */
  async #answerAgain(asked, streams, taken, configuration) {
    if (typeof taken !== 'string') return this.#answerWith(asked, streams, taken);
    const { logs } = this.#parts;
    // The request does not name its task.
    const replica = await logs.load(taken);
    try {
      const entry = await this.#find(asked, 'get', taken);
      this.#requireFitting(entry.task);
      this.#follow(entry, asked, streams, configuration, true)?.();
    } finally {
      if (replica) logs.leave(replica);
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
      answer({ result: dialect.event({ kind: 'task', task: historyOf(task, configuration) }) });
    if (!verdict || verdict & core.TASK_SETTLE || !dialect.blocks(configuration)) return send;
    wait(entry, asked, send);
    reply.wait?.();
    return undefined;
  }

  // --- A task --------------------------------------------------------------------------------------------

  /** @param {Asked} asked */
  async #get(asked) {
    const { dialect, params, answer } = asked;
    const { task } = await this.#find(asked, 'get');
    const shown = historyOf(task, params);
    this.#requireFitting(task);
    answer({ result: dialect.task(shown) });
  }

  /** A cancel is a record in the task's log, and the log says what came first. @param {Asked} asked */
  async #cancel(asked) {
    const { dialect, params, reply, answer } = asked;
    const entry = await this.#find(asked, 'cancel');
    const { table, handle, task, replica } = entry;
    const reason = reasonText(getOwn(getOwn(params, 'metadata'), 'reason'));
    const began = performance.now();
    /** @param {boolean} repeatable whether a task that was canceled before is answered as it is */
    const say = (repeatable) => {
      this.#parts.reports?.cancelled(performance.now() - began, task.state);
      if (table.cancel(handle, 0, repeatable) & core.TASK_ACK)
        return answer({ result: dialect.task(task) });
      const refused = new AbpError('TASK_NOT_CANCELABLE', dialect.notCancelable(task.id));
      answer({ error: printError(dialect, refused) });
    };
    if (task.terminal) return say(dialect.repeatable);
    // The client waits for the end, so in every version it gets the task as it ended.
    const settle = () => (task.terminal ? say(true) : wait(entry, asked, settle));
    settle();
    reply.wait?.();
    try {
      await this.#parts.logs.cancel(replica, reason);
    } catch (error) {
      if (entry.waiting.delete(settle)) throw error;
    }
  }

  /** @param {Asked} asked */
  async #resubscribe(asked) {
    const { dialect, reply, id } = asked;
    const { logs, options, phase } = this.#parts;
    // Streams of tasks that outlive the process go on elsewhere.
    if (phase.draining && options.store) throw away();
    this.#requireStreaming();
    try {
      const entry = await this.#find(asked, 'subscribe');
      const { replica, task } = entry;
      const { lasting } = dialect;
      const number = asked.info.headers['last-event-id'];
      const replay = number ? await logs.replay(replica, number) : undefined;
      /** @type {PrintedEvent[]} */
      let missed = [];
      for (let next; replay && !replay.done && missed.length === 0; missed = eventsOf(task, next))
        if (!(next = await replay.next())) break;
      if (replay && missed.length > 0)
        return await this.#replay(entry, asked, replay, missed, lasting);
      // Not where there is nothing that it has missed.
      const snapshot = !replay || !replay.done;
      if (snapshot) this.#requireFitting(task);
      const verdict = entry.table.subscribe(entry.handle, lasting);
      if (!verdict) throw unsupported(task, 'subscribed to');
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
   * @param {Replay} replay
   * @param {PrintedEvent[]} missed the first of it
   * @param {boolean} lasting whether the stream goes on while the task waits for input
   */
  async #replay(entry, { dialect, reply, id }, replay, missed, lasting) {
    const { phase } = this.#parts;
    const stream = new Stream(reply, dialect, id, lasting);
    reply.open();
    try {
      for (;;) {
        for (const event of missed) if (!stream.send(event)) return;
        await reply.room?.();
        if (reply.left) return;
        // It comes back elsewhere.
        if (phase.draining || phase.closed) return stream.end();
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
    const task = historyOf(entry.task, getOwn(params, 'configuration'));
    if (snapshot && !stream.send(new PrintedEvent({ kind: 'task', task }, entry.number))) return;
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
    entry.replica.watch();
  }

  // --- Push notifications --------------------------------------------------------------------------------

  /** What a message says of them. @param {Asked} asked @param {Entry} entry of its task */
  #addPush({ push }, { pushes, replica }) {
    if (!push) return;
    this.#parts.pushes?.requireRoom(pushes, push);
    pushes.set(push.id, push);
    replica.owner?.push({ k: 'push', config: push });
  }

  /** @param {Asked} asked @param {string} method */
  async #configurePush(asked, method) {
    const { pushes, logs } = this.#parts;
    const { params, dialect, answer } = asked;
    if (!pushes)
      throw new AbpError('PUSH_NOTIFICATION_NOT_SUPPORTED', 'Push Notification is not supported');
    const taskId = getField(params, 'taskId') ?? getField(params, 'id');
    if (typeof taskId !== 'string' || !taskId) throw new AbpError('INVALID_PARAMS', dialect.noId);
    const access = changesPushes(method) ? 'subscribe' : 'get';
    const entry = await this.#find(asked, access, taskId);
    const result = await configurePush(asked, method, taskId, entry, { pushes, logs });
    answer({ result });
  }
}

/** The id of the task that a request is about. @param {Asked} asked @returns {string} */
function requireId({ params, dialect }) {
  const id = taskIdOf(params);
  if (typeof id === 'string' && id.trim() !== '') return id;
  throw new AbpError('INVALID_PARAMS', dialect.noId);
}

/** @param {unknown} error of a hook */
function refused(error) {
  reportError(error);
  return false;
}

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
  replica.watch();
  reply.onLeave = () => waiting.delete(settle);
}
