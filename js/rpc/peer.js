/**
 * One side of a JSON-RPC connection: feeds the core, drains it, then does what it said. The switch in #act is the
 * only one on verdicts; nothing here decides what happens to a request.
 */
import * as abp from '../../dist/abp-constants.js';
import * as rpc from '../../dist/rpc-constants.js';
import { MORE, RELEASED, SLOT } from '../boundary.js';
import { callOut, safely } from '../errors.js';
import { milliseconds, own } from '../messages.js';
import { listen } from '../signals.js';
import { IncomingRequest, PendingRequest } from './calls.js';
import { PeerCore, ready } from './core.js';
import { DIALECTS } from './dialects.js';
import { RpcError, toErrorObject } from './errors.js';

/**
 * @typedef {object} PeerOptions
 * @property {'acp' | 'lsp' | 'mcp'} dialect whose way of cancelling is spoken
 * @property {import('./core.js').Limits} [limits]
 * @property {import('./calls.js').Handler} [onRequest] answers requests for which there is no handler; the same as
 *   `handle('*', …)`
 * @property {(params: any, context: { method: string }) => void} [onNotification] takes notifications for which there
 *   is no handler; the same as `onNotification('*', …)`
 */

/**
 * @typedef {object} RequestOptions
 * @property {AbortSignal} [signal] cancels the request; one that is aborted already sends nothing
 * @property {number} [timeout] ms after which the request cancels itself; 0 or absent is never
 * @property {number} [maxTotalTimeout] the same, but progress does not put it off
 * @property {boolean} [resetTimeoutOnProgress] whether each progress begins the timeout anew (false)
 * @property {(info: any) => void} [onProgress] asks for progress (MCP, LSP) and takes it
 * @property {boolean} [wait] whether a cancelled request waits for its answer (true; MCP: false)
 * @property {Transferable[]} [transfer] what of the params is moved instead of copied, where the transport can
 */

/** A status of the core, as the error that a caller is told. @type {Map<number, number>} */
const STATUS_ERROR = new Map([
  [abp.E_LIMIT, rpc.RPC_BUSY],
  [abp.E_STATE, rpc.RPC_CLOSED],
]);
/** What has none of these is no response; what has, is never answered, whatever is wrong with it. */
const ANSWERS = ['id', 'result', 'error'];
/** The name under which handlers take what no other handler does. */
const ANY = '*';

/**
 * Speaks JSON-RPC over a transport, on either side of it. What is said before the core is loaded waits for it.
 * @param {import('../endpoint.js').Transport} transport
 * @param {PeerOptions} options
 */
export const createPeer = (transport, options) => new Peer(transport, options);

export class Peer {
  /** @type {PeerCore | undefined} */
  #core;
  /** What is to be done once there is a core. @type {(() => void)[]} */
  #early = [];
  /** What is going on, by slot. @type {any[]} */
  #records = [];
  /** @type {Map<string, import('./calls.js').Handler>} */
  #handlers = new Map();
  /** @type {Map<string, (params: any, context: { method: string }) => void>} */
  #listeners = new Map();
  #transport;
  #timer = /** @type {any} */ (undefined);
  /** Requests made here that have not settled. */
  #asking = 0;
  #ticked = 0;
  #starting = false;
  #over = false;
  #broken = false;
  /** @type {Record<string, number> | undefined} */
  #counters;
  #resolveClosed = () => {};
  /** The message being worked on. @type {unknown} */
  #received;

  /**
   * Use {@link createPeer}.
   * @param {import('../endpoint.js').Transport} transport
   * @param {PeerOptions} options
   */
  constructor(transport, options) {
    const { dialect, limits = {}, onRequest, onNotification } = options ?? {};
    if (!Object.hasOwn(DIALECTS, dialect)) {
      throw new TypeError(`createPeer needs a dialect: ${Object.keys(DIALECTS).join(', ')}`);
    }
    this.#transport = transport;
    this.dialect = DIALECTS[dialect];
    this.cancelledCode = 0;
    if (onRequest) this.handle(ANY, onRequest);
    if (onNotification) this.onNotification(ANY, onNotification);
    /** Resolves when nothing is sent or heard any more. @type {Promise<void>} */
    this.closed = new Promise((resolve) => (this.#resolveClosed = resolve));
    transport.onUnreadable = () => this.#whenReady(() => this.#malformed(rpc.RPC_PARSE));
    transport.onClose = () => this.#whenReady(() => this.#end((core) => core.lost()));
    // Some transports read as soon as somebody listens.
    transport.onMessage = (message) => this.#whenReady(() => this.#receive(message));
    const open = () => {
      this.#core = new PeerCore(this.dialect.number, limits);
      this.cancelledCode = this.errorObject(rpc.RPC_CANCELLED).code;
      // What they cause joins the queue, behind them.
      for (const act of this.#early) act();
      this.#early = [];
    };
    ready.then(open).catch((error) => this.#trapped(error));
  }

  /** @param {() => void} act */
  #whenReady(act) {
    if (this.#core && !this.#early.length) act();
    else this.#early.push(act);
  }

  // --- What a program uses -------------------------------------------------------------------------

  /**
   * Answers the requests of a method; `'*'` those that no other handler answers. A second handler replaces the first.
   * @param {string} method
   * @param {import('./calls.js').Handler} handler
   */
  handle(method, handler) {
    this.#register(this.#handlers, method, handler);
    return this;
  }

  /**
   * Takes the notifications of a method; `'*'` those that no other listener takes. The dialect's cancel is not among
   * them, nor is progress that a request of this side asked for.
   * @param {string} method
   * @param {(params: any, context: { method: string }) => void} listener
   */
  onNotification(method, listener) {
    this.#register(this.#listeners, method, listener);
    return this;
  }

  /**
   * @param {Map<string, any>} handlers
   * @param {string} method
   * @param {any} handler
   */
  #register(handlers, method, handler) {
    if (typeof method !== 'string' || typeof handler !== 'function') {
      throw new TypeError('a handler is registered by a method and a function');
    }
    handlers.set(method, handler);
  }

  /**
   * Makes a request.
   * @param {string} method
   * @param {any} [params]
   * @param {RequestOptions} [options]
   * @returns {Promise<any>} the result; rejects with an {@link RpcError}, or with the signal's own reason when that is
   *   an error
   */
  request(method, params, options = {}) {
    return this.requestFor(0, method, params, options);
  }

  /**
   * Makes a request on behalf of one that was received.
   * @param {number} parent its handle, or 0
   * @param {string} method
   * @param {any} params
   * @param {RequestOptions} options
   * @returns {Promise<any>}
   */
  requestFor(parent, method, params, options) {
    return new Promise((resolve, reject) => {
      const { signal, onProgress } = options;
      if (typeof method !== 'string') throw new TypeError('request needs a method');
      if (signal && typeof signal.addEventListener !== 'function') {
        throw new TypeError('signal must be an AbortSignal');
      }
      if (onProgress && typeof onProgress !== 'function') {
        throw new TypeError('onProgress must be a function');
      }
      const pending = new PendingRequest(this, resolve, reject, method, params, options);
      this.#whenReady(() => this.#request(pending, parent));
    });
  }

  /**
   * @param {PendingRequest} pending
   * @param {number} parent
   */
  #request(pending, parent) {
    const { method, options, reject } = pending;
    const { signal, timeout, maxTotalTimeout, resetTimeoutOnProgress, wait } = options;
    if (signal?.aborted) return reject(pending.cancelled());
    if (this.#over) return reject(this.error(rpc.RPC_CLOSED));
    const ms = milliseconds(timeout);
    const longest = milliseconds(maxTotalTimeout);
    const flags =
      (resetTimeoutOnProgress ? rpc.RESETS : 0) |
      (wait === undefined ? 0 : wait ? rpc.WAITS : rpc.LEAVES) |
      (method === this.#core?.handshake ? rpc.HANDSHAKE : 0);
    // The clock of the core stands still between its inputs: a deadline counts from now.
    if (ms || longest) this.#feed((core) => core.advance(performance.now()));
    this.#feed((core) => {
      const action = core.request(ms, longest, flags, parent);
      if (action === abp.E_STATE && parent) reject(pending.cancelled());
      else if (action < 0) reject(this.error(STATUS_ERROR.get(action) ?? rpc.RPC_INTERNAL));
      else listen(signal, pending);
      return action;
    }, pending);
    if (this.#broken) reject(this.error(rpc.RPC_INTERNAL));
  }

  /**
   * Sends a notification. Throws what the transport throws when the params cannot be sent, and an {@link RpcError} when
   * the connection is closed.
   * @param {string} method
   * @param {any} [params]
   */
  notify(method, params) {
    if (this.#over) throw this.error(rpc.RPC_CLOSED);
    this.#whenReady(() => this.#transport.post(message({ method, params })));
  }

  /**
   * Ends the connection: what is pending is cancelled and rejects, handlers' signals fire, and what they work on is
   * answered as cancelled, as far as the dialect and the transport can.
   */
  close() {
    this.#whenReady(() => this.#end((core) => core.close()));
  }

  /** What is pending and what was dropped, for people who debug. @returns {Record<string, number>} */
  get counters() {
    return this.#counters ?? this.#core?.counters() ?? {};
  }

  // --- In ------------------------------------------------------------------------------------------

  /** @param {any} received */
  #receive(received) {
    if (this.#broken || this.#over) return;
    this.#tick();
    this.#received = received;
    this.#dispatch(received);
    this.#received = undefined;
  }

  /** @param {any} received */
  #dispatch(received) {
    // A getter or a proxy may throw: what cannot be read is no message.
    const parts = safely(() => this.#parts(received), undefined);
    if (typeof parts !== 'object') {
      return this.#malformed(parts ?? rpc.RPC_INVALID_REQUEST);
    }
    const { id, method, params, answer } = parts;
    if (answer) this.#feed((core) => core.response(id, Object.hasOwn(answer, 'error')), answer);
    else if (id === undefined) this.#notification(method, params);
    else this.#incoming(id, method, params);
  }

  /**
   * The parts of a message, or the `abp_rpc_error` that says what it is instead.
   * @param {any} received
   * @returns {number | { id: unknown, method: string, params: any, answer?: import('./calls.js').Answer }}
   */
  #parts(received) {
    if (Array.isArray(received)) return rpc.RPC_BATCH;
    if (own(received, 'jsonrpc') !== '2.0' && !this.#core?.unversioned) {
      return rpc.RPC_INVALID_REQUEST;
    }
    const id = own(received, 'id');
    const method = own(received, 'method');
    const params = own(received, 'params');
    if (typeof method === 'string') return { id, method, params };
    const result = own(received, 'result');
    const error = own(received, 'error');
    if (method !== undefined || !ANSWERS.some((key) => Object.hasOwn(received, key))) {
      return rpc.RPC_INVALID_REQUEST;
    }
    const fine = Object.hasOwn(received, 'result') && (error ?? null) === null;
    return { id, method: '', params, answer: fine ? { result } : { error } };
  }

  /** @param {number} fault */
  #malformed(fault) {
    if (!this.#over) this.#feed((core) => core.malformed(fault));
  }

  /** The core's clock. Messages that come together find it near enough. */
  #tick() {
    const now = performance.now();
    if (now - this.#ticked < 10) return;
    this.#ticked = now;
    this.#feed((core) => core.advance(now));
  }

  /**
   * @param {unknown} id
   * @param {string} method
   * @param {any} params
   */
  #incoming(id, method, params) {
    // The dialect's cancel is a notification: as a request it is unknown, whatever handlers there are.
    const handler =
      method === this.#core?.cancelMethod
        ? undefined
        : (this.#handlers.get(method) ?? this.#handlers.get(ANY));
    const fault = handler ? rpc.RPC_NO_ERROR : rpc.RPC_METHOD_NOT_FOUND;
    const request = new IncomingRequest(this, handler, id, method, params);
    this.#feed((core) => core.received(id, fault), request);
  }

  /**
   * @param {string} method
   * @param {any} params
   */
  #notification(method, params) {
    const core = /** @type {PeerCore} */ (this.#core);
    const { progress } = this.dialect;
    if (method === core.cancelMethod) {
      const id = safely(() => own(params, core.cancelKey), undefined);
      const reason = safely(() => own(params, 'reason'), null);
      return this.#feed(() => core.cancelReceived(id, reason));
    }
    if (method === progress?.method && this.#progressed(progress.read, params)) return;
    callOut(this.#listeners.get(method) ?? this.#listeners.get(ANY), params, { method });
  }

  /**
   * Progress has come. Whether it is that of a request made here, which may have ended.
   * @param {import('./dialects.js').Progress['read']} read
   * @param {any} params
   */
  #progressed(read, params) {
    this.#feed((core) => core.advance(performance.now()));
    const { token, info } = safely(() => read(params), { token: undefined, info: {} });
    let ours = true;
    this.#feed((core) => {
      const action = core.progress(token);
      ours = action !== abp.E_STATE;
      return action;
    }, info);
    return ours;
  }

  // --- What records tell ---------------------------------------------------------------------------

  /** A request's signal fired. @param {PendingRequest} pending */
  cancel(pending) {
    this.#feed((core) => core.cancel(pending.handle, pending.reason));
  }

  /**
   * A handler has settled.
   * @param {IncomingRequest} request
   * @param {number} ending
   */
  finish(request, ending) {
    if (this.#broken) return;
    const { handle } = request;
    this.#feed((core) => core.finish(handle, ending), request);
    // One whose answer waits for others is still to be told; one that nobody wants answered is not.
    if (this.#records[handle & SLOT] === request && !this.#core?.pending(handle)) {
      this.#records[handle & SLOT] = undefined;
    }
    if (this.#over) this.#release();
  }

  /**
   * @param {IncomingRequest} request
   * @param {any} info
   */
  progress(request, info) {
    const { progress } = this.dialect;
    const token = progress?.wanted(request.params);
    if (this.#broken || !progress || token === undefined || !this.#core?.running(request.handle))
      return;
    this.notify(progress.method, progress.write(token, info));
  }

  /** The error on the wire for an `abp_rpc_error`. @param {number} code */
  errorObject(code) {
    const core = this.#broken ? undefined : this.#core;
    return core?.error(code) ?? { code: -32603, message: 'The connection failed' };
  }

  /**
   * @param {number} error an `abp_rpc_error`
   * @param {{ name?: string, message?: string, data?: unknown, cause?: unknown }} [more]
   */
  error(error, { name, message, data, cause } = {}) {
    const known = this.errorObject(error);
    return new RpcError(known.code, message ?? known.message, data, { name, cause });
  }

  // --- Drain, then act -----------------------------------------------------------------------------

  /**
   * @param {(core: PeerCore) => number} input
   * @param {any} [context]
   */
  #feed(input, context) {
    if (this.#broken) return;
    const core = /** @type {PeerCore} */ (this.#core);
    try {
      this.#run(core, input(core), context);
    } catch (error) {
      this.#trapped(error);
    }
  }

  /**
   * Takes every action of an input before any is acted on: acting runs listeners and handlers, which call.
   * @param {PeerCore} core
   * @param {number} action
   * @param {any} context what the input was about: a request, a response
   */
  #run(core, action, context) {
    if (action <= 0) return;
    if (!(action & MORE)) {
      this.#act(action, core.call, extraOf(core, action), context);
      return;
    }
    const actions = [];
    for (; action; action = action & MORE ? core.next() : 0) {
      actions.push(action, core.call, extraOf(core, action));
    }
    for (let i = 0; i < actions.length; i += 3) {
      this.#act(actions[i], actions[i + 1], actions[i + 2], context);
    }
  }

  /**
   * @param {number} action
   * @param {number} call
   * @param {any} extra
   * @param {any} context
   */
  #act(action, call, extra, context) {
    const arg = (action >> 8) & 255;
    const slot = call & SLOT;
    const record = this.#records[slot];
    switch (action & 255) {
      case abp.REQUEST:
        this.#records[slot] = context;
        if (++this.#asking === 1) this.#holdTimer();
        return this.#sendRequest(context, call);
      case abp.SETTLE:
        this.#records[slot] = undefined;
        if (--this.#asking === 0) this.#holdTimer();
        return record.settle(arg, context);
      case abp.REPORT:
        return callOut(record.options.onProgress, context);
      case abp.QUEUED:
        this.#records[slot] = context;
        context.handle = call;
        return this.#startSoon();
      case abp.START:
        record.start();
        return;
      case abp.ABORT:
        if (action & RELEASED) this.#records[slot] = undefined;
        return record.abort(extra);
      case abp.RESULT:
        if (action & RELEASED) this.#records[slot] = undefined;
        return record.answer(arg);
      case abp.REFUSE:
        return this.#refuse(arg, context);
      case abp.SEND:
        return this.#sendCancel(extra);
      case abp.WAKE:
        clearTimeout(this.#timer);
        this.#timer = setTimeout(
          // Timers may fire a fraction of a millisecond early.
          () => this.#feed((core) => core.advance(Math.max(extra, performance.now()))),
          Math.max(0, Math.ceil(extra - performance.now())),
        );
        this.#holdTimer();
        return;
    }
  }

  /** The timer keeps a Node process alive for as long as somebody here waits for an answer. */
  #holdTimer() {
    if (this.#asking) this.#timer?.ref?.();
    else this.#timer?.unref?.();
  }

  /**
   * @param {number} fault
   * @param {IncomingRequest | undefined} request
   */
  #refuse(fault, request) {
    const error = {
      ...this.errorObject(fault),
      ...this.dialect.explain?.(fault, request?.method, this.#received),
    };
    this.respond(this.#core?.hasNoId(fault) ? null : request?.id, { error });
  }

  /** Handlers start when all that came together has been read: what was cancelled in it never starts. */
  #startSoon() {
    if (this.#starting) return;
    this.#starting = true;
    queueMicrotask(() => {
      this.#starting = false;
      this.#feed((core) => core.start());
    });
  }

  // --- Out -----------------------------------------------------------------------------------------

  /**
   * @param {PendingRequest} pending
   * @param {number} call
   */
  #sendRequest(pending, call) {
    const { method, params, options } = pending;
    const { progress } = this.dialect;
    const id = this.#core?.number(call) ?? 0;
    pending.handle = call;
    const asks = options.onProgress && progress;
    try {
      this.#transport.post(
        message({ id, method, params: asks ? asks.ask(params, id) : params }),
        options.transfer,
      );
    } catch (error) {
      const why = toErrorObject(error);
      const response = { error: { ...why, message: `The params cannot be sent: ${why.message}` } };
      this.#feed((core) => core.unsent(call), response);
    }
  }

  /** @param {{ id: number, reason: string | undefined }} cancel */
  #sendCancel({ id, reason }) {
    const { cancelMethod: method, cancelKey } = /** @type {PeerCore} */ (this.#core);
    this.#post(message({ method, params: { [cancelKey]: id, ...(reason && { reason }) } }));
  }

  /**
   * @param {unknown} id
   * @param {any} answer
   * @param {Transferable[]} [transfer]
   */
  respond(id, answer, transfer) {
    try {
      this.#transport.post({ jsonrpc: '2.0', id, ...answer }, transfer);
    } catch (error) {
      const why = toErrorObject(error);
      const unsendable = { ...why, message: `The answer cannot be sent: ${why.message}` };
      this.#post({ jsonrpc: '2.0', id, error: unsendable });
    }
  }

  /**
   * Sends, if that is possible: an answer whose own id cannot be cloned goes to nobody, and a transport may have
   * closed unsaid.
   * @param {object} what
   */
  #post(what) {
    try {
      this.#transport.post(what);
    } catch (error) {
      console.warn('abp-bridge: a message could not be sent:', error);
    }
  }

  // --- The end -------------------------------------------------------------------------------------

  /** @param {(core: PeerCore) => number} input */
  #end(input) {
    if (this.#over) return;
    this.#feed(input);
    this.#dispose();
    this.#release();
  }

  #dispose() {
    this.#over = true;
    clearTimeout(this.#timer);
    this.#transport.close();
    this.#resolveClosed();
  }

  /** Gives back what the core keeps, once no handler can ask for it. */
  #release() {
    if (this.#broken || this.#counters) return;
    const core = /** @type {PeerCore} */ (this.#core);
    const counters = core.counters();
    if (counters.inFlightIn) return;
    this.#counters = counters;
    core.free();
  }

  /**
   * The core has failed. Its connection is given up, all that hangs on it is told, and others go on.
   * @param {any} error
   */
  #trapped(error) {
    // WebAssembly's own, or what the core as JavaScript throws; and memory that is short.
    if (error?.name !== 'RuntimeError' && !(error instanceof RangeError)) throw error;
    this.#broken = true;
    this.#core?.abandon();
    console.error('abp-bridge: the connection failed and is closed:', error);
    const records = this.#records;
    this.#records = [];
    this.#dispose();
    for (const record of records) record?.broken(this.error(rpc.RPC_INTERNAL));
  }
}

/**
 * A request or a notification.
 * @param {{ id?: number, method: string, params: any }} parts
 */
const message = ({ id, method, params }) => ({
  jsonrpc: '2.0',
  ...(id !== undefined && { id }),
  method,
  ...(params !== undefined && { params }),
});

/**
 * What must be read before the next action is taken.
 * @param {PeerCore} core
 * @param {number} action
 * @returns {any}
 */
function extraOf(core, action) {
  switch (action & 255) {
    case abp.ABORT:
      return core.reason;
    case abp.SEND:
      return { id: core.number(core.call), reason: core.reason };
    case abp.WAKE:
      return core.at;
  }
  return undefined;
}
