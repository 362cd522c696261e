/**
 * A call, on either side. The core decides its outcome (src/call_state.c) and the response of its
 * failure. The record holds JavaScript's part: params, a promise, a controller, a signal, a
 * response.
 */
import * as abp from '../driver/abp-boundary.js';
import { isErrorObject, reasonText, safely, saysCancelled, saysTimeout } from '../common/errors.js';
import { LIMITS, abortError, offAbort } from '../common/signals.js';
import { EMPTY, getOwn } from '../common/values.js';
import { failedBy, isOpen } from '../wire/messages.js';

/** A handle that matches no call. Not 0, which would mean: without a parent. */
export const ENDED = /** @type {abp.Handle} */ (-1);

/**
 * The options of a call that is made. The object is kept as it was passed.
 * @typedef {object} RequestOptions How a call ends early, and what it reports.
 * @property {AbortSignal} [signal] cancels the call; the app decides how it ended
 * @property {number} [timeout] ms after which the call is cancelled; 0 or absent: never
 * @property {(info: import('../wire/messages.js').ProgressInfo) => void} [onProgress] called with
 *   each report of progress
 * @property {string} [callId] the id of the call, for `cancel`; chosen by the library when absent
 * @property {string | number} [progressToken] the token with which the app reports progress
 *   (default: the callId)
 * @property {Transferable[]} [transfer] objects in the params that are moved instead of copied
 * @property {string} [idempotencyKey] names the work: a second call with the same key, by the same
 *   agent, joins the first or gets its outcome, and never runs twice for as long as the same memory
 *   (`client.memory`) remembers it. At most 256 characters. See docs/agents.md#again-safely
 */

/**
 * Reads the chunks of a call.
 * @typedef {object} ChunkReader
 * @property {(call: Call) => void} attach receives the call, as soon as it is made
 * @property {(value: unknown, size: number) => void} push receives a chunk
 * @property {object} overrun the response of a call whose other side has sent too much
 */

/**
 * @typedef {RequestOptions & { about?: string, stream?: ChunkReader, input?: any,
 *   highWaterMark?: number }} MadeOptions `about` is the callId of the call on whose behalf a
 *   question is asked, or that of a call which may have run and is repeated; `stream` reads its
 *   chunks; `input` is the stream for its handler
 */

/**
 * The options of a received call, besides its name and params.
 * @typedef {object} Asked
 * @property {unknown} [id] of its message, if it came in one
 * @property {number} [timeout] ms, if the core did not read it from a message
 * @property {unknown} [progress] the token that names its progress; true is the id of the call
 * @property {boolean} [input] whether its caller streams to its handler
 * @property {unknown} [idempotencyKey] repeats of the call have the same key
 * @property {unknown} [about] for a question: the callId of the agent's call on whose behalf it is
 *   asked
 */

/**
 * Fields that few calls need.
 * @typedef {object} Extra
 * @property {AbortController} [controller] of the handler's signal
 * @property {import('../common/token.js').Token} [token] the token that its handler reads
 * @property {import('./outflow.js').Outflow} [outflow] the stream of its handler
 * @property {AsyncIterableIterator<unknown> & { highWaterMark?: number }} [input] the stream to its
 *   handler
 * @property {boolean} [collected] its chunks were collected into its data
 * @property {(reason?: string) => void} [onStop] called when the call is cancelled, and handles
 *   that: the console shows no warning about its handler
 * @property {unknown} [report] its handler's last report
 * @property {object} [progress] its last progress
 * @property {{ add(info: object): void, flush(): void }} [reports] sends its progress
 * @property {Promise<void>} [returned] resolves when its handler has returned
 * @property {() => void} [onReturn]
 * @property {string} [about] for a call of the app to itself: the callId of the agent's call on
 *   whose behalf it is made
 * @property {Call} [parent] the call that makes it
 * @property {boolean} [goesOn] its handler has reported that a call made by it still runs
 * @property {unknown} [lateReport] the report of a call made by its handler, after the caller was
 *   answered that it still runs
 * @property {unknown} [earlier] the last report of the earlier call that was stopped and that this
 *   one resumes
 * @property {Transferable[]} [transfer] the objects in its data to move
 * @property {boolean} [answeredEarly] its caller was answered that it still runs
 */

/**
 * An app may have very many calls, pending for a long time: each field counts, and a private method
 * would count as a field.
 */
export class Call {
  /**
   * @param {import('./endpoint.js').Endpoint} endpoint
   * @param {any} name
   * @param {unknown} params
   * @param {MadeOptions & Asked} [options]
   * @param {unknown} [key] its key in frames; 0 or undefined if it is sent in messages
   */
  constructor(endpoint, name, params, options, key) {
    this.endpoint = endpoint;
    this.name = name;
    this.params = params;
    /** @type {MadeOptions & Asked} */
    this.options = options ?? EMPTY;
    this.key = key;
    /** 0 before it begins, and after its handler has settled. @type {abp.Handle} */
    this.handle = 0;
    /** The caller's signal on this side, which cancels it. @type {AbortSignal | undefined} */
    this.callerSignal = undefined;
    /**
     * Called with its response; undefined if the call was received from the other side.
     * @type {((response: any) => void) | undefined}
     */
    this.resolve = undefined;
    /** True if its handler was asked to stop, with `reason`. */
    this.aborted = false;
    /** @type {string | undefined} */
    this.reason = undefined;
    /** Its handler's response. @type {any} */
    this.given = undefined;
    /** When its handler was started, in whole ms: fractions are stored as objects. */
    this.started = 0;
    /** The rarely used fields, for reading. @type {Readonly<Extra>} */
    this.extra = EMPTY;
  }

  /**
   * The rarely used fields, for writing.
   * @returns {Extra}
   */
  ensureExtra() {
    return this.extra === EMPTY ? (this.extra = {}) : this.extra;
  }

  // --- The end -----------------------------------------------------------------------------------

  /** Cancels the call: its caller's signal has fired. */
  handleEvent() {
    const { endpoint } = this;
    const { core } = endpoint;
    this.reason = reasonText(this.callerSignal?.reason);
    endpoint.feed(core.x.cancel, undefined, this.handle, core.writeReason(this.reason));
  }

  /**
   * Its response if it did not succeed.
   * @param {abp.Kind} kind `SETTLE` if it was made here, `RESULT` if it was received
   * @param {abp.Outcome} outcome
   * @param {abp.Fate} fate
   * @param {any} given the response of its handler, or of the other side
   * @param {abp.Response} [packed] the outcome in `given`, if it is known
   * @returns {any}
   */
  failure(kind, outcome, fate, given, packed) {
    const { endpoint, callerSignal } = this;
    if (kind === abp.RESULT && outcome !== abp.COMPLETED && saysNothing(given)) given = undefined;
    const isStopped = callerSignal?.aborted;
    const why = isStopped ? callerSignal.reason : this.reason;
    const text = reasonText(why);
    let reason = this.aborted || isStopped ? (text ?? '') : given ? undefined : text;
    if (kind === abp.SETTLE && outcome === abp.DISCONNECTED) {
      // The received message ended the session; it is not a response.
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
   * Passes its response to its caller.
   * @param {unknown} response
   * @param {Transferable[]} [transfer]
   */
  end(response, transfer) {
    if (this.callerSignal) offAbort(this.callerSignal, this);
    this.endpoint.observe?.('end', this, response);
    if (this.resolve) this.resolve(response);
    else this.endpoint.line.respond(this, response, transfer);
  }

  // --- For handlers ------------------------------------------------------------------------------

  /**
   * Aborts when the call is cancelled, times out, or its caller is gone. The reason is an
   * `AbortError`.
   */
  get signal() {
    const controller = (this.ensureExtra().controller ??= new AbortController());
    // For a pool that does the work of this signal.
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

  // --- Received calls ----------------------------------------------------------------------------

  /**
   * Passes an input about it to the core.
   * @template {unknown[]} A
   * @param {(pointer: import('./endpoint.js').Endpoint['core']['pointer'], call: abp.Handle,
   *   ...args: A) => abp.Packed} input
   * @param {A} args of the input
   */
  feed(input, ...args) {
    return this.endpoint.feed(input, this, this.handle, ...args);
  }

  /** Tells the core that its handler waits for something before it begins. */
  postpone() {
    this.feed(this.endpoint.core.x.postpone);
  }

  /**
   * Tells the core that its handler begins its work.
   * @returns {boolean} false if it must not begin: the call has ended or was asked to stop
   */
  beginWork() {
    return !this.hasEnded && this.feed(this.endpoint.core.x.begin) === abp.OK;
  }

  /** True if its handler has returned, or will never run. */
  get hasEnded() {
    const { handle, endpoint } = this;
    const { x, pointer } = endpoint.core;
    return !handle || (!endpoint.failed && x.has_ended(pointer, handle) === 1);
  }

  /**
   * The response for an error that its handler has thrown.
   * @param {any} error
   * @returns {any}
   */
  thrown(error) {
    const outcome = safely(() => error.outcome);
    const isCancel = saysCancelled(error);
    if (outcome !== 'running' && isCancel) this.reason ??= reasonText(error);
    // An error thrown by the platform has no more details.
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
   * Reports to the core that its handler has settled.
   * @param {any} response the handler's response
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
   * It has ended, and its handler will never run. The record drops the handle, which another call
   * will get.
   */
  neverRuns() {
    this.handle = 0;
    this.extra.onReturn?.();
  }

  /**
   * Marks it as aborted and fires its signal.
   * @param {string | undefined} reason as the other side gave it
   * @param {unknown} [fate] the fate of its work, if the core knows it
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
   * Sends its outcome to its caller.
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

  /**
   * @param {abp.ErrorCode} code the core's reason to refuse the call
   */
  refuse(code) {
    const { endpoint } = this;
    const { line, capabilities } = endpoint;
    const response = endpoint.refusal(code, undefined, abp.REFUSE);
    // In a session that began meanwhile, the key belongs to another call.
    const end = () => (this.resolve || line === endpoint.line) && this.end(response);
    const explaining = capabilities.explain?.(this, code, response.error);
    if (explaining) void explaining.then(end);
    else end();
  }

  /**
   * Ends it without the core, which has refused it or has failed.
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
 * True if the response of a stopped handler has no information: a success that came too late, or
 * only the fact that it has stopped.
 * @param {any} given
 */
const saysNothing = ({ success, cancelled, data, error, metadata } = EMPTY) =>
  !error && !metadata && (success || (cancelled && data === undefined));
