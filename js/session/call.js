/**
 * A call, on either side: what it is about, and who waits for it. What becomes of it, the core decides (src/call_state.c), and what is
 * said of it, too. A record holds things: params, a promise, a controller, a signal, a response.
 */
import * as abp from '../driver/abp-boundary.js';
import { tell } from '../common/development.js';
import { isErrorObject, reasonText, safely, saysCancelled, saysTimeout } from '../common/errors.js';
import { abortError, offAbort, onAbort } from '../common/signals.js';
import { getOwn, limitOf, milliseconds } from '../common/values.js';
import { CREDIT } from '../wire/frame-kinds.js';
import { failedBy, isOpen } from '../wire/messages.js';
import { reasonUnsent } from '../wire/unsent.js';

/** The handle of no call. It is not 0, which would mean: without a parent. */
export const ENDED = /** @type {abp.Handle} */ (-1);

/**
 * How a call is made, and what it says besides its name and params. It is kept as it was given.
 * @typedef {object} RequestOptions How a call ends early, and what it reports.
 * @property {AbortSignal} [signal] cancels the call; the app decides how it ended
 * @property {number} [timeout] ms after which the call cancels itself; 0 or absent is never
 * @property {(info: import('../wire/messages.js').ProgressInfo) => void} [onProgress] called with each report of progress
 * @property {string} [callId] names the call, for `cancel`; minted when absent
 * @property {string | number} [progressToken] the token that the app reports progress with (the callId)
 * @property {Transferable[]} [transfer] objects in the params that are moved instead of copied
 * @property {string} [idempotencyKey] names the work: a call with the key of an earlier one, by the same agent, joins that or gets
 *   what became of it, and never runs twice as long as the same memory (`client.memory`) remembers. At most 256 characters. See
 *   docs/agents.md#again-safely
 */

/**
 * Reads the chunks of a call.
 * @typedef {object} ChunkReader
 * @property {(call: Call) => void} attach takes the call, as soon as it is made
 * @property {(value: unknown, size: number) => void} push takes a chunk
 * @property {object} overrun the response of a call whose other side has sent too much
 */

/**
 * @typedef {RequestOptions & { about?: string, stream?: ChunkReader, input?: any, highWaterMark?: number }} MadeOptions `about` is the callId on
 *   whose behalf a question is asked, or that of a call which may have run and is repeated; `stream` reads its chunks; `input` is
 *   what its handler reads
 */

/**
 * What a call that was received says besides its name and params.
 * @typedef {object} Asked
 * @property {unknown} [id] of its message, if it came in one
 * @property {number} [timeout] ms, where the core was not told by a message
 * @property {unknown} [progress] the token that names its progress; true is the id of the call
 * @property {boolean} [input] whether its caller streams to its handler
 * @property {unknown} [idempotencyKey] repeats of the call have the same one
 * @property {unknown} [about] of a question: the callId of the agent's call on whose behalf it is asked
 */

/** Of a call that says no more: what many calls share, nobody changes. @type {any} */
export const NOTHING = Object.freeze({});

/**
 * Rarely used fields, allocated on first use:
 * @typedef {object} Rare
 * @property {AbortController} [controller] of the handler's signal
 * @property {import('../common/token.js').Token} [token] what its handler reads of it
 * @property {import('./outflow.js').Outflow} [outflow] what its handler streams
 * @property {AsyncIterableIterator<unknown> & { highWaterMark?: number }} [input] what is streamed to its handler
 * @property {boolean} [collected] its chunks were collected into its data
 * @property {(reason?: string) => void} [onStop] is called when the call is cancelled, and sees to what follows: the console does not
 *   warn of its handler
 * @property {unknown} [report] what its handler reported last
 * @property {object} [progress] its last progress
 * @property {{ add(info: object): void, flush(): void }} [reports] sends its progress
 * @property {Promise<void>} [returned] who waits for its handler to return
 * @property {() => void} [onReturn]
 * @property {string} [about] the callId of the agent's call on whose behalf the app makes it to itself
 * @property {Call} [above] the call that makes it
 * @property {boolean} [follows] its handler has passed on that what it called still runs
 * @property {unknown} [late] what a call below reported after its caller was told that it still runs
 * @property {unknown} [earlier] what was reported of this work before it was stopped, if it was
 * @property {Transferable[]} [transfer] what of its data is moved
 * @property {boolean} [runsOn] its caller was told that it still runs
 */

/** An app may have very many of them, pending for long: each field counts, and a private method would be one. */
export class Call {
  /** In the core; 0 before it begins and after its handler has settled. @type {abp.Handle} */
  handle = 0;
  /** The signal of this side's that cancels it: its caller's. @type {AbortSignal | undefined} */
  followed;
  /** Takes its response; undefined if it was received from the other side. @type {((response: any) => void) | undefined} */
  resolve;
  /** Whether its handler is to stop, and why, in the words of who wants that. */
  aborted = false;
  /** @type {string | undefined} */
  reason;
  /** What its handler has given. @type {any} */
  given;
  /** Whether its handler has returned, or will never run. */
  hasEnded = false;
  /** When its handler was started, in whole ms: other numbers would be kept as objects. */
  started = 0;
  /** Its rarely used fields, to be read. @type {Readonly<Rare>} */
  seldom = NOTHING;

  /**
   * @param {import('./endpoint.js').Endpoint} endpoint
   * @param {any} name
   * @param {unknown} params
   * @param {MadeOptions & Asked} [options]
   * @param {unknown} [key] what names it in frames; 0 or undefined if it goes in messages
   */
  constructor(endpoint, name, params, options, key) {
    this.endpoint = endpoint;
    this.name = name;
    this.params = params;
    this.options = options ?? NOTHING;
    this.key = key;
  }

  /** Its rarely used fields, to be written. @returns {Rare} */
  get rare() {
    return this.seldom === NOTHING ? (this.seldom = {}) : this.seldom;
  }

  /**
   * Gives the core an input about it.
   * @param {(x: abp.Exports, pointer: import('./endpoint.js').Endpoint['core']['pointer'], call: abp.Handle) => abp.Packed} input
   * @param {unknown} [context] what it is about
   */
  tell(input, context) {
    return this.endpoint.machine.feed((x, pointer) => input(x, pointer, this.handle), context);
  }

  // --- One that is made here ------------------------------------------------------------------------

  /** Makes the call. @param {abp.Handle} [parent] the call on whose behalf this is made */
  begin(parent = 0) {
    const { endpoint, options } = this;
    const { signal, callId, onProgress, stream, highWaterMark } = options;
    this.followed = signal;
    stream?.attach(this);
    if (signal?.aborted)
      return this.settle(abp.CANCELLED, undefined, undefined, abp.FATE_UNSTARTED);
    const timeout = milliseconds(options.timeout);
    // The core's clock stands still between inputs, and a deadline counts from now, or stands still from now on.
    if (timeout || parent) endpoint.machine.advance();
    onAbort(signal, this);
    endpoint.begin(this, parent, (x, pointer) => {
      const length = endpoint.core.writeId(callId);
      if (callId !== undefined && !length) return abp.E_ID;
      const flags = (onProgress ? abp.WANTS_PROGRESS : 0) | (stream ? abp.WANTS_STREAM : 0);
      const bytes = stream ? limitOf(highWaterMark) : 0;
      return x.request(pointer, length, timeout, flags, parent, bytes);
    });
    this.params = undefined; // They were sent.
  }

  /** Whether its chunks are read. The machine asks for its window then. */
  get stream() {
    return this.options.stream;
  }

  /** Its signal has fired. */
  handleEvent() {
    this.reason = reasonText(this.followed?.reason);
    this.endpoint.machine.cancel(this.handle, this.reason);
  }

  /** It could not be sent. @param {unknown} error @param {unknown} [params] */
  unsent(error, params = this.params) {
    const { endpoint, handle, resolve } = this;
    const isTold = isErrorObject(error);
    const response = isTold ? failedBy(error) : endpoint.refusal(abp.INVALID_PARAMS);
    // The call ends. What it says of that waits for code that is loaded when it is needed.
    if (!isTold)
      this.resolve = (settled) =>
        void reasonUnsent('parameters', 'params', params, error).then((why) => {
          settled.error.message = why;
          resolve?.(settled);
        });
    endpoint.machine.sendFailed(handle, { payload: response });
  }

  /**
   * @param {abp.Outcome} outcome
   * @param {any} context what has come, if that settles it: `payload` is the response, `chunk` one that was too much
   * @param {number | undefined} _limit
   * @param {abp.Fate} fate what became of its work; `FATE_NONE` of a success
   */
  settle(outcome, context, _limit, fate) {
    const given = (context?.isChunk && this.stream?.overrun) || context?.payload;
    if (outcome === abp.COMPLETED && fate === abp.FATE_NONE) return this.end(given);
    const response = this.failure(abp.SETTLE, outcome, fate, given);
    this.endpoint.side.later?.(response, this);
    this.end(response);
  }

  /**
   * What is said of it if it did not succeed.
   * @param {abp.Kind} kind `SETTLE` if it was made here, `RESULT` if it was received
   * @param {abp.Outcome} outcome
   * @param {abp.Fate} fate
   * @param {unknown} given the response of its handler, or of the other side
   * @returns {any}
   */
  failure(kind, outcome, fate, given) {
    const { endpoint, followed, name } = this;
    const isMade = kind === abp.SETTLE;
    const why = followed?.aborted ? followed.reason : this.reason;
    const words = reasonText(why);
    let reason = this.aborted || followed?.aborted ? (words ?? '') : given ? undefined : words;
    if (isMade && outcome === abp.DISCONNECTED) {
      // What has come ends the session, and is no response.
      reason = reasonText(endpoint.cause ?? getOwn(given, 'error'));
      given = undefined;
    }
    return endpoint.core.response(kind, outcome, fate, {
      given,
      reason,
      expired: saysTimeout(why),
      repeatable: (isMade ? endpoint.side : endpoint.callee).repeatable?.(name),
    });
  }

  /** A chunk has come (of one that is made), or is sent. @param {any} context @param {number} size */
  chunk(context, size) {
    const { stream, key, endpoint } = this;
    if (stream) stream.push(getOwn(context.payload, 'chunk'), size);
    else this.seldom.outflow?.send(context, size, key === undefined ? undefined : endpoint.frames);
  }

  /** @param {[number, number]} amount that was read */
  credit(amount) {
    const { key, handle, endpoint } = this;
    const { frames, core } = endpoint;
    if (key && frames) frames.add(CREDIT, key, ...amount);
    else endpoint.say(core.print({}, abp.CREDIT, handle, amount));
  }

  /** Its caller gets its response. @param {unknown} response @param {Transferable[]} [transfer] */
  end(response, transfer) {
    offAbort(this.followed, this);
    this.endpoint.machine.observe?.('end', this, response);
    if (this.resolve) this.resolve(response);
    else this.endpoint.respond(this, response, transfer);
  }

  // --- What a handler uses -------------------------------------------------------------------------

  /** Aborts when the call is cancelled, times out, or its caller is gone. The reason is an `AbortError`. */
  get signal() {
    const controller = (this.rare.controller ??= new AbortController());
    // For packages/page/src/grace.js, of whatever copy.
    /** @type {any} */ (controller.signal).abpGrace = this.endpoint.limits?.grace;
    if (this.aborted) controller.abort(abortError(this.reason));
    return controller.signal;
  }

  /** The id by which the call can be cancelled. @returns {string} */
  get callId() {
    const { key, options, endpoint } = this;
    return typeof key === 'string' ? key : (options.callId ?? endpoint.core.idText(this.handle));
  }

  // --- One that was received ------------------------------------------------------------------------

  start() {
    return this.endpoint.side.start(this);
  }

  /** Its handler waits for something before it begins. */
  postpone() {
    this.tell((x, pointer, call) => x.postpone(pointer, call));
  }

  /** Its handler is about to do something. @returns {boolean} false if it must not: the call has ended or is to stop */
  beginWork() {
    return !this.hasEnded && this.tell((x, pointer, call) => x.begin(pointer, call)) === abp.OK;
  }

  /** There is room for a chunk that had to wait. */
  resume() {
    this.seldom.outflow?.resume();
  }

  /** The response that says what its handler has thrown. @param {any} error @returns {any} */
  thrown(error) {
    const outcome = safely(() => error.outcome);
    const response = failedBy(error, isOpen(outcome) && outcome);
    if (outcome === 'running') return response;
    if (saysCancelled(error)) {
      this.reason ??= reasonText(error);
      response.error.code = 'CANCELLED';
    } else if (!this.aborted && !isErrorObject(error)) {
      // It is probably a defect of the handler.
      safely(() => console.error(`abp-bridge: ${this.name} failed:`, error));
    }
    return response;
  }

  /** Its handler has settled. @param {any} response what it has given, in the end */
  finish(response) {
    this.hasEnded = true;
    this.given = response;
    const { endpoint, handle } = this;
    const { core, machine } = endpoint;
    if (response.success) machine.finish(this, abp.COMPLETED);
    else
      machine.finish(this, abp.FAILED, (x, pointer) =>
        x.finish_with_response(pointer, handle, core.writeText(response, response)),
      );
    this.seldom.onReturn?.();
  }

  /** Its handler has returned, or will never run. */
  leave() {
    this.hasEnded = true;
    this.seldom.onReturn?.();
  }

  /**
   * Marks it as aborted and fires its signal.
   * @param {string | undefined} reason as the other side gave it
   * @param {unknown} [fate] what became of its work, if the core knows that already
   */
  abort(reason, fate) {
    if (fate === abp.FATE_UNSTARTED) this.leave();
    this.aborted = true;
    this.reason = reason ?? this.endpoint.closing;
    const rare = this.seldom;
    rare.token?.cancel();
    rare.controller?.abort(abortError(this.reason));
    rare.outflow?.stop(reason);
    rare.onStop?.(reason);
  }

  /** @param {abp.Outcome} outcome @param {abp.Fate} fate */
  answer(outcome, fate) {
    const { given, endpoint } = this;
    if (fate === abp.FATE_UNSTARTED) this.leave();
    // Its handler has ended, or given an answer; where the session has ended, nothing was waited for.
    const isLeft = fate === abp.FATE_RUNNING && !this.hasEnded && !given && endpoint.ready;
    if (isLeft && !this.seldom.onStop) tell((dev) => dev.warnOfHandler(this.name, 'busy'));
    const isValue = outcome === abp.COMPLETED && given.success;
    const response = isValue
      ? { success: true, data: given.data }
      : this.failure(abp.RESULT, outcome, fate, given);
    endpoint.side.complete?.(this, response, outcome, fate);
    this.end(response, isValue ? this.seldom.transfer : undefined);
  }

  /** @param {abp.ErrorCode} code */
  refuse(code) {
    const { endpoint } = this;
    const { frames } = endpoint;
    const response = endpoint.refusal(code, undefined, abp.REFUSE);
    // In a session that began meanwhile, its key is that of another call.
    const end = () => (this.resolve || frames === endpoint.frames) && this.end(response);
    const explaining = endpoint.callee.explain?.(this, code, response.error);
    if (explaining) void explaining.then(end);
    else end();
  }

  /** It has ended without the core: that refused it, or has failed. @param {any} response */
  fail(response) {
    this.resolve ??= () => {};
    this.end(response);
    if (!this.hasEnded) this.abort(response.error.message);
  }
}

/**
 * Makes a call, or asks a question.
 * @param {import('./endpoint.js').Endpoint} endpoint
 * @param {string} name
 * @param {unknown} params
 * @param {MadeOptions} [options]
 * @param {abp.Handle} [parent] the call on whose behalf this is made
 * @returns {Promise<any>} the response: it never rejects
 */
export const makeCall = (endpoint, name, params, options, parent = 0) =>
  new Promise((resolve) => {
    const call = new Call(endpoint, name, params, options);
    call.resolve = resolve;
    call.begin(parent);
  });
