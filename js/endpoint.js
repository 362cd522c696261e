/**
 * One side of one connection: feeds the core, drains it, then does what it said. The switch in #act is the
 * only one on verdicts; nothing here decides what happens to a call.
 */
import * as abp from '../dist/abp-constants.js';
import { ENDED, Invocation } from './callee.js';
import { PendingCall, PendingCancel } from './caller.js';
import { MORE, RELEASED, SLOT } from './boundary.js';
import { Core } from './core.js';
import * as Entry from './entries.js';
import { callOut, isErrorObject, reasonText, toErrorObject } from './errors.js';
import { FrameWriter, LONGEST } from './frames.js';
import {
  CALL,
  ELICITATION,
  isObject,
  milliseconds,
  outcomeOf,
  own,
  progressInfo,
} from './messages.js';
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
 * @property {MessageEventSource} [target] the window that it leads to, where it leads to one
 * @property {string} [origin] and the origin of that
 * @property {number} [carries] which of the features beyond the published protocol can cross it, of
 *   `abp_feature`: LIVENESS and FRAMES unless it says otherwise
 */

/**
 * Who answers the requests that come in.
 * @typedef {object} Callee
 * @property {(request: import('./messages.js').Request) => number} fault what is wrong with a request: an
 *   `abp_error`, or 0
 * @property {(request: import('./messages.js').Request, code: number, error: import('./errors.js').ErrorObject) => void} [explain]
 *   completes the error that refuses it
 * @property {(request: import('./messages.js').Request, context: any) => any} run runs the handler
 */

/**
 * What an endpoint tells the side that it belongs to.
 * @typedef {object} Side
 * @property {(state: number, message: any) => void} onSession
 * @property {(message: any, via: Transport) => void} [onHandshake] app: sends the answer to
 *   `initialize`, and the offer of a port with it
 * @property {(request: any, parent: number) => Promise<any>} [elicit] app: asks the agent a question for a call
 * @property {(info: any) => void} [onProgress] progress of an operation that no call here belongs to
 * @property {(event: string, data: any) => void} [onNotification]
 * @property {() => void} [onEnd] nothing is sent or heard any more
 */

/** What a caller is told of a status of the core. @type {Record<number, number | undefined>} */
const STATUS_ERROR = {
  [abp.E_LIMIT]: abp.RATE_LIMITED,
  [abp.E_STATE]: abp.NOT_INITIALIZED,
  [abp.E_ID]: abp.INVALID_ID,
  [abp.E_DUPLICATE]: abp.DUPLICATE_CALL,
};

/** What a caller is told of a call that was not completed. @type {Record<number, number>} */
const OUTCOME_ERROR = {
  [abp.CANCELLED]: abp.CANCELLED_ERROR,
  [abp.TIMED_OUT]: abp.TIMEOUT_ERROR,
  [abp.DISCONNECTED]: abp.DISCONNECTED_ERROR,
};

/**
 * An input of the core: an export of its module.
 * @callback Input
 * @param {any} x the exports
 * @param {number} ep the endpoint
 * @returns {number} the first action, packed, or a negative `abp_status`
 */

/**
 * The features beyond the published protocol that can be agreed on over a transport.
 * @param {Transport} transport
 */
export const carried = ({ carries = abp.LIVENESS | abp.FRAMES }) => carries;

/** The actions that say more than what they are about. */
const SAYS_MORE = (1 << abp.ABORT) | (1 << abp.REFUSE) | (1 << abp.SEND) | (1 << abp.WAKE);

/** @param {any} error */
const unsent = (error) => console.warn('abp-bridge: a message could not be sent:', error);

/**
 * Whether a key is a call's number.
 * @param {any} key
 * @returns {key is number}
 */
const isNumber = (key) => Number.isInteger(key) && key > 0 && key < 2 ** 32;

export class Endpoint {
  /** What is going on, by slot: pending calls and cancels, and invocations. @type {any[]} */
  #records = [];
  /** @type {FrameWriter | undefined} */
  #frames;
  /** Where an answer to what came last goes: back the way that it came. @type {Transport} */
  #via;
  #timer = /** @type {any} */ (undefined);
  #broken = false;
  #lost = false;
  #over = false;
  /** Those at the end, when there is nothing in the core any more. @type {Record<string, number> | undefined} */
  #counters;
  #ticked = 0;
  /** When what is being worked on came in, or 0: the clock is looked at once. */
  now = 0;
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
   * @param {Callee} options.callee
   * @param {Side} options.side
   */
  constructor({ role, features, limits = {}, restart = false, transport, callee, side }) {
    this.role = role;
    this.callee = callee;
    this.side = side;
    this.core = new Core(role, features, limits, restart);
    this.outgoing = role === abp.AGENT ? CALL : ELICITATION;
    this.incoming = role === abp.AGENT ? ELICITATION : CALL;
    this.#via = this.transport = transport;
    this.upgrade(transport);
  }

  /**
   * Leaves the transport for a better one. What still comes in through the old one goes nowhere, but for a
   * handshake (the app's side decides that).
   * @param {Transport} transport
   */
  upgrade(transport) {
    this.transport = transport;
    transport.onMessage = (data, ports) => this.receive(data, ports, transport);
    transport.onClose = (cause) => this.lost(cause);
  }

  /** Whether there is a session. */
  get ready() {
    const { x, ep } = this.core;
    return x.state(ep) === abp.SESSION_READY;
  }

  /** Whether both sides agreed on it. @param {number} feature */
  has(feature) {
    const { x, ep } = this.core;
    return (x.features(ep) & feature) !== 0;
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
      else if (isObject(data)) this.#message(data);
      else this.#control(null);
    } catch (error) {
      this.#trapped(error);
    } finally {
      this.now = 0;
    }
  }

  /** The core's clock. Messages that come together find it near enough. */
  #tick() {
    const now = (this.now = performance.now());
    if (now - this.#ticked < 10) return;
    this.#ticked = now;
    this.#advance(now);
  }

  /** @param {number} now */
  #advance(now) {
    const { x, ep } = this.core;
    this.#run(x.advance(ep, now), undefined);
  }

  /** @param {any} message */
  #message(message) {
    const { core } = this;
    const payload = own(message, 'payload');
    const type = own(message, 'type');
    if (type === this.incoming.request)
      return this.#request(this.incoming.read(message), 0, message);
    if (type === this.outgoing.response || (type === 'call-result' && this.role === abp.AGENT)) {
      return this.#response(core.id(own(message, 'id')), 0, outcomeOf(payload), payload);
    }
    if (this.role === abp.AGENT) {
      if (type === 'progress')
        return this.#progress(core.id(own(payload, 'operationId')), 0, payload);
      if (type === 'notification') return this.#notification(payload);
    }
    this.#control(message);
  }

  /** Anything that is not of the data plane is the core's to understand. @param {any} message */
  #control(message) {
    const { core } = this;
    this.#run(core.x.receive(core.ep, core.control(message)), message);
  }

  /** @param {any[]} frame */
  #frame(frame) {
    if (!this.#frames || frame.length % 4 || frame.length > LONGEST * 4) {
      return this.#control(null);
    }
    for (let i = 0; i < frame.length && !this.#broken; i += 4) {
      this.#entry(frame[i], frame[i + 1], frame[i + 2], frame[i + 3]);
    }
  }

  /**
   * @param {number} kind
   * @param {any} key
   * @param {any} a
   * @param {any} b
   */
  #entry(kind, key, a, b) {
    const { core } = this;
    const number = isNumber(key) ? key : 0;
    const length = number ? 0 : core.id(key);
    switch (kind) {
      case Entry.REQUEST:
        return this.#request(
          { key, name: a, params: b ?? {}, timeout: 0, progress: false },
          number,
        );
      case Entry.REQUEST_WITH: {
        const params = own(b, '0') ?? {};
        const timeout = milliseconds(own(b, '1'));
        return this.#request(
          { key, name: a, params, timeout, progress: own(b, '2') === true },
          number,
        );
      }
      case Entry.VALUE: {
        const response = { success: true, data: b, metadata: { duration: a } };
        return this.#response(length, number, abp.COMPLETED, response);
      }
      case Entry.RESPONSE:
        return this.#response(length, number, outcomeOf(b), b);
      case Entry.PROGRESS:
        return this.#progress(length, number, b);
      case Entry.CANCEL:
        return this.#run(
          core.x.cancel_received(core.ep, length, number, core.why(a, length)),
          undefined,
        );
      case Entry.MESSAGE:
        return isObject(b) && this.#message(b);
    }
    this.#control(null);
  }

  /**
   * @param {import('./messages.js').Request} request
   * @param {number} number its key, if that is a call's number
   * @param {any} [message] the message it came in, unless that was a frame
   */
  #request(request, number, message) {
    const fault =
      typeof request.name === 'string' ? this.callee.fault(request) : abp.INVALID_PARAMS;
    const { x, ep } = this.core;
    this.#run(
      x.call_received(
        ep,
        number ? 0 : this.core.id(request.key),
        number,
        request.timeout,
        request.progress === false ? 0 : abp.WANTS_PROGRESS,
        fault,
      ),
      new Invocation(this, request, message),
    );
  }

  /**
   * @param {number} length of the id in the scratch
   * @param {number} number the id, if that is one
   * @param {number} outcome
   * @param {any} response
   */
  #response(length, number, outcome, response) {
    const { x, ep } = this.core;
    this.#run(x.result_received(ep, length, number, outcome), response);
  }

  /**
   * @param {number} length
   * @param {number} number
   * @param {any} info
   */
  #progress(length, number, info) {
    const { x, ep } = this.core;
    this.#run(x.progress_received(ep, length, number), info);
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
    return new Promise((resolve) => {
      const pending = new PendingCall(this, resolve, name, params, options);
      const { signal, timeout, callId, onProgress } = pending;
      if (signal?.aborted) return pending.settle(abp.CANCELLED);
      this.#begin(pending, parent, (x, ep) => {
        // The clock of the core stands still between its inputs: a deadline counts from now.
        if (timeout) this.#advance(performance.now());
        const length = callId === undefined ? 0 : this.core.id(callId);
        if (callId !== undefined && !length) return abp.E_ID;
        listen(signal, pending);
        return x.request(ep, length, timeout, onProgress ? abp.WANTS_PROGRESS : 0, parent);
      });
    });
  }

  /**
   * Gives the core an input that begins something. What it refuses has failed.
   * @param {PendingCall | PendingCancel | Invocation} record
   * @param {number} parent
   * @param {Input} input
   */
  #begin(record, parent, input) {
    const status = this.#feed(input, record);
    if (status < 0 || this.#broken) record.fail(this.#refusal(status, parent));
  }

  /**
   * What a caller hears whom the core refused.
   * @param {number} status
   * @param {number} parent
   */
  #refusal(status, parent) {
    if (status === abp.E_STATE && parent) return this.failure(abp.CANCELLED_ERROR);
    if (status === abp.E_STATE && this.#lost) return this.failure(abp.DISCONNECTED_ERROR);
    return this.failure(STATUS_ERROR[status] ?? abp.INTERNAL_ERROR);
  }

  /**
   * What a caller hears whose call was not completed.
   * @param {number} outcome
   * @param {any} [reason] of a cancel
   */
  ended(outcome, reason) {
    return this.failure(
      OUTCOME_ERROR[outcome],
      outcome === abp.CANCELLED ? reasonText(reason) : undefined,
    );
  }

  /**
   * @param {number} code
   * @param {string} [message]
   */
  failure(code, message = code === abp.DISCONNECTED_ERROR ? reasonText(this.cause) : undefined) {
    const error = this.core.error(code);
    if (message) error.message = message;
    const cancelled = code === abp.CANCELLED_ERROR || code === abp.TIMEOUT_ERROR;
    return { success: false, error, ...(cancelled && { cancelled }) };
  }

  /**
   * @param {number} call
   * @param {any} reason
   */
  cancel(call, reason) {
    this.#feed((x, ep) => x.cancel(ep, call, this.core.why(reasonText(reason))));
  }

  /**
   * @param {string} callId
   * @param {any} reason
   */
  cancelById(callId, reason) {
    const why = reasonText(reason);
    return new Promise((resolve) => {
      this.#begin(new PendingCancel(this, resolve, callId), 0, (x, ep) => {
        const length = this.core.id(callId);
        return x.cancel_by_id(ep, length, this.core.why(why, length));
      });
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
    this.#feed((x, ep) => x.finish(ep, handle, outcome), invocation);
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
      if (signal?.aborted) return resolve(this.ended(abp.CANCELLED, signal.reason));
      const invocation = new Invocation(this, request, undefined, resolve);
      // If the parent has ended or is ending, what is asked of it is cancelled with it.
      this.#begin(invocation, ENDED, (x, ep) =>
        x.call_local(ep, parent.handle, request.timeout, this.callee.fault(request)),
      );
      if (invocation.handle) invocation.follow(signal);
    });
  }

  /**
   * @param {Invocation} invocation
   * @param {object} info
   */
  progress(invocation, info) {
    const { handle } = invocation;
    const { x, ep } = this.core;
    if (this.#broken || !x.progress_wanted(ep, handle)) return;
    const token = invocation.request.progress;
    const number = token === true && this.#frames && x.number(ep, handle);
    if (number) return this.#frames?.add(Entry.PROGRESS, number, undefined, info);
    const operationId = token === true ? this.core.idText(handle) : token;
    this.send({ type: 'progress', payload: { ...info, operationId } });
  }

  // --- The session ---------------------------------------------------------------------------------

  /** @param {number} timeout ms */
  connect(timeout) {
    this.#feed((x, ep) => {
      this.#advance(performance.now());
      return x.connect(ep, milliseconds(timeout));
    });
  }

  close() {
    const frames = this.#frames;
    this.#feed((x, ep) => x.close(ep));
    frames?.flush();
    this.dispose();
  }

  /** The other side is gone. @param {unknown} [cause] */
  lost(cause) {
    this.#lost = true;
    this.cause = cause;
    this.#feed((x, ep) => x.lost(ep));
    this.dispose();
  }

  /**
   * This document is going away, or is frozen and may come back.
   * @param {boolean} persisted
   */
  leave(persisted) {
    const frames = this.#frames;
    this.#feed((x, ep) => x.leave(ep, persisted));
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
   * @param {Input} input
   * @param {any} [context]
   * @returns what the input did, 0 if the core has failed
   */
  #feed(input, context) {
    if (this.#broken) return 0;
    try {
      const action = input(this.core.x, this.core.ep);
      this.#run(action, context);
      return action;
    } catch (error) {
      this.#trapped(error);
      return 0;
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
      const extra = SAYS_MORE & (1 << (action & 255)) ? this.#extra(action, context) : undefined;
      this.#act(action, this.core.call, extra, context);
      return;
    }
    const actions = [];
    const { x, ep } = this.core;
    for (; action; action = action & MORE ? x.next(ep) : 0) {
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
        // What asks a call that went out in a frame to stop has an entry of its own.
        return ((action >> 8) & 255) === abp.MSG_CANCEL && this.#records[this.core.call & SLOT]?.key
          ? this.core.reason
          : this.core.message;
      case abp.WAKE:
        return this.core.at;
    }
    return undefined;
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
    if (action & RELEASED || (action & 255) === abp.SETTLE) this.#records[slot] = undefined;
    switch (action & 255) {
      case abp.REQUEST:
        this.#records[slot] = context;
        this.#sendRequest(context, call);
        return;
      case abp.SETTLE:
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
        record.abort(extra);
        return;
      case abp.RESULT:
        (record ?? context).answer(arg);
        return;
      case abp.REFUSE:
        if (context instanceof Invocation) context.refuse(arg);
        else this.#via.post(extra);
        return;
      case abp.SEND:
        if (arg === abp.MSG_CANCEL && context instanceof PendingCancel) {
          this.#records[slot] = context;
        }
        if (isObject(extra)) this.#sendControl(arg, extra);
        else this.#frames?.add(Entry.CANCEL, record.key, extra, undefined);
        return;
      case abp.SESSION:
        if (arg === abp.SESSION_LOST) this.#lost = true;
        this.#frames =
          arg === abp.SESSION_READY && this.has(abp.FRAMES)
            ? new FrameWriter(
                (frame, transfer) => this.transport.post(frame, transfer),
                (entry, transfer, error) => this.#undeliverable(entry, transfer, error),
              )
            : undefined;
        callOut(this.side.onSession, arg, context);
        return;
      case abp.WAKE:
        clearTimeout(this.#timer);
        this.#timer = setTimeout(
          // Timers may fire a fraction of a millisecond early.
          () => this.#feed((x, ep) => x.advance(ep, Math.max(extra, performance.now()))),
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
    this.#say({ ...message, timestamp: Date.now() });
  }

  /** @param {object} message */
  #say(message) {
    if (this.#frames) this.#frames.add(Entry.MESSAGE, 0, undefined, message);
    else this.transport.post(message);
  }

  /**
   * @param {number} arg
   * @param {any} message
   */
  #sendControl(arg, message) {
    if (arg === abp.MSG_INITIALIZE_RESULT) this.side.onHandshake?.(message, this.#via);
    // A handler's signal fires before time is spent on posting that it will.
    else if (this.#frames && arg === abp.MSG_CANCEL_RESULT) this.#frames.addLater(message);
    else this.#say(message);
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
      const { x, ep } = this.core;
      const key = (pending.key = callId ?? x.number(ep, call));
      if (timeout || progress) {
        this.#frames.add(Entry.REQUEST_WITH, key, name, [params, timeout, progress], transfer);
      } else this.#frames.add(Entry.REQUEST, key, name, params, transfer);
      return;
    }
    const { request, write } = this.outgoing;
    const id = callId ?? this.core.idText(call);
    const payload = write(id, name, params, timeout, progress);
    const message = { type: request, id, timestamp: Date.now(), payload };
    this.#post(message, transfer, (error) => this.#unsent(pending, error));
  }

  /**
   * @param {PendingCall} pending
   * @param {any} error
   */
  #unsent(pending, error) {
    const response = isErrorObject(error)
      ? { success: false, error: toErrorObject(error) }
      : this.#unsendable(abp.INVALID_PARAMS, 'parameters', error);
    this.#feed((x, ep) => x.unsent(ep, pending.handle), response);
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
    const answer = {
      type: this.incoming.response,
      id: own(message, 'id'),
      timestamp: Date.now(),
    };
    this.#post({ ...answer, payload: response }, transfer, (error) => {
      if (transfer?.length) this.respond({ request, message }, response);
      else
        this.#post({ ...answer, payload: this.#unsendable(abp.OPERATION_FAILED, 'result', error) });
    });
  }

  /**
   * Sends, if that is possible: an answer whose own id cannot be cloned goes to nobody.
   * @param {object} message
   * @param {Transferable[]} [transfer]
   * @param {(error: any) => void} [failed]
   */
  #post(message, transfer, failed = unsent) {
    try {
      this.transport.post(message, transfer);
    } catch (error) {
      failed(error);
    }
  }

  /**
   * @param {number} code
   * @param {string} what
   * @param {any} error
   */
  #unsendable(code, what, error) {
    return this.failure(code, `The ${what} cannot be sent: ${toErrorObject(error).message}`);
  }

  /**
   * @param {any[]} entry
   * @param {Transferable[] | undefined} transfer
   * @param {any} error
   */
  #undeliverable(entry, transfer, error) {
    const [kind, key] = entry;
    switch (kind) {
      case Entry.REQUEST:
      case Entry.REQUEST_WITH: {
        const pending = this.#records.find((record) => record?.key === key);
        if (pending) this.#unsent(pending, error);
        return;
      }
      case Entry.VALUE:
      case Entry.RESPONSE:
        if (transfer?.length) {
          this.#post(entry, undefined, (again) => this.#undeliverable(entry, undefined, again));
        } else
          this.#post([
            Entry.RESPONSE,
            key,
            undefined,
            this.#unsendable(abp.OPERATION_FAILED, 'result', error),
          ]);
        return;
      default:
        unsent(error);
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
    for (const record of records) record?.fail(this.failure(abp.INTERNAL_ERROR));
    callOut(this.side.onSession, abp.SESSION_LOST, undefined);
  }
}
