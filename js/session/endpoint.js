/**
 * One side of one connection: passes inputs to the core, and performs the core's actions. Its line
 * (js/wire/line.js) sends messages. Nothing here decides what happens to a call.
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
import { endUnread } from '../common/transfer.js';
import { getOwn, parse } from '../common/values.js';
import { AbpCore } from '../driver/abp-core.js';
import { Machine } from '../driver/machine.js';
import { FrameLine, MessageLine, numberOf } from '../wire/line.js';
import { OUTCOME, failedBy, unstarted } from '../wire/messages.js';
import { Call } from './call.js';
import { rejectionOf } from './rejection.js';

/** @import { Action } from '../driver/machine.js' */
/** @import { MessageKind, Transport } from '../transports/transport.js' */
/** @import { PendingCancel } from './pending-cancel.js' */

/**
 * The code for streams.
 * @typedef {typeof import('./streams.js')} Streams
 */

/**
 * The client or the connection that an endpoint belongs to.
 * @typedef {object} Owner
 * @property {(call: Call) => abp.ErrorCode} accepts checks a received call: returns the code with
 *   which to refuse it, or `NO_ERROR`
 * @property {(call: Call) => unknown} run runs the handler of a call, and passes its response to
 *   `call.finish`
 * @property {(call: Call, response: any, outcome?: abp.Outcome, fate?: abp.Fate) => void} finished
 *   completes the response of a received call, or of a call made here that did not succeed, without
 *   an `outcome`
 * @property {(state: abp.Session, message: unknown) => void} session the session has a new state
 * @property {(info: unknown, call: Call | 0) => void} [progress] agent: progress arrived, of a call
 *   made here, or 0
 * @property {(event: string, data: unknown) => void} [notification] agent: a notification arrived
 * @property {(request: unknown, parent: abp.Handle, about: string) => Promise<unknown>} [question]
 *   app: asks the agent something on behalf of a call; `about` is the callId of the agent's call
 * @property {() => void} ended the endpoint has ended
 */

/**
 * Information about the app's capabilities.
 * @typedef {object} Known
 * @property {(name: unknown) => boolean} [repeatable] whether a capability may run twice
 * @property {(call: Call, code: abp.ErrorCode, error: import('../common/errors.js').ErrorObject) =>
 *   Promise<void> | void} [explain] app: completes the error of a refused call; returns a promise
 *   if that takes time
 * @property {boolean} [foreign] app: whether calls are passed on to a foreign app, which decides
 *   whether a cancel succeeds
 */

/** The core's bits of the features that a transport may carry. */
const FEATURES = {
  port: abp.PORT,
  // On some pages JSON.parse turns texts into dates.
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

/** @extends {Machine<AbpCore, any>} Its records are each a `Call` or a `PendingCancel`. */
export class Endpoint extends Machine {
  /**
   * The transport on which the last message arrived: its answer is sent there.
   * @type {Transport}
   */
  #via;
  /** The line for all messages outside of a session with frames. */
  #messages = new MessageLine(this);
  /** The line in use. @type {MessageLine} */
  line = this.#messages;
  /** Why the other side is gone, if known. @type {unknown} */
  cause;
  /** Why this side ends the session. @type {string | undefined} */
  closing;
  /**
   * Called for each cancel that arrives just after a long call has ended.
   * @type {(() => void) | undefined}
   */
  late;
  /** The code for streams, once one was begun. @type {Streams | undefined} */
  streams;
  /** The ports that came with the current message. @type {readonly MessagePort[]} */
  ports = [];
  /** The last message received during the handshake. @type {unknown} */
  lastMessage;

  /**
   * @param {object} options
   * @param {abp.Role} options.role
   * @param {number} options.features
   * @param {import('../driver/abp-core.js').Limits} [options.limits]
   * @param {boolean} [options.restart]
   * @param {import('../transports/transport.js').Transport & {
   *   prepare?: import('../transports/transport.js').Prepare
   * }} options.transport
   * @param {Owner} options.owner
   * @param {Known} options.capabilities
   * @param {(sessionId: unknown) => Transferable[] | undefined} [options.offer] app: makes the
   *   better channel that its answer to the handshake offers
   * @param {import('./observers.js').Observers} [options.observers]
   */
  constructor(options) {
    const { role, features, limits, restart, transport, owner, capabilities, observers } = options;
    const config = {
      ...limits,
      role,
      features,
      restart: Number(restart),
      foreign: Number(capabilities.foreign),
    };
    super(new AbpCore(config, observers?.run));
    this.role = role;
    this.limits = limits;
    this.owner = owner;
    this.capabilities = capabilities;
    this.offer = options.offer;
    /** Converts results and chunks for the transport. */
    this.prepare = transport.prepare;
    this.#via = this.transport = /** @type {Transport} */ (transport);
    observers?.tracing?.follow(this);
    this.upgrade(transport);
  }

  /**
   * Replaces the transport by a better one. Messages that still arrive on the old one are ignored,
   * except for a handshake, which the app's side decides about.
   * @param {Transport} transport
   */
  upgrade(transport) {
    this.transport = transport;
    transport.onMessage = (data, ports) => this.receive(data, ports, transport);
    transport.onClose = (cause) => this.lost(cause);
  }

  /** The state of the session. */
  get state() {
    const { x, pointer } = this.core;
    return x.state(pointer);
  }

  /** True if there is a session. */
  get ready() {
    return this.state === abp.SESSION_READY;
  }

  /**
   * True if both sides agreed on a feature.
   * @param {abp.Feature} feature
   */
  has(feature) {
    const { x, pointer } = this.core;
    return (x.features(pointer) & feature) !== 0;
  }

  /**
   * Loads the code for streams.
   * @returns {Promise<Streams>} rejects with an AbpError
   */
  async loadStreams() {
    return (this.streams ??= await loadPart(import('./streams.js')));
  }

  /**
   * Streams a handler's return value.
   * @param {Call} call
   * @param {any} source
   * @returns {Promise<unknown>} the data of the response; rejects if the code for streams does not
   *   load
   */
  async sendStream(call, source) {
    try {
      return (await this.loadStreams()).stream(call, source);
    } catch (error) {
      // Its handler has run, so a retry would not be safe.
      endUnread(source);
      throw Object.assign(/** @type {AbpError} */ (error), { retryable: false });
    }
  }

  /**
   * Begins a stream. While the code for streams is being loaded, it returns a substitute that
   * waits.
   * @template {import('./call-stream.js').CallStream} S
   * @param {(streams: Streams) => S} begin
   * @param {(loading: Promise<Streams>) => Promise<Streams>} wait may end the wait early
   * @param {(error: unknown) => any} [unbegun] makes the response if the stream does not begin; its
   *   reader gets that as an error
   * @param {AbortSignal} [signal] its caller's
   * @returns {S}
   */
  stream(begin, wait, unbegun, signal) {
    if (this.streams) return begin(this.streams);
    const stream = wait(this.loadStreams()).then(begin);
    const response = stream.then((begun) => begun.response, unbegun ?? unstarted);
    // The error of the call is passed to those who await the response.
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

  // --- In ----------------------------------------------------------------------------------------

  /**
   * Receives data from a transport.
   * @param {unknown} data
   * @param {readonly MessagePort[]} [ports]
   * @param {Transport} [via]
   */
  receive(data, ports = [], via = this.transport) {
    if (this.over) return;
    this.observe?.('message', false, data);
    this.#via = via;
    this.ports = ports;
    this.tick();
    try {
      this.line.receive(data, this);
    } catch (error) {
      // A getter or a proxy threw: only transports within one thread can pass these.
      reportError(error);
      this.message(undefined);
    }
    this.observe?.('read');
  }

  /**
   * Receives a call whose parts were read here.
   * @param {unknown} id its number, or its id
   * @param {unknown} name
   * @param {unknown} params
   * @param {any} [options] as of `Call`
   * @param {unknown} [key] its key, if it came in a frame
   * @param {number} [chunks] the window of a stream; -1 if it is not a number
   * @param {number} [bytes]
   */
  called(id, name, params, options, key, chunks = 0, bytes = 0) {
    const { core } = this;
    const call = new Call(this, name, params, options, key);
    call.started = Math.round(this.now);
    const { timeout = 0, progress, about } = call.options;
    const aside = this.#asideOf(name);
    const fault = this.#faultOf(call, aside);
    const flags = aside | (progress === undefined ? 0 : abp.WANTS_PROGRESS);
    const number = numberOf(id);
    const length = number ? 0 : core.writeId(id);
    const aboutLength = about === undefined ? 0 : core.writeReason(about, length);
    this.feed(
      core.x.call_received,
      call,
      length,
      number,
      timeout,
      flags,
      chunks,
      bytes,
      fault,
      aboutLength,
    );
  }

  /**
   * Receives a message that the core reads.
   * @param {unknown} message
   */
  message(message) {
    const { core } = this;
    const { x } = core;
    if (this.state === abp.SESSION_CONNECTING) this.lastMessage = message;
    const payload = getOwn(message, 'payload');
    const context = { message, payload };
    const receive = () => this.feed(x.receive, context, core.writeText(message, payload));
    if (receive() !== abp.FOLLOWS) return;
    const { name, value, ...asked } = core.received(payload);
    /** @type {any} */
    const options = { ...asked, id: getOwn(message, 'id') };
    const call = new Call(this, name, value, options);
    const take = () => {
      const aside = this.#asideOf(name);
      return this.feed(x.take, call, aside, this.#faultOf(call, aside));
    };
    // The check of the call may have used the core meanwhile.
    if (take() === abp.E_STATE && receive() === abp.FOLLOWS) take();
  }

  /** Receives a frame that cannot be read: the session ends, as the frame's messages are lost. */
  unread() {
    this.feed(this.core.x.unread, { payload: this.refusal(abp.PARSE_ERROR) });
  }

  /**
   * `ASIDE` if a call asks for the outcome of another one, and so needs no place; else 0.
   * @param {unknown} name
   */
  #asideOf(name) {
    const isAside = name === OUTCOME && this.role === abp.APP && this.has(abp.OUTCOMES);
    return isAside ? abp.ASIDE : 0;
  }

  /**
   * The code with which a call is refused, or `NO_ERROR`.
   * @param {Call} call
   * @param {number} aside the result of `#asideOf`
   * @returns {abp.ErrorCode}
   */
  #faultOf(call, aside) {
    // In an app, absent params are an empty object.
    if (this.role === abp.APP) call.params ??= {};
    if (typeof call.name !== 'string') return abp.INVALID_PARAMS;
    return aside ? abp.NO_ERROR : this.owner.accepts(call);
  }

  // --- Out ---------------------------------------------------------------------------------------

  /**
   * Rejects a call or a cancel of this side that the core did not accept.
   * @param {Call | PendingCancel} record
   * @param {abp.Status} status that the core returned
   * @param {abp.Handle} parent the call on whose behalf it was to be made
   * @param {abp.Kind} [kind] as for `refusal`
   */
  reject(record, status, parent, kind) {
    const { x, pointer } = this.core;
    const code = x.status_error(pointer, status, Number(parent !== 0));
    record.fail(this.refusal(code, undefined, kind));
  }

  /**
   * The response of a call that did not begin.
   * @param {abp.ErrorCode} code
   * @param {string} [reason] replaces the code's own message
   * @param {abp.Kind} [kind] `REQUEST` if it was to be made here, `REFUSE` if it was received
   */
  refusal(code, reason = undefined, kind = abp.REQUEST) {
    if (code === abp.DISCONNECTED_ERROR) reason ??= reasonText(this.cause);
    return this.core.response(kind, code, abp.FATE_NONE, { reason });
  }

  /**
   * Posts a message or a frame. Throws if it cannot be cloned, even after copying its plain data.
   * @param {unknown} message
   * @param {Transferable[]} [transfer]
   * @param {MessageKind} [kind]
   * @param {Transport} [via]
   */
  post(message, transfer, kind, via = this.transport) {
    this.observe?.('message', true, message);
    try {
      via.post(message, transfer, kind);
    } catch {
      via.post(plainOf(message), transfer, kind);
    }
  }

  // --- The session -------------------------------------------------------------------------------

  /**
   * Ends the session.
   * @param {string} [reason] the reason for the calls that end with it
   */
  close(reason) {
    this.closing = reason;
    this.feed(this.core.x.close, undefined);
    this.dispose();
  }

  /**
   * Ends the session: the other side is gone.
   * @param {unknown} [cause]
   */
  lost(cause) {
    if (this.over) return;
    this.cause = cause;
    this.feed(this.core.x.lost, undefined);
    this.dispose();
  }

  /** Checks whether the other side has changed. */
  suspect() {
    this.advance();
    this.feed(this.core.x.suspect, undefined);
  }

  /**
   * Reports that this document goes away, or is frozen and may come back.
   * @param {boolean} persisted
   */
  leave(persisted) {
    const { line } = this;
    this.feed(this.core.x.leave, undefined, Number(persisted));
    line.flush();
  }

  /** Closes the transport and frees the core's memory. */
  dispose() {
    if (this.over) return;
    this.end();
    invokeReportingErrors(() => this.transport.close());
    this.owner.ended();
  }

  // --- Performing the core's actions -------------------------------------------------------------

  /**
   * @override
   * @param {Action} action
   * @param {any} context
   */
  read({ kind, arg, call, record }, context) {
    const { core } = this;
    switch (kind) {
      case abp.REQUEST:
        record.key = record.options.callId ?? core.callNumber;
        return record.options.stream && core.amount;
      case abp.ABORT:
        return context?.cancelReason ?? core.reason;
      case abp.CHUNK:
        return core.at;
      case abp.CREDIT:
        return core.amount;
      case abp.NOTIFY:
        return core.received(getOwn(context, 'payload'));
      case abp.REFUSE:
        // A call is refused in the form in which it came.
        return context instanceof Call ? undefined : core.message;
      case abp.SEND:
        if (arg !== abp.MSG_CANCEL) return core.message;
        // A cancel by id is a request of its own: its record is the context.
        if (getOwn(context, 'callId') === undefined) return this.line.cancelText(record);
        this.expect(context, call);
        return core.message;
    }
    return undefined;
  }

  /**
   * @override
   * @param {Action} action
   * @param {any} context
   */
  perform(action, context) {
    this.observe?.('action', action, context);
    const { kind, arg, fate, record, text } = action;
    switch (kind) {
      case abp.REQUEST:
        return this.line.request(record, text);
      case abp.START:
        return void this.owner.run(record);
      case abp.SETTLE:
        return record.settle(arg, context, fate);
      case abp.RESULT:
        return (record ?? context).answer(arg, fate);
      case abp.ABORT:
        return record.abort(text, fate);
      case abp.SEND:
        return this.#send(arg, record, text);
    }
    this.#performOther(action, context);
  }

  /**
   * Performs the rarer actions.
   * @param {Action} action
   * @param {any} context
   */
  #performOther({ kind, arg, call, record, text }, context) {
    switch (kind) {
      case abp.QUEUED:
        // Its handler does not start in this turn.
        record.started = 0;
        return;
      case abp.CHUNK: {
        const { stream } = record.options;
        if (stream) stream.push(getOwn(context.payload, 'chunk'), text);
        else record.extra.outflow?.send(context, text);
        return;
      }
      case abp.CREDIT:
        return this.line.credit(record, text);
      case abp.RESUME:
        return record.extra.outflow?.resume();
      case abp.REPORT:
        return this.owner.progress?.(context.payload, call && record);
      case abp.NOTIFY:
        return this.owner.notification?.(text.name, text.value);
      case abp.REFUSE:
        if (text) this.post(text, undefined, undefined, this.#via);
        else context.refuse(arg);
        return;
      case abp.SESSION:
        return this.#became(arg, context);
    }
  }

  /**
   * Sends a control message.
   * @param {abp.Message} message which
   * @param {Call} record
   * @param {any} text the message or, for a cancel in a frame, its reason
   */
  #send(message, record, text) {
    const { line } = this;
    switch (message) {
      case abp.MSG_CANCEL:
        return record instanceof Call ? line.cancel(record, text) : line.control(text);
      case abp.MSG_INITIALIZE:
        return line.control(text, 'greeting');
      case abp.MSG_INITIALIZE_RESULT: {
        const via = this.#via;
        const ports = this.has(abp.PORT) ? this.offer?.(text.payload.sessionId) : undefined;
        return this.post(text, ports, undefined, via);
      }
      case abp.MSG_CANCEL_RESULT:
        this.late?.();
        // The handler's signal should fire before this is posted.
        return line.control(text, undefined, true);
    }
    return line.control(text);
  }

  /**
   * Handles a new state of the session.
   * @param {abp.Session} state
   * @param {any} context
   */
  #became(state, context) {
    const error = state === abp.SESSION_LOST && getOwn(context?.payload, 'error');
    if (error) this.cause ??= AbpError.from(/** @type {any} */ (error));
    // The owner may close the transport, so the messages that end a session are sent before.
    if (state === abp.SESSION_CLOSED) this.line.flush();
    const inFrames = state === abp.SESSION_READY && this.has(abp.FRAMES);
    this.line = inFrames ? new FrameLine(this) : this.#messages;
    invokeReportingErrors(() => this.owner.session(state, context?.message));
  }

  /**
   * @override
   * @param {(Call | PendingCancel)[]} records
   */
  broke(records) {
    this.dispose();
    const failure = { code: 'INTERNAL_ERROR', message: 'The bridge failed' };
    for (const record of records) record.fail(failedBy(failure, 'unknown'));
    invokeReportingErrors(() => this.owner.session(abp.SESSION_LOST, undefined));
  }
}
