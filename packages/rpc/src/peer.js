/**
 * One side of a JSON-RPC connection: reads what comes in, gives it to the core, and sends what the
 * core's actions say. Nothing here decides what happens to a call.
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
 * @typedef {object} PeerOptions What `createPeer` may be given.
 * @property {'acp' | 'lsp' | 'mcp'} dialect whose way of cancelling is spoken
 * @property {import('./rpc-core.js').Limits} [limits] of requests that may be pending and how long
 *   messages may be
 * @property {Handler} [onRequest] the same as `handle('*', …)`
 * @property {Listener} [onNotification] the same as `onNotification('*', …)`
 * @property {boolean} [start] false reads nothing before `start()`: for handlers that are
 *   registered later (true)
 * @property {(event: TraceEvent) => void} [trace] hears what is said, what is dropped or refused,
 *   and why it ended
 */

/**
 * @typedef {object} TraceEvent What a peer shows of its work.
 * @property {'sent' | 'received' | 'late' | 'stray' | 'malformed' | 'refused' | 'unsent'
 *   | 'closed'} type `late` and `stray` are answers, cancels and progress for what has ended, or
 *   never was; `malformed` is no message; `refused` is answered with an error before any handler;
 *   `unsent` could not be sent
 * @property {unknown} [message] what was said; absent where it could not even be read
 * @property {unknown} [error] what was wrong, or why it ended
 */

/**
 * @typedef {object} RequestOptions How a request ends early, and what it reports.
 * @property {AbortSignal} [signal] cancels the request; one that is aborted already sends nothing
 * @property {number} [timeout] ms after which the request cancels itself; 0 or absent is never
 * @property {number} [maxTotalTimeout] the same, but progress does not put it off
 * @property {boolean} [resetTimeoutOnProgress] whether each progress, for which it asks, begins the
 *   timeout anew (false)
 * @property {(info: any) => void} [onProgress] asks for progress (MCP, LSP) and takes it; the
 *   params must be an object
 * @property {(part: any) => void} [onPartialResult] asks for the result in parts (LSP) and takes
 *   them
 * @property {(result: any) => any} [onInputRequired] for MCP from 2026-07-28 on: takes a result
 *   that says what the server needs first, and resolves with the params of the request that is made
 *   again
 * @property {(told: { method: string, params: any }) => void} [onTagged] takes the notifications of
 *   a subscription (MCP), in place of other listeners
 * @property {boolean} [wait] whether a cancelled request waits for its answer (true; MCP: false)
 * @property {(id: number) => Promise<Answer>} [onCancelled] for MCP, where nobody answers what was
 *   cancelled: called with the request's id once the cancel is sent. Resolves with the answer, if
 *   the other side tells it (see {@link Peer.became}); with `wait`, that is waited for until the
 *   grace period is over
 * @property {Transferable[]} [transfer] what of the params is moved instead of copied, where the
 *   transport can
 */

/** @import { AbpError } from 'abp-bridge/driver' */
/** @import { Answer } from './made-call.js' */
/** @import { Action } from 'abp-bridge/driver' */
/** @import { Handler } from './received-call.js' */
/** @import { Kind, Reported } from './dialects.js' */

/** @typedef {(params: any, context: { method: string }) => void} Listener Takes notifications. */

/**
 * Answers may have arrived while the thread was busy. Event loops run timers first, so what is due
 * waits until they have been read.
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
/** What handlers for no method in particular are registered under. */
const ANY = '*';
const UNSTARTED = { outcome: abp.FATES[abp.FATE_UNSTARTED] };

/**
 * Speaks JSON-RPC over a transport, on either side of it. What is said before the core is loaded
 * waits for it.
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
 * The name of what a request belongs to, in its params or in those of what stops it.
 * @param {unknown} params
 * @param {string} [key]
 */
const nameIn = (params, key) => (key ? safely(() => tokenOf(getOwn(params, key))) : undefined);

/** One side of a connection that speaks JSON-RPC. */
export class Peer {
  /** Made when the core is loaded. @type {PeerDriver | undefined} */
  #machine;
  /** What waits until the core is loaded. @type {(() => void)[]} */
  #early = [];
  /** Whether a notification is among that. */
  #owesNotification = false;
  /** @type {Map<string, Handler>} */
  #handlers = new Map();
  /** @type {Map<string, Listener>} */
  #listeners = new Map();
  /**
   * Methods of which it was warned that what is registered for them is not called.
   * @type {Set<string>}
   */
  #warned = new Set();
  #transport;
  #starting = false;
  #over = false;
  /** Whether it was closed, maybe before the core was loaded. */
  #closing = false;
  /** What ended the connection, once something has. @type {RpcError | undefined} */
  ended = undefined;
  #resolveClosed = (/** @type {RpcError} */ _why) => {};
  /**
   * The current message, and what was wrong with it.
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
   * What the requests say in `_meta` that this peer makes by itself (MCP from 2026-07-28 on).
   * @type {object | undefined}
   */
  envelope = undefined;
  /**
   * Whether what the handlers of cancelled requests have answered is kept, for {@link Peer.became}.
   */
  keepsUnsent = false;
  /** That, by the ids of the requests, the oldest first. @type {Map<unknown, ReceivedCall>} */
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
    /** @internal Ms that a cancelled request is waited for, if that was said. */
    this.grace = limits.grace;
    if (this.dialect.tasks) this.#tasks = new TaskProgress(this);
    if (onRequest) this.handle(ANY, onRequest);
    if (onNotification) this.onNotification(ANY, onNotification);
    /**
     * Resolves when nothing is sent or heard any more, with why: `data.closedBy` is `'self'` or
     * `'peer'`, and `cause` what the transport knows.
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
    // What they cause is queued behind them.
    for (const act of this.#early) invokeReportingErrors(act);
    this.#early = [];
  }

  /** Begins to read, if the option `start` was false. Until then messages wait in the transport. */
  start() {
    // Some transports read as soon as somebody listens.
    this.#transport.onMessage = (message) => this.#whenReady(() => this.#receive(message));
  }

  /** @param {() => void} act */
  #whenReady(act) {
    if ((this.#machine || this.#over) && !this.#early.length) act();
    else this.#early.push(act);
  }

  // --- What a program uses -----------------------------------------------------------------------

  /**
   * Answers the requests of a method; `'*'` those that no other handler answers. A second handler
   * replaces the first.
   * @param {string} method
   * @param {Handler} handler
   */
  handle(method, handler) {
    return this.#register(this.#handlers, method, handler);
  }

  /**
   * Takes the notifications of a method; `'*'` those that no other listener takes. The dialect's
   * cancel is not among them, nor is progress that a request of this side asked for.
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
   * Where the other side sends no parts, the result is the only one.
   * @param {string} method
   * @param {unknown} [params]
   * @param {Omit<RequestOptions, 'onPartialResult'>} [options]
   * @param {never[]} more nothing
   * @returns {RequestStream} leaving it, as `break` does, cancels the request
   */
  stream(method, params, options = {}, ...more) {
    requireForm('stream', 'stream(method, params, { signal })', [options, ...more]);
    requireOf('stream', 'options', 'an object', options);
    // Its request looks at the others.
    requireOptions('stream', options, { signal: 'an AbortSignal' }, true);
    const begin = (/** @type {RequestOptions} */ own) =>
      this.request(method, params, { ...options, ...own });
    return new RequestStream(begin, options.signal);
  }

  /**
   * @internal
   * @param {abp.Handle} parent the received call on whose behalf it is made, or 0
   * @param {string} method
   * @param {unknown} params
   * @param {RequestOptions} options
   * @param {unknown[]} [more] what stands behind them
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
    this.#tellTime();
    onAbort(signal, call);
    const { x } = this.machine.core;
    const status = this.machine.feed(x.request, call, ms, longest, flags, parent);
    if (status >= 0) return;
    // Or else that on whose behalf it is made has ended, or is ending.
    if (status === abp.E_STATE)
      return call.fail(this.isClosed ? this.closedError(abp.FATE_UNSTARTED) : call.cancelled());
    const code = status === abp.E_LIMIT ? rpc.RPC_BUSY : rpc.RPC_INTERNAL;
    call.fail(this.error(code, { data: { ...UNSTARTED } }));
  }

  /**
   * Sends a notification. Throws what the transport throws when the params cannot be sent, and an
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
   * The same, of what nobody has to hear: once the connection is closed it does nothing.
   * @param {string} method
   * @param {unknown} [params]
   */
  tell(method, params) {
    if (!this.#over && !this.#closing) this.notify(method, params);
  }

  /**
   * A program may stop by itself what belongs to a name, or say that a task has ended.
   * @param {string} method
   * @param {unknown} params
   */
  #notified(method, params) {
    this.#tasks?.noticed(params);
    const { stop } = this.#machine?.core ?? {};
    if (method === stop?.method) this.#tellNamed('withdraw', nameIn(params, stop?.key));
  }

  /**
   * Ends the connection: what is pending is cancelled and rejects, handlers' signals fire, and what
   * they work on is answered as cancelled, as far as the dialect and the transport can.
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
   * Counts of what is pending and what was dropped, for debugging.
   * @returns {Record<string, number>}
   */
  get counters() {
    return this.#machine?.counters ?? {};
  }

  /**
   * What became of the work of a request that the other side has made.
   * @param {unknown} id as it stood in the message
   * @param {boolean} [settled] whether to wait until its handler has settled
   * @returns {Promise<{ outcome: unknown, result?: unknown, error?: unknown }>} in a word,
   *   `'unknown'` if no such request is remembered, and what its handler has answered if that was
   *   not sent
   */
  async became(id, settled = false) {
    if (!this.#machine || this.#machine.failed) return { outcome: 'unknown' };
    this.#tellTime(); // what is too old is forgotten
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
   * Keeps what was answered to a call that is cancelled, until the core forgets that.
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

  // --- In ----------------------------------------------------------------------------------------

  /** @param {unknown} received */
  #receive(received) {
    if (this.#over) return;
    this.#tellTime();
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
   * Sets the core's clock, which stands still between inputs. What is due is left to the timer: a
   * message that is in hand is read first.
   */
  #tellTime() {
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
    // Its own handler answers; the work on the task is stopped by its signal.
    else if (method === CANCEL_TASK) this.#tasks?.stopped(params);
  }

  /**
   * @param {string} method
   * @returns {Handler | undefined}
   */
  #handlerOf(method) {
    // The dialect's cancel is a notification: as a request it is unknown, whatever handlers there
    // are.
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
      this.#tellNamed('stop_received', nameIn(params, core.stop.key));
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
   * What takes the other kind of message is registered.
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
   * The other side stops what belongs to a name; or this one has done so, and what the other side
   * then wants answered is answered.
   * @param {'stop_received' | 'withdraw'} input
   * @param {unknown} name
   */
  #tellNamed(input, name) {
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
   * Progress has arrived, or what a subscription is told. Whether it belongs to a request made
   * here, which may have ended.
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

  // --- What records tell -------------------------------------------------------------------------

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
    this.#tellTime();
    this.machine.cancel(call, reason);
  }

  /**
   * The other side needs something before it can answer a call.
   * @param {MadeCall} call
   * @param {unknown} result that says so
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

  /** Resolves when the other side has read enough, where the transport can tell. */
  room() {
    return this.#transport.room?.();
  }

  /**
   * A call was answered. Returns the result.
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
   * The handshake, whoever made it, says which version is spoken.
   * @param {string} method
   * @param {unknown} result
   */
  #agreed(method, result) {
    if (method !== this.machine.core.handshake) return;
    const version = safely(() => getOwn(result, 'protocolVersion'));
    if (typeof version === 'string') this.protocolVersion = version;
  }

  /** Whether nothing is taken in any more. */
  get isClosed() {
    return this.machine.failed || this.machine.core.isClosed;
  }

  /**
   * The calls that were received, have not ended, and match.
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
   * @param {abp.Fate} [fate] what became of the call that is told of it
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

  // --- What the core's actions do ----------------------------------------------------------------

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
        // What a handler's end still sends goes first.
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
   * Once everything that arrived together has been read, so that those which are cancelled in it
   * never start.
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
      // For want of memory, as the other side would be told by its own.
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

  // --- Out ---------------------------------------------------------------------------------------

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
   * Asks for a request to be stopped. The other side may not know the dialect's cancel, but only
   * the notification that names what the request belongs to. That stops all that belongs to it: so
   * it is sent with the last of them.
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
    if (isLast) this.#tellNamed('withdraw', name);
    const answered = options.onCancelled?.(id);
    // Without an answer, nobody knows.
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
   * Sends, if that is possible: an answer whose own id cannot be cloned goes to nobody, and a
   * transport may have closed unsaid.
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
   * @param {unknown} [message] without one: what was received
   * @param {unknown} [error]
   */
  #traced(type, message, error) {
    if (!this.#trace) return;
    const event = message === undefined && type !== 'closed' ? this.#received : { message };
    invokeReportingErrors(this.#trace, { type, ...event, ...(error !== undefined && { error }) });
  }

  // --- The end -----------------------------------------------------------------------------------

  /**
   * The other side has ended its half of a stream: what it asked before is answered, and that is
   * the end.
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
