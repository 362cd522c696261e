/** The callee's side of a call: runs the handler, provides its context, and sends its result. */
import * as abp from '../core/abp-boundary.js';
import {
  isErrorObject,
  reasonText,
  requireTimeout,
  safely,
  saysCancelled,
  toErrorObject,
} from '../common/errors.js';
import { milliseconds } from '../common/values.js';
import { checkedProgress, isResponse, outcomeOf, readResponse } from '../wire/messages.js';
import { breathe } from '../common/breathe.js';
import { Cancellable } from '../common/cancellable.js';
import { onAbort, offAbort } from '../common/signals.js';
import { Token } from '../common/token.js';
import { isStream, markedTransfer, transferOf } from '../common/transfer.js';

/** A handle that matches no call but is not 0, which would mean: without a parent. */
export const ENDED = -1;

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
];

/**
 * Makes the context of a handler: a proxy that shows these members only. Unlike the getters of a class they are copied by
 * spreading, and a proxy is cheaper to make than an object with getters.
 * @type {ProxyHandler<any>}
 */
const contextOf = {
  get: (invocation, key) =>
    CONTEXT.includes(/** @type {string} */ (key)) ? invocation[key] : undefined,
  has: (_invocation, key) => CONTEXT.includes(/** @type {string} */ (key)),
  ownKeys: () => CONTEXT,
  getOwnPropertyDescriptor: (invocation, key) =>
    CONTEXT.includes(/** @type {string} */ (key))
      ? { value: invocation[key], enumerable: true, configurable: true }
      : undefined,
};

/**
 * A received call. The members that its handler may use can be destructured and spread; each is made when it is first
 * read.
 */
export class Invocation extends Cancellable {
  #started = 0;
  #settled = false;
  /** @type {Token | undefined} */
  #token;
  /** @type {any} */
  #response;
  /** @type {Transferable[] | undefined} */
  #transfer;
  #endpoint;
  #resolve;
  /** @type {AbortSignal | undefined} */
  #followed;
  /** What its handler streams, if it does. @type {import('./outflow.js').Outflow | undefined} */
  #outflow;
  /** @type {AsyncIterableIterator<any> | undefined} */
  #input;
  /** Whether its chunks were collected into its data. */
  #collected = false;

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

  // --- What a handler uses -------------------------------------------------------------------------

  /** The signal's state for code that events do not reach. It is set before the signal fires. */
  get token() {
    if (!this.#token) {
      this.#token = new Token();
      if (this.aborted) this.#token.cancel();
    }
    return this.#token;
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
    if (!this.request.input) return undefined;
    return (this.#input ??= this.#endpoint.side.input?.(this.callId, this.handle || ENDED));
  }

  /** Reports progress. Nothing is sent unless the caller asked for it, nor after a cancel. */
  get progress() {
    return (/** @type {unknown} */ info) => this.#endpoint.progress(this, checkedProgress(info));
  }

  /** Asks the agent a question. It ends as `cancelled` if this call is cancelled first. */
  get elicit() {
    return (/** @type {unknown} */ request) =>
      this.#endpoint.side.elicit?.(request, this.handle || ENDED);
  }

  /**
   * Calls another capability of this app on behalf of this call: when this call is cancelled, so is that one.
   */
  get call() {
    return async (
      /** @type {string} */ name,
      /** @type {unknown} */ params = {},
      /** @type {{ signal?: AbortSignal, timeout?: number }} */ { signal, timeout } = {},
    ) => {
      requireTimeout('call', timeout);
      return this.#endpoint.callLocal(
        this,
        { key: undefined, name, params, timeout: milliseconds(timeout), progress: false },
        signal,
      );
    };
  }

  /**
   * Await it in a loop that computes. It returns to the event loop every few ms, so that a cancel can arrive, and throws
   * the signal's reason once the call is cancelled. It is cheap enough to be called for every row.
   */
  get breathe() {
    const stop = () => {
      if (this.aborted) throw this.signal.reason;
    };
    return () => {
      stop();
      return breathe()?.then(stop);
    };
  }

  /** Whether the app makes this call to itself. */
  get isLocal() {
    return this.#resolve !== undefined;
  }

  // --- What the endpoint tells it ------------------------------------------------------------------

  async start() {
    this.#started = this.#endpoint.now || performance.now();
    try {
      const value = await this.#endpoint.callee.run(this.request, new Proxy(this, contextOf));
      if (isStream(value)) await this.#stream(value);
      else if (isResponse(value)) await this.#respond(value);
      else await this.#succeed(value);
    } catch (error) {
      if (saysCancelled(error)) {
        this.reason ??= reasonText(error);
        this.#settle(abp.CANCELLED);
      } else {
        this.#tell(error);
        this.#fail({ success: false, error: toErrorObject(error) });
      }
    }
  }

  /** @param {unknown} source what the handler streams */
  async #stream(source) {
    // Once it is loaded, a stream does not wait for it.
    Outflow ??= (await import('./outflow.js')).Outflow;
    this.#outflow = new Outflow(this.#endpoint, this, source);
    const { data, collected } = await this.#outflow.run();
    this.#collected = collected;
    await this.#succeed(data);
  }

  /**
   * A chunk is sent.
   * @param {unknown} value
   * @param {number} size
   */
  chunk(value, size) {
    this.#endpoint.sendChunk(this, value, size, transferOf(value));
  }

  /** There is room for a chunk that had to wait. */
  resume() {
    this.#outflow?.resume();
  }

  /** A chunk could not be sent. @param {unknown} error */
  chunkFailed(error) {
    this.#outflow?.fail(error);
  }

  /**
   * @param {unknown} data
   * @param {import('../agent/client.js').Response} [said] the response that contained it
   */
  async #succeed(data, said) {
    const { prepare } = this.#endpoint.transport;
    // Preparing is part of the call, which can still be cancelled.
    if (prepare && !this.#resolve) data = await prepare(data, this);
    this.#transfer = markedTransfer(said) ?? transferOf(data);
    const cached = said?.metadata?.cached;
    const { incoming } = this.#endpoint;
    this.#settle(abp.COMPLETED, incoming.succeed(data, this.#duration, cached, this.#collected));
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
   * @param {import('../agent/client.js').Response} response
   */
  async #respond(response) {
    const said = readResponse(response);
    const { error } = said;
    switch (outcomeOf(said)) {
      case abp.CANCELLED:
        this.reason ??= error?.message;
        return this.#settle(abp.CANCELLED, error && said);
      case abp.TIMED_OUT:
        return this.#fail(said);
    }
    return said.success ? this.#succeed(said.data, response) : this.#fail(said);
  }

  /** @param {import('../agent/client.js').Response} response */
  #fail(response) {
    this.#settle(abp.COMPLETED, this.#endpoint.incoming.fail(response, this.#duration));
  }

  get #duration() {
    return Math.round(performance.now() - this.#started);
  }

  /**
   * @param {1 | 2} outcome
   * @param {unknown} [response]
   */
  #settle(outcome, response) {
    offAbort(this.#followed, this);
    this.#settled = true;
    this.#response = response;
    this.#endpoint.machine.finish(this, outcome);
  }

  /** @override @param {string | undefined} reason */
  abort(reason) {
    this.#token?.cancel();
    super.abort(reason ?? this.#endpoint.closing);
    this.#outflow?.stop(reason);
  }

  /** Why it was cancelled. @returns {unknown} */
  get #why() {
    if (this.#followed?.aborted) return this.#followed.reason;
    return this.reason ?? this.#endpoint.closing;
  }

  /** @param {number} outcome */
  answer(outcome) {
    if (outcome === abp.COMPLETED) return this.#send(this.#response, this.#transfer);
    const ended = this.#endpoint.ended(outcome, this.#why);
    // A handler that cancelled its own call gave the error itself.
    if (!this.aborted && this.#response) ended.error = this.#response.error;
    this.#send(ended);
  }

  /** @param {number} code */
  refuse(code) {
    const response = this.#endpoint.failure(code);
    this.#endpoint.callee.explain?.(this.request, code, response.error);
    this.#send(response);
  }

  /**
   * @param {unknown} response
   * @param {Transferable[]} [transfer]
   */
  #send(response, transfer) {
    this.#endpoint.observer?.end(this, response);
    if (this.#resolve) this.#resolve(response);
    else this.#endpoint.respond(this, response, transfer);
  }

  /** The core has failed or, if this is a call that the app makes to itself, refused it. @param {any} response */
  fail(response) {
    this.#endpoint.observer?.end(this, response);
    this.#resolve?.(response);
    if (!this.#settled) this.abort(response.error.message);
  }

  // --- A call that the app makes to itself may have a signal of its own ---------------------------

  /** @param {AbortSignal | undefined} signal */
  follow(signal) {
    this.#followed = signal;
    if (signal?.aborted) this.handleEvent();
    else onAbort(signal, this);
  }

  handleEvent() {
    this.#endpoint.machine.cancel(this.handle, reasonText(this.#followed?.reason));
  }
}
