/**
 * One side of one connection: gives the core what comes in, and says what the core's actions want said. The machine drives the core;
 * nothing here decides what happens to a call. Messages are read and printed by the core; frames are read and written here.
 */
import * as abp from '../driver/abp-boundary.js';
import {
  AbpError,
  invokeReportingErrors,
  reasonText,
  reportError,
  toErrorObject,
} from '../common/errors.js';
import { snapshot } from '../common/snapshot.js';
import { transferOf } from '../common/transfer.js';
import { sizeOf } from '../common/value-size.js';
import { MAX_TIMER, getOwn, isObject, milliseconds } from '../common/values.js';
import { AbpCore } from '../driver/abp-core.js';
import { Machine, argOf, kindOf } from '../driver/machine.js';
import * as FrameKind from '../wire/frame-kinds.js';
import { FrameWriter, MAX_FRAME_ENTRIES } from '../wire/frames.js';
import { OUTCOME, progressInfo } from '../wire/messages.js';
import { callMessage, readCall, readData, responseMessage } from '../wire/ordinary.js';
import { reasonUnsent, warnUnsent } from '../wire/unsent.js';
import { Call } from './call.js';

/** @import { Transport } from '../transports/transport.js' */
/** @import { MessageKind } from '../wire/messages.js' */

/**
 * Answers the calls that are received.
 * @typedef {object} Callee
 * @property {(call: Call) => abp.ErrorCode} rejectionFor returns the code with which a call is refused, or `NO_ERROR`
 * @property {(call: Call, code: abp.ErrorCode, error: import('../common/errors.js').ErrorObject) => Promise<void> | void} [explain]
 *   completes the error that refuses it; returns a promise where that has to wait
 * @property {(call: Call, context: any) => unknown} run runs the handler
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
 * @property {(call: Call) => AsyncIterableIterator<unknown>} [input] app: what the agent streams to the handler of a call
 * @property {(call: Call, run: () => unknown) => unknown} [recall] app: answers what asks for the outcome of a call, or runs a
 *   call that has a key, unless it has run
 * @property {(callId: string, said: { report?: unknown, progress?: object }) => void} [keep] app: keeps what a handler said of its
 *   work, for those who ask later
 * @property {(name: string) => boolean} [repeatable] agent: whether a capability of the app may run twice
 * @property {(response: any, call: Call) => void} [later] agent: a call did not succeed, and more may become known of it
 * @property {(info: import('../wire/messages.js').ProgressInfo) => void} [onProgress] called for progress that belongs to no call made here
 * @property {(event: string, data: unknown) => void} [onNotification]
 * @property {() => void} [onEnd] called when nothing is sent or received any more
 */

/** Microtasks for which the chunks of a stream wait for the next: a generator that awaits nothing needs fewer to make it. */
const MAX_TURNS_BETWEEN_CHUNKS = 24;
/** Chunks that come within this time of those that were sent, in ms, wait for others, up to so many bytes. */
const MAX_CHUNK_DELAY = 1;
const MAX_CHUNK_BYTES = 2 ** 16;

/** The core's bits of the features that a transport may carry. */
const FEATURES = {
  port: abp.PORT,
  frames: abp.FRAMES,
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

/**
 * A key of a frame as the core takes it.
 * @param {unknown} key
 * @returns {abp.CallNumber} 0 if it is not a call's number
 */
const numberOf = (key) =>
  typeof key === 'number' && Number.isInteger(key) && key > 0 && key < 2 ** 32
    ? /** @type {abp.CallNumber} */ (key)
    : 0;

/** What a peer says of a stream; the core takes -1 for what is no number. @param {unknown} value */
const countOf = (value) => (typeof value === 'number' ? value : -1);

/** Of a success: what `metadata` may say in a frame's entry of its own. @param {any} metadata */
const isPlain = (metadata) => Object.keys(metadata).length === 1;

export class Endpoint {
  /** The transport on which the last message arrived: its answer goes back there. @type {Transport} */
  #via;
  /** Writes frames, where both sides agreed on them. @type {FrameWriter | undefined} */
  #frames = undefined;
  /** When chunks were sent, and the bytes of those that were collected since. */
  #chunks = { sentAt: 0, bytes: 0 };
  /** Whether the handshake keeps the process alive. */
  #isWaiting = false;
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

  /**
   * @param {object} options
   * @param {abp.Role} options.role
   * @param {number} options.features
   * @param {import('../driver/abp-core.js').Limits} [options.limits]
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
    const config = {
      ...limits,
      role,
      features,
      restart: Number(restart),
      foreign: Number(callee.foreign),
    };
    this.core = new AbpCore(config, observers?.run);
    this.machine = new Machine(this.core, this.#acts());
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

  // --- In ------------------------------------------------------------------------------------------

  /**
   * @param {unknown} data
   * @param {readonly MessagePort[]} [ports]
   * @param {Transport} [via]
   */
  receive(data, ports = [], via = this.transport) {
    if (this.machine.over) return;
    this.machine.observe?.('message', false, data);
    this.#via = via;
    this.ports = ports;
    this.now = this.machine.tick();
    try {
      if (Array.isArray(data)) this.#frame(data);
      else this.#message(data);
    } catch (error) {
      // A getter or a proxy threw: only transports within one thread hand such things over.
      reportError(error);
      this.#message(undefined);
    }
    this.now = 0;
    this.machine.observe?.('read');
  }

  /** @param {unknown} message */
  #message(message) {
    if (this.state === abp.SESSION_CONNECTING) this.heard = message;
    if (!this.#ordinary(message)) this.#read(message);
  }

  /** @param {unknown} message @returns {boolean} whether it is one of an ordinary call, which the core need not read */
  #ordinary(message) {
    const { core, machine, role } = this;
    const asked = role === abp.APP ? readCall(message) : undefined;
    if (asked) {
      const { id, callId, name, params, timeout } = asked;
      const ms = milliseconds(timeout);
      const call = new Call(this, name, params, { id, timeout: ms });
      this.#take(call, (x, pointer, flags, fault) =>
        x.call_received(pointer, core.writeId(callId), 0, ms, flags, 0, 0, fault, 0),
      );
      return true;
    }
    const data = readData(role, message);
    if (!data) return false;
    machine.feed((x, pointer) => x.value_received(pointer, core.writeId(data.id), 0), {
      payload: data.response,
    });
    return true;
  }

  /** @param {unknown} message that the core reads */
  #read(message) {
    const { core, machine } = this;
    const payload = getOwn(message, 'payload');
    const context = { message, payload };
    const receive = () => {
      // What cannot be read throws here, and not in the core's turn.
      const length = core.writeText(message, payload);
      return machine.feed((x, pointer) => x.receive(pointer, length), context);
    };
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

  /** @param {unknown[]} frame */
  #frame(frame) {
    const isFrame = frame.length % 4 === 0 && frame.length <= MAX_FRAME_ENTRIES * 4;
    if (!this.#frames || !isFrame) return this.#message(undefined);
    for (let i = 0; i < frame.length && !this.machine.over; i += 4)
      this.#entry(frame[i], frame[i + 1], frame[i + 2], frame[i + 3]);
  }

  /**
   * Reads an entry of a frame. js/wire/frame-kinds.js says what the entries are.
   * @param {unknown} kind
   * @param {unknown} key
   * @param {unknown} a
   * @param {unknown} b
   */
  #entry(kind, key, a, b) {
    const { core, machine } = this;
    switch (kind) {
      case FrameKind.REQUEST:
        return this.#request(key, a, b, undefined);
      case FrameKind.REQUEST_WITH:
        return this.#request(key, a, getOwn(b, '0'), b);
      case FrameKind.VALUE:
        return void machine.feed(
          (x, pointer) => x.value_received(pointer, core.writeId(key), numberOf(key)),
          { payload: { success: true, data: b, metadata: { duration: a } } },
        );
      case FrameKind.RESPONSE: {
        const length = core.writeText(Object(b), b, core.writeId(key));
        return void machine.feed(
          (x, pointer) => x.response_received(pointer, core.writeId(key), numberOf(key), length),
          { payload: b },
        );
      }
      case FrameKind.PROGRESS:
        return void machine.feed(
          (x, pointer) => x.progress_received(pointer, core.writeId(key), numberOf(key)),
          { payload: b },
        );
      case FrameKind.CANCEL:
        return void machine.feed((x, pointer) => {
          const length = core.writeId(key);
          return x.cancel_received(pointer, length, numberOf(key), core.writeReason(a, length));
        });
      case FrameKind.CHUNK: {
        const seen = Math.min(sizeOf(b), 2 ** 32 - 1); // a window has no more
        return void machine.feed(
          (x, pointer) =>
            x.chunk_received(pointer, core.writeId(key), numberOf(key), countOf(a), seen),
          { payload: { chunk: b }, isChunk: true },
        );
      }
      case FrameKind.CREDIT:
        return void machine.feed((x, pointer) =>
          x.credit_received(pointer, core.writeId(key), numberOf(key), countOf(a), countOf(b)),
        );
      case FrameKind.MESSAGE:
        return this.#message(b);
    }
    return this.#message(undefined);
  }

  /**
   * @param {unknown} key
   * @param {unknown} name
   * @param {unknown} params
   * @param {unknown} more
   */
  #request(key, name, params, more) {
    const { core } = this;
    const wants = getOwn(more, '2');
    const last = getOwn(more, '5');
    const timeout = milliseconds(getOwn(more, '1'));
    const isQuestion = this.role === abp.AGENT;
    /** @type {any} */
    const asked = more && {
      timeout,
      progress: (wants ?? false) === false ? undefined : wants,
      input: isQuestion ? !!getOwn(more, '3') : last === true,
      about: last,
      idempotencyKey: getOwn(more, '6'),
    };
    const call = new Call(this, name, params, asked);
    call.key = key;
    this.#take(call, (x, pointer, flags, fault) => {
      const length = core.writeId(key);
      const about = core.writeReason(last, length);
      const reports = call.options.progress === undefined ? 0 : abp.WANTS_PROGRESS;
      return x.call_received(
        pointer,
        length,
        numberOf(key),
        timeout,
        flags | reports,
        countOf(getOwn(more, '3')),
        countOf(getOwn(more, '4')),
        fault,
        about,
      );
    });
  }

  // --- Out -----------------------------------------------------------------------------------------

  /**
   * Gives the core an input that begins a call or a cancel. If the core rejects it, the record fails.
   * @param {Call | import('./pending-cancel.js').PendingCancel} record
   * @param {abp.Handle} parent
   * @param {(x: AbpCore['x'], pointer: AbpCore['pointer']) => abp.Packed | abp.Status} input
   */
  begin(record, parent, input) {
    this.machine.observe?.('begin', record, parent);
    const status = this.machine.feed(input, record);
    if (status >= 0) return;
    const { x, pointer } = this.core;
    const code = x.status_error(pointer, status, Number(parent !== 0));
    const isLocal = record instanceof Call && record.isLocal;
    record.fail(this.refusal(code, undefined, isLocal ? abp.REFUSE : abp.REQUEST));
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

  /** Why the other side is gone, as it says itself where it knows no session any more. @param {unknown} response */
  whyLost(response) {
    return reasonText(this.cause ?? getOwn(response, 'error'));
  }

  /** @param {string} what @param {string} path @param {unknown} value @param {unknown} error */
  explainUnsent(what, path, value, error) {
    return reasonUnsent(what, path, value, error);
  }

  /** Sends what was collected. */
  flush() {
    this.#frames?.flush();
  }

  /**
   * Posts a message or a frame. Throws if it cannot be cloned.
   * @param {unknown} message
   * @param {Transferable[]} [transfer]
   * @param {MessageKind} [kind]
   * @param {Transport} [via]
   */
  post(message, transfer, kind, via = this.transport) {
    this.machine.observe?.('message', true, message);
    via.post(message, transfer, kind);
  }

  /**
   * Sends a message that the core has printed.
   * @param {any} message undefined if there is nothing to be said any more
   * @param {object} [how]
   * @param {Transferable[]} [how.transfer]
   * @param {MessageKind} [how.kind]
   * @param {boolean} [how.alone] in no frame
   * @param {(error: unknown) => unknown} [how.failed]
   */
  send(
    message,
    { transfer, kind, alone, failed = (error) => warnUnsent(error, message.payload) } = {},
  ) {
    if (!message) return;
    if (this.#frames && !alone) return this.#frames.add(FrameKind.MESSAGE, 0, undefined, message);
    try {
      snapshot(message.payload);
      this.post(message, transfer, kind);
    } catch (error) {
      failed(error);
    }
  }

  /** @param {Call} call */
  #sendRequest(call) {
    const { name, params, options, window } = call;
    const { timeout, onProgress, progressToken, callId, transfer, idempotencyKey, about, input } =
      options;
    const progress = progressToken ?? (onProgress ? true : undefined);
    if (!this.#frames) {
      const isOrdinary =
        this.role === abp.AGENT &&
        !window &&
        progress === undefined &&
        !(timeout || idempotencyKey || about || input);
      const message = isOrdinary
        ? callMessage(callId ?? this.core.idText(call.handle), /** @type {string} */ (name), params)
        : this.#printRequest(call);
      const failed = (/** @type {unknown} */ error) => call.unsent(error);
      return this.send(message, { transfer, kind: 'request', failed });
    }
    const key = (call.key = callId ?? this.core.number(call.handle));
    const ms = milliseconds(timeout);
    const last = about ?? !!input;
    const isNamed = last || idempotencyKey;
    const isMore = window?.[0] || isNamed;
    if (!ms && progress === undefined && !isMore)
      return this.#frames.add(FrameKind.REQUEST, key, name, params, transfer);
    const more = [params, ms, progress ?? false];
    if (isMore) more.push(...(window ?? [0, 0]));
    if (isNamed) more.push(last);
    if (idempotencyKey) more.push(idempotencyKey);
    return this.#frames.add(FrameKind.REQUEST_WITH, key, name, more, transfer);
  }

  /** @param {Call} call */
  #printRequest({ handle, name, params, options, window = [0, 0] }) {
    const { progressToken: progress, idempotencyKey, about, input } = options;
    const said = { name, progress, idempotencyKey, about, input: !!input, value: params };
    return this.core.print(/** @type {any} */ (said), ({ x, pointer }) =>
      x.print_action(pointer, abp.REQUEST, handle, ...window, Date.now()),
    );
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
    if (this.#frames && key !== undefined) return this.#respondByKey(key, response, transfer);
    const message = responseMessage(this.role, options.id, response);
    return this.send(message, {
      alone: true,
      transfer,
      failed: (error) => {
        if (transfer?.length) return this.respond(call, response);
        // An answer whose id cannot be cloned is lost: nobody could match it.
        return unsendable(response.data, error).then((payload) =>
          this.send({ ...message, payload }, { alone: true }),
        );
      },
    });
  }

  /**
   * @param {unknown} key
   * @param {any} response
   * @param {Transferable[]} [transfer]
   */
  #respondByKey(key, response, transfer) {
    const { success, data, metadata } = response;
    const frames = /** @type {FrameWriter} */ (this.#frames);
    if (success && metadata && isPlain(metadata))
      return frames.add(FrameKind.VALUE, key, metadata.duration, data, transfer);
    return frames.add(FrameKind.RESPONSE, key, undefined, response, transfer);
  }

  /** @param {Call} call @param {object} info */
  sendProgress(call, info) {
    const { handle, options } = call;
    const number = options.progress === true && this.#frames && this.core.number(handle);
    if (number) return this.#frames?.add(FrameKind.PROGRESS, number, undefined, info);
    const progress = options.progress === true ? undefined : options.progress;
    return this.#sendInfo(info, progress, handle);
  }

  /**
   * @param {object} info
   * @param {unknown} [progress] the token that names it
   * @param {abp.Handle} [handle] of its call, if it has one
   */
  #sendInfo(info, progress, handle = 0) {
    const message = this.core.print({ whole: '{}', progress }, ({ x, pointer }) =>
      x.print_progress(pointer, handle, Date.now()),
    );
    message.payload = { ...info, ...message.payload };
    this.send(message, { kind: 'droppable' });
  }

  /** Tells the agent of progress that belongs to no call. @param {any} info */
  notifyProgress({ operationId, ...info }) {
    if (this.has(abp.PROGRESS)) this.#sendInfo(info, operationId ?? null);
  }

  /** @param {string} event @param {unknown} data */
  notify(event, data) {
    if (!this.has(abp.NOTIFICATIONS)) return;
    const print = (/** @type {AbpCore} */ { x, pointer }) =>
      x.print_notification(pointer, Date.now());
    const message = this.core.print({ name: '', value: data }, print);
    // A program may name it by anything that can be sent.
    message.payload.event = event;
    this.send(message);
  }

  /**
   * Sends a chunk of a stream. Those that follow one another without a pause are collected.
   * @param {Call} call
   * @param {unknown} chunk
   * @param {number} size its bytes
   */
  sendChunk(call, chunk, size) {
    const transfer = transferOf(chunk);
    const frames = this.#frames;
    if (!frames || call.key === undefined) {
      const message = this.core.print({ value: chunk }, ({ x, pointer }) =>
        x.print_action(pointer, abp.CHUNK, call.handle, 0, size, Date.now()),
      );
      return this.send(message, {
        transfer,
        alone: true,
        failed: (error) => call.chunkFailed(error),
      });
    }
    frames.add(FrameKind.CHUNK, call.key, size, chunk, transfer);
    const collects = frames.wait(MAX_TURNS_BETWEEN_CHUNKS);
    const now = performance.now();
    const { sentAt, bytes } = this.#chunks;
    const waits = bytes + size < MAX_CHUNK_BYTES && now - sentAt < MAX_CHUNK_DELAY;
    if (!waits) frames.flush();
    this.#chunks = waits && collects ? { sentAt, bytes: bytes + size } : { sentAt: now, bytes: 0 };
    return undefined;
  }

  /**
   * Says how much of a stream was read.
   * @param {Call} call
   * @param {[number, number]} amount chunks and bytes
   */
  sendCredit(call, [chunks, bytes]) {
    if (call.key && this.#frames)
      return this.#frames.add(FrameKind.CREDIT, call.key, chunks, bytes);
    return this.send(
      this.core.print({}, ({ x, pointer }) =>
        x.print_action(pointer, abp.CREDIT, call.handle, chunks, bytes, Date.now()),
      ),
    );
  }

  /**
   * @param {unknown[]} entry
   * @param {Transferable[] | undefined} transfer
   * @param {unknown} error
   */
  #undeliverable([kind, key, a, value], transfer, error) {
    const call = /** @type {Call | undefined} */ (
      this.machine.find((record) => record.key === key)
    );
    switch (kind) {
      case FrameKind.REQUEST:
      case FrameKind.REQUEST_WITH:
        return call?.unsent(error);
      case FrameKind.CHUNK:
        return call?.chunkFailed(error);
      case FrameKind.VALUE:
      case FrameKind.RESPONSE: {
        // Once more, without what could not be moved.
        if (transfer?.length) return this.#frames?.add(/** @type {number} */ (kind), key, a, value);
        const data = kind === FrameKind.VALUE ? value : getOwn(value, 'data');
        return void unsendable(data, error).then((response) => {
          try {
            this.post([FrameKind.RESPONSE, key, undefined, response]);
          } catch (failure) {
            // An answer whose key cannot be cloned is lost: nobody could match it.
            return warnUnsent(failure, response);
          }
        });
      }
    }
    return void warnUnsent(error, getOwn(value, 'payload') ?? value);
  }

  // --- The session ---------------------------------------------------------------------------------

  /** Begins the handshake. @param {number} timeout ms until it is given up; 0 is none */
  connect(timeout) {
    // To the core 0 is the default.
    const ms = timeout || MAX_TIMER;
    this.machine.advance();
    if (this.machine.feed((x, pointer) => x.connect(pointer, ms)) < 0 || this.#isWaiting) return;
    this.#isWaiting = true;
    this.machine.wait(1);
  }

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

  /** @returns {import('../driver/machine.js').Acts<any, any, object | string | undefined, abp.ErrorCode>} */
  #acts() {
    return {
      read: (action, call, record, context) => {
        const kind = kindOf(action);
        // Such a call is refused in the form in which it came.
        if (kind === abp.REFUSE && context instanceof Call) return undefined;
        if (kind === abp.NOTIFY) return this.core.received(getOwn(context, 'payload'));
        const isCancel = kind === abp.SEND && argOf(action) === abp.MSG_CANCEL;
        // A cancel by an id is a request of its own: its record is the context.
        if (isCancel && isObject(context) && 'answerTo' in context)
          this.machine.expect(/** @type {any} */ (context), call);
        // A cancel of a call that went out in a frame has an entry of its own there.
        return isCancel && record?.key ? this.core.reason : this.core.message;
      },
      sendRequest: (call) => this.#sendRequest(call),
      send: (message, record, text) => {
        if (isObject(text)) this.#sendControl(message, text);
        else this.#frames?.add(FrameKind.CANCEL, record.key, text, undefined);
      },
      refuse: (code, context, text) => {
        if (text) this.post(text, undefined, undefined, this.#via);
        else context.refuse(code);
      },
      report: (record, { payload }, call) => {
        const info = progressInfo(payload);
        // A frame named the call by its number.
        if (call) info.operationId ??= this.core.idText(call);
        invokeReportingErrors(call ? record.options.onProgress : this.side.onProgress, info);
      },
      notify: ({ name, value }) =>
        void invokeReportingErrors(this.side.onNotification, name, value),
      session: (state, context) => this.#sessionChanged(state, context),
      failed: (records) => {
        this.dispose();
        const error = new AbpError('INTERNAL_ERROR', 'The bridge failed', { retryable: true });
        const metadata = { outcome: abp.FATES[abp.FATE_UNKNOWN] };
        for (const record of records)
          record.fail({
            success: false,
            error: { ...toErrorObject(error), retryable: false },
            metadata,
          });
        invokeReportingErrors(this.side.onSession, abp.SESSION_LOST, undefined);
      },
    };
  }

  /**
   * @param {abp.Session} state
   * @param {any} context what changed it, if it was a message
   */
  #sessionChanged(state, context) {
    if (this.#isWaiting && state !== abp.SESSION_CONNECTING) {
      this.#isWaiting = false;
      this.machine.wait(-1);
    }
    const error = state === abp.SESSION_LOST && getOwn(context?.payload, 'error');
    if (error) this.cause ??= AbpError.from(/** @type {any} */ (error));
    // The delegate may close the transport, and what ends a session is said before that.
    if (state === abp.SESSION_CLOSED) this.flush();
    this.#frames =
      state === abp.SESSION_READY && this.has(abp.FRAMES)
        ? new FrameWriter(
            (frame, transfer) => this.post(frame, transfer),
            (entry, transfer, error) => this.#undeliverable(entry, transfer, error),
          )
        : undefined;
    invokeReportingErrors(this.side.onSession, state, context?.message);
  }

  /**
   * @param {abp.Message} arg
   * @param {any} message
   */
  #sendControl(arg, message) {
    if (arg === abp.MSG_INITIALIZE_RESULT) return this.side.onHandshake?.(message, this.#via);
    // Not urgent: the handler's signal should fire before time is spent on posting the acknowledgement.
    if (arg === abp.MSG_CANCEL_RESULT && this.#frames) return this.#frames.addLater(message);
    return this.send(message, { kind: arg === abp.MSG_INITIALIZE ? 'greeting' : undefined });
  }
}

/**
 * The response in place of one that cannot be sent.
 * @param {unknown} data
 * @param {unknown} error
 */
const unsendable = async (data, error) => ({
  success: false,
  error: {
    code: 'OPERATION_FAILED',
    message: await reasonUnsent('result', 'data', data, error),
    retryable: false,
  },
});
