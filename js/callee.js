/** The callee's side of a call: a handler, what it is given, and what becomes of what it returns. */
import * as abp from '../dist/abp-constants.js';
import { reasonText, saysCancelled, toErrorObject } from './errors.js';
import { milliseconds, progressInfo } from './messages.js';
import { abortError, listen, unlisten } from './signals.js';
import { Token } from './token.js';
import { transferOf } from './transfer.js';

/** The handle of a parent that has ended: no call's, but not none. */
export const ENDED = -1;

/**
 * A call that came in. Handlers get it as their second argument, so what they may use is public and
 * survives destructuring; each is made when it is first read.
 */
export class Invocation {
  handle = 0;
  #started = 0;
  #settled = false;
  /** @type {AbortController | undefined} */
  #controller;
  /** @type {Token | undefined} */
  #token;
  #aborted = false;
  /** @type {string | undefined} */
  #reason;
  /** @type {any} */
  #response;
  /** @type {Transferable[] | undefined} */
  #transfer;
  #endpoint;
  #resolve;
  /** @type {AbortSignal | undefined} */
  #followed;

  /**
   * @param {import('./endpoint.js').Endpoint} endpoint
   * @param {import('./messages.js').Request} request
   * @param {any} [message] what it came in, unless that was a frame
   * @param {(response: any) => void} [resolve] takes the answer of a call that the app makes to itself
   */
  constructor(endpoint, request, message, resolve) {
    this.#endpoint = endpoint;
    this.request = request;
    this.message = message;
    this.#resolve = resolve;
  }

  // --- What a handler uses -------------------------------------------------------------------------

  /** Aborts when the call is cancelled, times out, or its caller is gone. The reason is an `AbortError`. */
  get signal() {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(abortError(this.#reason));
    }
    return this.#controller.signal;
  }

  /** Says the same to threads that no event reaches: it is set before the signal fires. */
  get token() {
    if (!this.#token) {
      this.#token = new Token();
      if (this.#aborted) this.#token.cancel();
    }
    return this.#token;
  }

  /** The name by which the caller can cancel this call. */
  get callId() {
    const { key } = this.request;
    return typeof key === 'string' ? key : this.#endpoint.core.idText(this.handle);
  }

  /** Reports progress. Nothing is sent unless the caller asked for it, nor after a cancel. */
  get progress() {
    return (/** @type {any} */ info) => this.#endpoint.progress(this, progressInfo(info));
  }

  /** Asks the agent a question. Ends with this call, as `cancelled`, if that is cancelled first. */
  get elicit() {
    return (/** @type {any} */ request) =>
      this.#endpoint.side.elicit?.(request, this.handle || ENDED);
  }

  /**
   * Calls another capability of this app, as a part of this call: when this one is cancelled, so is that.
   */
  get call() {
    return (
      /** @type {string} */ name,
      /** @type {any} */ params = {},
      /** @type {{ signal?: AbortSignal, timeout?: number }} */ { signal, timeout } = {},
    ) =>
      this.#endpoint.callLocal(
        this,
        { key: undefined, name, params, timeout: milliseconds(timeout), progress: false },
        signal,
      );
  }

  // --- What the endpoint tells it ------------------------------------------------------------------

  async start() {
    this.#started = this.#endpoint.now || performance.now();
    try {
      const { prepare } = this.#endpoint.transport;
      let data = await this.#endpoint.callee.run(this.request, this);
      // That is part of the call, which can still be cancelled.
      if (prepare && !this.#resolve) data = await prepare(data, this);
      this.#transfer = transferOf(data);
      this.#settle(abp.COMPLETED, this.#endpoint.incoming.succeed(data, this.#duration));
    } catch (error) {
      if (saysCancelled(error)) {
        this.#reason ??= reasonText(error);
        this.#settle(abp.CANCELLED);
      } else {
        this.#settle(abp.COMPLETED, {
          success: false,
          error: toErrorObject(error),
          metadata: { duration: this.#duration },
        });
      }
    }
  }

  get #duration() {
    return Math.round(performance.now() - this.#started);
  }

  /**
   * @param {1 | 2} outcome
   * @param {any} [response]
   */
  #settle(outcome, response) {
    unlisten(this.#followed, this);
    this.#settled = true;
    this.#response = response;
    this.#endpoint.finish(this, outcome);
  }

  /** @param {string | undefined} reason */
  abort(reason) {
    this.#aborted = true;
    this.#reason = reason;
    this.#token?.cancel();
    this.#controller?.abort(abortError(reason));
  }

  /** @param {number} outcome */
  answer(outcome) {
    if (outcome === abp.COMPLETED) return this.#send(this.#response, this.#transfer);
    this.#send(this.#endpoint.ended(outcome, this.#reason));
  }

  /** @param {number} code */
  refuse(code) {
    const response = this.#endpoint.failure(code);
    this.#endpoint.callee.explain?.(this.request, code, response.error);
    this.#send(response);
  }

  /**
   * @param {any} response
   * @param {Transferable[]} [transfer]
   */
  #send(response, transfer) {
    if (this.#resolve) this.#resolve(response);
    else this.#endpoint.respond(this, response, transfer);
  }

  /** The core has failed or, if this is a call that the app makes to itself, refused it. @param {any} response */
  fail(response) {
    this.#resolve?.(response);
    if (!this.#settled) this.abort(response.error.message);
  }

  // --- A call that the app makes to itself may have a signal of its own ---------------------------

  /** @param {AbortSignal | undefined} signal */
  follow(signal) {
    this.#followed = signal;
    if (signal?.aborted) this.handleEvent();
    else listen(signal, this);
  }

  handleEvent() {
    this.#endpoint.cancel(this.handle, this.#followed?.reason);
  }
}
