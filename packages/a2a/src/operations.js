/**
 * Answers requests: one method for each operation of the protocol.
 */
import { AbpError, abortError, getOwn, reasonText, reportError, safely } from 'abp-bridge/driver';
import * as core from './tasks-boundary.js';
import { DIALECTS, METHODS, getField, printError } from './dialects.js';
import { REPEATS, newId } from './ids.js';
import { TaskLists } from './lists.js';
import { BUSY_FOR, again, asError, away, isAway, refusal, unsupported } from './refusals.js';
import { Repeats, markOf, reused } from './repeats.js';
import { PrintedEvent, Stream, unsendable } from './reply.js';
import {
  check,
  checkExtensions,
  historyOf,
  idsOf,
  pushOf,
  readSend,
  requestInfo,
  taskIdOf,
  versionOf,
} from './requests.js';
import { eventsOf } from './shown-tasks.js';
import { messageOf } from './task.js';

/** @import { Dialect, Message } from './dialects.js' */
/** @import { Mark, Taken } from './repeats.js' */
/** @import { Caller, Reply } from './reply.js' */
/** @import { Access, Parts } from './server.js' */
/** @import { Entry } from './shown-tasks.js' */
/** @import { PushConfig } from './store/push.js' */
/** @import { Replay } from './store/replay.js' */
/** @import { Replica } from './store/replica.js' */
/** @import { RequestInfo, Said, StoredTask } from './task.js' */

/**
 * The access that methods need to a task, where versions share the name.
 * @type {Record<string, Access>}
 */
const ACCESS = { get: 'get', cancel: 'cancel', resubscribe: 'subscribe' };

/**
 * Errors of a record that came second: the task exists, or has taken a message.
 * @type {string[]}
 */
const PASSED = ['ABORTED', 'CONFLICT', 'UNSUPPORTED_OPERATION'];

/** States in which a task accepts messages. @type {string[]} */
const ASKING = ['input-required', 'auth-required'];

/** Answers requests. Holds the state that they share. */
export class Operations {
  repeats = new Repeats();
  /** Reject the replies in progress. @type {Set<(error: AbpError) => void>} */
  replying = new Set();

  /** @param {Parts} parts */
  constructor(parts) {
    this.parts = parts;
    this.extensions = parts.agent.card.capabilities?.extensions ?? [];
    this.lists = new TaskLists(this);
  }

  /** Stops waiting for replies. */
  close() {
    for (const end of this.replying) end(new AbpError('INTERNAL_ERROR', 'The agent is closing'));
  }

  /**
   * Answers a request. Holds the tasks that it names until then.
   * @param {unknown} request
   * @param {Caller} caller
   * @param {Reply} reply
   */
  async answer(request, caller, reply) {
    const { logs, phase } = this.parts;
    const asked = new Asked(this, request, caller, reply);
    /** @type {Replica[]} */
    const replicas = [];
    let failure;
    try {
      for (const id of phase.closed ? [] : idsOf(asked.params)) {
        const replica = await logs.load(id);
        if (replica) replicas.push(replica);
      }
    } catch (error) {
      failure = error;
    }
    await asked.respond(failure);
    for (const replica of replicas) logs.leave(replica);
  }

  /**
   * True if a request may access a task in that way.
   * @param {StoredTask} task
   * @param {Access} access
   * @param {RequestInfo} info
   * @param {(error: unknown) => boolean} [refuse] the answer when the hook throws
   * @returns {boolean | Promise<boolean>}
   */
  allows(task, access, info, refuse = (error) => (reportError(error), false)) {
    if (task.tenant !== info.tenant) return false;
    const { authorize } = this.parts.options;
    if (!authorize) return true;
    try {
      const verdict = authorize(task, access, info);
      if (typeof verdict !== 'object' || verdict === null) return verdict === true;
      return Promise.resolve(verdict).then((one) => one === true, refuse);
    } catch (error) {
      return refuse(error);
    }
  }
}

/** One request. */
class Asked {
  #all;
  #parts;
  #request;
  #caller;
  /** The version to answer in. @type {Dialect} */
  dialect = DIALECTS['0.3'];
  /** The push configuration in its message. @type {PushConfig | undefined} */
  #push;
  /** True if its message asks for a stream. */
  #streams = false;
  /** True if its message is recognised when it is sent again. */
  #repeats = false;

  /**
   * @param {Operations} all
   * @param {unknown} request
   * @param {Caller} caller
   * @param {Reply} reply
   */
  constructor(all, request, caller, reply) {
    this.#all = all;
    this.#parts = all.parts;
    this.#request = request;
    this.#caller = caller;
    this.reply = reply;
    /** @type {any} */
    this.params = getOwn(request, 'params');
    this.info = requestInfo(caller, this.params, all.extensions);
  }

  /** @param {unknown} failure why its task could not be read */
  async respond(failure) {
    const { options, phase } = this.#parts;
    const { extensions, version } = this.#caller;
    const name = getOwn(this.#request, 'method');
    const method = METHODS.get(name);
    this.dialect = await this.#dialectOf(method);
    try {
      if (phase.closed) throw away();
      check(this.#request, version);
      if (failure) throw failure;
      const declared = extensions.includes(REPEATS);
      this.reply.extensions = [...this.info.extensions, ...(declared ? [REPEATS] : [])];
      this.#repeats = declared || options.repeats;
      switch (method?.operation) {
        case 'send':
        case 'stream':
          return await this.#send(method.operation === 'stream');
        case 'get':
          return await this.#get();
        case 'list':
          return this.#answer({ result: await this.#all.lists.list(this) });
        case 'cancel':
          return await this.#cancel();
        case 'resubscribe':
          return await this.#resubscribe();
        case 'push':
          return await this.#configurePush(String(name));
        case 'extendedCard':
          throw new AbpError(
            'UNSUPPORTED_OPERATION',
            'Agent does not support authenticated extended card.',
          );
        default:
          throw new AbpError('METHOD_NOT_FOUND', this.dialect.noMethod(name));
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  /**
   * The version to answer in: that of the method's name, or of the header if versions share the
   * name. Without a header it is the version in which the task was begun.
   * @param {{ operation: string, dialects: Dialect[] } | undefined} method
   * @returns {Promise<Dialect>}
   */
  async #dialectOf(method) {
    const asked = versionOf(this.info.version);
    if (!method) return DIALECTS[asked ?? '0.3'];
    if (method.dialects.length === 1) return method.dialects[0];
    if (asked) return DIALECTS[asked === '1.0' ? 'gem' : asked];
    // A task that the request may not see must not influence the answer.
    const entry = await this.#visible(taskIdOf(this.params), ACCESS[method.operation]);
    return entry && method.dialects.includes(entry.dialect) ? entry.dialect : DIALECTS['0.3'];
  }

  // --- Its answer --------------------------------------------------------------------------------

  /** The id of the request. */
  get #id() {
    return getOwn(this.#request, 'id') ?? null;
  }

  /** @param {object} body */
  #answer(body) {
    const id = typeof this.#id === 'object' ? null : this.#id;
    const send = (/** @type {object} */ what) => this.reply.answer({ jsonrpc: '2.0', id, ...what });
    try {
      send(body);
    } catch (thrown) {
      try {
        send({ error: printError(this.dialect, unsendable(thrown)) });
      } catch {
        safely(() => this.reply.end(), undefined);
      }
    }
  }

  /** @param {unknown} thrown */
  #fail(thrown) {
    const error = asError(thrown);
    if (isAway(error)) this.reply.unavailable?.(BUSY_FOR);
    this.#answer({ error: printError(this.dialect, error) });
  }

  /**
   * Begins a stream.
   * @param {boolean} [lasting] whether it goes on while its task waits for input
   */
  #open(lasting = false) {
    this.reply.open();
    return new Stream(this.reply, this.dialect, this.#id, lasting);
  }

  /** The `configuration` that the message asks for. */
  get #configuration() {
    return getField(this.params, 'configuration') ?? undefined;
  }

  // --- Its task ----------------------------------------------------------------------------------

  /**
   * The task of this id, if the request is allowed that access.
   * @param {unknown} id
   * @param {Access} access
   */
  async #visible(id, access) {
    const entry = this.#parts.shown.find(id);
    return entry && (await this.#all.allows(entry.task, access, this.info)) ? entry : undefined;
  }

  /**
   * @param {Access} access
   * @param {unknown} [id] of the task
   */
  async #find(access, id = taskIdOf(this.params)) {
    if (typeof id !== 'string' || id.trim() === '')
      throw new AbpError('INVALID_PARAMS', this.dialect.noId);
    const entry = await this.#visible(id, access);
    if (!entry) throw new AbpError('TASK_NOT_FOUND', this.dialect.notFound(id));
    return entry;
  }

  /**
   * Throws if a task is too long for an answer.
   * @param {StoredTask} task
   */
  #requireFitting({ size }) {
    const { maxAnswer } = this.#parts.limits;
    if (size > maxAnswer)
      throw new AbpError('TOO_LARGE', `The task is longer than ${maxAnswer} characters`);
  }

  /** Throws once the agent has begun to close: a new task would have no owner. */
  #requireOpen() {
    const { phase } = this.#parts;
    if (phase.draining || phase.closed) throw away();
  }

  #requireStreaming() {
    if (this.#parts.agent.card.capabilities?.streaming === false)
      throw new AbpError('UNSUPPORTED_OPERATION', 'Streaming is not supported.');
  }

  // --- A message ---------------------------------------------------------------------------------

  /** @param {boolean} streams */
  async #send(streams) {
    const { pushes } = this.#parts;
    const { dialect, info, params } = this;
    const { extensions, repeats } = this.#all;
    this.#streams = streams;
    this.#requireOpen();
    if (streams) this.#requireStreaming();
    checkExtensions(extensions, info, params);
    const message = readSend(params, dialect, pushes !== undefined);
    const wanted = pushOf(this.#configuration);
    if (wanted) this.#push = await pushes?.read(wanted, dialect, newId());
    const mark = this.#repeats ? await markOf(message, info) : undefined;
    const taken = mark && repeats.get(mark);
    if (taken) return this.#answerAgain(await taken);
    const taking = this.#take(message, mark);
    if (mark) repeats.add(mark, taking);
    await taking;
  }

  /**
   * Starts the work that a message requests. Its sender is answered when that is stored.
   * @param {Message} message
   * @param {Mark} [mark] of the message, if it may be sent again
   * @returns {Promise<Taken>}
   */
  async #take(message, mark) {
    const { info } = this;
    const { agent, logs, pushes, shown } = this.#parts;
    if (!message.taskId && agent.reply) {
      const replied = await this.#replyTo(message);
      if (replied !== undefined && replied !== null) {
        const answer = messageOf({ contextId: message.contextId ?? newId() }, replied);
        this.#answerWith(answer);
        return answer;
      }
    }
    const known = message.taskId ? await this.#find('send', message.taskId) : undefined;
    if (!shown.makeRoom(0)) throw refusal();
    if (known) {
      const { id: of, contextId } = known.task;
      const given = message.contextId || contextId;
      if (given !== contextId)
        throw new AbpError(
          'INVALID_PARAMS',
          `contextId mismatch: message contextId '${given}' does not match task '${of}' contextId '${contextId}'`,
        );
      pushes?.requireTurn(known);
    }
    // The agent may have begun to close meanwhile.
    this.#requireOpen();
    const id = known ? known.task.id : (mark?.name ?? newId());
    // The task that the same message has begun earlier, in any process.
    const earlier = mark && (await logs.load(mark.name));
    let send = /** @type {(() => void) | undefined} */ (undefined);
    const begun = (/** @type {Entry} */ entry) => {
      this.#addPush(entry);
      send = this.#follow(entry, this.dialect.snapshot);
    };
    try {
      const replica = known ? known.replica : earlier;
      if (earlier && replica !== earlier) throw reused();
      if (!mark || !replica?.took(mark, message)) {
        const contextId = (known?.task ?? message).contextId ?? newId();
        Object.assign(message, { taskId: id, contextId });
        const { tenant, user } = info;
        const origin = { contextId, tenant, user, dialect: this.dialect.name };
        const sent = { message, info, begun, mark };
        if (known) await logs.answer(known.replica, sent);
        else await logs.begin(id, origin, sent);
        send?.();
        return id;
      }
    } catch (error) {
      if (!(error instanceof AbpError) || !PASSED.includes(error.code)) throw error;
      await this.#requireTaken({ id, message, mark, known: !!known }, error);
    } finally {
      if (earlier) logs.leave(earlier);
    }
    await this.#answerAgain(id);
    return id;
  }

  /**
   * Called when another record was stored instead of a message, or this process has lost its lease:
   * reads from the log what became of the message. Throws the error for its sender, unless another
   * process has accepted it.
   * @param {{ id: string, message: Message, mark?: Mark, known: boolean }} sent `known` for an
   *   answer to a task
   * @param {AbpError} error
   */
  async #requireTaken({ id, message, mark, known }, error) {
    const { logs } = this.#parts;
    const replica = await logs.load(id).catch(() => undefined);
    try {
      if (mark && replica?.took(mark, message)) return;
      const task = replica?.entry?.task;
      if (known && task && !ASKING.includes(task.state)) throw unsupported(task, 'modified');
      // The next process finds out when the message is sent again.
      throw mark && error.code !== 'UNSUPPORTED_OPERATION' ? again() : error;
    } finally {
      if (replica) logs.leave(replica);
    }
  }

  /**
   * The agent's reply, within its time limit and while its sender waits.
   * @param {Message} message
   * @returns {Promise<Said | undefined | null>}
   */
  #replyTo(message) {
    const controller = new AbortController();
    const { agent, options } = this.#parts;
    const { replying } = this.#all;
    const { reply, info: request } = this;
    let timer = /** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined);
    /** @type {(error: AbpError) => void} */
    let end = () => {};
    const ended = new Promise((_resolve, reject) => {
      end = (error) => {
        reject(error);
        controller.abort(abortError(error.message));
      };
    });
    replying.add(end);
    // A sender that may repeat the message may be about to reconnect.
    if (!this.#repeats)
      reply.onLeave = () => end(new AbpError('DISCONNECTED', 'The client has left'));
    const late = () => end(new AbpError('TIMEOUT', 'The agent did not reply in time'));
    if (options.replyTimeout) timer = setTimeout(late, options.replyTimeout);
    reply.wait?.(this.#streams);
    const { signal } = controller;
    const replied = (async () => agent.reply?.({ message, request, signal }))();
    return Promise.race([replied, ended]).finally(() => {
      clearTimeout(timer);
      replying.delete(end);
    });
  }

  /**
   * Answers with a message instead of a task.
   * @param {Message} message
   */
  #answerWith(message) {
    const event = /** @type {const} */ ({ kind: 'message', message });
    if (!this.#streams) return this.#answer({ result: this.dialect.event(event) });
    const stream = this.#open();
    if (stream.send(new PrintedEvent(event))) stream.end();
  }

  /**
   * Answers a message that was received before.
   * @param {Taken} taken
   */
  async #answerAgain(taken) {
    if (typeof taken !== 'string') return this.#answerWith(taken);
    const { logs } = this.#parts;
    // The request does not name its task.
    const replica = await logs.load(taken);
    try {
      const entry = await this.#find('get', taken);
      this.#requireFitting(entry.task);
      this.#follow(entry, true)?.();
    } finally {
      if (replica) logs.leave(replica);
    }
  }

  /**
   * Reports to the sender of a message what becomes of its task.
   * @param {Entry} entry
   * @param {boolean} snapshot whether a stream begins with the task itself
   * @returns {(() => void) | undefined} sends the answer, if it is available at once
   */
  #follow(entry, snapshot) {
    const { dialect } = this;
    const { table, handle, task } = entry;
    const verdict = table.subscribe(handle, false);
    if (this.#streams) {
      this.#subscribe(entry, verdict, snapshot);
      return undefined;
    }
    const configuration = this.#configuration;
    const send = () => {
      const shown = historyOf(task, configuration);
      this.#answer({ result: dialect.event({ kind: 'task', task: shown }) });
    };
    if (!verdict || verdict & core.TASK_SETTLE || !dialect.blocks(configuration)) return send;
    this.#wait(entry, send);
    this.reply.wait?.();
    return undefined;
  }

  /**
   * @param {Entry} entry
   * @param {() => void} settle called when its task ends or needs input
   */
  #wait({ waiting, replica }, settle) {
    // The sender may have left while the task was loaded.
    if (this.reply.left) return;
    waiting.set(settle, (error) => this.#fail(error));
    replica.watch();
    this.reply.onLeave = () => waiting.delete(settle);
  }

  // --- A task ------------------------------------------------------------------------------------

  async #get() {
    const { task } = await this.#find('get');
    const shown = historyOf(task, this.params);
    this.#requireFitting(task);
    this.#answer({ result: this.dialect.task(shown) });
  }

  /** Appends a cancel to the task's log; the order in the log decides. */
  async #cancel() {
    const { logs, reports } = this.#parts;
    const { dialect } = this;
    const entry = await this.#find('cancel');
    const { table, handle, task, replica } = entry;
    const reason = reasonText(getOwn(getOwn(this.params, 'metadata'), 'reason'));
    const began = performance.now();
    /**
     * whether a task that was canceled before is sent as it is
     * @param {boolean} repeatable whether a task that was canceled before is answered as it is
     */
    const answer = (repeatable) => {
      reports?.cancelled(performance.now() - began, task.state);
      if (table.cancel(handle, 0, repeatable) & core.TASK_ACK)
        this.#answer({ result: dialect.task(task) });
      else this.#fail(new AbpError('TASK_NOT_CANCELABLE', dialect.notCancelable(task.id)));
    };
    if (task.terminal) return answer(dialect.repeatable);
    // The client waits for the end, so in every version it gets the task as it ended.
    const settle = () => (task.terminal ? answer(true) : this.#wait(entry, settle));
    settle();
    this.reply.wait?.();
    try {
      await logs.cancel(replica, reason);
    } catch (error) {
      if (entry.waiting.delete(settle)) throw error;
    }
  }

  async #resubscribe() {
    const { logs, options, phase } = this.#parts;
    const { lasting, streamsErrors } = this.dialect;
    // Streams of tasks that outlive the process go on elsewhere.
    if (phase.draining && options.store) throw away();
    this.#requireStreaming();
    try {
      const entry = await this.#find('subscribe');
      const { replica, task } = entry;
      const number = this.info.headers['last-event-id'];
      const replay = number ? await logs.replay(replica, number) : undefined;
      /** @type {PrintedEvent[]} */
      let missed = [];
      for (let next; replay && !replay.done && missed.length === 0; missed = eventsOf(task, next))
        if (!(next = await replay.next())) break;
      if (replay && missed.length > 0) return await this.#replay(entry, replay, missed);
      // Not if there is nothing that it has missed.
      const snapshot = !replay || !replay.done;
      if (snapshot) this.#requireFitting(task);
      const verdict = entry.table.subscribe(entry.handle, lasting);
      if (!verdict) throw unsupported(task, 'subscribed to');
      this.#subscribe(entry, verdict, snapshot, lasting);
    } catch (error) {
      if (!streamsErrors) throw error;
      this.#open().fail(printError(this.dialect, asError(error)));
    }
  }

  /**
   * Sends a reader the events it has missed, as fast as it reads, and then the new ones.
   * @param {Entry} entry
   * @param {Replay} replay
   * @param {PrintedEvent[]} missed the first of it
   */
  async #replay(entry, replay, missed) {
    const { phase } = this.#parts;
    const { lasting } = this.dialect;
    const { reply } = this;
    const stream = this.#open(lasting);
    try {
      for (;;) {
        for (const event of missed) if (!stream.send(event)) return;
        await reply.room?.();
        if (reply.left) return;
        // The reader resumes elsewhere.
        if (phase.draining || phase.closed) return stream.end();
        if (replay.done) break;
        const next = await replay.next();
        if (!next) return stream.end();
        missed = eventsOf(entry.task, next);
      }
    } catch {
      // The backend is away: the reader resumes from its latest number.
      return stream.end();
    }
    join(entry, stream, entry.table.subscribe(entry.handle, lasting));
  }

  /**
   * @param {Entry} entry
   * @param {number} verdict on the subscription; 0 if the task has ended
   * @param {boolean} snapshot whether the task itself is sent first
   * @param {boolean} [lasting] whether the stream goes on while the task waits for input
   */
  #subscribe(entry, verdict, snapshot, lasting) {
    const stream = this.#open(lasting);
    // The reader may have left while the core was being loaded.
    if (this.reply.left) return;
    const task = historyOf(entry.task, this.#configuration);
    if (snapshot && !stream.send(new PrintedEvent({ kind: 'task', task }, entry.number))) return;
    join(entry, stream, verdict);
  }

  // --- Push notifications ------------------------------------------------------------------------

  /**
   * Adds the push configuration of a message.
   * @param {Entry} entry of its task
   */
  #addPush({ pushes, replica }) {
    const config = this.#push;
    if (!config) return;
    this.#parts.pushes?.requireRoom(pushes, config);
    pushes.set(config.id, config);
    replica.owner?.push({ k: 'push', config });
  }

  /**
   * Stores, returns, lists or deletes the addresses for a task's push notifications.
   * @param {string} method
   */
  async #configurePush(method) {
    const { pushes, logs } = this.#parts;
    const { dialect, params } = this;
    if (!pushes)
      throw new AbpError('PUSH_NOTIFICATION_NOT_SUPPORTED', 'Push Notification is not supported');
    const [lists, sets, deletes] = [/list$|^List/, /set$|^Create/, /delete$|^Delete/].map((verb) =>
      verb.test(method),
    );
    const access = sets || deletes ? 'subscribe' : 'get';
    const named = getField(params, 'taskId') ?? getField(params, 'id');
    const { replica, pushes: configs, task } = await this.#find(access, named);
    const taskId = task.id;
    const flat = dialect === DIALECTS['1.0'];
    const print = (/** @type {PushConfig} */ one) =>
      pushes.print({ ...one, version: dialect.name }, taskId);
    if (lists) {
      const printed = await Promise.all([...configs.values()].map(print));
      return this.#answer({ result: flat ? { configs: printed, nextPageToken: '' } : printed });
    }
    if (sets) {
      const given = getField(params, 'pushNotificationConfig') ?? (flat ? params : undefined);
      const config = await pushes.read(given, dialect, flat ? newId() : taskId);
      pushes.requireRoom(configs, config);
      // No notification of an ended task is sent, so its log does not get the configuration.
      if (task.terminal) configs.set(config.id, config);
      else await logs.change(replica, { k: 'push', config });
      return this.#answer({ result: await print(config) });
    }
    const given = getOwn(params, flat ? 'id' : 'pushNotificationConfigId');
    const id = String(given ?? configs.keys().next().value);
    const config = configs.get(id);
    if (deletes) {
      if (config && !task.terminal) await logs.change(replica, { k: 'unpush', id });
      configs.delete(id);
      return this.#answer({ result: flat ? {} : null });
    }
    if (!config) throw new AbpError('TASK_NOT_FOUND', dialect.notFound(`${taskId}, ${id}`));
    this.#answer({ result: await print(config) });
  }
}

/**
 * Adds a stream, which gets all later events.
 * @param {Entry} entry
 * @param {Stream} stream
 * @param {number} verdict on its subscription; 0 if the task has ended
 */
function join(entry, stream, verdict) {
  if (verdict <= 0 || verdict & core.TASK_END) return stream.end();
  stream.reply.onLeave = () => entry.streams.delete(stream);
  entry.streams.add(stream);
  entry.replica.watch();
}
