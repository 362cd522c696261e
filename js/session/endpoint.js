/**
 * One side of one connection: gives the core what comes in, and says what the core's actions want said. The machine drives the core;
 * nothing here decides what happens to a call. Messages are read and printed by the core; frames are read and written here.
 */
import * as abp from '../driver/abp-boundary.js';
import {
  AbpError,
  invokeReportingErrors,
  loadPart,
  reasonText,
  reportError,
} from '../common/errors.js';
import { plainOf } from '../common/copy.js';
import { isSmall } from '../common/snapshot.js';
import { endUnread } from '../common/transfer.js';
import { firstOf, getOwn, isObject, milliseconds, parse } from '../common/values.js';
import { AbpCore } from '../driver/abp-core.js';
import { outOfMemory } from '../driver/core.js';
import { Machine, argOf, kindOf } from '../driver/machine.js';
import * as FrameKind from '../wire/frame-kinds.js';
import { FrameWriter, entriesOf, isFrame } from '../wire/frames.js';
import { OUTCOME, failedBy, unstarted } from '../wire/messages.js';
import { callMessage, readOrdinary, responseMessage } from '../wire/ordinary.js';
import { reasonUnsent, warnUnsent } from '../wire/unsent.js';
import { Call } from './call.js';
import { rejectionOf } from './rejection.js';

/** @import { MessageKind, Transport } from '../transports/transport.js' */
/** @typedef {import('../driver/machine.js').Acts<any, any, object | string | undefined, abp.ErrorCode>} Acts */

/**
 * Answers the calls that are received.
 * @typedef {object} Callee
 * @property {(call: Call) => abp.ErrorCode} rejectionFor returns the code with which a call is refused, or `NO_ERROR`
 * @property {(call: Call, code: abp.ErrorCode, error: import('../common/errors.js').ErrorObject) => Promise<void> | void} [explain]
 *   completes the error that refuses it; returns a promise where that has to wait
 * @property {(call: Call, context: any) => unknown} [run] app: runs the handler
 * @property {(name: unknown) => boolean} [repeatable] whether a capability may run twice
 * @property {boolean} [foreign] whether it passes calls on to an app that is not ours, whose word decides what becomes of a cancel
 */

/** What streams need. @typedef {typeof import('./streams.js')} Streams */

/**
 * The callbacks of an endpoint to the client or connection that it belongs to.
 * @typedef {object} EndpointDelegate
 * @property {import('../transports/transport.js').Prepare} [prepare] app: makes results and chunks fit for the transport
 * @property {(state: abp.Session, message: unknown) => void} onSession
 * @property {(message: unknown) => void} [onMessage] agent: a message has come, which is not read yet
 * @property {(message: unknown, via: Transport) => void} [onHandshake] app: sends the answer to
 *   `initialize`, and the offer of a port with it
 * @property {(call: Call) => Promise<void>} start runs the handler of a call, and gives its response to `finish`
 * @property {(call: Call, response: any, outcome: abp.Outcome, fate: abp.Fate) => void} [complete] app: completes a response
 * @property {(request: unknown, parent: abp.Handle, about: string) => Promise<unknown>} [elicit] app: asks the agent a question on
 *   behalf of a call; `about` is the callId of the agent's call
 * @property {(info: object, token: unknown, handle: abp.Handle) => void} [sendProgress] app: tells the agent how far a call has come
 * @property {(call: Call) => AsyncIterableIterator<unknown>} [input] app: what the agent streams to the handler of a call
 * @property {(call: Call, run: () => unknown) => unknown} [recall] app: answers what asks for the outcome of a call, or runs a
 *   call that has a key, unless it has run
 * @property {(callId: string, said: { report?: unknown, progress?: object }) => void} [keep] app: keeps what a handler said of its
 *   work, for those who ask later
 * @property {(name: string) => boolean} [repeatable] agent: whether a capability of the app may run twice
 * @property {(response: any, call: Call) => void} [later] agent: a call did not succeed, and more may become known of it
 * @property {(info: unknown, call: Call | 0) => void} [onReport] agent: progress has come, of a call made here or of none
 * @property {(event: string, data: unknown) => void} [onNotification]
 * @property {() => void} [onEnd] called when nothing is sent or received any more
 */

/** The core's bits of the features that a transport may carry. */
const FEATURES = {
  port: abp.PORT,
  // Some pages have JSON make dates of texts.
  frames: abp.FRAMES | (parse('"1970-01-01T00:00:00.000Z"').trim ? abp.TEXT : 0),
  liveness: abp.LIVENESS,
  streams: abp.STREAMS,
};

/**
 * The features beyond the published protocol that a transport can carry.
 * @param {Transport} transport
 * @returns {number} bits of `abp_feature`
 */
export const carried = ({ carries = ['frames', 'liveness', 'streams'] }) =>
  carries.reduce((bits, name) => bits | FEATURES[name], 0);

/** A key of a frame as the core takes it. @param {unknown} key @returns {abp.CallNumber} 0 if it is not a call's number */
const numberOf = (key) =>
  typeof key === 'number' && key >>> 0 === key ? /** @type {abp.CallNumber} */ (key) : 0;

/** What a peer says of a stream; the core takes -1 for what is no number. @param {unknown} value */
const countOf = (value) => (typeof value === 'number' ? value : -1);

export class Endpoint {
  /** The transport on which the last message arrived: its answer goes back there. @type {Transport} */
  #via;
  /** Writes frames, where both sides agreed on them. @type {FrameWriter | undefined} */
  frames;
  /** Why the other side is gone, if that is known. @type {unknown} */
  cause;
  /** Why this side ends the session. @type {string | undefined} */
  closing;
  /** Is told of each cancel that comes just after a long call has ended. @type {(() => void) | undefined} */
  late;
  /** What streams need, once one was begun. @type {Streams | undefined} */
  streams;
  /** The ports that came with the current message. @type {readonly MessagePort[]} */
  ports = [];

  /**
   * @param {object} options
   * @param {abp.Role} options.role
   * @param {number} options.features
   * @param {import('../driver/abp-core.js').Limits} [options.limits]
   * @param {boolean} [options.restart]
   * @param {Transport} options.transport
   * @param {Callee} options.callee
   * @param {EndpointDelegate} [options.side] itself, where its class has the callbacks
   * @param {import('./observers.js').Observers} [options.observers]
   */
  constructor({ role, features, limits, restart, transport, callee, side, observers }) {
    this.role = role;
    this.limits = limits;
    this.callee = callee;
    /** @type {EndpointDelegate} */
    this.side = side ?? /** @type {any} */ (this);
    const config = {
      ...limits,
      role,
      features,
      restart: Number(restart),
      foreign: Number(callee.foreign),
    };
    this.core = new AbpCore(config, observers?.run);
    this.machine = new Machine(this.core, /** @type {Acts} */ (this));
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

  /** Where the session stands. */
  get state() {
    const { x, pointer } = this.core;
    return x.state(pointer);
  }

  /** Whether there is a session. */
  get ready() {
    return this.state === abp.SESSION_READY;
  }

  /** Whether both sides agreed on a feature. @param {abp.Feature} feature */
  has(feature) {
    const { x, pointer } = this.core;
    return (x.features(pointer) & feature) !== 0;
  }

  /** Loads what streams need. @returns {Promise<Streams>} rejects with an AbpError */
  async loadStreams() {
    return (this.streams ??= await loadPart(import('./streams.js')));
  }

  /**
   * Streams what a handler has returned.
   * @param {Call} call
   * @param {any} source
   * @returns {Promise<unknown>} the data of the response; rejects if what streams need does not load
   */
  async sendStream(call, source) {
    try {
      return (await this.loadStreams()).stream(call, source);
    } catch (error) {
      // Its handler has run.
      endUnread(source);
      throw Object.assign(/** @type {AbpError} */ (error), { retryable: false });
    }
  }

  /**
   * Begins a stream. The first one is a promise of it, until what it needs is loaded.
   * @template {import('./call-stream.js').CallStream} S
   * @param {(streams: Streams) => S} begin
   * @param {(loading: Promise<Streams>) => Promise<Streams>} wait may end the wait before
   * @param {(error: unknown) => any} [unbegun] its response if it does not begin, by which its reader fails
   * @param {AbortSignal} [signal] its caller's
   * @returns {S}
   */
  stream(begin, wait, unbegun, signal) {
    if (this.streams) return begin(this.streams);
    const stream = wait(this.loadStreams()).then(begin);
    const response = stream.then((begun) => begun.response, unbegun ?? unstarted);
    // What is wrong with the call is told to those who await this.
    response.catch(() => {});
    return /** @type {any} */ ({
      response,
      next: () =>
        stream.then(
          (begun) => begun.next(),
          async (error) => {
            throw unbegun ? rejectionOf(await response, signal) : error;
          },
        ),
      return: (/** @type {unknown} */ value) =>
        stream.then(
          (begun) => begun.return(value),
          () => ({ done: true, value }),
        ),
      [Symbol.asyncIterator]() {
        return this;
      },
    });
  }

  // --- In ------------------------------------------------------------------------------------------

  /** @param {unknown} data @param {readonly MessagePort[]} [ports] @param {Transport} [via] */
  receive(data, ports = [], via = this.transport) {
    if (this.machine.over) return;
    this.machine.observe?.('message', false, data);
    this.#via = via;
    this.ports = ports;
    this.machine.tick();
    try {
      if (Array.isArray(data) || typeof data === 'string') this.#frame(data);
      else this.#message(data);
    } catch (error) {
      // A getter or a proxy threw: only transports within one thread hand such things over.
      reportError(error);
      this.#message(undefined);
    }
    this.machine.observe?.('read');
  }

  /** @param {unknown} message @returns {unknown} */
  #message(message) {
    this.side.onMessage?.(message);
    // The core need not read those of an ordinary call.
    const read = readOrdinary(this.role, message);
    if (!read) return this.#read(message);
    const { id, payload, callId, name } = read;
    if (callId !== undefined) {
      const timeout = milliseconds(read.timeout);
      return this.#called(new Call(this, name, getOwn(payload, 'params'), { id, timeout }), callId);
    }
    const { core, machine } = this;
    return machine.feed((x, pointer) => x.value_received(pointer, core.writeId(id), 0), {
      payload,
    });
  }

  /** @param {unknown} message that the core reads */
  #read(message) {
    const { core, machine } = this;
    const payload = getOwn(message, 'payload');
    const context = { message, payload };
    const receive = () =>
      machine.feed((x, pointer) => x.receive(pointer, core.writeText(message, payload)), context);
    if (receive() !== abp.FOLLOWS) return;
    const { name, value, ...asked } = core.received(payload);
    /** @type {any} */
    const options = { ...asked, id: getOwn(message, 'id') };
    const call = new Call(this, name, value, options);
    const take = () =>
      this.#take(call, (x, pointer, flags, fault) => x.take(pointer, flags, fault));
    // What says whether it is refused may have used the core meanwhile.
    if (take() === abp.E_STATE && receive() === abp.FOLLOWS) take();
  }

  /**
   * Gives the core a call that has come.
   * @param {Call} call
   * @param {(x: AbpCore['x'], pointer: AbpCore['pointer'], flags: number, fault: abp.ErrorCode) => abp.Packed} input
   */
  #take(call, input) {
    const { machine, callee } = this;
    const { name } = call;
    const asks = name === OUTCOME && this.side.recall && this.has(abp.OUTCOMES);
    // In an app, params that are absent are none.
    if (this.role === abp.APP) call.params ??= {};
    const fault = asks
      ? abp.NO_ERROR
      : typeof name === 'string'
        ? callee.rejectionFor(call)
        : abp.INVALID_PARAMS;
    return machine.feed((x, at) => input(x, at, asks ? abp.ASIDE : 0, fault), call);
  }

  /** @param {unknown} data */
  #frame(data) {
    const frame = this.frames && entriesOf(data);
    if (!frame) return isFrame(data) ? this.#unread() : this.#message(undefined);
    for (let i = 0; i < frame.length && !this.machine.over; i += 4)
      this.#entry(frame[i], frame[i + 1], frame[i + 2], frame[i + 3]);
  }

  /** A frame has come that cannot be read: the session ends with it, as what it held is lost. */
  #unread() {
    const payload = this.refusal(abp.PARSE_ERROR);
    this.machine.feed((x, pointer) => x.unread(pointer), { payload });
  }

  /**
   * Reads an entry of a frame. js/wire/frame-kinds.js says what the entries are.
   * @param {unknown} kind
   * @param {unknown} key
   * @param {unknown} a
   * @param {unknown} b
   * @returns {unknown}
   */
  #entry(kind, key, a, b) {
    const { core, machine } = this;
    let size = 0;
    /** What is settled or reported. @type {object | undefined} */
    let context;
    switch (kind) {
      case FrameKind.REQUEST:
        return this.#called(new Call(this, a, b, undefined, key), key);
      case FrameKind.REQUEST_WITH: {
        const [params, timeout, wants, chunks, bytes, last, idempotencyKey] = firstOf(b, 7);
        const asked = {
          timeout: milliseconds(timeout),
          progress: wants === false ? undefined : (wants ?? undefined),
          input: this.role === abp.AGENT ? !!chunks : last === true,
          about: last,
          idempotencyKey,
        };
        return this.#called(new Call(this, a, params, asked, key), key, chunks, bytes);
      }
      case FrameKind.VALUE:
        context = { payload: { success: true, data: b, metadata: { duration: a } } };
        break;
      case FrameKind.RESPONSE:
      case FrameKind.PROGRESS:
        context = { payload: b };
        break;
      case FrameKind.CHUNK:
        // A window has no more. Where no stream was begun no call takes it.
        size = Math.min(this.streams?.sizeOf(b) ?? 0, 2 ** 32 - 1);
        context = { payload: { chunk: b }, isChunk: true };
        break;
      case FrameKind.CANCEL:
        this.late?.();
        break;
      case FrameKind.CREDIT:
        break;
      case FrameKind.TEXT:
        return this.#frame(String(b));
      default:
        return this.#message(kind === FrameKind.MESSAGE ? b : undefined);
    }
    const number = numberOf(key);
    return machine.feed((x, pointer) => {
      const length = core.writeId(key);
      switch (kind) {
        case FrameKind.VALUE:
          return x.value_received(pointer, length, number);
        case FrameKind.RESPONSE:
          return x.response_received(pointer, length, number, core.writeText(Object(b), b, length));
        case FrameKind.PROGRESS:
          return x.progress_received(pointer, length, number);
        case FrameKind.CHUNK:
          return x.chunk_received(pointer, length, number, countOf(a), size);
        case FrameKind.CREDIT:
          return x.credit_received(pointer, length, number, countOf(a), countOf(b));
      }
      return x.cancel_received(pointer, length, number, core.writeReason(a, length));
    }, context);
  }

  /**
   * A call has come, whose parts are known.
   * @param {Call} call
   * @param {unknown} key its number, or its id
   * @param {unknown} [chunks] the window of a stream
   * @param {unknown} [bytes]
   */
  #called(call, key, chunks, bytes) {
    const { core } = this;
    const { timeout = 0, progress, about } = call.options;
    const wants = progress === undefined ? 0 : abp.WANTS_PROGRESS;
    return this.#take(call, (x, pointer, flags, fault) => {
      const length = core.writeId(key);
      return x.call_received(
        pointer,
        length,
        numberOf(key),
        timeout,
        flags | wants,
        countOf(chunks),
        countOf(bytes),
        fault,
        core.writeReason(about, length),
      );
    });
  }

  // --- Out -----------------------------------------------------------------------------------------

  /**
   * Gives the core an input that begins a call or a cancel. If the core rejects it, the record fails.
   * @param {Call | import('./pending-cancel.js').PendingCancel} record
   * @param {abp.Handle} parent
   * @param {(x: AbpCore['x'], pointer: AbpCore['pointer']) => abp.Packed | abp.Status} input
   * @param {abp.Kind} [kind] as for `refusal`
   */
  begin(record, parent, input, kind) {
    this.machine.observe?.('begin', record, parent);
    const status = this.machine.feed(input, record);
    if (status >= 0) return;
    const { x, pointer } = this.core;
    const code = x.status_error(pointer, status, Number(parent !== 0));
    record.fail(this.refusal(code, undefined, kind));
  }

  /**
   * The response of a call that never began.
   * @param {abp.ErrorCode} code
   * @param {string} [reason] if the code's own words do not do
   * @param {abp.Kind} [kind] `REQUEST` if it was to be made here, `REFUSE` if it was received
   */
  refusal(code, reason = undefined, kind = abp.REQUEST) {
    if (code === abp.DISCONNECTED_ERROR) reason ??= reasonText(this.cause);
    return this.core.response(kind, code, abp.FATE_NONE, { reason });
  }

  /** Sends what was collected. */
  flush() {
    this.frames?.flush();
  }

  /**
   * Posts a message or a frame. Throws if it cannot be cloned, not even by reading what is plain in it.
   * @param {unknown} message
   * @param {Transferable[]} [transfer]
   * @param {MessageKind} [kind]
   * @param {Transport} [via]
   */
  post(message, transfer, kind, via = this.transport) {
    this.machine.observe?.('message', true, message);
    try {
      via.post(message, transfer, kind);
    } catch {
      via.post(plainOf(message), transfer, kind);
    }
  }

  /**
   * Sends a message that the core has printed.
   * @param {any} message undefined if there is nothing to be said any more
   * @param {object} [how]
   * @param {Transferable[]} [how.transfer]
   * @param {MessageKind} [how.kind]
   * @param {(error: unknown) => unknown} [how.failed] sees to it that it was not sent: such a message goes in no frame
   */
  say(message, { transfer, kind, failed } = {}) {
    if (!message) return;
    if (this.frames && !failed) return this.frames.add(FrameKind.MESSAGE, 0, undefined, message);
    try {
      isSmall(message.payload); // It throws where it is too deep.
      this.post(message, transfer, kind);
    } catch (error) {
      if (failed) failed(error);
      else warnUnsent(error, message.payload);
    }
  }

  /** @param {Call} call @param {abp.Handle} handle @param {[number, number]} [window] */
  sendRequest(call, handle, window) {
    const { name, params, options } = call;
    const { timeout, onProgress, progressToken, callId, transfer, idempotencyKey, about, input } =
      options;
    const frames = this.frames;
    const ms = milliseconds(timeout);
    const progress = progressToken ?? (onProgress ? true : undefined);
    const isPlain =
      progress === undefined && !(ms || window?.[0] || about || input || idempotencyKey);
    if (!frames) {
      const asked = { ...options, name, progress: progressToken, input: !!input, value: params };
      const message =
        isPlain && this.role === abp.AGENT
          ? callMessage(callId ?? this.core.idText(handle), name, params)
          : this.core.print(asked, abp.REQUEST, handle, window);
      const failed = (/** @type {unknown} */ error) => call.unsent(error);
      if (!message) return failed(outOfMemory());
      return this.say(message, { transfer, kind: 'request', failed });
    }
    const key = (call.key = callId ?? this.core.number(handle));
    if (isPlain) return frames.add(FrameKind.REQUEST, key, name, params, transfer);
    const more = [params, ms, progress ?? false];
    more.push(...(window ?? [0, 0]), about ?? !!input, idempotencyKey);
    while (more.length > 3 && !more.at(-1)) more.pop();
    return frames.add(FrameKind.REQUEST_WITH, key, name, more, transfer);
  }

  /**
   * Answers a call that was received.
   * @param {Call} call
   * @param {any} response
   * @param {Transferable[]} [transfer]
   * @returns {void}
   */
  respond(call, response, transfer) {
    const { key, options } = call;
    const frames = this.frames;
    if (frames && key !== undefined) {
      const { success, data, metadata } = response;
      // Of most successes nothing is to be said but how long they took.
      if (success && metadata && Object.keys(metadata).length === 1)
        return frames.add(FrameKind.VALUE, key, metadata.duration, data, transfer);
      return frames.add(FrameKind.RESPONSE, key, undefined, response, transfer);
    }
    const message = responseMessage(this.role, options.id, response);
    const failed = (/** @type {unknown} */ error) => {
      // Once more, without what could not be moved.
      if (transfer?.length) return this.respond(call, response);
      return this.#unanswered(response.data, error, (payload) => ({ ...message, payload }));
    };
    return this.say(message, { transfer, failed });
  }

  /**
   * An answer could not be sent: another one says why. One whose id or key cannot be cloned is lost: nobody could match it.
   * @param {unknown} data
   * @param {unknown} error
   * @param {(response: object) => unknown} wrap makes it a message
   */
  async #unanswered(data, error, wrap) {
    const { frames } = this;
    const response = failedBy(await reasonUnsent('result', 'data', data, error));
    // In a session that began meanwhile, its key is that of another call.
    if (frames !== this.frames) return;
    try {
      this.post(wrap(response));
    } catch (failure) {
      warnUnsent(failure, response);
    }
  }

  /** @param {unknown[]} entry @param {Transferable[] | undefined} transfer @param {unknown} error @returns {unknown} */
  #undeliverable([kind, key, a, value], transfer, error) {
    const isMade = kind === FrameKind.REQUEST || kind === FrameKind.REQUEST_WITH;
    // Calls of the two sides may have the same key.
    const call = /** @type {Call | undefined} */ (
      this.machine.find((record) => record.key === key && isMade === !!record.resolve)
    );
    switch (kind) {
      case FrameKind.REQUEST:
      case FrameKind.REQUEST_WITH:
        return call?.unsent(error, kind === FrameKind.REQUEST ? value : getOwn(value, '0'));
      case FrameKind.CHUNK:
        return call?.seldom.outflow?.fail(error);
      case FrameKind.VALUE:
      case FrameKind.RESPONSE: {
        // Once more, without what could not be moved.
        if (transfer?.length) return this.frames?.add(kind, key, a, value);
        const data = kind === FrameKind.VALUE ? value : getOwn(value, 'data');
        const wrap = (/** @type {object} */ said) => [FrameKind.RESPONSE, key, undefined, said];
        return this.#unanswered(data, error, wrap);
      }
    }
    return warnUnsent(error, getOwn(value, 'payload') ?? value);
  }

  // --- The session ---------------------------------------------------------------------------------

  close() {
    this.machine.feed((x, pointer) => x.close(pointer));
    this.dispose();
  }

  /** The other side has gone away. @param {unknown} [cause] */
  lost(cause) {
    if (this.machine.over) return;
    this.cause = cause;
    this.machine.feed((x, pointer) => x.lost(pointer));
    this.dispose();
  }

  /** The other side may be another one than before: it is asked. */
  suspect() {
    this.machine.advance();
    this.machine.feed((x, pointer) => x.suspect(pointer));
  }

  /** This document is going away, or is frozen and may come back. @param {boolean} persisted */
  leave(persisted) {
    const frames = this.frames;
    this.machine.feed((x, pointer) => x.leave(pointer, Number(persisted)));
    frames?.flush();
  }

  /** Closes the transport and frees the core's memory. */
  dispose() {
    if (this.machine.over) return;
    this.machine.end();
    invokeReportingErrors(() => this.transport.close());
    this.side.onEnd?.();
  }

  /** Counts of what is pending and what was dropped, for debugging. */
  get counters() {
    return this.machine.counters;
  }

  // --- What the core's actions do --------------------------------------------------------------------

  /** @type {Acts['read']} */
  read(action, call, record, context) {
    const kind = kindOf(action);
    // Such a call is refused in the form in which it came.
    if (kind === abp.REFUSE && context instanceof Call) return undefined;
    if (kind === abp.NOTIFY) return this.core.received(getOwn(context, 'payload'));
    const isCancel = kind === abp.SEND && argOf(action) === abp.MSG_CANCEL;
    // A cancel by an id is a request of its own: its record is the context.
    if (isCancel && getOwn(context, 'callId') !== undefined)
      this.machine.expect(/** @type {any} */ (context), call);
    // A cancel of a call that went out in a frame has an entry of its own there.
    return isCancel && record?.key ? this.core.reason : this.core.message;
  }

  /** @type {Acts['send']} */
  send(arg, record, text) {
    const { frames } = this;
    if (arg === abp.MSG_CANCEL_RESULT) this.late?.();
    if (!isObject(text)) frames?.add(FrameKind.CANCEL, record.key, text, undefined);
    else if (arg === abp.MSG_INITIALIZE_RESULT) this.side.onHandshake?.(text, this.#via);
    // Not urgent: the handler's signal should fire before time is spent on posting the acknowledgement.
    else if (arg === abp.MSG_CANCEL_RESULT && frames) frames.addLater(text);
    else this.say(text, { kind: arg === abp.MSG_INITIALIZE ? 'greeting' : undefined });
  }

  /** @type {Acts['refuse']} */
  refuse(code, context, text) {
    if (text) this.post(text, undefined, undefined, this.#via);
    else context.refuse(code);
  }

  /** @type {Acts['report']} */
  report(record, { payload }, call) {
    this.side.onReport?.(payload, call && record);
  }

  /** @param {{ name: string, value: unknown }} told */
  notified({ name, value }) {
    invokeReportingErrors(this.side.onNotification, name, value);
  }

  /** @param {abp.Session} state @param {any} context */
  session(state, context) {
    const error = state === abp.SESSION_LOST && getOwn(context?.payload, 'error');
    if (error) this.cause ??= AbpError.from(/** @type {any} */ (error));
    // The delegate may close the transport, and what ends a session is said before that.
    if (state === abp.SESSION_CLOSED) this.flush();
    this.frames =
      state === abp.SESSION_READY && this.has(abp.FRAMES)
        ? new FrameWriter(
            (frame, transfer) => this.post(frame, transfer),
            (entry, transfer, failure) => this.#undeliverable(entry, transfer, failure),
            this.has(abp.TEXT),
          )
        : undefined;
    invokeReportingErrors(this.side.onSession, state, context?.message);
  }

  /** @type {Acts['failed']} */
  failed(records) {
    this.dispose();
    for (const record of records)
      record.fail(failedBy({ code: 'INTERNAL_ERROR', message: 'The bridge failed' }, 'unknown'));
    invokeReportingErrors(this.side.onSession, abp.SESSION_LOST, undefined);
  }
}
