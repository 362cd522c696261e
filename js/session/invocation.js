/** The callee's side of a call: runs the handler, provides its context, and sends its result. */
import * as abp from '../driver/abp-boundary.js';
import {
  AbpError,
  isErrorObject,
  loadPart,
  reasonText,
  safely,
  saysCancelled,
  toErrorObject,
} from '../common/errors.js';
import { ENDING, requireOptions } from '../common/check-options.js';
import { tell } from '../common/development.js';
import { milliseconds } from '../common/values.js';
import { RECEIVED, RECORD } from './records.js';
import { OUTCOME, checkedProgress, isResponse, outcomeOf } from '../wire/messages.js';
import { breatherOf } from '../common/breathe.js';
import { Cancellable, ENDED } from '../driver/cancellable.js';
import { keptReport } from '../common/report.js';
import { onAbort, offAbort } from '../common/signals.js';
import { Token } from '../common/token.js';
import { isGenerator, isStream, markedTransfer, transferOf } from '../common/transfer.js';

/** Loaded on demand: few apps stream. @type {typeof import('./outflow.js').Outflow | undefined} */
let Outflow;

/** The members of a handler's context. */
const CONTEXT = [
  'signal',
  'token',
  'progress',
  'elicit',
  'call',
  'callId',
  'input',
  'progressToken',
  'breathe',
  'report',
  'earlier',
];

/**
 * Makes the context of a handler: a proxy that shows these members only. Unlike the getters of a class they are copied by
 * spreading, and a proxy is cheaper to make than an object with getters.
 * @type {ProxyHandler<any>}
 */
const contextOf = {
  get: (invocation, key) => (isShown(key) ? invocation[key] : undefined),
  has: (_invocation, key) => isShown(key),
  ownKeys: () => CONTEXT,
  getOwnPropertyDescriptor: (invocation, key) =>
    isShown(key) ? { value: invocation[key], enumerable: true, configurable: true } : undefined,
};

/** @param {string | symbol} key */
const isShown = (key) => CONTEXT.includes(/** @type {string} */ (key));

/**
 * A received call. The members that its handler may use can be destructured and spread; each is made when it is first
 * read.
 */
export class Invocation extends Cancellable {
  /** What was reported of this work before it was stopped, if it was. @type {unknown} */
  earlier = undefined;
  #started = 0;
  #settled = false;
  /** @type {any} */
  #response;
  /** @type {Transferable[] | undefined} */
  #transfer;
  #endpoint;
  #resolve;
  /**
   * What few calls have: their token; the signal of one that the app makes to itself; what its handler streams, what is streamed
   * to that, and whether its chunks were collected into its data; what asks an app
   * that is not ours to stop; what its handler reported last, and its last progress; who waits for the handler to return; the
   * callId of the call on whose behalf it is made, and the call above, if the app makes it to itself; whether its handler has passed on
   * that what it called still runs; whether its caller was told that it still runs, and what a call below reported after that.
   * @type {{ token?: Token, followed?: AbortSignal, outflow?: import('./outflow.js').Outflow, input?: AsyncIterableIterator<unknown>, collected?: boolean, onStop?: (reason?: string) => void,
   *   report?: unknown, progress?: object, returned?: Promise<void>, onReturn?: () => void, about?: string, above?: Invocation, follows?: boolean, runsOn?: boolean, late?: unknown } | undefined}
   */
  #rare;

  /**
   * @param {import('./endpoint.js').Endpoint} endpoint
   * @param {import('../wire/messages.js').Request} request
   * @param {unknown} [message] the message that it arrived in, unless it was in a frame
   * @param {(response: unknown) => void} [resolve] takes the response of a call that the app makes to itself
   */
  constructor(endpoint, request, message, resolve) {
    super();
    this.#endpoint = endpoint;
    this.request = request;
    this.message = message;
    this.#resolve = resolve;
  }

  get #more() {
    return (this.#rare ??= {});
  }

  get [RECORD]() {
    return RECEIVED;
  }

  /** What names it in frames. */
  get key() {
    return this.request.key;
  }

  // --- What a handler uses -------------------------------------------------------------------------

  /** The signal's state for code that events do not reach. It is set before the signal fires. */
  get token() {
    const more = this.#more;
    if (!more.token) {
      more.token = new Token();
      if (this.aborted) more.token.cancel();
    }
    return more.token;
  }

  /** The id with which the caller can cancel this call. */
  get callId() {
    const { key } = this.request;
    return typeof key === 'string' ? key : this.#endpoint.core.idText(this.handle);
  }

  /** The token that the caller gave for progress; undefined if it wants none. */
  get progressToken() {
    const { progress } = this.request;
    return progress === true ? this.callId : progress === false ? undefined : progress;
  }

  /** What the agent streams to its handler; undefined if it streams nothing. It is asked for when it is first read. */
  get input() {
    if (!this.request.input || !this.#endpoint.has(abp.STREAMS)) return undefined;
    return (this.#more.input ??= this.#endpoint.side.input?.(this));
  }

  /** Reports progress. Nothing is sent unless the caller asked for it, nor after a cancel. */
  get progress() {
    return (/** @type {unknown} */ info) => {
      const checked = checkedProgress(info);
      const { core, machine, writer } = this.#endpoint;
      this.#more.progress = checked;
      if (machine.failed || !core.x.progress_wanted(core.pointer, this.handle)) return;
      machine.observe?.('progress', this, checked);
      writer.progress(this, checked);
    };
  }

  /** Keeps what the handler says of its work, for when the call does not succeed. */
  get report() {
    return (/** @type {unknown} */ report) => {
      this.#more.report = keptReport(report, this.request.name);
    };
  }

  /** Asks the agent a question. It ends as `cancelled` if this call is cancelled first. */
  get elicit() {
    return (/** @type {unknown} */ request) =>
      this.#endpoint.side.elicit?.(request, this.handle || ENDED, this.#about);
  }

  /** The agent's name for the call on whose behalf everything here is done. @returns {string} */
  get #about() {
    return this.#rare?.about ?? this.callId;
  }

  /**
   * Calls another capability of this app on behalf of this call: when this call is cancelled, so is that one.
   */
  get call() {
    return async (
      /** @type {string} */ name,
      /** @type {unknown} */ params = {},
      /** @type {{ signal?: AbortSignal, timeout?: number }} */ options = {},
    ) => {
      requireOptions('call', options, {}, true);
      const { signal, timeout } = options ?? {};
      if (typeof name !== 'string') {
        throw new AbpError('INVALID_PARAMS', 'call needs the name of a capability');
      }
      requireOptions('call', { signal, timeout }, ENDING, true);
      const ms = milliseconds(timeout);
      const request = { key: undefined, name, params, timeout: ms, progress: false };
      return this.#callLocal(request, signal);
    };
  }

  /**
   * @param {import('../wire/messages.js').Request} request
   * @param {AbortSignal} [signal]
   */
  #callLocal(request, signal) {
    const endpoint = this.#endpoint;
    if (signal?.aborted) {
      const ended = endpoint.ended(abp.CANCELLED, signal.reason);
      return endpoint.incoming.became(ended, abp.FATE_UNSTARTED);
    }
    return new Promise((resolve) => {
      const invocation = new Invocation(endpoint, request, undefined, resolve);
      invocation.#rare = { about: this.#about, above: this };
      const rejection = endpoint.callee.rejectionFor(request);
      // If this call has ended or is ending, the new one is cancelled with it.
      endpoint.begin(invocation, this.handle || ENDED, (x, pointer) =>
        x.call_local(pointer, this.handle, request.timeout, rejection),
      );
      if (invocation.handle) invocation.follow(signal);
    });
  }

  /**
   * Await it in a loop that computes. It returns to the event loop every few ms, so that a cancel can arrive, and throws
   * the signal's reason once the call is cancelled. It is cheap enough to be called for every row.
   */
  get breathe() {
    return breatherOf(() => {
      if (this.aborted) throw this.signal.reason;
    });
  }

  /** Whether the app makes this call to itself. */
  get isLocal() {
    return !!this.#resolve;
  }

  // --- What the endpoint tells it ------------------------------------------------------------------

  async start() {
    this.#started = this.#endpoint.now || performance.now();
    try {
      const { callee, side } = this.#endpoint;
      const { request } = this;
      const context = new Proxy(this, contextOf);
      const isOrdinary = request.idempotencyKey === undefined && request.name !== OUTCOME;
      const value = await (isOrdinary || !side.recall
        ? callee.run(request, context, this)
        : side.recall(this, () => callee.run(request, context, this)));
      if (isStream(value)) await this.#stream(value);
      else if (isResponse(value)) await this.#respond(value);
      else {
        const preparing = this.#succeed(value);
        if (preparing) await preparing;
      }
    } catch (error) {
      const outcome = safely(() => /** @type {any} */ (error).outcome, undefined);
      // Thrown, as `invoke` does, or returned as a response: what it called still runs.
      const response = { success: /** @type {const} */ (false), error: toErrorObject(error) };
      if (outcome === 'running') {
        const metadata = { outcome };
        await this.#conclude({ ...response, metadata }, error).catch(() =>
          this.#fail(response, abp.FATE_UNKNOWN),
        );
      } else if (saysCancelled(error)) {
        this.reason ??= reasonText(error);
        this.#settle(outcome === 'unknown' ? abp.UNKNOWN : abp.CANCELLED);
      } else {
        this.#tell(error);
        // What its author does not know, such as a pool whose worker died, the core does not know better.
        const fate = outcome === 'unknown' ? abp.FATE_UNKNOWN : undefined;
        this.#fail(response, fate);
      }
    }
  }

  /**
   * Waits for what the handler needs before it begins. If that fails, or the call ends meanwhile, it never ran.
   * @template T
   * @param {Promise<T>} needed
   * @param {(needed: T) => unknown} begin
   * @returns {Promise<unknown>} what `begin` returns
   */
  async beginAfter(needed, begin) {
    this.postpone();
    const value = await needed;
    // Then it has ended, and nobody waits for this.
    if (!this.begin()) throw this.signal.reason;
    return begin(value);
  }

  /**
   * Runs a handler. Of a generator no line runs before its first chunk is taken. One that has `later` waits for its turn: it is given
   * the call, postpones it, and begins it.
   * @param {((params: any, context: any) => unknown) & { later?: (params: any, call: Invocation) => Promise<unknown> }} handler
   * @param {unknown} params
   * @param {unknown} context
   */
  invoke(handler, params, context) {
    if (isGenerator(handler)) this.postpone();
    return handler.later?.(params, this) ?? handler(params, context);
  }

  /** Its handler waits for something before it begins. */
  postpone() {
    this.#endpoint.machine.feed((x, pointer) => x.postpone(pointer, this.handle));
  }

  /** Its handler is about to do something. @returns {boolean} false if it must not: the call has ended or is to stop */
  begin() {
    const { machine } = this.#endpoint;
    return !this.#settled && machine.feed((x, pointer) => x.begin(pointer, this.handle)) === abp.OK;
  }

  /** @param {unknown} source what the handler streams */
  async #stream(source) {
    // Once it is loaded, a stream does not wait for it.
    Outflow ??= (await loadPart(import('./outflow.js'))).Outflow;
    const outflow = (this.#more.outflow = new Outflow(this.#endpoint, this, source));
    const streamed = await outflow.run();
    if (!streamed) return this.#settle(abp.CANCELLED);
    const { data, collected } = streamed;
    this.#more.collected = collected;
    await (isResponse(data) ? this.#respond(data) : this.#succeed(data));
  }

  /**
   * A chunk is sent.
   * @param {unknown} value
   * @param {number} size
   */
  chunk(value, size) {
    this.#rare?.outflow?.sent(value, size);
  }

  /** There is room for a chunk that had to wait. */
  resume() {
    this.#rare?.outflow?.resume();
  }

  /** A chunk could not be sent. @param {unknown} error */
  chunkFailed(error) {
    this.#rare?.outflow?.fail(error);
  }

  /**
   * @param {unknown} data
   * @param {import('../wire/messages.js').Response} [response] the response that contained it
   * @returns {Promise<void> | undefined} a promise where the data is prepared
   */
  #succeed(data, response) {
    const { prepare } = this.#endpoint.side;
    if (prepare && !this.#resolve) return this.#prepare(prepare, data, response);
    this.#complete(data, response);
    return undefined;
  }

  /**
   * Preparing is part of the call, which can still be cancelled.
   * @param {import('../transports/transport.js').Prepare} prepare
   * @param {unknown} data
   * @param {import('../wire/messages.js').Response} [response]
   */
  async #prepare(prepare, data, response) {
    this.#complete(await prepare(data, this), response);
  }

  /**
   * @param {unknown} data
   * @param {import('../wire/messages.js').Response} [response]
   */
  #complete(data, response) {
    this.#transfer = markedTransfer(response) ?? transferOf(data);
    const cached = response?.metadata?.cached;
    const { incoming } = this.#endpoint;
    this.#settle(
      abp.COMPLETED,
      incoming.succeed(data, this.#duration, cached, this.#rare?.collected),
    );
  }

  /**
   * Writes an error that is not the protocol's to the console: it is probably a defect of the handler.
   * @param {unknown} error
   */
  #tell(error) {
    if (this.aborted || isErrorObject(error)) return;
    safely(() => console.error(`abp-bridge: ${this.request.name} failed:`, error), undefined);
  }

  /**
   * The handler has returned a whole response of the protocol.
   * @param {import('../wire/messages.js').Response} response
   */
  async #respond(response) {
    if (outcomeOf(response) === abp.COMPLETED) {
      return this.#succeed(response.data, response);
    }
    await this.#conclude(response, response);
  }

  /**
   * It has ended without success, or what its handler called still runs.
   * @param {import('../wire/messages.js').Response} given
   * @param {unknown} told the same, or what the handler has thrown
   */
  async #conclude(given, told) {
    const { conclude } = await loadPart(import('./conclusion.js'));
    const { outcome, response, fate, reason } = await conclude(told, given, {
      foreign: this.#endpoint.callee.foreign,
      call: this.#more,
      goOn: (answer) => {
        this.#response = answer;
        this.#endpoint.machine.feed((x, pointer) => x.goes_on(pointer, this.handle));
      },
    });
    if (outcome === abp.FAILED) return this.#fail(/** @type {any} */ (response), fate);
    this.reason ??= reason;
    this.#settle(outcome, response, fate);
  }

  /**
   * @param {import('../wire/messages.js').Response} response
   * @param {abp.Fate} [fate] what became of its work, where it was told that
   */
  #fail(response, fate) {
    this.#settle(abp.FAILED, this.#endpoint.incoming.fail(response, this.#duration), fate);
  }

  get #duration() {
    return Math.round(performance.now() - this.#started);
  }

  /**
   * @param {abp.Outcome} outcome
   * @param {unknown} [response]
   * @param {abp.Fate} [fate] what became of its work, where that is known
   */
  #settle(outcome, response, fate) {
    if (this.#settled) return;
    this.#settled = true;
    this.#response = response;
    const said = this.#said;
    if (said.report !== undefined || (this.aborted && said.progress)) {
      const callId = this.#isPassedOn ? this.#about : this.callId;
      this.#endpoint.side.keep?.(callId, said);
    }
    const { above, runsOn } = this.#rare ?? {};
    if (above && runsOn) above.#more.late = said.report;
    const { machine } = this.#endpoint;
    // From now on the clock of the call that asked runs again.
    if (this.request.about) machine.advance();
    machine.finish(this, outcome, fate);
    this.#leave();
  }

  /** What was said of its work last: by its handler, or in the response that it passes on. */
  get #said() {
    const { report, progress } = this.#rare ?? {};
    const { metadata } = this.#response ?? {};
    return { report: report ?? metadata?.report, progress: progress ?? metadata?.progress };
  }

  /** Whether those above it were answered that it still runs: their caller asks for it in their place. @returns {boolean} */
  get #isPassedOn() {
    const above = this.#rare?.above;
    return !above || (above.#more.follows === true && above.#isPassedOn);
  }

  /** Its handler has returned, or will never run. */
  #leave() {
    this.#settled = true;
    offAbort(this.#rare?.followed, this);
    this.#rare?.onReturn?.();
  }

  /** Resolves when its handler has returned, and the core knows of it. @returns {Promise<void>} */
  get returned() {
    const more = this.#more;
    return (more.returned ??= new Promise((resolve) => {
      if (this.#settled) resolve();
      else more.onReturn = resolve;
    }));
  }

  /**
   * @override
   * @param {string | undefined} reason
   * @param {unknown} [fate] what became of its work, if the core knows that already
   */
  abort(reason, fate) {
    this.#rare?.token?.cancel();
    if (fate === abp.FATE_UNSTARTED) this.#leave();
    super.abort(reason ?? this.#endpoint.closing);
    this.#rare?.outflow?.stop(reason);
    this.#rare?.onStop?.(reason);
  }

  /** Is called when the call is cancelled, and sees to what follows: the console does not warn of its handler. @param {((reason?: string) => void) | undefined} ask */
  set onStop(ask) {
    this.#more.onStop = ask;
  }

  /**
   * Such an app has said whether it stops.
   * @param {boolean} accepted
   * @param {unknown} reason why not
   */
  stopAnswered(accepted, reason) {
    const { core, machine } = this.#endpoint;
    if (!this.handle) return;
    machine.feed((x, pointer) => {
      const length = core.writeReason(reasonText(reason));
      return x.cancel_answered(pointer, this.handle, Number(accepted), length);
    });
  }

  /** Why it was cancelled. @returns {unknown} */
  get #why() {
    const followed = this.#rare?.followed;
    if (followed?.aborted) return followed.reason;
    return this.reason ?? this.#endpoint.closing;
  }

  /**
   * @param {abp.Outcome} outcome
   * @param {abp.Fate} fate
   */
  answer(outcome, fate) {
    let response = this.#response;
    if (fate === abp.FATE_UNSTARTED) this.#leave();
    // A handler that cancelled its own call gave the error itself.
    const isOwn = outcome === abp.COMPLETED || (!this.aborted && !!response);
    if (outcome !== abp.COMPLETED) {
      response = this.#endpoint.ended(outcome, this.#why);
      if (isOwn) response.error = this.#response.error;
    }
    if (fate === abp.FATE_RUNNING) {
      const more = this.#more;
      more.runsOn = true;
      // Its handler has ended, or given an answer; where the session has ended, nothing was waited for.
      if (!this.#settled && !this.#response && !more.onStop && this.#endpoint.ready) {
        tell((dev) => dev.warnOfHandler(String(this.request.name)));
      }
    }
    if (response.success) return this.#send(response, this.#transfer);
    const { report, progress } = this.#said;
    const metadata = {
      ...this.#response?.metadata,
      outcome: undefined, // the core has the last word
      ...(report !== undefined && { report }),
      ...(progress && { progress }),
    };
    const { callee, incoming } = this.#endpoint;
    const repeatable = isOwn || callee.repeatable?.(this.request.name);
    this.#send(incoming.became(response, fate, repeatable, metadata));
  }

  /** @param {abp.ErrorCode} code */
  refuse(code) {
    const response = this.#endpoint.incoming.became(
      this.#endpoint.failure(code),
      abp.FATE_UNSTARTED,
    );
    const explaining = this.#endpoint.callee.explain?.(this.request, code, response.error);
    if (explaining) void explaining.then(() => this.#send(response));
    else this.#send(response);
  }

  /**
   * @param {unknown} response
   * @param {Transferable[]} [transfer]
   */
  #send(response, transfer) {
    this.#endpoint.machine.observe?.('end', this, response);
    if (this.#resolve) this.#resolve(response);
    else this.#endpoint.writer.respond(this, response, transfer);
  }

  /**
   * The core has failed or, if this is a call that the app makes to itself, refused it.
   * @param {{ error: import('../common/errors.js').ErrorObject }} response
   * @param {abp.Fate} [fate]
   */
  fail(response, fate = abp.FATE_UNSTARTED) {
    const ended = this.#endpoint.incoming.became(response, fate);
    this.#endpoint.machine.observe?.('end', this, ended);
    this.#resolve?.(ended);
    if (!this.#settled) this.abort(response.error.message);
  }

  // --- A call that the app makes to itself may have a signal of its own ---------------------------

  /** @param {AbortSignal | undefined} signal */
  follow(signal) {
    this.#more.followed = signal;
    if (signal?.aborted) this.handleEvent();
    else onAbort(signal, this);
  }

  handleEvent() {
    this.#endpoint.machine.cancel(this.handle, reasonText(this.#rare?.followed?.reason));
  }
}
