/**
 * One side of a JSON-RPC connection: reads messages, passes them to the core, and performs the
 * core's actions. Nothing here decides what happens to a call.
 */
import {
  Machine,
  abp,
  getOwn,
  inAnotherTurn,
  invokeReportingErrors,
  isObject,
  isRecord,
  latestOf,
  milliseconds,
  mistyped,
  onAbort,
  requireForm,
  requireOf,
  requireOptions,
  requireValues,
  safely,
  warn,
} from 'abp-bridge/driver';
import * as rpc from './rpc-boundary.js';
import { PeerCore, ready } from './rpc-core.js';
import { DIALECTS, tokenOf } from './dialects.js';
import { INTERNAL_ERROR, RpcError, toErrorObject } from './errors.js';
import { Batch, MAX_BATCH, message, readMessage } from './message.js';
import { MadeCall } from './made-call.js';
import { ReceivedCall } from './received-call.js';
import { RequestStream } from './request-stream.js';
import { CANCEL_TASK, TaskProgress } from './task-progress.js';

/**
 * @typedef {object} PeerOptions Options of `createPeer`.
 * @property {'acp' | 'lsp' | 'mcp'} dialect whose form of cancelling is used
 * @property {import('./rpc-core.js').Limits} [limits] of pending requests and of the length of
 *   messages
 * @property {Handler} [onRequest] the same as `handle('*', …)`
 * @property {Listener} [onNotification] the same as `onNotification('*', …)`
 * @property {boolean} [start] false reads nothing before `start()`: for handlers that are
 *   registered later (true)
 * @property {(event: TraceEvent) => void} [trace] called for messages that are sent, received,
 *   dropped or refused, and for the end
 */

/**
 * @typedef {object} TraceEvent An event of a peer.
 * @property {'sent' | 'received' | 'late' | 'stray' | 'malformed' | 'refused' | 'unsent' |
 *   'closed'} type `late` and `stray` are answers, cancels and progress for requests that have
 *   ended, or never existed; `malformed` is not a message; `refused` is answered with an error
 *   before any handler; `unsent` could not be sent
 * @property {unknown} [message] absent if it could not be read
 * @property {unknown} [error] of the message, or why it ended
 */

/**
 * @typedef {object} RequestOptions Cancellation, timeouts and reports of a request.
 * @property {AbortSignal} [signal] cancels the request; one that is aborted already sends nothing
 * @property {number} [timeout] ms after which the request cancels itself; 0 or absent for no limit
 * @property {number} [maxTotalTimeout] the same, but progress does not extend it
 * @property {boolean} [resetTimeoutOnProgress] whether progress, which it then requests, restarts
 *   the timeout (false)
 * @property {(info: any) => void} [onProgress] requests progress (MCP, LSP) and is called with it;
 *   the params must be an object
 * @property {(part: any) => void} [onPartialResult] requests the result in parts (LSP) and is
 *   called with them
 * @property {(result: any) => any} [onInputRequired] for MCP from 2026-07-28 on: called with a
 *   result by which the server requests input first, and resolves with the params of the repeated
 *   request
 * @property {(told: { method: string, params: any }) => void} [onTagged] called with the
 *   notifications of a subscription (MCP), instead of other listeners
 * @property {boolean} [wait] whether a cancelled request waits for its answer (true; MCP: false)
 * @property {(id: number) => Promise<Answer>} [onCancelled] for MCP, where cancelled requests get
 *   no answer: called with the request's id once the cancel is sent. Resolves with the answer, if
 *   the other side reports it (see {@link Peer.became}); with `wait`, the request waits for that
 *   until the grace period is over
 * @property {Transferable[]} [transfer] objects in the params that are moved instead of copied, if
 *   the transport can
 */

/** @import { AbpError } from 'abp-bridge/driver' */
/** @import { Answer } from './made-call.js' */
/** @import { Action } from 'abp-bridge/driver' */
/** @import { Handler } from './received-call.js' */
/** @import { Kind, Reported } from './dialects.js' */

/**
 * @typedef {(params: any, context: { method: string }) => void} Listener Receives notifications.
 */

/**
 * Answers may have arrived while the thread was busy. Event loops run timers first, so due timeouts
 * wait until the answers have been read.
 * @extends {Machine<PeerCore, MadeCall, ReceivedCall, string | undefined, rpc.RpcError>}
 */
/** @extends {Machine<PeerCore, MadeCall | ReceivedCall>} */
class PeerDriver extends Machine {
  #peer;

  /**
   * @param {PeerCore} core
   * @param {Peer} peer
   */
  constructor(core, peer) {
    super(core);
    this.#peer = peer;
  }

  /**
   * @override
   * @param {number} now ms
   */
  due(now) {
    inAnotherTurn(() => this.advance(Math.max(now, performance.now())));
  }

  /**
   * @override
   * @param {Action} action
   */
  read({ kind }) {
    if (kind === abp.SETTLE) return this.core.at;
    if (kind === abp.REQUEST) return this.core.callNumber;
    return kind === abp.ABORT || kind === abp.SEND ? this.core.reason : undefined;
  }

  /**
   * @override
   * @param {Action} action
   * @param {any} context
   */
  perform(action, context) {
    this.#peer.perform(action, context);
  }

  /**
   * @override
   * @param {(MadeCall | ReceivedCall)[]} records
   */
  broke(records) {
    this.#peer.broke(records);
  }
}

/** @type {Record<number, TraceEvent['type']>} */
const DROPPED = { [abp.LATE]: 'late', [abp.STRAY]: 'stray', [abp.MALFORMED]: 'malformed' };
/** The key of handlers for all other methods. */
const ANY = '*';
const UNSTARTED = { outcome: abp.FATES[abp.FATE_UNSTARTED] };

/**
 * Speaks JSON-RPC over a transport, on either side of it. Messages wait until the core is loaded.
 * @param {import('abp-bridge/driver').Transport} transport
 * @param {PeerOptions} options
 */
export const createPeer = (transport, options) => new Peer(transport, options);

/** @type {import('abp-bridge/driver').Kinds<PeerOptions>} */
const OPTIONS = {
  dialect: '"acp", "lsp" or "mcp"',
  limits: 'an object of numbers',
  onNotification: 'a function',
  onRequest: 'a function',
  start: 'a boolean',
  trace: 'a function',
};
/** @type {import('abp-bridge/driver').Kinds<RequestOptions>} */
const REQUEST_OPTIONS = {
  maxTotalTimeout: 'a number',
  onCancelled: 'a function',
  onInputRequired: 'a function',
  onPartialResult: 'a function',
  onProgress: 'a function',
  onTagged: 'a function',
  resetTimeoutOnProgress: 'a boolean',
  signal: 'an AbortSignal',
  timeout: 'a number',
  transfer: 'an object',
  wait: 'a boolean',
};

/**
 * The name that a request belongs to, in its params or in those of the notification that stops it.
 * @param {unknown} params
 * @param {string} [key]
 */
const nameIn = (params, key) => (key ? safely(() => tokenOf(getOwn(params, key))) : undefined);

/** One side of a connection that speaks JSON-RPC. */
export class Peer {
  /** Made when the core is loaded. @type {PeerDriver | undefined} */
  #machine;
  /** Calls that wait until the core is loaded. @type {(() => void)[]} */
  #early = [];
  /** True if a notification is among them. */
  #owesNotification = false;
  /** @type {Map<string, Handler>} */
  #handlers = new Map();
  /** @type {Map<string, Listener>} */
  #listeners = new Map();
  /**
   * Methods with a warning that they are registered for the other kind of message.
   * @type {Set<string>}
   */
  #warned = new Set();
  #transport;
  #starting = false;
  #over = false;
  /** True if it was closed, maybe before the core was loaded. */
  #closing = false;
  /** The end of the connection, if it has ended. @type {RpcError | undefined} */
  ended = undefined;
  #resolveClosed = (/** @type {RpcError} */ _why) => {};
  /**
   * The current message, and its error.
   * @type {{ message?: unknown, error?: unknown }}
   */
  #received = {};
  #trace;
  /** @type {TaskProgress | undefined} */
  #tasks;
  /** The batch being read. @type {Batch | undefined} */
  #batch;
  /** The version that `initialize` agreed on (MCP), from either side. @type {string | undefined} */
  protocolVersion = undefined;
  /**
   * The `_meta` of requests that this peer makes by itself (MCP from 2026-07-28 on).
   * @type {object | undefined}
   */
  envelope = undefined;
  /**
   * True if handlers' answers to cancelled requests are kept, for {@link Peer.became}.
   */
  keepsUnsent = false;
  /**
   * Those answers, by the ids of the requests, the oldest first.
   * @type {Map<unknown, ReceivedCall>}
   */
  #unsent = new Map();

  /**
   * Use {@link createPeer}.
   * @param {import('abp-bridge/driver').Transport} transport
   * @param {PeerOptions} options
   */
  constructor(transport, options) {
    const { dialect, limits = {}, onRequest, onNotification, start = true, trace } = options ?? {};
    requireOf('createPeer', 'transport', 'an object', transport);
    if (!Object.hasOwn(DIALECTS, dialect))
      throw mistyped('createPeer', 'dialect', `one of ${Object.keys(DIALECTS).join(', ')}`);
    requireOptions('createPeer', options, OPTIONS);
    this.#transport = transport;
    this.dialect = DIALECTS[dialect];
    this.#trace = trace;
    /** @internal Ms to wait for a cancelled request, if set. */
    this.grace = limits.grace;
    if (this.dialect.tasks) this.#tasks = new TaskProgress(this);
    if (onRequest) this.handle(ANY, onRequest);
    if (onNotification) this.onNotification(ANY, onNotification);
    /**
     * Resolves when the connection has ended, with the reason: `data.closedBy` is `'self'` or
     * `'peer'`, and `cause` is the transport's error.
     * @type {Promise<RpcError>}
     */
    this.closed = new Promise((resolve) => (this.#resolveClosed = resolve));
    transport.onUnreadable = (error) =>
      this.#whenReady(() => this.#malformed(rpc.RPC_PARSE, { error }));
    transport.onClose = (cause) => this.#whenReady(() => this.#end('peer', cause));
    transport.onEnd = () => this.#whenReady(() => this.#halfClosed());
    if (start) this.start();
    void this.#open(limits);
  }

  /** @param {import('./rpc-core.js').Limits} limits */
  async #open(limits) {
    try {
      await ready();
      this.#machine = new PeerDriver(new PeerCore(this.dialect.number, limits), this);
    } catch (cause) {
      const why = 'the core could not be loaded, and the connection is closed';
      console.error(`abp-bridge: ${why}:`, cause);
      this.ended ??= this.error(rpc.RPC_INTERNAL, { cause });
      this.#dispose();
    }
    // Their effects are queued behind them.
    for (const act of this.#early) invokeReportingErrors(act);
    this.#early = [];
  }

  /** Begins to read, if the option `start` was false. Until then messages wait in the transport. */
  start() {
    // Some transports read as soon as there is a listener.
    this.#transport.onMessage = (message) => this.#whenReady(() => this.#receive(message));
  }

  /** @param {() => void} act */
  #whenReady(act) {
    if ((this.#machine || this.#over) && !this.#early.length) act();
    else this.#early.push(act);
  }

  // --- The interface for programs ----------------------------------------------------------------

  /**
   * Answers the requests of a method; `'*'` those without another handler. A second handler
   * replaces the first.
   * @param {string} method
   * @param {Handler} handler
   */
  handle(method, handler) {
    return this.#register(this.#handlers, method, handler);
  }

  /**
   * Receives the notifications of a method; `'*'` those without another listener. It does not get
   * the dialect's cancel, nor progress that a request of this side asked for.
   * @param {string} method
   * @param {Listener} listener
   */
  onNotification(method, listener) {
    return this.#register(this.#listeners, method, listener);
  }

  /**
   * Removes a handler.
   * @param {string} method as given to `handle`
   */
  removeHandler(method) {
    this.#handlers.delete(method);
    return this;
  }

  /**
   * Removes a listener.
   * @param {string} method as given to `onNotification`
   */
  removeListener(method) {
    this.#listeners.delete(method);
    return this;
  }

  /**
   * @template {Function} F
   * @param {Map<string, F>} handlers
   * @param {string} method
   * @param {F} handler
   */
  #register(handlers, method, handler) {
    if (typeof method !== 'string' || typeof handler !== 'function')
      throw mistyped('a peer', 'a handler', 'a function, registered under the name of a method');
    handlers.set(method, handler);
    return this;
  }

  /**
   * Makes a request.
   * @param {string} method
   * @param {unknown} [params]
   * @param {RequestOptions} [options]
   * @param {never[]} more nothing
   * @returns {Promise<any>} the result; rejects with an {@link RpcError}, or with the signal's own
   *   reason when that is an error
   */
  request(method, params, options = {}, ...more) {
    return this.requestFor(0, method, params, options, more);
  }

  /**
   * Makes a request whose result is read part by part: `for await (const part of peer.stream(…))`.
   * If the other side sends no parts, the result is the only one.
   * @param {string} method
   * @param {unknown} [params]
   * @param {Omit<RequestOptions, 'onPartialResult'>} [options]
   * @param {never[]} more nothing
   * @returns {RequestStream} leaving it, as `break` does, cancels the request
   */
  stream(method, params, options = {}, ...more) {
    requireForm('stream', 'stream(method, params, { signal })', [options, ...more]);
    requireOf('stream', 'options', 'an object', options);
    // Its request checks the other options.
    requireOptions('stream', options, { signal: 'an AbortSignal' }, true);
    const begin = (/** @type {RequestOptions} */ own) =>
      this.request(method, params, { ...options, ...own });
    return new RequestStream(begin, options.signal);
  }

  /**
   * @internal
   * @param {abp.Handle} parent of the received call on whose behalf it is made, or 0
   * @param {string} method
   * @param {unknown} params
   * @param {RequestOptions} options
   * @param {unknown[]} [more] arguments behind them
   * @returns {Promise<any>}
   */
  requestFor(parent, method, params, options, more = []) {
    return new Promise((resolve, reject) => {
      if (typeof method !== 'string') throw mistyped('request', 'method', 'a string');
      requireForm('request', 'request(method, params, { signal })', [options, ...more]);
      requireOf('request', 'options', 'an object', options);
      requireOptions('request', options, REQUEST_OPTIONS);
      const { timeout, maxTotalTimeout } = options;
      requireValues('request', { timeout, maxTotalTimeout }, REQUEST_OPTIONS);
      const call = new MadeCall(this, resolve, reject, method, params, options);
      if (call.asks && params !== undefined && (!isObject(params) || Array.isArray(params)))
        throw mistyped('request', 'params', 'an object, to ask for progress');
      this.#whenReady(() => this.#request(call, parent));
    });
  }

  /**
   * @param {MadeCall} call
   * @param {abp.Handle} parent
   */
  #request(call, parent) {
    const { method, options, asks } = call;
    const { signal, wait } = options;
    if (signal?.aborted) return call.fail(call.cancelled());
    if (this.#over || this.#closing) return call.fail(this.closedError(abp.FATE_UNSTARTED));
    const { handshake, subscription } = this.machine.core;
    const ms = milliseconds(options.timeout);
    const longest = milliseconds(options.maxTotalTimeout);
    const flags =
      (options.onInputRequired ? rpc.ROUNDS : 0) |
      (options.resetTimeoutOnProgress ? rpc.RESETS : 0) |
      (wait === undefined ? 0 : wait ? rpc.WAITS : rpc.LEAVES) |
      (method === handshake ? rpc.HANDSHAKE : 0) |
      (method === subscription ? rpc.SUBSCRIPTION : 0) |
      (asks || (options.onTagged && this.dialect.progress) ? rpc.REPORTS : 0);
    this.#advanceClock();
    onAbort(signal, call);
    const { x } = this.machine.core;
    const status = this.machine.feed(x.request, call, ms, longest, flags, parent);
    if (status >= 0) return;
    // Otherwise the call on whose behalf it is made has ended, or is ending.
    if (status === abp.E_STATE)
      return call.fail(this.isClosed ? this.closedError(abp.FATE_UNSTARTED) : call.cancelled());
    const code = status === abp.E_LIMIT ? rpc.RPC_BUSY : rpc.RPC_INTERNAL;
    call.fail(this.error(code, { data: { ...UNSTARTED } }));
  }

  /**
   * Sends a notification. Throws the transport's error when the params cannot be sent, and an
   * {@link RpcError} when the connection is closed.
   * @param {string} method
   * @param {unknown} [params]
   */
  notify(method, params) {
    if (this.#over || this.#closing) throw this.closedError();
    const notification = message({ method, params });
    // It needs no core, but must not overtake earlier messages.
    if (!this.#early.length) {
      this.#send(notification);
      return this.#notified(method, params);
    }
    this.#owesNotification = true;
    this.#whenReady(() => {
      if (this.#over) return;
      this.#post(notification);
      this.#notified(method, params);
    });
  }

  /**
   * Sends an optional notification: does nothing once the connection is closed.
   * @param {string} method
   * @param {unknown} [params]
   */
  tell(method, params) {
    if (!this.#over && !this.#closing) this.notify(method, params);
  }

  /**
   * A program may itself stop the requests of a name, or report that a task has ended.
   * @param {string} method
   * @param {unknown} params
   */
  #notified(method, params) {
    this.#tasks?.noticed(params);
    const { stop } = this.#machine?.core ?? {};
    if (method === stop?.method) this.#stopNamed('withdraw', nameIn(params, stop?.key));
  }

  /**
   * Ends the connection: pending requests are cancelled and reject, handlers' signals fire, and
   * their requests are answered as cancelled, as far as the dialect and the transport can.
   */
  close() {
    this.#closing = true;
    // The other end may be another peer's next, so it is not kept until the core is loaded. Only a
    // notification must still be sent: a request that waits is cancelled already.
    if (!this.#machine && !this.#over && !this.#owesNotification) {
      this.#transport.close();
      this.#transport = { post() {}, onMessage() {}, close() {} };
    }
    this.#whenReady(() => this.#end('self'));
  }

  /**
   * Counters of pending and dropped messages, for debugging.
   * @returns {Record<string, number>}
   */
  get counters() {
    return this.#machine?.counters ?? {};
  }

  /**
   * What became of the work of a request of the other side.
   * @param {unknown} id as in the message
   * @param {boolean} [settled] whether to wait until its handler has settled
   * @returns {Promise<{ outcome: unknown, result?: unknown, error?: unknown }>} the outcome,
   *   `'unknown'` if no such request is remembered, and the handler's answer if that was not sent
   */
  async became(id, settled = false) {
    if (!this.#machine || this.#machine.failed) return { outcome: 'unknown' };
    this.#advanceClock(); // forgets old requests
    const { core } = this.machine;
    const fate = core.became(id) || abp.FATE_UNKNOWN;
    if (fate === abp.FATE_RUNNING && settled) {
      const { call } = core;
      const [running] = this.#incomings(({ handle }) => handle === call);
      await running?.settling;
      return this.became(id);
    }
    const unsent = this.#unsent.get(id)?.unsent(fate);
    const told = getOwn(getOwn(getOwn(unsent, 'error'), 'data'), 'outcome');
    return { ...unsent, outcome: told ?? abp.FATES[fate] };
  }

  /**
   * Keeps the answer to a cancelled call, until the core forgets the call.
   * @internal
   * @param {ReceivedCall} call
   */
  keep(call) {
    if (!this.keepsUnsent || this.machine.failed) return;
    for (const id of this.#unsent.keys()) {
      if (this.machine.core.became(id)) break;
      this.#unsent.delete(id);
    }
    this.#unsent.set(call.id, call);
  }

  // --- Input -------------------------------------------------------------------------------------

  /** @param {unknown} received */
  #receive(received) {
    if (this.#over) return;
    this.#advanceClock();
    this.#traced('received', received);
    const { batchVersion } = this.machine.core;
    const takesBatches = batchVersion !== undefined && this.protocolVersion === batchVersion;
    if (!takesBatches || !Array.isArray(received)) return this.#dispatch(received);
    if (!received.length || received.length > MAX_BATCH) return this.#dispatch(received);
    const batch = (this.#batch = new Batch((answers) => this.#over || this.#post(answers)));
    for (const message of received) this.#dispatch(message);
    this.#batch = undefined;
    batch.ended(batch);
  }

  /**
   * Sets the core's clock, which stands still between inputs. Due timeouts are left to the timer:
   * the current message is read first.
   */
  #advanceClock() {
    this.machine.feed(this.machine.core.x.now, undefined, performance.now());
  }

  /** @param {unknown} received */
  #dispatch(received) {
    if (this.#over) return;
    this.#received = { message: received };
    // A getter or a proxy may throw: then it is not a message.
    const { unversioned } = this.machine.core;
    const read = safely(() => readMessage(received, unversioned), rpc.RPC_INVALID_REQUEST);
    if (typeof read !== 'object') return this.#malformed(read);
    const { id, method, params, answer } = read;
    if (answer) this.#response(id, answer);
    else if (id === undefined) this.#notification(method, params);
    else this.#incoming(id, method, params);
  }

  /**
   * @param {rpc.RpcError} fault
   * @param {{ message?: unknown, error?: unknown }} [received]
   */
  #malformed(fault, received = this.#received) {
    if (this.#over) return;
    this.#received = received;
    this.machine.feed(this.machine.core.x.malformed, undefined, fault);
  }

  /**
   * @param {unknown} id
   * @param {Answer} answer
   */
  #response(id, answer) {
    const { core } = this.machine;
    const result = getOwn(answer, 'result');
    /** @type {Parameters<typeof core.x.response>[3]} */
    let says = rpc.ANSWER_RESULT;
    if (Object.hasOwn(answer, 'error')) says = rpc.ANSWER_ERROR;
    else if (this.dialect.needsInput?.(result)) says = rpc.INPUT_REQUIRED;
    else if (this.dialect.saysStopped?.(result)) says = rpc.ANSWER_STOPPED;
    this.machine.feed(core.x.response, answer, ...core.id(id), says);
  }

  /**
   * @param {unknown} id
   * @param {string} method
   * @param {unknown} params
   */
  #incoming(id, method, params) {
    const { core } = this.machine;
    const handler = this.#handlerOf(method);
    const fault = handler ? rpc.RPC_NO_ERROR : rpc.RPC_METHOD_NOT_FOUND;
    if (!handler && this.#listeners.has(method))
      this.#warnOfKind(method, 'a request', 'onNotification', 'handle');
    const flags = method === core.subscription ? rpc.SUBSCRIPTION : 0;
    const call = new ReceivedCall(this, handler, id, method, params);
    call.name = nameIn(params, core.stop.member);
    call.batch = this.#batch;
    call.batch?.open.add(call);
    this.#unsent.delete(id);
    this.machine.feed(core.x.received, call, ...core.id(id), fault, flags);
    if (!call.handle) call.batch?.ended(call);
    // Its own handler answers; the task's signal stops the work.
    else if (method === CANCEL_TASK) this.#tasks?.stopped(params);
  }

  /**
   * @param {string} method
   * @returns {Handler | undefined}
   */
  #handlerOf(method) {
    // The dialect's cancel is a notification: as a request it is unknown, even with a handler.
    if (method === this.machine.core.cancelMethod) return undefined;
    return (
      this.#handlers.get(method) ?? this.#handlers.get(ANY) ?? this.dialect.answers?.get(method)
    );
  }

  /**
   * @param {string} method
   * @param {unknown} params
   */
  #notification(method, params) {
    const { core } = this.machine;
    const { progress, tagged } = this.dialect;
    if (method === core.cancelMethod) {
      const id = safely(() => getOwn(params, core.cancelKey));
      const reason = safely(() => getOwn(params, 'reason'), null);
      const message = typeof reason === 'string' ? reason : 'The other side ended it';
      const error = { code: core.cancelledCode, message };
      this.machine.feed(() => core.cancelReceived(id, reason), { error });
      return;
    }
    if (method === core.stop.method)
      this.#stopNamed('stop_received', nameIn(params, core.stop.key));
    const reported = () =>
      method === progress?.method ? progress.read(params) : tagged?.(method, params);
    if (this.#progressed(safely(reported))) return;
    this.#tasks?.noticed(params);
    const listener = this.#listeners.get(method) ?? this.#listeners.get(ANY);
    if (!listener && this.#handlers.has(method))
      this.#warnOfKind(method, 'a notification', 'handle', 'onNotification');
    invokeReportingErrors(listener, params, { method });
  }

  /**
   * Warns that a handler for the other kind of message is registered.
   * @param {string} method
   * @param {string} kind
   * @param {string} found
   * @param {string} takes
   */
  #warnOfKind(method, kind, found, takes) {
    if (this.#warned.has(method)) return;
    this.#warned.add(method);
    const why = `${method} has arrived as ${kind}, and nothing took it: it is registered with ${found}`;
    warn(`${why}. Register it with ${takes} (docs/rpc.md#requests-and-notifications)`);
  }

  /**
   * Stops the requests of a name, at the other side's request; or, after this side has stopped
   * them, answers the other side's requests that wait for this.
   * @param {'stop_received' | 'withdraw'} input
   * @param {unknown} name
   */
  #stopNamed(input, name) {
    if (name === undefined) return;
    const { requests, withdraws } = this.machine.core.stop;
    const told = this.#incomings((call) =>
      input === 'withdraw'
        ? call.name === name && call.method === withdraws
        : call.names?.has(name) ||
          (call.name === name && (requests ?? call.method) === call.method),
    );
    for (const { handle } of told) this.machine.feed(this.machine.core.x[input], undefined, handle);
  }

  /**
   * A call that is made on behalf of a received one may give that a name.
   * @internal
   * @param {ReceivedCall} call
   * @param {string} method
   * @param {unknown} params
   */
  nameFor(call, method, params) {
    const { creates, key } = this.machine.core.stop;
    if (method === creates) (call.names ??= new Set()).add(nameIn(params, key));
  }

  /**
   * Handles progress, or a notification of a subscription. Returns whether it belongs to a request
   * made here, which may have ended.
   * @param {Reported | undefined} progress
   */
  #progressed(progress) {
    if (progress?.id === undefined) return false;
    const { id, kind, info } = progress;
    const { machine } = this;
    const listener = kind === 'onTagged' ? undefined : this.#tasks?.listener(id);
    if (listener) invokeReportingErrors(listener, info);
    const { core } = machine;
    return listener || machine.feed(core.x.progress, progress, ...core.id(id)) !== abp.E_STATE;
  }

  // --- Requests of the records -------------------------------------------------------------------

  /** Only there once the core is loaded. */
  get machine() {
    return /** @type {PeerDriver} */ (this.#machine);
  }

  /**
   * A request's signal fired.
   * @param {abp.Handle} call
   * @param {string | undefined} reason
   */
  cancel(call, reason) {
    this.#advanceClock();
    this.machine.cancel(call, reason);
  }

  /**
   * The other side needs input before it can answer a call.
   * @param {MadeCall} call
   * @param {unknown} result that requests it
   */
  async #gatherInput(call, result) {
    const { machine } = this;
    const { handle, options } = call;
    try {
      call.params = await options.onInputRequired?.(result);
    } catch (thrown) {
      return machine.sendFailed(handle, { thrown });
    }
    const status = machine.feed(machine.core.x.retry, call, handle);
    if (status === abp.E_MEMORY)
      machine.sendFailed(handle, { error: this.errorObject(rpc.RPC_INTERNAL) });
  }

  /**
   * @internal
   * @param {ReceivedCall} call
   * @param {Kind} kind
   * @param {unknown} info
   */
  progress(call, kind, info) {
    const { progress } = this.dialect;
    const token = progress?.wanted(call.params, kind);
    if (!progress || token === undefined || !this.#mayReport(call)) return;
    const params = progress.write(token, info, call);
    if (params === undefined) return;
    const report = message({ method: progress.method, params });
    // A part of the result must not be dropped: it is not sent again.
    if (kind === 'onPartialResult') return this.#send(report);
    const send = (/** @type {object} */ last) =>
      this.#mayReport(call) && this.#send(last, undefined, 'droppable');
    (call.reports ??= latestOf(send)).add(report);
  }

  /** @param {ReceivedCall} call */
  #mayReport(call) {
    const { failed, core } = this.machine;
    if (failed || this.#over) return false;
    return call.goesOn ? !call.aborted : core.isRunning(call.handle);
  }

  /** Resolves when the other side has read enough, if the transport knows. */
  room() {
    return this.#transport.room?.();
  }

  /**
   * Call this when a call was answered. Returns the result.
   * @internal
   * @param {MadeCall} call
   * @param {unknown} result
   */
  answered(call, result) {
    this.#tasks?.answered(call, result);
    this.#agreed(call.method, result);
    return result;
  }

  /**
   * Reads the version from the handshake, of either side.
   * @param {string} method
   * @param {unknown} result
   */
  #agreed(method, result) {
    if (method !== this.machine.core.handshake) return;
    const version = safely(() => getOwn(result, 'protocolVersion'));
    if (typeof version === 'string') this.protocolVersion = version;
  }

  /** True if it accepts no more messages. */
  get isClosed() {
    return this.machine.failed || this.machine.core.isClosed;
  }

  /**
   * The received calls that have not ended and that match.
   * @param {(call: ReceivedCall) => unknown} matches
   */
  #incomings(matches) {
    /** @type {ReceivedCall[]} */
    const found = [];
    if (this.#machine && !this.#machine.failed)
      this.#machine.find((call) => {
        if (call instanceof ReceivedCall && matches(call)) found.push(call);
      });
    return found;
  }

  /**
   * The error of calls after the end.
   * @param {abp.Fate} [fate] the outcome of the call that gets it
   */
  closedError(fate) {
    const { data, cause } = this.ended ?? { data: { closedBy: 'self' }, cause: undefined };
    const told = fate && isRecord(data) && { ...data, outcome: abp.FATES[fate] };
    return this.error(rpc.RPC_CLOSED, { data: told || data, cause });
  }

  /**
   * The error on the wire for an error of the core.
   * @param {rpc.RpcError} code
   */
  errorObject(code) {
    const core = this.#machine?.failed ? undefined : this.#machine?.core;
    const message = code === rpc.RPC_CLOSED ? 'Connection closed' : 'The connection failed';
    return core?.error(code) ?? { code: INTERNAL_ERROR, message };
  }

  /**
   * @internal
   * @param {rpc.RpcError} error
   * @param {{ name?: string, message?: string, data?: unknown, cause?: unknown }} [more]
   */
  error(error, { name, message, data, cause } = {}) {
    const known = this.errorObject(error);
    return new RpcError(known.code, message ?? known.message, data, { name, cause });
  }

  // --- Effects of the core's actions -------------------------------------------------------------

  /**
   * @internal
   * @param {Action} action
   * @param {any} context
   */
  perform({ kind, arg, fate, record, text }, context) {
    switch (kind) {
      case abp.REQUEST:
        return this.#sendRequest(record, text);
      case abp.SETTLE:
        return record.settle(arg, context, text, fate);
      case abp.START:
        return void record.start();
      case abp.ABORT:
        return record.abort(text, fate);
      case abp.RESULT:
        return (record ?? context).answer(arg, fate);
      case abp.REFUSE:
        return this.#refuse(arg, context);
      case abp.SEND:
        return this.#sendCancel(record, text);
      case abp.REPORT:
        if ('kind' in context) invokeReportingErrors(record.options[context.kind], context.info);
        else void this.#gatherInput(record, context.result);
        return;
      case abp.SESSION:
        // Messages of handlers that are ending are sent first.
        return queueMicrotask(() => this.#end('peer'));
      case abp.DROP: {
        this.#traced(DROPPED[arg]);
        const { message: late } = this.#received;
        if (arg === abp.LATE) this.#tasks?.late(safely(() => getOwn(late, 'result')));
        return;
      }
      case abp.QUEUED:
        return this.#startSoon();
    }
  }

  /**
   * After all messages that arrived together have been read, so that requests which are cancelled
   * among them never start.
   */
  #startSoon() {
    if (this.#starting) return;
    this.#starting = true;
    queueMicrotask(() => {
      this.#starting = false;
      this.machine.feed(this.machine.core.x.start, undefined);
    });
  }

  /**
   * The core has failed.
   * @internal
   * @param {(MadeCall | ReceivedCall)[]} records of the calls that were in flight
   */
  broke(records) {
    this.ended ??= this.error(rpc.RPC_INTERNAL);
    this.#dispose();
    for (const record of records) record.fail(this.error(rpc.RPC_INTERNAL));
  }

  /**
   * @param {rpc.RpcError} fault
   * @param {ReceivedCall | undefined} call
   */
  #refuse(fault, call) {
    const error = {
      ...this.errorObject(fault),
      // Out of memory: the other side must learn that nothing was done.
      ...(fault === rpc.RPC_INTERNAL && { data: UNSTARTED }),
      ...this.dialect.explain?.(fault, call?.method, this.#received.message),
    };
    this.#traced('refused', undefined, error);
    const id = this.machine.core.hasNoId(fault) ? null : call?.id;
    const answer = { jsonrpc: '2.0', id, error };
    if (call?.batch) call.batch.ended(call, answer);
    else if (this.#batch) this.#batch.answers.push(answer);
    else this.#respond(answer);
  }

  // --- Output ------------------------------------------------------------------------------------

  /**
   * @param {MadeCall} call
   * @param {number} id its number
   */
  #sendRequest(call, id) {
    const { handle, method, options } = call;
    call.number = id;
    const params = call.asks ? call.asks.ask(call.params, id, options) : call.params;
    const { requests, member } = this.machine.core.stop;
    if ((requests ?? method) === method) call.name = nameIn(params, member);
    try {
      this.#send(message({ id, method, params }), options.transfer, 'request');
    } catch (error) {
      const why = toErrorObject(error);
      let told = { ...why, message: `The params cannot be sent: ${why.message}` };
      if (getOwn(error, 'code') === 'RATE_LIMITED') {
        // Too much waits for the other side to read it.
        const { retryable, retryAfter } = /** @type {AbpError} */ (error);
        const data = { retryable, retryAfter };
        told = { ...this.errorObject(rpc.RPC_BUSY), message: why.message, data };
      }
      this.machine.sendFailed(handle, { error: told });
    }
  }

  /**
   * Requests that a request be stopped. The other side may not know the dialect's cancel, but only
   * the notification that names what the request belongs to. That stops all requests of the name,
   * so it is sent with the last of them.
   * @param {MadeCall} call
   * @param {string | undefined} reason
   */
  #sendCancel({ number: id, name, options }, reason) {
    const { core } = this.machine;
    const { cancelMethod: method, cancelKey, stop } = core;
    const isAnother = (/** @type {MadeCall | ReceivedCall} */ other) =>
      other instanceof MadeCall && other.name === name && core.isRunning(other.handle);
    const isLast = name !== undefined && !this.machine.find(isAnother);
    if (isLast && stop.method)
      this.#post(message({ method: stop.method, params: { [stop.key]: name } }));
    this.#post(message({ method, params: { [cancelKey]: id, ...(reason && { reason }) } }));
    if (isLast) this.#stopNamed('withdraw', name);
    const answered = options.onCancelled?.(id);
    // Without an answer, the outcome is unknown.
    answered?.then((answer) => this.#over || this.#response(id, answer)).catch(() => {});
  }

  /**
   * @internal
   * @param {ReceivedCall} call
   * @param {Answer} answer
   * @param {Transferable[]} [transfer]
   */
  respond(call, answer, transfer) {
    const { id, batch } = call;
    const result = getOwn(answer, 'result');
    this.#agreed(call.method, result);
    this.#tasks?.given(call, result);
    const response = { jsonrpc: '2.0', id, ...answer };
    if (batch) batch.ended(call, response);
    else this.#respond(response, transfer);
  }

  /**
   * @param {{ id: unknown }} response
   * @param {Transferable[]} [transfer]
   */
  #respond(response, transfer) {
    try {
      this.#send(response, transfer);
    } catch (thrown) {
      const why = toErrorObject(thrown);
      const error = { ...why, message: `The answer cannot be sent: ${why.message}` };
      this.#post({ jsonrpc: '2.0', id: response.id, error });
    }
  }

  /**
   * Sends, if possible: an answer whose own id cannot be cloned is dropped, and a transport may
   * have closed without notice.
   * @param {object} what
   */
  #post(what) {
    try {
      this.#send(what);
    } catch (error) {
      if (!this.#trace) warn('a message could not be sent:', error);
    }
  }

  /**
   * @param {object} what
   * @param {Transferable[]} [transfer]
   * @param {import('abp-bridge/driver').MessageKind} [kind]
   */
  #send(what, transfer, kind) {
    try {
      this.#transport.post(what, transfer, kind);
    } catch (error) {
      this.#traced('unsent', what, error);
      throw error;
    }
    this.#traced('sent', what);
  }

  /**
   * @param {TraceEvent['type']} type
   * @param {unknown} [message] default: the received one
   * @param {unknown} [error]
   */
  #traced(type, message, error) {
    if (!this.#trace) return;
    const event = message === undefined && type !== 'closed' ? this.#received : { message };
    invokeReportingErrors(this.#trace, { type, ...event, ...(error !== undefined && { error }) });
  }

  // --- The end -----------------------------------------------------------------------------------

  /**
   * The other side has ended its half of a stream: its earlier requests are answered, and then the
   * connection ends.
   */
  #halfClosed() {
    if (this.#over) return;
    this.ended ??= this.error(rpc.RPC_CLOSED, { data: { closedBy: 'peer' } });
    this.machine.feed(this.machine.core.x.half_closed, undefined);
  }

  /**
   * This side has ended it, or the other one has gone away.
   * @param {'self' | 'peer'} closedBy
   * @param {unknown} [cause]
   */
  #end(closedBy, cause) {
    if (this.#over) return;
    this.ended ??= this.error(rpc.RPC_CLOSED, { data: { closedBy }, cause });
    const { x } = this.machine.core;
    this.machine.feed(closedBy === 'self' ? x.close : x.lost, undefined);
    this.#dispose();
  }

  #dispose() {
    if (this.#over) return;
    this.#over = true;
    this.#transport.close();
    this.#machine?.end();
    this.#tasks?.close();
    const why = /** @type {RpcError} */ (this.ended);
    this.#traced('closed', undefined, why);
    this.#resolveClosed(why);
  }
}
