/**
 * One side of one connection: feeds the core, drains it, then does what it said. The switch in #act is the
 * only one on verdicts; nothing here decides what happens to a call.
 */
import * as abp from '../dist/abp-constants.js';
import { Invocation } from './callee.js';
import { PendingCall, PendingCancel } from './caller.js';
import { MORE, RELEASED, SLOT } from './cells.js';
import { Core } from './core.js';
import { LONGEST_REASON, callOut, isErrorObject, reasonText, toErrorObject } from './errors.js';
import { Entry, FrameWriter, LONGEST, postFrame } from './frames.js';
import { CALL, ELICITATION, milliseconds, outcomeOf, own, progressInfo } from './messages.js';
import { listen } from './signals.js';

/**
 * A way to the other side.
 * @typedef {object} Transport
 * @property {(message: unknown, transfer?: Transferable[]) => void} post
 *   sends; throws what `postMessage` throws when the message cannot be cloned, or an error of the protocol's
 *   shape that tells the caller why not
 * @property {(message: unknown, ports: readonly MessagePort[]) => void} onMessage called for what arrives
 * @property {(error: import('./errors.js').AbpError) => void} [onUnreadable] called for what arrives and is
 *   no message, where the transport itself reads text
 * @property {(cause?: unknown) => void} [onClose] called when the other side is known to be gone, with what is
 *   known of the cause
 * @property {() => void} close stops both; the other side is told nothing
 * @property {(value: any, context: Invocation) => any} [prepare] makes of a handler's result what can cross, or a
 *   promise of it
 * @property {number} [carries] which of the features beyond the published protocol can cross it, of
 *   `abp_feature`: LIVENESS and FRAMES unless it says otherwise
 */

/**
 * What an endpoint asks of the side that it belongs to.
 * @typedef {object} Side
 * @property {(request: import('./messages.js').Request) => number} fault what is wrong with a request: an
 *   `abp_error`, or 0
 * @property {(request: import('./messages.js').Request, code: number) => object} [explain] what to add to
 *   the error that refuses it
 * @property {(request: import('./messages.js').Request, context: Invocation) => any} run runs the handler
 * @property {(state: number, message: any) => void} onSession
 * @property {(message: any, via: Transport | undefined) => void} [onHandshake] app: sends the answer to
 *   `initialize`, and the offer of a port with it
 * @property {(request: any, invocation: Invocation) => Promise<any>} [elicit] app: asks the agent a question
 * @property {(info: any) => void} [onProgress] progress of an operation that no call here belongs to
 * @property {(event: string, data: any) => void} [onNotification]
 * @property {() => void} [onEnd] nothing is sent or heard any more
 */

/** A status of the core, as the fault that a caller is told. */
/** @type {Map<number, number>} */
const STATUS_FAULT = new Map([
  [abp.E_MEMORY, abp.INTERNAL_ERROR],
  [abp.E_LIMIT, abp.RATE_LIMITED],
  [abp.E_STATE, abp.NOT_INITIALIZED],
  [abp.E_ID, abp.INVALID_ID],
  [abp.E_DUPLICATE, abp.DUPLICATE_CALL],
]);

/**
 * The features beyond the published protocol that can be agreed on over a transport.
 * @param {Transport} transport
 */
export const carried = ({ carries = abp.LIVENESS | abp.FRAMES }) => carries;

/** The handle of a parent that has ended: no call's, but not none. */
export const ENDED = -1;

/**
 * Whether a key is a call's number.
 * @param {any} key
 * @returns {key is number}
 */
const isNumber = (key) =>
  typeof key === 'number' && key > 0 && key < 2 ** 32 && Math.floor(key) === key;

export class Endpoint {
  /** What is going on, by slot: pending calls and cancels, and invocations. @type {any[]} */
  #records = [];
  /** @type {FrameWriter | undefined} */
  #frames;
  /** Where an answer to the handshake goes: back the way that it came. @type {Transport | undefined} */
  #via;
  #timer = /** @type {any} */ (undefined);
  #broken = false;
  #lost = false;
  #over = false;
  /** Those at the end, when there is nothing in the core any more. @type {Record<string, number> | undefined} */
  #counters;
  #ticked = 0;
  /** Why the other side is gone, if that is known. @type {unknown} */
  cause = undefined;
  /** What came with the message being worked on. @type {readonly MessagePort[]} */
  ports = [];

  /**
   * @param {object} options
   * @param {0 | 1} options.role
   * @param {number} options.features
   * @param {import('./core.js').Limits} [options.limits]
   * @param {boolean} [options.restart]
   * @param {Transport} options.transport
   * @param {Side} options.side
   */
  constructor({ role, features, limits = {}, restart = false, transport, side }) {
    this.role = role;
    this.side = side;
    this.core = new Core(role, features, limits, restart);
    this.outgoing = role === abp.AGENT ? CALL : ELICITATION;
    this.incoming = role === abp.AGENT ? ELICITATION : CALL;
    this.transport = transport;
    this.#attach(transport);
  }

  /** @param {Transport} transport */
  #attach(transport) {
    transport.onMessage = (data, ports) => this.receive(data, ports, transport);
    transport.onClose = (cause) => this.lost(cause);
  }

  /**
   * Leaves the transport for a better one. What still comes in through the old one goes nowhere, but for a
   * handshake (the app's side decides that).
   * @param {Transport} transport
   */
  upgrade(transport) {
    this.transport = transport;
    this.#attach(transport);
  }

  /** What both sides agreed on. @param {number} feature */
  has(feature) {
    return (this.core.features() & feature) !== 0;
  }

  /** @param {number} code */
  error(code) {
    const error = this.core.error(code);
    const why = code === abp.DISCONNECTED_ERROR && reasonText(this.cause);
    return why ? { ...error, message: why } : error;
  }

  // --- In ------------------------------------------------------------------------------------------

  /**
   * @param {any} data
   * @param {readonly MessagePort[]} [ports]
   * @param {Transport} [via]
   */
  receive(data, ports = [], via = this.transport) {
    if (this.#broken || this.#over) return;
    this.#via = via;
    this.ports = ports;
    try {
      this.#tick();
      if (Array.isArray(data)) this.#frame(data);
      else if (typeof data === 'object' && data !== null) this.#message(data);
      else this.#control(null);
    } catch (error) {
      this.#trapped(error);
    } finally {
      this.#via = undefined;
    }
  }

  /** The core's clock. Messages that come together find it near enough. */
  #tick() {
    const now = performance.now();
    if (now - this.#ticked < 10) return;
    this.#ticked = now;
    this.#run(this.core.advance(now), undefined);
  }

  /** @param {any} message */
  #message(message) {
    const { core } = this;
    const payload = own(message, 'payload');
    const app = this.role === abp.APP;
    switch (own(message, 'type')) {
      case this.incoming.request:
        return this.#request(this.incoming.read(message), message);
      case 'call-result':
        if (app) break;
      // falls through
      case this.outgoing.response:
        return this.#response(this.core.id(own(message, 'id')), 0, payload);
      case 'progress':
        if (app) break;
        return this.#run(core.progressReceived(core.id(own(payload, 'operationId')), 0), payload);
      case 'notification':
        if (app) break;
        return this.#notification(payload);
    }
    this.#control(message);
  }

  /** Anything that is not of the data plane is the core's to understand. @param {any} message */
  #control(message) {
    let length = -1;
    try {
      length = this.core.control(message);
    } catch {
      // Too deep, cyclic or not JSON at all: as malformed as can be.
    }
    this.#run(this.core.receive(Math.max(length, 0)), message);
  }

  /** @param {any[]} frame */
  #frame(frame) {
    if (!this.has(abp.FRAMES) || frame.length % 4 || frame.length > LONGEST * 4) {
      return this.#control(null);
    }
    for (let i = 0; i < frame.length && !this.#broken; i += 4) {
      const key = frame[i + 1];
      const a = frame[i + 2];
      const b = frame[i + 3];
      switch (frame[i]) {
        case Entry.REQUEST:
          this.#request({ key, name: a, params: b ?? {}, timeout: 0, progress: false });
          break;
        case Entry.REQUEST_WITH:
          this.#request({
            key,
            name: a,
            params: own(b, '0') ?? {},
            timeout: milliseconds(own(b, '1')),
            progress: own(b, '2') === true,
          });
          break;
        case Entry.VALUE:
          this.#response(...this.#key(key), {
            success: true,
            data: b,
            metadata: { duration: a },
          });
          break;
        case Entry.RESPONSE:
          this.#response(...this.#key(key), b);
          break;
        case Entry.PROGRESS:
          this.#run(this.core.progressReceived(...this.#key(key)), b);
          break;
        case Entry.CANCEL:
          this.#cancelled(key, a);
          break;
        case Entry.MESSAGE:
          if (typeof b === 'object' && b !== null) this.#message(b);
          break;
        default:
          this.#control(null);
      }
    }
  }

  /**
   * A key of a frame or an id of a message, for the core: length in the scratch and number.
   * @param {unknown} key
   * @returns {[number, number]}
   */
  #key(key) {
    return isNumber(key) ? [0, key] : [this.core.id(key), 0];
  }

  /**
   * @param {import('./messages.js').Request} request
   * @param {any} [message] the message it came in, unless that was a frame
   */
  #request(request, message) {
    const { core } = this;
    const fault = typeof request.name === 'string' ? this.side.fault(request) : abp.INVALID_PARAMS;
    const { key } = request;
    // Only in a frame is a number a call's: in a message it is no id at all.
    const number = !message && isNumber(key);
    const invocation = new Invocation(this, request, message);
    this.#run(
      core.callReceived(
        number ? 0 : core.id(key),
        number ? key : 0,
        request.timeout,
        request.progress === false ? 0 : abp.WANTS_PROGRESS,
        fault,
      ),
      invocation,
    );
  }

  /**
   * @param {unknown} key
   * @param {unknown} reason
   */
  #cancelled(key, reason) {
    const [length, number] = this.#key(key);
    const reasonLength =
      typeof reason === 'string' ? this.core.text(reason.slice(0, LONGEST_REASON), length) : 0;
    this.#run(this.core.cancelReceived(length, number, Math.max(reasonLength, 0)), undefined);
  }

  /**
   * @param {number} length of the id in the scratch
   * @param {number} number the id, if that is one
   * @param {any} response
   */
  #response(length, number, response) {
    this.#run(this.core.resultReceived(length, number, outcomeOf(response)), response);
  }

  /** @param {any} payload */
  #notification(payload) {
    // One client library wraps it the other way round.
    const event = own(payload, 'event') ?? own(payload, 'method');
    const data = own(payload, 'data') ?? own(payload, 'params');
    if (this.has(abp.NOTIFICATIONS) && typeof event === 'string') {
      callOut(this.side.onNotification, event, data);
    }
  }

  // --- The caller ----------------------------------------------------------------------------------

  /**
   * Makes a call, or asks a question.
   * @param {string} name
   * @param {any} params
   * @param {object} [options]
   * @param {AbortSignal} [options.signal]
   * @param {number} [options.timeout] ms
   * @param {(info: any) => void} [options.onProgress]
   * @param {string} [options.callId]
   * @param {Transferable[]} [options.transfer]
   * @param {number} [parent] the call on whose behalf this is made
   * @returns {Promise<any>} the response: it never rejects
   */
  request(name, params, options = {}, parent = 0) {
    const { signal, timeout, onProgress, callId, transfer } = options;
    return new Promise((resolve) => {
      const pending = new PendingCall(this, resolve, name, params, signal, onProgress, transfer);
      if (signal?.aborted) return resolve(pending.cancelled(signal.reason));
      if (this.#broken) return resolve(this.failure(abp.INTERNAL_ERROR));
      try {
        const ms = milliseconds(timeout);
        // The clock of the core stands still between its inputs: a deadline counts from now.
        if (ms) this.#run(this.core.advance(performance.now()), undefined);
        pending.timeout = ms;
        pending.callId = callId;
        const length = callId === undefined ? 0 : this.core.id(callId);
        const action =
          callId !== undefined && !length
            ? abp.E_ID
            : this.core.request(length, ms, onProgress ? abp.WANTS_PROGRESS : 0, parent);
        if (action < 0) return resolve(this.refusal(action, parent));
        listen(signal, pending);
        this.#run(action, pending);
      } catch (error) {
        this.#trapped(error);
        resolve(this.failure(abp.INTERNAL_ERROR));
      }
    });
  }

  /**
   * What a caller hears whom the core refused.
   * @param {number} status
   * @param {number} parent
   */
  refusal(status, parent) {
    if (status === abp.E_STATE && parent) return this.failure(abp.CANCELLED_ERROR);
    if (status === abp.E_STATE && this.#lost) return this.failure(abp.DISCONNECTED_ERROR);
    return this.failure(STATUS_FAULT.get(status) ?? abp.INTERNAL_ERROR);
  }

  /**
   * @param {number} code
   * @param {string} [message]
   */
  failure(code, message) {
    const error = this.error(code);
    if (message) error.message = message;
    const cancelled = code === abp.CANCELLED_ERROR || code === abp.TIMEOUT_ERROR;
    return { success: false, error, ...(cancelled && { cancelled }) };
  }

  /**
   * @param {number} call
   * @param {string | undefined} reason
   */
  cancel(call, reason) {
    this.#feed(() => this.core.cancel(call, reason ? Math.max(this.core.text(reason), 0) : 0));
  }

  /**
   * @param {string} callId
   * @param {string | undefined} reason
   */
  cancelById(callId, reason) {
    return new Promise((resolve) => {
      const pending = new PendingCancel(this, resolve, callId);
      this.#feed(() => {
        const length = this.core.id(callId);
        const reasonLength = reason ? this.core.text(reason, length) : 0;
        const status = this.core.cancelById(length, Math.max(reasonLength, 0));
        if (status < 0) resolve(pending.failed(this.refusal(status, 0)));
        return status;
      }, pending);
    });
  }

  // --- The callee ----------------------------------------------------------------------------------

  /**
   * A handler has settled.
   * @param {Invocation} invocation
   * @param {1 | 2} outcome
   */
  finish(invocation, outcome) {
    const { handle } = invocation;
    this.#feed(() => this.core.finish(handle, outcome), invocation);
    // A call whose result was out before its handler unwound has nothing more to be told.
    if (this.#records[handle & SLOT] === invocation) this.#records[handle & SLOT] = undefined;
    invocation.handle = 0;
    if (this.#over) this.#release();
  }

  /**
   * A handler calls another capability of its own app.
   * @param {Invocation} parent
   * @param {import('./messages.js').Request} request
   * @param {AbortSignal} [signal]
   */
  callLocal(parent, request, signal) {
    return new Promise((resolve) => {
      if (signal?.aborted) {
        return resolve(this.failure(abp.CANCELLED_ERROR, reasonText(signal.reason)));
      }
      const invocation = new Invocation(this, request, undefined, resolve);
      this.#feed(() => {
        const status = this.core.callLocal(
          parent.handle,
          request.timeout,
          this.side.fault(request),
        );
        // The parent has ended or is ending: what is asked of it then is cancelled with it.
        if (status < 0) resolve(this.refusal(status, ENDED));
        return status;
      }, invocation);
      if (invocation.handle) invocation.follow(signal);
    });
  }

  /**
   * @param {Invocation} invocation
   * @param {object} info
   */
  progress(invocation, info) {
    if (this.#broken || !this.core.progressWanted(invocation.handle)) return;
    const token = invocation.request.progress;
    const number = this.#frames && token === true && this.core.number(invocation.handle);
    if (number) this.#frames?.add(Entry.PROGRESS, number, undefined, info);
    else {
      const operationId = token === true ? this.core.idText(invocation.handle) : token;
      this.send({ type: 'progress', payload: { ...info, operationId } });
    }
  }

  // --- The session ---------------------------------------------------------------------------------

  /** @param {number} timeout ms */
  connect(timeout) {
    this.#feed(() => this.core.advance(performance.now()));
    this.#feed(() => this.core.connect(milliseconds(timeout)));
  }

  close() {
    const frames = this.#frames;
    this.#feed(() => this.core.close());
    frames?.flush();
    this.dispose();
  }

  /** The other side is gone. @param {unknown} [cause] */
  lost(cause) {
    this.#lost = true;
    this.cause = cause;
    this.#feed(() => this.core.lost());
    this.dispose();
  }

  /**
   * This document is going away, or is frozen and may come back.
   * @param {boolean} persisted
   */
  leave(persisted) {
    const frames = this.#frames;
    this.#feed(() => this.core.leave(persisted));
    frames?.flush();
  }

  /** Nothing is sent or heard any more. */
  dispose() {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.transport.close();
    this.#release();
    this.side.onEnd?.();
  }

  /** Gives back what the core keeps, once no handler can ask for it. */
  #release() {
    if (this.#broken || this.#counters) return;
    const counters = this.core.counters();
    if (counters.inFlightIn) return;
    this.#counters = counters;
    this.core.free();
  }

  /** What is pending and what was dropped, for people who debug. */
  get counters() {
    return this.#counters ?? this.core.counters();
  }

  // --- Drain, then act -----------------------------------------------------------------------------

  /**
   * @param {() => number} input
   * @param {any} [context]
   */
  #feed(input, context) {
    if (this.#broken) return;
    try {
      this.#run(input(), context);
    } catch (error) {
      this.#trapped(error);
    }
  }

  /**
   * Takes every action of an input before any is acted on: acting runs listeners and handlers, which call.
   * @param {number} action
   * @param {any} context what the input was about: a pending call, an invocation, a message
   */
  #run(action, context) {
    if (action <= 0) return;
    if (!(action & MORE)) {
      this.#act(action, this.core.call, this.#extra(action, context), context);
      return;
    }
    const actions = [];
    for (; action; action = action & MORE ? this.core.next() : 0) {
      actions.push(action, this.core.call, this.#extra(action, context));
    }
    for (let i = 0; i < actions.length; i += 3) {
      this.#act(actions[i], actions[i + 1], actions[i + 2], context);
    }
  }

  /**
   * What must be read before the next action is taken.
   * @param {number} action
   * @param {any} context
   */
  #extra(action, context) {
    switch (action & 255) {
      case abp.ABORT:
        return this.core.reason;
      case abp.REFUSE:
        return context instanceof Invocation ? undefined : this.core.message;
      case abp.SEND:
        return this.#frames && this.#cancels(action, this.core.call)
          ? this.core.reason
          : this.core.message;
      case abp.WAKE:
        return this.core.at;
    }
    return undefined;
  }

  /**
   * Whether an action asks a call that was made here to stop, which frames say in an entry of their own.
   * @param {number} action
   * @param {number} call
   */
  #cancels(action, call) {
    return (
      ((action >> 8) & 255) === abp.MSG_CANCEL && this.#records[call & SLOT] instanceof PendingCall
    );
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
        this.#sendRequest(context, call);
        return;
      case abp.SETTLE:
        this.#records[slot] = undefined;
        record.settle(arg, context);
        return;
      case abp.REPORT: {
        const info = progressInfo(context);
        // A frame named the call by its number.
        if (call) info.operationId ??= this.core.idText(call);
        callOut(call ? record.onProgress : this.side.onProgress, info);
        return;
      }
      case abp.QUEUED:
        this.#records[slot] = context;
        context.handle = call;
        return;
      case abp.START: {
        // One that waited has its record; one that starts at once is what the input was about.
        const invocation = record?.handle === call ? record : context;
        this.#records[slot] = invocation;
        invocation.handle = call;
        invocation.start();
        return;
      }
      case abp.ABORT:
        if (action & RELEASED) this.#records[slot] = undefined;
        record.abort(extra);
        return;
      case abp.RESULT: {
        const invocation = record ?? context;
        if (action & RELEASED) this.#records[slot] = undefined;
        invocation.answer(arg);
        return;
      }
      case abp.REFUSE:
        if (context instanceof Invocation) context.refuse(arg);
        else (this.#via ?? this.transport).post(extra);
        return;
      case abp.SEND:
        if (this.#frames && this.#cancels(action, call)) {
          this.#frames.add(Entry.CANCEL, record.key, extra, undefined);
          return;
        }
        if (arg === abp.MSG_CANCEL && context instanceof PendingCancel) {
          this.#records[slot] = context;
        }
        this.#sendControl(arg, extra);
        return;
      case abp.SESSION:
        if (arg === abp.SESSION_LOST) this.#lost = true;
        this.#frames =
          arg === abp.SESSION_READY && this.has(abp.FRAMES)
            ? new FrameWriter((frame, transfer) => this.#postFrame(frame, transfer))
            : undefined;
        callOut(this.side.onSession, arg, context);
        return;
      case abp.WAKE:
        clearTimeout(this.#timer);
        this.#timer = setTimeout(
          // Timers may fire a fraction of a millisecond early.
          () => this.#feed(() => this.core.advance(Math.max(extra, performance.now()))),
          Math.max(0, Math.ceil(extra - performance.now())),
        );
        // A timer alone must not keep a Node process alive; what it waits for does.
        this.#timer.unref?.();
        return;
    }
  }

  // --- Out -----------------------------------------------------------------------------------------

  /**
   * Any message but calls and results. Throws if it cannot be cloned.
   * @param {object} message
   */
  send(message) {
    const stamped = { ...message, timestamp: Date.now() };
    if (this.#frames) this.#frames.add(Entry.MESSAGE, 0, undefined, stamped);
    else this.transport.post(stamped);
  }

  /**
   * @param {number} arg
   * @param {any} message
   */
  #sendControl(arg, message) {
    if (arg === abp.MSG_INITIALIZE_RESULT) this.side.onHandshake?.(message, this.#via);
    // A handler's signal fires before time is spent on posting that it will.
    else if (this.#frames && arg === abp.MSG_CANCEL_RESULT) this.#frames.addLater(message);
    else if (this.#frames) this.#frames.add(Entry.MESSAGE, 0, undefined, message);
    else this.transport.post(message);
  }

  /**
   * @param {PendingCall} pending
   * @param {number} call
   */
  #sendRequest(pending, call) {
    pending.handle = call;
    const { name, params, timeout, callId, transfer } = pending;
    const progress = pending.onProgress !== undefined;
    if (this.#frames) {
      const key = (pending.key = callId ?? this.core.number(call));
      if (timeout || progress) {
        this.#frames.add(Entry.REQUEST_WITH, key, name, [params, timeout, progress], transfer);
      } else this.#frames.add(Entry.REQUEST, key, name, params, transfer);
      return;
    }
    const { request, write } = this.outgoing;
    const id = callId ?? this.core.idText(call);
    const payload = write(id, name, params, timeout, progress);
    try {
      this.transport.post({ type: request, id, timestamp: Date.now(), payload }, transfer);
    } catch (error) {
      this.#unsent(pending, error);
    }
  }

  /**
   * @param {PendingCall} pending
   * @param {any} error
   */
  #unsent(pending, error) {
    const found = toErrorObject(error);
    const response = isErrorObject(error)
      ? { success: false, error: found }
      : this.failure(abp.INVALID_PARAMS, `The parameters cannot be sent: ${found.message}`);
    this.#feed(() => this.core.unsent(pending.handle), response);
  }

  /**
   * Sends what became of a call that came in.
   * @param {{ request: import('./messages.js').Request, message: any }} invocation
   * @param {any} response
   * @param {Transferable[]} [transfer]
   * @returns {void}
   */
  respond({ request, message }, response, transfer) {
    if (this.#frames && !message) {
      const { key } = request;
      if (response.success === true && this.role === abp.APP) {
        const { data, metadata } = response;
        this.#frames.add(Entry.VALUE, key, metadata.duration, data, transfer);
      } else this.#frames.add(Entry.RESPONSE, key, undefined, response, transfer);
      return;
    }
    const id = own(message, 'id');
    const type = this.incoming.response;
    const answer = { type, id, timestamp: Date.now(), payload: response };
    try {
      this.transport.post(answer, transfer);
    } catch (error) {
      if (transfer?.length) return this.respond({ request, message }, response);
      this.#post({ ...answer, payload: this.#unsendable(error) });
    }
  }

  /**
   * Sends, if that is possible: an answer whose own id cannot be cloned goes to nobody.
   * @param {any} message
   */
  #post(message) {
    try {
      this.transport.post(message);
    } catch (error) {
      console.warn('abp-bridge: a message could not be sent:', error);
    }
  }

  /** @param {any} error */
  #unsendable(error) {
    const why = `The result cannot be sent: ${toErrorObject(error).message}`;
    return this.failure(abp.OPERATION_FAILED, why);
  }

  /**
   * One value that cannot be cloned must not take the rest of its frame with it.
   * @param {any[]} frame
   * @param {(Transferable[] | undefined)[]} [transfers] by entry
   */
  #postFrame(frame, transfers) {
    postFrame(
      (message, transfer) => this.transport.post(message, transfer),
      frame,
      transfers,
      (entry, transfer, error) => this.#undeliverable(entry, transfer, error),
    );
  }

  /**
   * @param {any[]} entry
   * @param {Transferable[] | undefined} transfer
   * @param {any} error
   */
  #undeliverable([kind, key, a, b], transfer, error) {
    switch (kind) {
      case Entry.REQUEST:
      case Entry.REQUEST_WITH: {
        const pending = this.#records.find((r) => r instanceof PendingCall && r.key === key);
        if (pending) this.#unsent(pending, error);
        return;
      }
      case Entry.VALUE:
      case Entry.RESPONSE:
        if (transfer?.length) this.#postFrame([kind, key, a, b]);
        else this.#post([Entry.RESPONSE, key, undefined, this.#unsendable(error)]);
        return;
      default:
        console.warn('abp-bridge: a message could not be sent:', error);
    }
  }

  /**
   * The core has failed. Its connection is given up, all that hangs on it is told, and others go on.
   * @param {any} error
   */
  #trapped(error) {
    // WebAssembly's own, or what the core as JavaScript throws; and memory that is short.
    if (error?.name !== 'RuntimeError' && !(error instanceof RangeError)) throw error;
    this.#broken = true;
    this.core.abandon();
    console.error('abp-bridge: the connection failed and is closed:', error);
    const records = this.#records;
    this.#records = [];
    this.dispose();
    for (const record of records) record?.broken(this.failure(abp.INTERNAL_ERROR));
    callOut(this.side.onSession, abp.SESSION_LOST, undefined);
  }
}
