/**
 * One side of one connection: reads what comes in, gives it to the core, and sends what the core's actions say. The
 * machine (js/core/machine.js) drives the core; nothing here decides what happens to a call.
 */
import * as abp from '../core/abp-boundary.js';
import {
  invokeReportingErrors,
  isErrorObject,
  reasonText,
  reportError,
  saysTimeout,
  toErrorObject,
} from '../common/errors.js';
import { onAbort } from '../common/signals.js';
import { uncloneablePart } from '../common/uncloneable.js';
import { MAX_TIMER, getOwn, isObject, milliseconds } from '../common/values.js';
import { AbpCore } from '../core/abp-core.js';
import { Machine, argOf, kindOf } from '../core/machine.js';
import * as FrameKind from '../wire/frame-kinds.js';
import { FrameWriter, MAX_FRAME_ENTRIES } from '../wire/frames.js';
import {
  CALL,
  ELICITATION,
  countOf,
  outcomeOf,
  progressInfo,
  readAmount,
} from '../wire/messages.js';
import { ENDED, Invocation } from './invocation.js';
import { PendingCall, PendingCancel } from './pending-call.js';

/** @import { Transport } from '../transports/transport.js' */

/**
 * Answers the requests that are received.
 * @typedef {object} Callee
 * @property {(request: import('../wire/messages.js').Request) => number} rejectionFor returns the `abp_error` with which
 *   a request is refused, or 0
 * @property {(request: import('../wire/messages.js').Request, code: number, error: import('../common/errors.js').ErrorObject) => void} [explain]
 *   completes the error that refuses it
 * @property {(request: import('../wire/messages.js').Request, context: any) => unknown} run runs the handler
 */

/**
 * The callbacks of an endpoint to the client or connection that it belongs to.
 * @typedef {object} EndpointDelegate
 * @property {(state: number, message: unknown) => void} onSession
 * @property {(message: unknown, via: Transport) => void} [onHandshake] app: sends the answer to
 *   `initialize`, and the offer of a port with it
 * @property {(request: any, parent: number) => Promise<any>} [elicit] app: asks the agent a question on behalf of a call
 * @property {(callId: string, parent: number) => AsyncIterableIterator<any>} [input] app: what the agent streams to the
 *   handler of a call
 * @property {(info: any) => void} [onProgress] called for progress that belongs to no call made here
 * @property {(event: string, data: any) => void} [onNotification]
 * @property {(error: import('../common/errors.js').ErrorObject) => void} [onExpired] agent: the app has refused a call
 *   because it has no session any more
 * @property {() => void} [onEnd] called when nothing is sent or received any more
 */

/** The error that a caller receives for a status of the core. @type {Record<number, number | undefined>} */
const STATUS_ERROR = {
  [abp.E_LIMIT]: abp.RATE_LIMITED,
  [abp.E_STATE]: abp.NOT_INITIALIZED,
  [abp.E_ID]: abp.INVALID_ID,
  [abp.E_DUPLICATE]: abp.DUPLICATE_CALL,
};

/** The error that a caller receives for a call that was not completed, by outcome. @type {Record<number, number>} */
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

/** What the caller of a stream is told when the other side has sent more than was agreed on. */
const OVERRUN = {
  message: 'The other side streamed more than was read, so that the stream was ended',
};

/** Whether a result's metadata say more than a duration. @param {any} metadata */
const isMarked = ({ cached, collected }) => cached !== undefined || collected !== undefined;

/** Of a call that is no stream. @type {[number, number]} */
const NO_WINDOW = [0, 0];

/**
 * @param {unknown} error
 * @param {unknown} [payload] of the message
 */
const unsent = (error, payload) =>
  console.warn(
    `abp-bridge: a message could not be sent: ${uncloneablePart(payload, 'payload') ?? ''} (docs/errors.md#what-cannot-be-sent)`,
    error,
  );

/**
 * Whether a key is a call's number.
 * @param {any} key
 * @returns {key is number}
 */
const isNumber = (key) => Number.isInteger(key) && key > 0 && key < 2 ** 32;

export class Endpoint {
  /** @type {FrameWriter | undefined} */
  #frames;
  /** The transport on which the last message arrived: its answer goes back there. @type {Transport} */
  #via;
  #lost = false;
  #over = false;
  /** The handshake is under way. */
  #connecting = false;
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
  /** Who is told what happens here: almost always nobody. @type {import('./observers.js').Observer | undefined} */
  observer = undefined;

  /**
   * @param {object} options
   * @param {0 | 1} options.role
   * @param {number} options.features
   * @param {import('../core/abp-core.js').Limits} [options.limits]
   * @param {boolean} [options.restart]
   * @param {Transport} options.transport
   * @param {Callee} options.callee
   * @param {EndpointDelegate} options.side
   * @param {import('./observers.js').Observers} [options.observers]
   */
  constructor({ role, features, limits, restart, transport, callee, side, observers }) {
    this.role = role;
    this.callee = callee;
    this.side = side;
    this.core = new AbpCore(role, features, limits, restart, observers?.tap);
    this.machine = new Machine(this.core, this.#acts());
    this.outgoing = role === abp.AGENT ? CALL : ELICITATION;
    this.incoming = role === abp.AGENT ? ELICITATION : CALL;
    this.#via = this.transport = transport;
    observers?.follow(this);
    this.upgrade(transport);
  }

  /** @param {import('./observers.js').Observer | undefined} observer is told what happens from now on */
  observe(observer) {
    this.observer = this.machine.observer = observer;
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

  /** Whether both sides agreed on a feature. @param {number} feature of `abp_feature` */
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
    this.#via = via;
    this.ports = ports;
    this.now = this.machine.tick();
    this.observer?.message(false, data);
    try {
      if (Array.isArray(data)) this.#frame(data);
      else if (isObject(data)) this.#message(data);
      else this.#malformed();
    } catch (error) {
      // A getter or a proxy threw: only transports within one thread hand such things over.
      reportError(error);
      this.#malformed();
    }
    this.now = 0;
    this.observer?.read();
  }

  /** @param {unknown} message */
  #message(message) {
    const payload = getOwn(message, 'payload');
    const type = getOwn(message, 'type');
    if (type === this.incoming.request) {
      return this.#request(this.incoming.read(message), 0, message);
    }
    if (type === this.outgoing.response || (type === 'call-result' && this.role === abp.AGENT)) {
      return this.#response(getOwn(message, 'id'), 0, outcomeOf(payload), payload);
    }
    if (this.role === abp.AGENT) {
      if (type === 'progress') return this.#progress(getOwn(payload, 'operationId'), 0, payload);
      if (type === 'notification') return this.#notification(payload);
    }
    if (type === 'bridge/chunk') {
      const [size, chunk] = [getOwn(payload, 'size'), getOwn(payload, 'chunk')];
      return this.#chunk(getOwn(payload, 'callId'), 0, size, chunk);
    }
    if (type === 'bridge/credit') {
      const [chunks, bytes] = [getOwn(payload, 'chunks'), getOwn(payload, 'bytes')];
      return this.#credit(getOwn(payload, 'callId'), 0, chunks, bytes);
    }
    this.#control(message);
  }

  /** Messages outside of the data plane are read by the core. @param {unknown} message */
  #control(message) {
    const { core } = this;
    if (this.#connecting) this.heard = message;
    this.machine.feed((x, pointer) => x.receive(pointer, core.writeControl(message)), message);
  }

  #malformed() {
    this.machine.feed((x, pointer) => x.receive(pointer, 0));
  }

  /** @param {any[]} frame */
  #frame(frame) {
    if (!this.#frames || frame.length % 4 || frame.length > MAX_FRAME_ENTRIES * 4) {
      return this.#malformed();
    }
    for (let i = 0; i < frame.length && !this.#over; i += 4) {
      this.#entry(frame[i], frame[i + 1], frame[i + 2], frame[i + 3]);
    }
  }

  /**
   * @param {number} kind
   * @param {unknown} key
   * @param {unknown} a
   * @param {unknown} b
   */
  #entry(kind, key, a, b) {
    const number = isNumber(key) ? key : 0;
    switch (kind) {
      case FrameKind.REQUEST:
        return this.#request(
          { key, name: a, params: b ?? {}, timeout: 0, progress: false },
          number,
        );
      case FrameKind.REQUEST_WITH: {
        const params = getOwn(b, '0') ?? {};
        const timeout = milliseconds(getOwn(b, '1'));
        const progress = getOwn(b, '2') ?? false;
        const window = readAmount(getOwn(b, '3'), getOwn(b, '4'));
        const input = getOwn(b, '5') === true;
        return this.#request({ key, name: a, params, timeout, progress, window, input }, number);
      }
      case FrameKind.VALUE: {
        const response = { success: true, data: b, metadata: { duration: a } };
        return this.#response(key, number, abp.COMPLETED, response);
      }
      case FrameKind.RESPONSE:
        return this.#response(key, number, outcomeOf(b), b);
      case FrameKind.PROGRESS:
        return this.#progress(key, number, b);
      case FrameKind.CANCEL: {
        const { core } = this;
        this.machine.feed((x, pointer) => {
          const length = number ? 0 : core.writeId(key);
          return x.cancel_received(pointer, length, number, core.writeReason(a, length));
        });
        return;
      }
      case FrameKind.CHUNK:
        return this.#chunk(key, number, a, b);
      case FrameKind.CREDIT:
        return this.#credit(key, number, a, b);
      case FrameKind.MESSAGE:
        if (isObject(b)) return this.#message(b);
    }
    this.#malformed();
  }

  /**
   * @param {unknown} key the id of the call
   * @param {number} number the same, if it is a call's number
   * @param {unknown} size
   * @param {unknown} value the chunk
   */
  #chunk(key, number, size, value) {
    this.machine.feed(
      (x, pointer) =>
        x.chunk_received(pointer, number ? 0 : this.core.writeId(key), number, countOf(size)),
      { value, error: OVERRUN },
    );
  }

  /**
   * @param {unknown} key
   * @param {number} number
   * @param {unknown} chunks
   * @param {unknown} bytes
   */
  #credit(key, number, chunks, bytes) {
    const amount = readAmount(chunks, bytes);
    this.machine.feed((x, pointer) =>
      x.credit_received(pointer, number ? 0 : this.core.writeId(key), number, ...amount),
    );
  }

  /**
   * @param {import('../wire/messages.js').Request} request
   * @param {number} number its key, if that is the number of a call; else 0
   * @param {unknown} [message] the message that it arrived in, unless it was in a frame
   */
  #request(request, number, message) {
    const rejection =
      typeof request.name === 'string' ? this.callee.rejectionFor(request) : abp.INVALID_PARAMS;
    const flags = request.progress === false ? 0 : abp.WANTS_PROGRESS;
    this.machine.feed(
      (x, pointer) => {
        const length = number ? 0 : this.core.writeId(request.key);
        const [chunks, bytes] = request.window ?? NO_WINDOW;
        const { timeout } = request;
        return x.call_received(pointer, length, number, timeout, flags, chunks, bytes, rejection);
      },
      new Invocation(this, request, message),
    );
  }

  /**
   * @param {unknown} key the id of the call
   * @param {number} number the same, if it is a call's number
   * @param {number} outcome
   * @param {unknown} response
   */
  #response(key, number, outcome, response) {
    this.machine.feed(
      (x, pointer) =>
        x.result_received(pointer, number ? 0 : this.core.writeId(key), number, outcome),
      response,
    );
  }

  /**
   * @param {unknown} key
   * @param {number} number
   * @param {unknown} info
   */
  #progress(key, number, info) {
    this.machine.feed(
      (x, pointer) => x.progress_received(pointer, number ? 0 : this.core.writeId(key), number),
      info,
    );
  }

  /** @param {unknown} payload */
  #notification(payload) {
    // One client library uses other names for the members.
    const event = getOwn(payload, 'event') ?? getOwn(payload, 'method');
    const data = getOwn(payload, 'data') ?? getOwn(payload, 'params');
    if (this.has(abp.NOTIFICATIONS) && typeof event === 'string') {
      invokeReportingErrors(this.side.onNotification, event, data);
    }
  }

  // --- The caller ----------------------------------------------------------------------------------

  /**
   * Makes a call, or asks a question.
   * @param {string} name
   * @param {unknown} params
   * @param {object} [options]
   * @param {AbortSignal} [options.signal]
   * @param {number} [options.timeout] ms
   * @param {(info: any) => void} [options.onProgress]
   * @param {string} [options.callId]
   * @param {Transferable[]} [options.transfer]
   * @param {number} [parent] the call on whose behalf this is made
   * @param {import('../agent/call-stream.js').CallStream} [stream] reads its chunks
   * @param {import('../agent/input.js').Input} [input] is streamed to its handler
   * @returns {Promise<any>} the response: it never rejects
   */
  request(name, params, options = {}, parent = 0, stream = undefined, input = undefined) {
    return new Promise((resolve) => {
      const pending = new PendingCall(this, resolve, name, params, options);
      const { signal, timeout, callId, onProgress } = pending;
      pending.stream = stream;
      pending.input = input;
      stream?.attach(pending);
      if (signal?.aborted) return pending.settle(abp.CANCELLED);
      if (input && this.ready && !this.has(abp.STREAMS)) {
        const why = 'The app takes no input as a stream (docs/streams.md#input)';
        return pending.fail(this.failure(abp.NOT_SUPPORTED, why));
      }
      // The core's clock stands still between inputs, and a deadline counts from now.
      if (timeout) this.machine.advance();
      onAbort(signal, pending);
      this.#begin(pending, parent, (x, pointer) => {
        const length = callId === undefined ? 0 : this.core.writeId(callId);
        if (callId !== undefined && !length) return abp.E_ID;
        const flags = (onProgress ? abp.WANTS_PROGRESS : 0) | (stream ? abp.WANTS_STREAM : 0);
        return x.request(pointer, length, timeout, flags, parent);
      });
    });
  }

  /**
   * The call made here that has this callId and streams to its handler.
   * @param {unknown} callId
   * @returns {PendingCall | undefined}
   */
  withInput(callId) {
    return this.machine.find(
      (record) => record.input && callId === (record.callId ?? this.core.idText(record.handle)),
    );
  }

  /**
   * Gives the core an input that begins a call or a cancel. If the core rejects it, the record fails.
   * @param {PendingCall | PendingCancel | Invocation} record
   * @param {number} parent
   * @param {Parameters<typeof this.machine.feed>[0]} input
   */
  #begin(record, parent, input) {
    this.observer?.begin(record, parent);

    const status = this.machine.feed(input, record);
    if (status < 0) record.fail(this.#refusal(status, parent));
  }

  /**
   * The error a caller receives when the core rejects its call.
   * @param {number} status an `abp_status`
   * @param {number} parent
   */
  #refusal(status, parent) {
    if (status === abp.E_STATE && parent) return this.failure(abp.CANCELLED_ERROR);
    if (status === abp.E_STATE && this.#lost) return this.failure(abp.DISCONNECTED_ERROR);
    return this.failure(STATUS_ERROR[status] ?? abp.INTERNAL_ERROR);
  }

  /**
   * The response of a call that was not completed.
   * @param {number} outcome
   * @param {unknown} [reason] of a cancel
   */
  ended(outcome, reason) {
    if (outcome !== abp.CANCELLED) return this.failure(OUTCOME_ERROR[outcome]);
    // A signal from `AbortSignal.timeout()` is a timeout like any other.
    const code = saysTimeout(reason) ? abp.TIMEOUT_ERROR : abp.CANCELLED_ERROR;
    return this.failure(code, reasonText(reason));
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
   * Asks for whatever call has this id to stop.
   * @param {string} callId
   * @param {unknown} reason
   * @returns {Promise<any>} the protocol's answer: it never rejects
   */
  cancelById(callId, reason) {
    const text = reasonText(reason);
    return new Promise((resolve) => {
      this.#begin(new PendingCancel(this, resolve, callId), 0, (x, pointer) => {
        const length = this.core.writeId(callId);
        return x.cancel_by_id(pointer, length, this.core.writeReason(text, length));
      });
    });
  }

  // --- The callee ----------------------------------------------------------------------------------

  /**
   * A handler calls another capability of its own app.
   * @param {Invocation} parent
   * @param {import('../wire/messages.js').Request} request
   * @param {AbortSignal} [signal]
   */
  callLocal(parent, request, signal) {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve(this.ended(abp.CANCELLED, signal.reason));
      const invocation = new Invocation(this, request, undefined, resolve);
      // If the parent has ended or is ending, the new call is cancelled with it.
      const rejection = this.callee.rejectionFor(request);
      this.#begin(invocation, parent.handle || ENDED, (x, pointer) =>
        x.call_local(pointer, parent.handle, request.timeout, rejection),
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
    const { x, pointer } = this.core;
    if (this.machine.failed || !x.progress_wanted(pointer, handle)) return;
    this.observer?.progress(invocation, info);
    const token = invocation.request.progress;
    const number = token === true && this.#frames && this.core.number(handle);
    if (number) return this.#frames?.add(FrameKind.PROGRESS, number, undefined, info);
    const operationId = token === true ? this.core.idText(handle) : token;
    this.send({ type: 'progress', payload: { ...info, operationId } });
  }

  // --- Streams -------------------------------------------------------------------------------------

  /** Whether the caller of a received call reads chunks. @param {Invocation} invocation */
  isStream({ handle }) {
    const { x, pointer } = this.core;
    return !this.machine.failed && x.stream_wanted(pointer, handle) === 1;
  }

  /**
   * A handler has a chunk: it is sent if there is room for it.
   * @param {Invocation} invocation
   * @param {unknown} chunk
   * @param {number} size
   * @returns {number} an `abp_status`: E_LIMIT if there is no room, E_STATE if nobody waits for it
   */
  offerChunk({ handle }, chunk, size) {
    return this.machine.feed((x, pointer) => x.chunk(pointer, handle, size), chunk);
  }

  /**
   * @param {Invocation} invocation
   * @param {unknown} chunk
   * @param {number} size
   * @param {Transferable[]} [transfer]
   */
  sendChunk(invocation, chunk, size, transfer) {
    if (this.#frames && !invocation.message) {
      return this.#frames.addChunk(invocation.request.key, size, chunk, transfer);
    }
    const payload = { callId: invocation.callId, size, chunk };
    const message = { type: 'bridge/chunk', timestamp: Date.now(), payload };
    return this.#post(message, transfer, (error) => invocation.chunkFailed(error));
  }

  /**
   * Tells the app what was read of a stream.
   * @param {PendingCall} pending
   * @param {[number, number]} amount chunks and bytes
   */
  grant({ key, callId, handle }, [chunks, bytes]) {
    if (this.#frames && key) return this.#frames.add(FrameKind.CREDIT, key, chunks, bytes);
    const payload = { callId: callId ?? this.core.idText(handle), chunks, bytes };
    return this.send({ type: 'bridge/credit', payload });
  }

  /** Sends what was collected in a frame. */
  flush() {
    this.#frames?.flush();
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

  /** The other side is gone. @param {unknown} [cause] */
  lost(cause) {
    this.#lost = true;
    this.cause = cause;
    this.machine.feed((x, pointer) => x.lost(pointer));
    this.dispose();
  }

  /**
   * This document is going away, or is frozen and may come back.
   * @param {boolean} persisted
   */
  leave(persisted) {
    const frames = this.#frames;
    this.machine.feed((x, pointer) => x.leave(pointer, Number(persisted)));
    frames?.flush();
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

  /** @returns {import('../core/machine.js').Acts<PendingCall, Invocation, object | string | undefined>} */
  #acts() {
    return {
      read: (action, call, record, context) => {
        if (kindOf(action) === abp.REFUSE) {
          return context instanceof Invocation ? undefined : this.core.message;
        }
        const isCancel = argOf(action) === abp.MSG_CANCEL;
        if (isCancel && context instanceof PendingCancel) this.machine.expect(context, call);
        // A cancel of a call that went out in a frame has an entry of its own there.
        return isCancel && record?.key ? this.core.reason : this.core.message;
      },
      sendRequest: (pending) => this.#sendRequest(pending),
      send: (message, record, text) => {
        if (isObject(text)) this.#sendControl(message, text);
        else this.#frames?.add(FrameKind.CANCEL, record.key, text, undefined);
      },
      refuse: (code, context, text) => {
        if (context instanceof Invocation) context.refuse(code);
        else this.post(text, undefined, undefined, this.#via);
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
        for (const record of records) record.fail(this.failure(abp.INTERNAL_ERROR));
        invokeReportingErrors(this.side.onSession, abp.SESSION_LOST, undefined);
      },
    };
  }

  /**
   * @param {number} state `abp_session`
   * @param {unknown} message what changed it, if it was a message
   */
  #sessionChanged(state, message) {
    if (this.#connecting && state !== abp.SESSION_CONNECTING) {
      this.#connecting = false;
      this.machine.wait(-1);
    }
    if (state === abp.SESSION_LOST) this.#lost = true;
    // The delegate may close the transport, and what ends a session is said before that.
    if (state === abp.SESSION_CLOSED) this.#frames?.flush();
    this.#frames =
      state === abp.SESSION_READY && this.has(abp.FRAMES)
        ? new FrameWriter(
            (frame, transfer) => this.post(frame, transfer),
            (entry, transfer, error) => this.#undeliverable(entry, transfer, error),
          )
        : undefined;
    invokeReportingErrors(this.side.onSession, state, message);
  }

  // --- Out -----------------------------------------------------------------------------------------

  /**
   * Posts a message or a frame. Throws if it cannot be cloned.
   * @param {unknown} message
   * @param {Transferable[]} [transfer]
   * @param {import('../transports/transport.js').MessageKind} [kind]
   * @param {Transport} [via]
   */
  post(message, transfer, kind, via = this.transport) {
    this.observer?.message(true, message);
    via.post(message, transfer, kind);
  }

  /**
   * Any message but calls and results. The console says if it cannot be sent.
   * @param {{ type: string, payload?: object }} message
   */
  send(message) {
    const kind = message.type === 'progress' ? 'droppable' : undefined;
    try {
      this.#say({ ...message, timestamp: Date.now() }, kind);
    } catch (error) {
      unsent(error, message.payload);
    }
  }

  /**
   * @param {object} message
   * @param {import('../transports/transport.js').MessageKind} [kind]
   */
  #say(message, kind) {
    if (this.#frames) this.#frames.add(FrameKind.MESSAGE, 0, undefined, message);
    else this.post(message, undefined, kind);
  }

  /**
   * @param {number} arg
   * @param {any} message
   */
  #sendControl(arg, message) {
    if (arg === abp.MSG_INITIALIZE_RESULT) this.side.onHandshake?.(message, this.#via);
    // Not urgent: the handler's signal should fire before time is spent on posting the acknowledgement.
    else if (this.#frames && arg === abp.MSG_CANCEL_RESULT) this.#frames.addLater(message);
    else this.#say(message, arg === abp.MSG_INITIALIZE ? 'greeting' : undefined);
  }

  /** @param {PendingCall} pending */
  #sendRequest(pending) {
    const { handle, name, params, timeout, callId, transfer, window } = pending;
    const input = pending.input !== undefined;
    const progress = pending.progressToken ?? pending.onProgress !== undefined;
    if (this.#frames) {
      const key = (pending.key = callId ?? this.core.number(handle));
      const streams = window[0] > 0 || input;
      if (timeout || progress !== false || streams) {
        const more = [params, timeout, progress, ...(streams ? window : [])];
        if (input) more.push(input);
        this.#frames.add(FrameKind.REQUEST_WITH, key, name, more, transfer);
      } else this.#frames.add(FrameKind.REQUEST, key, name, params, transfer);
      return;
    }
    const { request, write } = this.outgoing;
    const id = callId ?? this.core.idText(handle);
    const payload = write(id, name, params, timeout, progress, window, input);
    const message = { type: request, id, timestamp: Date.now(), payload };
    this.#post(message, transfer, (error) => this.#unsent(pending, error), 'request');
  }

  /**
   * @param {PendingCall} pending
   * @param {unknown} error
   */
  #unsent(pending, error) {
    const response = isErrorObject(error)
      ? { success: false, error: toErrorObject(error) }
      : this.#unsendable(abp.INVALID_PARAMS, 'params', error, pending.params);
    this.machine.sendFailed(pending.handle, response);
  }

  /**
   * Sends the result of a received call.
   * @param {{ request: import('../wire/messages.js').Request, message: unknown }} invocation
   * @param {any} response
   * @param {Transferable[]} [transfer]
   * @returns {void}
   */
  respond({ request, message }, response, transfer) {
    if (this.#frames && !message) {
      const { key } = request;
      const { success, data, metadata } = response;
      if (success === true && this.role === abp.APP && !isMarked(metadata)) {
        this.#frames.add(FrameKind.VALUE, key, metadata.duration, data, transfer);
      } else this.#frames.add(FrameKind.RESPONSE, key, undefined, response, transfer);
      return;
    }
    const answer = {
      type: this.incoming.response,
      id: getOwn(message, 'id'),
      timestamp: Date.now(),
    };
    this.#post({ ...answer, payload: response }, transfer, (error) => {
      if (transfer?.length) this.respond({ request, message }, response);
      else
        this.#post({
          ...answer,
          payload: this.#unsendable(abp.OPERATION_FAILED, 'data', error, response.data),
        });
    });
  }

  /**
   * Sends a message if it can be sent. An answer whose id cannot be cloned is lost: nobody could match it.
   * @param {object} message
   * @param {Transferable[]} [transfer]
   * @param {(error: unknown) => void} [failed]
   * @param {import('../transports/transport.js').MessageKind} [kind]
   */
  #post(message, transfer, failed = unsent, kind = undefined) {
    try {
      this.post(message, transfer, kind);
    } catch (error) {
      failed(error);
    }
  }

  /**
   * @param {number} code
   * @param {'params' | 'data'} what
   * @param {unknown} error
   * @param {unknown} value
   */
  #unsendable(code, what, error, value) {
    const part = uncloneablePart(value, what);
    const why = `${part ? `${part}: ` : ''}${toErrorObject(error).message}`;
    const name = what === 'params' ? 'parameters' : 'result';
    return this.failure(
      code,
      `The ${name} cannot be sent: ${why} (docs/errors.md#what-cannot-be-sent)`,
    );
  }

  /**
   * @param {unknown[]} entry
   * @param {Transferable[] | undefined} transfer
   * @param {unknown} error
   */
  #undeliverable(entry, transfer, error) {
    const [kind, key, , value] = entry;
    switch (kind) {
      case FrameKind.REQUEST:
      case FrameKind.REQUEST_WITH: {
        const pending = /** @type {PendingCall | undefined} */ (
          this.machine.find((record) => 'key' in record && record.key === key)
        );
        if (pending) this.#unsent(pending, error);
        return;
      }
      case FrameKind.CHUNK: {
        const invocation = /** @type {Invocation | undefined} */ (
          this.machine.find((record) => 'request' in record && record.request.key === key)
        );
        return invocation?.chunkFailed(error);
      }
      case FrameKind.VALUE:
      case FrameKind.RESPONSE:
        if (transfer?.length) {
          this.#post(entry, undefined, (again) => this.#undeliverable(entry, undefined, again));
        } else
          this.#post([
            FrameKind.RESPONSE,
            key,
            undefined,
            this.#unsendable(
              abp.OPERATION_FAILED,
              'data',
              error,
              kind === FrameKind.VALUE ? value : getOwn(value, 'data'),
            ),
          ]);
        return;
      default:
        unsent(error, getOwn(value, 'payload') ?? value);
    }
  }
}
