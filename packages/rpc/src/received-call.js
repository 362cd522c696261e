/**
 * A call that was received: runs its handler, is what the handler knows of it, and sends its
 * answer.
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
 * @typedef {(params: any, context: ReceivedCall) => any} Handler Answers a request. Its result is
 *   what it returns, or what it streams by being an async generator or returning an async iterable;
 *   throw an {@link RpcError} to choose the error, anything else is an internal error; once its
 *   signal has fired, whatever it throws says: cancelled.
 */

/** The handle of no call. It is not 0, which would mean: without a parent. */
const ENDED = /** @type {rpc.Handle} */ (-1);

/**
 * What became of the work.
 * @param {abp.Fate} fate
 * @param {{ report?: unknown, progress?: unknown }} [said] by its handler
 */
function told(fate, { report, progress } = {}) {
  const reached = keptReport(progress);
  return {
    outcome: abp.FATES[fate],
    ...(report !== undefined && { report }),
    ...(reached !== undefined && { progress: reached }),
  };
}

/**
 * A received request. Handlers get it as their second argument: the members that they may use can
 * be destructured.
 */
export class ReceivedCall {
  /** In the core; 0 before it begins and after its handler has settled. @type {rpc.Handle} */
  handle = 0;
  aborted = false;
  /** The reason of its cancel, as the other side gave it. @type {string | undefined} */
  reason = undefined;
  /** What ended the connection, if that is the reason. @type {RpcError | undefined} */
  #cause;
  /** @type {AbortController | undefined} */
  #controller;
  #peer;
  #handler;
  #started = false;
  /** Whether the handler threw an error of its own that says: cancelled. */
  #threwCancelled = false;
  /** Whether its answer was a task that continues, and so does its progress. */
  goesOn = false;
  /** Whether its answer was a task. */
  isTask = false;
  /** The last progress that was sent (MCP): the next must be more. */
  lastProgress = -Infinity;
  /** What it belongs to, by whose name it can be stopped. @type {unknown} */
  name = undefined;
  /**
   * Names that its handler has given it, by which it can be stopped, too.
   * @type {Set<unknown> | undefined}
   */
  names = undefined;
  /** The batch that its answer belongs to. @type {import('./message.js').Batch | undefined} */
  batch = undefined;
  /** The answer of its handler. @type {Answer | undefined} */
  #answer;
  /**
   * What its handler said of its work last.
   * @type {{ report?: unknown, progress?: unknown } | undefined}
   */
  #said;
  /**
   * Sends its progress.
   * @internal
   * @type {ReturnType<typeof import('abp-bridge/driver').latestOf<object>> | undefined}
   */
  reports;
  /** Tells those who wait until its handler has settled. @type {(() => void) | undefined} */
  #settled;
  /** @type {Promise<void> | undefined} */
  #settling;
  /**
   * What its handler streams, if it does.
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

  // --- What a handler uses -----------------------------------------------------------------------

  /**
   * Aborts when the request is cancelled, times out, or its caller is gone. The reason is an
   * `AbortError`.
   */
  get signal() {
    // Most handlers never read it.
    const controller = (this.#controller ??= new AbortController());
    // For a pool that has this signal's work.
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
      // A task goes on after its request was answered: only its signal tells that it was stopped.
      if (this.isTask && isRecord(options))
        options = { wait: false, ...options, signal: options.signal ?? this.signal };
      return this.#peer.requestFor(this.handle, method, params, options);
    };
  }

  /** Sends a notification to whoever asked. */
  get notify() {
    return (/** @type {string} */ method, /** @type {unknown} */ params = undefined) =>
      this.#peer.notify(method, params);
  }

  /**
   * Reports progress: the latest of each turn. Nothing is sent unless the caller asked for it, nor
   * after a cancel.
   */
  get progress() {
    return (/** @type {unknown} */ info) => {
      (this.#said ??= {}).progress = info;
      this.#peer.progress(this, 'onProgress', info);
    };
  }

  /**
   * Keeps what the handler says of its work, what it has applied and what remains, in JSON of at
   * most 4 KB. The latest is sent in the error's `data` if the request does not succeed.
   */
  get report() {
    return (/** @type {unknown} */ report) => {
      (this.#said ??= {}).report = keptReport(report, this.method);
    };
  }

  /** Sends a part of the result (LSP), if the caller asked for parts: the result is then empty. */
  get partialResult() {
    return (/** @type {unknown} */ part) => this.#peer.progress(this, 'onPartialResult', part);
  }

  // --- What the peer tells it --------------------------------------------------------------------

  /**
   * The result that a handler's value stands for: a stream's parts are sent to a caller that asked
   * for them, or joined.
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
   * Its handler is about to do something. False if it must not: the call has ended or is to stop.
   * @internal
   */
  beginWork() {
    const { machine } = this.#peer;
    return machine.feed(machine.core.x.begin, this, this.handle) === abp.OK;
  }

  /**
   * Its handler waits for something before it begins.
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
      // One that has `later` waits for its turn: it postpones the call, and begins it.
      const handler = /** @type {Handler & { later?: Handler }} */ (this.#handler);
      // Of a generator no line runs before its first part is taken.
      if (isGenerator(handler)) this.postpone();
      const given = await (handler.later ?? handler)(this.params, this);
      const result = await this.resultOf(given);
      if (this.#iteration && this.aborted && result === undefined) ending = rpc.ENDED;
      // JSON leaves out undefined, and an answer without a result is not an answer.
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
   * @param {abp.Fate} [fate] what became of its work, if the core knows that already
   */
  abort(reason, fate) {
    // What its handler still does is of no call: the handle will be that of another one.
    if (fate === abp.FATE_UNSTARTED) this.handle = ENDED;
    this.aborted = true;
    this.reason = reason;
    this.#cause = this.#peer.ended;
    this.#fire();
    this.#iteration?.stop(reason);
    if (!this.#started) this.#settled?.();
    // Nothing answers what was cancelled where there are batches, and others' answers do not wait
    // for its handler.
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
   * What its handler has answered, though nobody was told: it was cancelled.
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
    const said = this.#said;
    let answer = this.#answer ?? { result: dialect.closes?.(this.id) };
    const stopped = outcome === rpc.STOPPED_BY_NAME && dialect.stopped?.get(this.method);
    if (stopped) answer = { result: said ? { ...stopped, _meta: told(fate, said) } : stopped };
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
   * An error that says what became of the work, unless its handler gave data that have no room for
   * it.
   * @param {any} answer
   * @param {abp.Fate} fate
   */
  #withOutcome(answer, fate) {
    const { error } = answer;
    const { data = {} } = error ?? {};
    if (!('error' in answer) || !isRecord(data)) return answer;
    return { error: { ...error, data: { ...told(fate, this.#said), ...data } } };
  }

  /**
   * The core has failed.
   * @param {Error} error
   */
  fail(error) {
    if (!this.#answer) this.abort(error.message);
  }
}
