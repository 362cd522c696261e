/**
 * A call, on either side: what it is about, and who waits for it. What becomes of it, the core
 * decides (src/call_state.c), and what is said of it, too. A record holds things: params, a
 * promise, a controller, a signal, a response.
 */
import * as abp from '../driver/abp-boundary.js';
import { isErrorObject, reasonText, safely, saysCancelled, saysTimeout } from '../common/errors.js';
import { LIMITS, abortError, offAbort } from '../common/signals.js';
import { EMPTY, getOwn } from '../common/values.js';
import { failedBy, isOpen } from '../wire/messages.js';

/** The handle of no call. It is not 0, which would mean: without a parent. */
export const ENDED = /** @type {abp.Handle} */ (-1);

/**
 * How a call is made, and what it says besides its name and params. It is kept as it was given.
 * @typedef {object} RequestOptions How a call ends early, and what it reports.
 * @property {AbortSignal} [signal] cancels the call; the app decides how it ended
 * @property {number} [timeout] ms after which the call cancels itself; 0 or absent is never
 * @property {(info: import('../wire/messages.js').ProgressInfo) => void} [onProgress] called with
 *   each report of progress
 * @property {string} [callId] names the call, for `cancel`; minted when absent
 * @property {string | number} [progressToken] the token that the app reports progress with (the
 *   callId)
 * @property {Transferable[]} [transfer] objects in the params that are moved instead of copied
 * @property {string} [idempotencyKey] names the work: a call with the key of an earlier one, by the
 *   same agent, joins that or gets what became of it, and never runs twice as long as the same
 *   memory (`client.memory`) remembers. At most 256 characters. See docs/agents.md#again-safely
 */

/**
 * Reads the chunks of a call.
 * @typedef {object} ChunkReader
 * @property {(call: Call) => void} attach takes the call, as soon as it is made
 * @property {(value: unknown, size: number) => void} push takes a chunk
 * @property {object} overrun the response of a call whose other side has sent too much
 */

/**
 * @typedef {RequestOptions & { about?: string, stream?: ChunkReader, input?: any,
 *   highWaterMark?: number }} MadeOptions `about` is the callId on whose behalf a question is
 *   asked, or that of a call which may have run and is repeated; `stream` reads its chunks; `input`
 *   is what its handler reads
 */

/**
 * What a call that was received says besides its name and params.
 * @typedef {object} Asked
 * @property {unknown} [id] of its message, if it came in one
 * @property {number} [timeout] ms, where the core was not told by a message
 * @property {unknown} [progress] the token that names its progress; true is the id of the call
 * @property {boolean} [input] whether its caller streams to its handler
 * @property {unknown} [idempotencyKey] repeats of the call have the same one
 * @property {unknown} [about] of a question: the callId of the agent's call on whose behalf it is
 *   asked
 */

/**
 * Fields that few calls need.
 * @typedef {object} Extra
 * @property {AbortController} [controller] of the handler's signal
 * @property {import('../common/token.js').Token} [token] what its handler reads of it
 * @property {import('./outflow.js').Outflow} [outflow] what its handler streams
 * @property {AsyncIterableIterator<unknown> & { highWaterMark?: number }} [input] what is streamed
 *   to its handler
 * @property {boolean} [collected] its chunks were collected into its data
 * @property {(reason?: string) => void} [onStop] is called when the call is cancelled, and sees to
 *   what follows: the console does not warn of its handler
 * @property {unknown} [report] what its handler reported last
 * @property {object} [progress] its last progress
 * @property {{ add(info: object): void, flush(): void }} [reports] sends its progress
 * @property {Promise<void>} [returned] who waits for its handler to return
 * @property {() => void} [onReturn]
 * @property {string} [about] the callId of the agent's call on whose behalf the app makes it to
 *   itself
 * @property {Call} [parent] the call that makes it
 * @property {boolean} [goesOn] its handler has passed on that what it called still runs
 * @property {unknown} [lateReport] what a call below reported after its caller was told that it
 *   still runs
 * @property {unknown} [earlier] what was reported of this work before it was stopped, if it was
 * @property {Transferable[]} [transfer] what of its data is moved
 * @property {boolean} [answeredEarly] its caller was told that it still runs
 */

/**
 * An app may have very many of them, pending for long: each field counts, and a private method
 * would be one.
 */
export class Call {
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
    /** @type {MadeOptions & Asked} */
    this.options = options ?? EMPTY;
    this.key = key;
    /** In the core; 0 before it begins and after its handler has settled. @type {abp.Handle} */
    this.handle = 0;
    /** The signal of this side's that cancels it: its caller's. @type {AbortSignal | undefined} */
    this.callerSignal = undefined;
    /**
     * Takes its response; undefined if it was received from the other side.
     * @type {((response: any) => void) | undefined}
     */
    this.resolve = undefined;
    /** Whether its handler is to stop, and why, in the words of who wants that. */
    this.aborted = false;
    /** @type {string | undefined} */
    this.reason = undefined;
    /** What its handler has given. @type {any} */
    this.given = undefined;
    /** When its handler was started, in whole ms: other numbers would be kept as objects. */
    this.started = 0;
    /** The fields that few calls need, to be read. @type {Readonly<Extra>} */
    this.extra = EMPTY;
  }

  /**
   * The same, to be written.
   * @returns {Extra}
   */
  ensureExtra() {
    return this.extra === EMPTY ? (this.extra = {}) : this.extra;
  }

  // --- How it ends -------------------------------------------------------------------------------

  /** Its caller's signal has fired. */
  handleEvent() {
    const { endpoint } = this;
    const { core } = endpoint;
    this.reason = reasonText(this.callerSignal?.reason);
    endpoint.feed(core.x.cancel, undefined, this.handle, core.writeReason(this.reason));
  }

  /**
   * What is said of it if it did not succeed.
   * @param {abp.Kind} kind `SETTLE` if it was made here, `RESULT` if it was received
   * @param {abp.Outcome} outcome
   * @param {abp.Fate} fate
   * @param {any} given the response of its handler, or of the other side
   * @param {abp.Response} [packed] what that says, if it is known
   * @returns {any}
   */
  failure(kind, outcome, fate, given, packed) {
    const { endpoint, callerSignal } = this;
    if (kind === abp.RESULT && outcome !== abp.COMPLETED && saysNothing(given)) given = undefined;
    const isStopped = callerSignal?.aborted;
    const why = isStopped ? callerSignal.reason : this.reason;
    const words = reasonText(why);
    let reason = this.aborted || isStopped ? (words ?? '') : given ? undefined : words;
    if (kind === abp.SETTLE && outcome === abp.DISCONNECTED) {
      // What has come ends the session, and is no response.
      reason = reasonText(endpoint.cause ?? getOwn(given, 'error'));
      given = packed = undefined;
    }
    return endpoint.core.response(kind, outcome, fate, {
      given,
      packed,
      reason,
      expired: saysTimeout(why),
      repeatable: endpoint.capabilities.repeatable?.(this.name),
    });
  }

  /**
   * Its caller gets its response.
   * @param {unknown} response
   * @param {Transferable[]} [transfer]
   */
  end(response, transfer) {
    if (this.callerSignal) offAbort(this.callerSignal, this);
    this.endpoint.observe?.('end', this, response);
    if (this.resolve) this.resolve(response);
    else this.endpoint.line.respond(this, response, transfer);
  }

  // --- What a handler uses -----------------------------------------------------------------------

  /**
   * Aborts when the call is cancelled, times out, or its caller is gone. The reason is an
   * `AbortError`.
   */
  get signal() {
    const controller = (this.ensureExtra().controller ??= new AbortController());
    // For a pool that has this signal's work.
    /** @type {any} */ (globalThis)[LIMITS]?.set(controller.signal, this.endpoint.limits);
    if (this.aborted) controller.abort(abortError(this.reason));
    return controller.signal;
  }

  /**
   * The id by which the call can be cancelled.
   * @returns {string}
   */
  get callId() {
    const { key, options, endpoint } = this;
    return typeof key === 'string' ? key : (options.callId ?? endpoint.core.idText(this.handle));
  }

  // --- One that was received ---------------------------------------------------------------------

  /**
   * Gives the core an input about it.
   * @template {unknown[]} A
   * @param {(pointer: import('./endpoint.js').Endpoint['core']['pointer'], call: abp.Handle,
   *   ...args: A) => abp.Packed} input
   * @param {A} args of the input
   */
  feed(input, ...args) {
    return this.endpoint.feed(input, this, this.handle, ...args);
  }

  /** Its handler waits for something before it begins. */
  postpone() {
    this.feed(this.endpoint.core.x.postpone);
  }

  /**
   * Its handler is about to do something.
   * @returns {boolean} false if it must not: the call has ended or is to stop
   */
  beginWork() {
    return !this.hasEnded && this.feed(this.endpoint.core.x.begin) === abp.OK;
  }

  /** Whether its handler has returned, or will never run. */
  get hasEnded() {
    const { handle, endpoint } = this;
    const { x, pointer } = endpoint.core;
    return !handle || (!endpoint.failed && x.has_ended(pointer, handle) === 1);
  }

  /**
   * The response that says what its handler has thrown.
   * @param {any} error
   * @returns {any}
   */
  thrown(error) {
    const outcome = safely(() => error.outcome);
    const isCancel = saysCancelled(error);
    if (outcome !== 'running' && isCancel) this.reason ??= reasonText(error);
    // What the platform throws says no more than that.
    if (isCancel && !outcome && !isErrorObject(error)) return { success: false, cancelled: true };
    const response = failedBy(error, isOpen(outcome) && outcome);
    if (outcome === 'running') return response;
    if (isCancel) response.error.code = 'CANCELLED';
    // It is probably a defect of the handler.
    else if (!this.aborted && !isErrorObject(error))
      safely(() => console.error(`abp-bridge: ${this.name} failed:`, error));
    return response;
  }

  /**
   * Its handler has settled.
   * @param {any} response what it has given, in the end
   */
  finish(response) {
    this.given = response;
    const { endpoint } = this;
    const { core } = endpoint;
    const { x } = core;
    if (response.success) endpoint.finish(this, x.finish, abp.COMPLETED, abp.FATE_NONE);
    else endpoint.finish(this, x.finish_with_outcome, core.packResponse(response));
    this.extra.onReturn?.();
  }

  /**
   * It has ended, and its handler will never run. What that still does is of no call: the handle
   * will be that of another one.
   */
  neverRuns() {
    this.handle = 0;
    this.extra.onReturn?.();
  }

  /**
   * Marks it as aborted and fires its signal.
   * @param {string | undefined} reason as the other side gave it
   * @param {unknown} [fate] what became of its work, if the core knows that already
   */
  abort(reason, fate) {
    const { extra } = this;
    if (fate === abp.FATE_UNSTARTED) this.neverRuns();
    this.aborted = true;
    this.reason = reason ?? this.endpoint.closing;
    extra.token?.cancel();
    extra.controller?.abort(abortError(this.reason));
    extra.outflow?.stop(reason);
    extra.onStop?.(reason);
  }

  /**
   * Its caller is to be told what became of it.
   * @param {abp.Outcome} outcome
   * @param {abp.Fate} fate
   */
  answer(outcome, fate) {
    const { given, endpoint, extra } = this;
    if (fate === abp.FATE_UNSTARTED) this.neverRuns();
    const isSuccess = outcome === abp.COMPLETED && given.success;
    const response = isSuccess
      ? { success: true, data: given.data }
      : this.failure(abp.RESULT, outcome, fate, given);
    endpoint.owner.finished(this, response, outcome, fate);
    this.end(response, isSuccess ? extra.transfer : undefined);
  }

  /** @param {abp.ErrorCode} code with which the core refuses it */
  refuse(code) {
    const { endpoint } = this;
    const { line, capabilities } = endpoint;
    const response = endpoint.refusal(code, undefined, abp.REFUSE);
    // In a session that began meanwhile, its key is that of another call.
    const end = () => (this.resolve || line === endpoint.line) && this.end(response);
    const explaining = capabilities.explain?.(this, code, response.error);
    if (explaining) void explaining.then(end);
    else end();
  }

  /**
   * It has ended without the core: that refused it, or has failed.
   * @param {any} response
   */
  fail(response) {
    const isRunning = !this.hasEnded;
    this.resolve ??= () => {};
    this.end(response);
    if (isRunning) this.abort(response.error.message);
  }
}

/**
 * Whether a handler's response says nothing of a call that was stopped: a success that comes too
 * late, or no more than that it has stopped.
 * @param {any} given
 */
const saysNothing = ({ success, cancelled, data, error, metadata } = EMPTY) =>
  !error && !metadata && (success || (cancelled && data === undefined));
