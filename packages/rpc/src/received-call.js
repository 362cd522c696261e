/**
 * A call that was received: runs its handler, is the handler's context, and sends its answer.
 */
import {
  LIMITS,
  abortError,
  abp,
  getOwn,
  isGenerator,
  isRecord,
  isStream,
  keptReport,
  markedTransfer,
  saysTimeout,
} from 'abp-bridge/driver';
import * as rpc from './rpc-boundary.js';
import { RpcError, saysCancelled, toErrorObject } from './errors.js';
import { reportingTaskOf, taskOf } from './task-progress.js';

/** @import { Answer } from './made-call.js' */
/** @import { Peer, RequestOptions } from './peer.js' */

/**
 * @typedef {(params: any, context: ReceivedCall) => any} Handler Answers a request. It returns the
 *   result, or streams it as an async generator or by returning an async iterable. Throw an {@link
 *   RpcError} to choose the error; any other thrown value is an internal error. Once its signal has
 *   fired, any thrown value means: cancelled.
 */

/** The handle of no call. It is not 0, which would mean: without a parent. */
const ENDED = /** @type {rpc.Handle} */ (-1);

/**
 * The outcome of the work, as data of an error.
 * @param {abp.Fate} fate
 * @param {{ report?: unknown, progress?: unknown }} [said] by its handler
 */
function outcomeData(fate, { report, progress } = {}) {
  const reached = keptReport(progress);
  return {
    outcome: abp.FATES[fate],
    ...(report !== undefined && { report }),
    ...(reached !== undefined && { progress: reached }),
  };
}

/**
 * A received request. Handlers get it as their second argument; its public members can be
 * destructured.
 */
export class ReceivedCall {
  /** In the core; 0 before it begins and after its handler has settled. @type {rpc.Handle} */
  handle = 0;
  aborted = false;
  /** The reason of its cancel, from the other side. @type {string | undefined} */
  reason = undefined;
  /** The end of the connection, if that is the reason. @type {RpcError | undefined} */
  #cause;
  /** @type {AbortController | undefined} */
  #controller;
  #peer;
  #handler;
  #started = false;
  /** True if the handler itself threw an error that means: cancelled. */
  #threwCancelled = false;
  /** True if its answer was a task that continues, and so does its progress. */
  goesOn = false;
  /** True if its answer was a task. */
  isTask = false;
  /** The last progress that was sent (MCP): the next must be greater. */
  lastProgress = -Infinity;
  /** The name by which it can be stopped. @type {unknown} */
  name = undefined;
  /**
   * Further names by which it can be stopped, given by its handler.
   * @type {Set<unknown> | undefined}
   */
  names = undefined;
  /** The batch that its answer belongs to. @type {import('./message.js').Batch | undefined} */
  batch = undefined;
  /** The answer of its handler. @type {Answer | undefined} */
  #answer;
  /**
   * The handler's latest statement on its work.
   * @type {{ report?: unknown, progress?: unknown } | undefined}
   */
  #statement;
  /**
   * Sends its progress.
   * @internal
   * @type {ReturnType<typeof import('abp-bridge/driver').latestOf<object>> | undefined}
   */
  reports;
  /** Resolves `settling` when its handler has settled. @type {(() => void) | undefined} */
  #settled;
  /** @type {Promise<void> | undefined} */
  #settling;
  /**
   * The stream of its handler, if it has one.
   * @type {import('./partial-results.js').Iteration | undefined}
   */
  #iteration;

  /**
   * @param {Peer} peer
   * @param {Handler | undefined} handler
   * @param {unknown} id
   * @param {string} method
   * @param {unknown} params
   */
  constructor(peer, handler, id, method, params) {
    this.#peer = peer;
    this.#handler = handler;
    /** The id that the other side gave it. */
    this.id = id;
    this.method = method;
    this.params = params;
  }

  // --- The interface for handlers ----------------------------------------------------------------

  /**
   * Aborts when the request is cancelled, times out, or its caller is gone. The reason is an
   * `AbortError`.
   */
  get signal() {
    // Most handlers never read it.
    const controller = (this.#controller ??= new AbortController());
    // For a pool that gets this signal with its work.
    /** @type {any} */ (globalThis)[LIMITS]?.set(controller.signal, { grace: this.#peer.grace });
    if (this.aborted) this.#fire();
    return controller.signal;
  }

  #fire() {
    const cause = this.#cause;
    this.#controller?.abort(Object.assign(abortError(this.reason), cause && { cause }));
  }

  /**
   * Makes a request on behalf of this one: when this one is cancelled, so is that one, and this one
   * is answered after it.
   */
  get request() {
    return (
      /** @type {string} */ method,
      /** @type {unknown} */ params = undefined,
      /** @type {RequestOptions} */ options = {},
    ) => {
      this.#peer.nameFor(this, method, params);
      // A task goes on after its request was answered: only its signal reports that it was stopped.
      if (this.isTask && isRecord(options))
        options = { wait: false, ...options, signal: options.signal ?? this.signal };
      return this.#peer.requestFor(this.handle, method, params, options);
    };
  }

  /** Sends a notification to the caller's side. */
  get notify() {
    return (/** @type {string} */ method, /** @type {unknown} */ params = undefined) =>
      this.#peer.notify(method, params);
  }

  /**
   * Reports progress: the latest of each turn. Nothing is sent unless the caller requested it, nor
   * after a cancel.
   */
  get progress() {
    return (/** @type {unknown} */ info) => {
      (this.#statement ??= {}).progress = info;
      this.#peer.progress(this, 'onProgress', info);
    };
  }

  /**
   * Records a report of the handler on its work, what was applied and what remains, in JSON of at
   * most 4 KB. The latest is sent in the error's `data` if the request does not succeed.
   */
  get report() {
    return (/** @type {unknown} */ report) => {
      (this.#statement ??= {}).report = keptReport(report, this.method);
    };
  }

  /** Sends a part of the result (LSP), if the caller requested parts: the result is then empty. */
  get partialResult() {
    return (/** @type {unknown} */ part) => this.#peer.progress(this, 'onPartialResult', part);
  }

  // --- The interface for the peer ----------------------------------------------------------------

  /**
   * The result of a handler's return value: a stream's parts are sent to a caller that requested
   * them, or joined.
   * @param {unknown} value
   * @returns {Promise<any>}
   */
  async resultOf(value) {
    if (!isStream(value)) return value;
    // Loaded on demand: few handlers stream.
    const { Iteration, resultOfParts } = await import('./partial-results.js');
    this.#iteration = new Iteration(value);
    if (!this.beginWork()) this.#iteration.stop(this.reason);
    return resultOfParts(this.#peer, this, this.#iteration);
  }

  /**
   * Called before the handler does something. Returns false if it must not: the call has ended or
   * is to stop.
   * @internal
   */
  beginWork() {
    const { machine } = this.#peer;
    return machine.feed(machine.core.x.begin, this, this.handle) === abp.OK;
  }

  /**
   * Called when its handler waits before it begins.
   * @internal
   */
  postpone() {
    const { machine } = this.#peer;
    machine.feed(machine.core.x.postpone, this, this.handle);
  }

  /** @internal */
  async start() {
    const { machine, dialect } = this.#peer;
    /** @type {rpc.Ending} */
    let ending = rpc.RETURNED;
    this.#started = true;
    try {
      // A handler with `later` waits for its turn: it postpones the call, and begins it.
      const handler = /** @type {Handler & { later?: Handler }} */ (this.#handler);
      // A generator runs no line before its first part is requested.
      if (isGenerator(handler)) this.postpone();
      const given = await (handler.later ?? handler)(this.params, this);
      const result = await this.resultOf(given);
      if (this.#iteration && this.aborted && result === undefined) ending = rpc.ENDED;
      // JSON omits undefined, and an answer without a result is not an answer.
      if (typeof result === 'function' || typeof result === 'symbol')
        throw new TypeError(`A ${typeof result} cannot be a result`);
      this.#answer = { result: result === undefined ? dialect.nothing : result };
      this.goesOn = dialect.tasks === true && reportingTaskOf(result) !== undefined;
      this.isTask = dialect.tasks === true && taskOf(result) !== undefined;
    } catch (error) {
      ending = saysCancelled(error, machine.core.cancelledCode)
        ? rpc.GAVE_UP
        : saysTimeout(error)
          ? rpc.RAN_OUT
          : rpc.THREW;
      this.#threwCancelled =
        ending === rpc.GAVE_UP && error instanceof RpcError && error.name === 'RpcError';
      this.#answer = { error: toErrorObject(error) };
    }
    const { handle } = this;
    this.reports?.flush();
    machine.finish(this, machine.core.x.finish, ending);
    if (this.aborted) this.#peer.keep(this);
    this.#settled?.();
    if (machine.failed || !machine.core.isPending(handle)) this.batch?.ended(this);
    if (this.aborted) this.handle = ENDED;
  }

  /**
   * @internal
   * @param {string | undefined} reason
   * @param {abp.Fate} [fate] the outcome of its work, if the core knows it already
   */
  abort(reason, fate) {
    // Its handler may run on without the call, whose handle will be reused.
    if (fate === abp.FATE_UNSTARTED) this.handle = ENDED;
    this.aborted = true;
    this.reason = reason;
    this.#cause = this.#peer.ended;
    this.#fire();
    this.#iteration?.stop(reason);
    if (!this.#started) this.#settled?.();
    // In a version with batches, cancelled requests get no answer, and the other answers do not
    // wait for its handler.
    if (!this.#started || !this.#peer.isClosed) this.batch?.ended(this);
  }

  /**
   * Resolves when its handler has settled, or never will.
   * @internal
   */
  get settling() {
    return (this.#settling ??= new Promise((resolve) => (this.#settled = resolve)));
  }

  /**
   * The handler's answer to a cancelled call, which was not sent.
   * @internal
   * @param {abp.Fate} fate
   */
  unsent(fate) {
    return this.#answer && this.#withOutcome(this.#answer, fate);
  }

  /**
   * @internal
   * @param {abp.Outcome | rpc.PeerOutcome} outcome
   * @param {abp.Fate} fate
   */
  answer(outcome, fate) {
    const { dialect } = this.#peer;
    const said = this.#statement;
    let answer = this.#answer ?? { result: dialect.closes?.(this.id) };
    const stopped = outcome === rpc.STOPPED_BY_NAME && dialect.stopped?.get(this.method);
    if (stopped)
      answer = { result: said ? { ...stopped, _meta: outcomeData(fate, said) } : stopped };
    else if (outcome !== abp.COMPLETED) answer = { error: this.#stopped(outcome) };
    if (dialect.tells || said?.report !== undefined) answer = this.#withOutcome(answer, fate);
    this.#peer.respond(this, answer, markedTransfer(getOwn(answer, 'result')));
  }

  /**
   * The error of a call that was stopped.
   * @param {abp.Outcome | rpc.PeerOutcome} outcome
   */
  #stopped(outcome) {
    const { dialect } = this.#peer;
    if (outcome === abp.DISCONNECTED) return this.#peer.errorObject(rpc.RPC_CLOSED);
    if (this.#threwCancelled) return getOwn(this.#answer, 'error');
    const data = dialect.cancelled?.(this.id);
    return { ...this.#peer.errorObject(rpc.RPC_CANCELLED), ...(data !== undefined && { data }) };
  }

  /**
   * Adds the outcome of the work to an error, unless the handler's data have no room for it.
   * @param {any} answer
   * @param {abp.Fate} fate
   */
  #withOutcome(answer, fate) {
    const { error } = answer;
    const { data = {} } = error ?? {};
    if (!('error' in answer) || !isRecord(data)) return answer;
    return { error: { ...error, data: { ...outcomeData(fate, this.#statement), ...data } } };
  }

  /**
   * The core has failed.
   * @param {Error} error
   */
  fail(error) {
    if (!this.#answer) this.abort(error.message);
  }
}
