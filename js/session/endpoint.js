/**
 * One side of one connection: gives the core what comes in, and sends what the core's actions say. The machine
 * (js/driver/machine.js) drives the core; nothing here decides what happens to a call. Calls that are made are in
 * pending-call.js, those that are received in invocation.js: an agent and an app each need one of them at once, and load
 * the other with the first question.
 */
import * as abp from '../driver/abp-boundary.js';
import {
  AbpError,
  invokeReportingErrors,
  loadPart,
  reasonText,
  reportError,
  saysTimeout,
} from '../common/errors.js';
import { MAX_TIMER, isObject } from '../common/values.js';
import { AbpCore } from '../driver/abp-core.js';
import { Machine, argOf, kindOf } from '../driver/machine.js';
import { MAX_FRAME_ENTRIES } from '../wire/frames.js';
import { CALL, ELICITATION, progressInfo } from '../wire/messages.js';
import { readEntry } from '../wire/reader.js';
import { EntryWriter, MessageWriter } from '../wire/writers.js';
import { Intake } from './intake.js';
import { CANCELS, RECEIVED, RECORD } from './records.js';

/** @import { PendingCall } from './pending-call.js' */
/** @import { PendingCancel } from './pending-cancel.js' */
/** @import { Invocation } from './invocation.js' */
/** @import { Transport } from '../transports/transport.js' */

/**
 * Answers the requests that are received.
 * @typedef {object} Callee
 * @property {(request: import('../wire/messages.js').Request) => abp.ErrorCode} rejectionFor returns the code with which
 *   a request is refused, or `NO_ERROR`
 * @property {(request: import('../wire/messages.js').Request, code: abp.ErrorCode, error: import('../common/errors.js').ErrorObject) => Promise<void> | void} [explain]
 *   completes the error that refuses it; returns a promise where that has to wait
 * @property {(request: import('../wire/messages.js').Request, context: any, call: Invocation) => unknown} run runs the handler
 * @property {(name: unknown) => boolean} [repeatable] whether a capability may run twice
 * @property {boolean} [foreign] whether it passes calls on to an app that is not ours, whose word decides what becomes of a cancel
 */

/**
 * The callbacks of an endpoint to the client or connection that it belongs to.
 * @typedef {object} EndpointDelegate
 * @property {import('../transports/transport.js').Prepare} [prepare] app: makes results and chunks fit for the transport
 * @property {(state: abp.Session, message: unknown) => void} onSession
 * @property {(message: unknown, via: Transport) => void} [onHandshake] app: sends the answer to
 *   `initialize`, and the offer of a port with it
 * @property {(request: unknown, parent: abp.Handle, about: string) => Promise<unknown>} [elicit] app: asks the agent a question on
 *   behalf of a call; `about` is the callId of the agent's call
 * @property {(call: Invocation) => AsyncIterableIterator<unknown>} [input] app: what the agent streams to the handler of a call
 * @property {(call: Invocation, run: () => unknown) => unknown} [recall] app: answers what asks for the outcome of a call, or runs a
 *   call that has a key, unless it has run
 * @property {(callId: string, said: { report?: unknown, progress?: object }) => void} [keep] app: keeps what a handler said of its
 *   work, for those who ask later
 * @property {(name: string) => boolean} [repeatable] agent: whether a capability of the app may run twice
 * @property {(response: any, call: PendingCall) => void} [later] agent: a call did not succeed, and more may become known of it
 * @property {(info: import('../wire/messages.js').ProgressInfo) => void} [onProgress] called for progress that belongs to no call made here
 * @property {(event: string, data: unknown) => void} [onNotification]
 * @property {() => void} [onEnd] called when nothing is sent or received any more
 */

/** Messages that wait while a part of this library loads. */
const MAX_HELD = 1024;

/** The error that a caller receives for a status of the core. @type {Record<number, abp.ErrorCode | undefined>} */
const STATUS_ERROR = {
  [abp.E_LIMIT]: abp.RATE_LIMITED,
  [abp.E_STATE]: abp.NOT_INITIALIZED,
  [abp.E_ID]: abp.INVALID_ID,
  [abp.E_DUPLICATE]: abp.DUPLICATE_CALL,
};

/** The error that a caller receives for a call that was not completed, by outcome. @type {Record<number, abp.ErrorCode>} */
const OUTCOME_ERROR = {
  [abp.CANCELLED]: abp.CANCELLED_ERROR,
  [abp.TIMED_OUT]: abp.TIMEOUT_ERROR,
  [abp.DISCONNECTED]: abp.DISCONNECTED_ERROR,
};

/**
 * The features beyond the published protocol that a transport can carry.
 * @param {Transport} transport
 * @returns {number} bits of `abp_feature`
 */
export const carried = ({ carries = ['frames', 'liveness', 'streams'] }) =>
  carries.reduce((bits, name) => bits | FEATURES[name], 0);

/** The core's bits of the features that a transport may carry. */
const FEATURES = {
  port: abp.PORT,
  frames: abp.FRAMES,
  liveness: abp.LIVENESS,
  streams: abp.STREAMS,
};

export class Endpoint {
  /** The transport on which the last message arrived: its answer goes back there. @type {Transport} */
  #via;
  #lost = false;
  #over = false;
  /** The handshake is under way. */
  #connecting = false;
  #intake;
  /** What has come since the class of received calls is loading. @type {(() => void)[] | undefined} */
  #held;
  #load;
  /** When the current message arrived, in ms; 0 if there is none. The clock is read once for each message. */
  now = 0;
  /** Why the other side is gone, if that is known. @type {unknown} */
  cause = undefined;
  /** The last message of the handshake that did not end it. @type {unknown} */
  heard = undefined;
  /** Why this side ends the session. @type {string | undefined} */
  closing = undefined;
  /** The ports that came with the current message. @type {readonly MessagePort[]} */
  ports = [];
  /** Why the class of received calls has not been loaded, as long as calls are refused for it. @type {AbpError | undefined} */
  unloaded = undefined;
  /** Measures chunks, once there are streams. @type {((chunk: unknown) => number) | undefined} */
  measure = undefined;

  /**
   * @param {object} options
   * @param {abp.Role} options.role
   * @param {number} options.features
   * @param {import('../driver/abp-core.js').Limits} [options.limits]
   * @param {boolean} [options.restart]
   * @param {Transport} options.transport
   * @param {Callee} [options.callee]
   * @param {typeof Invocation} [options.Invocation] the class of received calls
   * @param {() => Promise<{ Invocation: typeof Invocation, callee?: Callee }>} [options.load] loads what is not given
   * @param {EndpointDelegate} options.side
   * @param {import('./observers.js').Observers} [options.observers]
   */
  constructor(options) {
    const { role, features, limits, restart, transport, callee, side, observers } = options;
    this.role = role;
    this.callee = /** @type {Callee} */ (callee);
    this.side = side;
    this.core = new AbpCore(role, features, limits, restart, observers?.run, callee?.foreign);
    this.machine = new Machine(this.core, this.#acts());
    this.outgoing = role === abp.AGENT ? CALL : ELICITATION;
    this.incoming = role === abp.AGENT ? ELICITATION : CALL;
    this.Invocation = options.Invocation;
    this.#load = /** @type {NonNullable<typeof options.load>} */ (options.load);
    this.#intake = new Intake(this);
    /** Writes messages, also where frames were agreed on: what came in a message is answered by one. */
    this.messages = new MessageWriter(this);
    /** Writes what is sent. @type {MessageWriter | EntryWriter} */
    this.writer = this.messages;
    this.#via = this.transport = transport;
    observers?.tracing?.follow(this);
    this.upgrade(transport);
  }

  /**
   * Replaces the transport by a better one. Messages that still arrive on the old one are ignored, except for a
   * handshake, which the app's side decides about.
   * @param {Transport} transport
   */
  upgrade(transport) {
    this.transport = transport;
    transport.onMessage = (data, ports) => this.receive(data, ports, transport);
    transport.onClose = (cause) => this.lost(cause);
  }

  /** Whether there is a session. */
  get ready() {
    const { x, pointer } = this.core;
    return x.state(pointer) === abp.SESSION_READY;
  }

  /** Whether both sides agreed on a feature. @param {abp.Feature} feature */
  has(feature) {
    const { x, pointer } = this.core;
    return (x.features(pointer) & feature) !== 0;
  }

  // --- In ------------------------------------------------------------------------------------------

  /**
   * @param {unknown} data
   * @param {readonly MessagePort[]} [ports]
   * @param {Transport} [via]
   */
  receive(data, ports = [], via = this.transport) {
    if (this.#over) return;
    this.machine.observe?.('message', false, data);
    if (this.#held) this.#inTurn(() => this.#read(data, ports, via));
    else this.#read(data, ports, via);
  }

  /**
   * @param {unknown} data
   * @param {readonly MessagePort[]} ports
   * @param {Transport} via
   */
  #read(data, ports, via) {
    if (this.#over) return;
    this.#via = via;
    this.ports = ports;
    this.now = this.machine.tick();
    try {
      if (Array.isArray(data)) this.#frame(data);
      else this.#intake.message(data);
    } catch (error) {
      // A getter or a proxy threw: only transports within one thread hand such things over.
      reportError(error);
      this.#intake.malformed();
    }
    this.now = 0;
    this.machine.observe?.('read');
  }

  /** @param {unknown[]} frame @returns {void} */
  #frame(frame) {
    const isFrame = frame.length % 4 === 0 && frame.length <= MAX_FRAME_ENTRIES * 4;
    if (this.writer === this.messages || !isFrame) return this.#intake.malformed();
    for (let i = 0; i < frame.length && !this.#over; i += 4) {
      // What follows an entry that waits waits with it.
      if (this.#held) return this.#inTurn(this.#frame.bind(this, frame.slice(i)));
      readEntry(frame[i], frame[i + 1], frame[i + 2], frame[i + 3], this.#intake);
    }
  }

  /** Does something after what waits already. @param {() => void} act */
  #inTurn(act) {
    if (/** @type {(() => void)[]} */ (this.#held).push(act) > MAX_HELD) {
      this.lost(
        new AbpError('RATE_LIMITED', 'Too many messages arrived while abp-bridge was loading'),
      );
    }
  }

  /**
   * Loads the class of received calls. What comes meanwhile waits. If it cannot be loaded, the calls that wait are refused,
   * and the next one tries again.
   * @param {() => void} act what needs it
   */
  async loadInvocation(act) {
    const held = (this.#held = [act]);
    try {
      const { Invocation, callee = this.callee } = await loadPart(this.#load());
      Object.assign(this, { Invocation, callee });
    } catch (error) {
      this.unloaded = /** @type {AbpError} */ (error);
    }
    this.#held = undefined;
    for (const act of held) act();
    this.unloaded = undefined;
  }

  /** Notes a message that is read by the core. @param {unknown} message */
  noteControl(message) {
    if (this.#connecting) this.heard = message;
  }

  // --- Calls ---------------------------------------------------------------------------------------

  /**
   * Gives the core an input that begins a call or a cancel. If the core rejects it, the record fails.
   * @param {PendingCall | PendingCancel | Invocation} record
   * @param {abp.Handle} parent
   * @param {(x: AbpCore['x'], pointer: AbpCore['pointer']) => abp.Packed | abp.Status} input
   */
  begin(record, parent, input) {
    this.machine.observe?.('begin', record, parent);
    const status = this.machine.feed(input, record);
    if (status < 0) record.fail(this.#refusal(status, parent));
  }

  /**
   * The error a caller receives when the core rejects its call.
   * @param {abp.Status} status
   * @param {abp.Handle} parent
   */
  #refusal(status, parent) {
    if (status === abp.E_STATE && parent) return this.failure(abp.CANCELLED_ERROR);
    if (status === abp.E_STATE && this.#lost) return this.failure(abp.DISCONNECTED_ERROR);
    return this.failure(STATUS_ERROR[status] ?? abp.INTERNAL_ERROR);
  }

  /**
   * The response of a call that was not completed.
   * @param {abp.Outcome} outcome
   * @param {unknown} [reason] of a cancel
   */
  ended(outcome, reason) {
    if (outcome !== abp.CANCELLED) return this.failure(OUTCOME_ERROR[outcome]);
    // A signal from `AbortSignal.timeout()` is a timeout like any other.
    const code = saysTimeout(reason) ? abp.TIMEOUT_ERROR : abp.CANCELLED_ERROR;
    return this.failure(code, reasonText(reason));
  }

  /**
   * @param {abp.ErrorCode} code
   * @param {string} [message]
   */
  failure(code, message = code === abp.DISCONNECTED_ERROR ? reasonText(this.cause) : undefined) {
    const error = this.core.error(code);
    if (message) error.message = message;
    const cancelled = code === abp.CANCELLED_ERROR || code === abp.TIMEOUT_ERROR;
    return { success: false, error, ...(cancelled && { cancelled }) };
  }

  /**
   * Tells a call that something of it could not be sent.
   * @param {'unsent' | 'chunkFailed'} method which says what
   * @param {unknown} key of the call
   * @param {unknown} error why
   */
  tellUnsent(method, key, error) {
    const call = this.machine.find((record) => method in record && record.key === key);
    call?.[method](error);
  }

  // --- The session ---------------------------------------------------------------------------------

  /** Begins the handshake. @param {number} timeout ms until it is given up; 0 is none */
  connect(timeout) {
    // To the core 0 is the default.
    const ms = timeout || MAX_TIMER;
    this.machine.advance();
    if (this.machine.feed((x, pointer) => x.connect(pointer, ms)) < 0 || this.#connecting) return;
    this.#connecting = true;
    this.machine.wait(1);
  }

  close() {
    this.machine.feed((x, pointer) => x.close(pointer));
    this.dispose();
  }

  /** The other side has gone away. @param {unknown} [cause] */
  lost(cause) {
    this.#lost = true;
    this.cause = cause;
    this.machine.feed((x, pointer) => x.lost(pointer));
    this.dispose();
  }

  /** The other side may be another one than before: it is asked. */
  suspect() {
    this.machine.advance();
    this.machine.feed((x, pointer) => x.suspect(pointer));
  }

  /** The other side has refused a call, perhaps because it knows no session. @param {import('../common/errors.js').ErrorObject} error */
  refused(error) {
    this.cause = AbpError.from(error);
    this.machine.feed((x, pointer) => x.refused(pointer, this.core.writeId(error.code)));
    if (!this.#lost) this.cause = undefined;
  }

  /**
   * This document is going away, or is frozen and may come back.
   * @param {boolean} persisted
   */
  leave(persisted) {
    const { writer } = this;
    this.machine.feed((x, pointer) => x.leave(pointer, Number(persisted)));
    writer.flush();
  }

  /** Closes the transport and frees the core's memory. */
  dispose() {
    if (this.#over) return;
    this.#over = true;
    invokeReportingErrors(() => this.transport.close());
    this.machine.end();
    this.side.onEnd?.();
  }

  /** Counts of what is pending and what was dropped, for debugging. */
  get counters() {
    return this.machine.counters;
  }

  // --- What the core's actions do --------------------------------------------------------------------

  /** @returns {import('../driver/machine.js').Acts<PendingCall, Invocation, object | string | undefined, abp.ErrorCode>} */
  #acts() {
    return {
      read: (action, call, record, context) => {
        const kind = /** @type {{ [RECORD]?: unknown } | undefined} */ (context)?.[RECORD];
        // Such a call is refused in the form in which it came.
        if (kindOf(action) === abp.REFUSE && kind === RECEIVED) return undefined;
        const isCancel = kindOf(action) === abp.SEND && argOf(action) === abp.MSG_CANCEL;
        if (isCancel && kind === CANCELS) {
          this.machine.expect(/** @type {PendingCancel} */ (context), call);
        }
        // A cancel of a call that went out in a frame has an entry of its own there.
        return isCancel && record?.key ? this.core.reason : this.core.message;
      },
      sendRequest: (pending) => this.writer.request(pending),
      send: (message, record, text) => {
        if (isObject(text)) this.#sendControl(message, text);
        else this.writer.cancel(record, text);
      },
      refuse: (code, context, text) => {
        if (text) this.post(text, undefined, undefined, this.#via);
        else context.refuse(code);
      },
      report: (record, context, call) => {
        const info = progressInfo(context);
        // A frame named the call by its number.
        if (call) info.operationId ??= this.core.idText(call);
        invokeReportingErrors(call ? record.onProgress : this.side.onProgress, info);
      },
      session: (state, context) => this.#sessionChanged(state, context),
      failed: (records) => {
        this.dispose();
        for (const record of records)
          record.fail(this.failure(abp.INTERNAL_ERROR), abp.FATE_UNKNOWN);
        invokeReportingErrors(this.side.onSession, abp.SESSION_LOST, undefined);
      },
    };
  }

  /**
   * @param {abp.Session} state
   * @param {unknown} message what changed it, if it was a message
   */
  #sessionChanged(state, message) {
    if (this.#connecting && state !== abp.SESSION_CONNECTING) {
      this.#connecting = false;
      this.machine.wait(-1);
    }
    if (state === abp.SESSION_LOST) this.#lost = true;
    // The delegate may close the transport, and what ends a session is said before that.
    if (state === abp.SESSION_CLOSED) this.writer.flush();
    const takesFrames = state === abp.SESSION_READY && this.has(abp.FRAMES);
    this.writer = takesFrames ? new EntryWriter(this, this.messages) : this.messages;
    invokeReportingErrors(this.side.onSession, state, message);
  }

  /**
   * @param {abp.Message} arg
   * @param {any} message
   */
  #sendControl(arg, message) {
    if (arg === abp.MSG_INITIALIZE_RESULT) this.side.onHandshake?.(message, this.#via);
    // Not urgent: the handler's signal should fire before time is spent on posting the acknowledgement.
    else if (arg === abp.MSG_CANCEL_RESULT) this.writer.later(message);
    else this.writer.message(message, arg === abp.MSG_INITIALIZE ? 'greeting' : undefined);
  }

  /**
   * Posts a message or a frame. Throws if it cannot be cloned.
   * @param {unknown} message
   * @param {Transferable[]} [transfer]
   * @param {import('../wire/messages.js').MessageKind} [kind]
   * @param {Transport} [via]
   */
  post(message, transfer, kind, via = this.transport) {
    this.machine.observe?.('message', true, message);
    via.post(message, transfer, kind);
  }
}
