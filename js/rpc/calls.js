/** A request made here, and one received: the records that the core's actions are about. */
import * as abp from '../../dist/abp-constants.js';
import * as rpc from '../../dist/rpc-constants.js';
import { reasonText } from '../errors.js';
import { own } from '../messages.js';
import { abortError, unlisten } from '../signals.js';
import { markedTransfer } from '../transfer.js';
import { RpcError, saysCancelled, toErrorObject } from './errors.js';

/** @typedef {{ result: any } | { error: any }} Answer */

/** A request that was made and has not settled. It is its own abort listener, so none is allocated. */
export class PendingRequest {
  handle = 0;

  /**
   * @param {import('./peer.js').Peer} peer
   * @param {(result: any) => void} resolve
   * @param {(error: any) => void} reject
   * @param {string} method
   * @param {any} params
   * @param {import('./peer.js').RequestOptions} options
   */
  constructor(peer, resolve, reject, method, params, options) {
    this.peer = peer;
    this.resolve = resolve;
    this.reject = reject;
    this.method = method;
    this.params = params;
    this.options = options;
  }

  handleEvent() {
    this.peer.cancel(this);
  }

  /** Why its signal fired, as the other side reads it. */
  get reason() {
    return reasonText(this.options.signal?.reason);
  }

  /**
   * @param {number} outcome
   * @param {Answer | undefined} answer what the other side said, if that is what settles it
   */
  settle(outcome, answer) {
    const { signal, timeout, maxTotalTimeout } = this.options;
    unlisten(signal, this);
    const cause = answer && 'error' in answer ? RpcError.from(answer.error) : undefined;
    switch (outcome) {
      case abp.COMPLETED:
        return cause ? this.reject(cause) : this.resolve(own(answer, 'result'));
      case abp.DISCONNECTED:
        return this.reject(this.peer.error(rpc.RPC_CLOSED));
      case abp.TIMED_OUT:
        return this.reject(
          this.peer.error(rpc.RPC_TIMEOUT, {
            name: 'TimeoutError',
            data: { timeout: timeout ?? maxTotalTimeout },
            cause,
          }),
        );
    }
    this.reject(this.cancelled(cause));
  }

  /**
   * What its caller hears when it was cancelled: the signal's own reason, when that is an error.
   * @param {any} [cause]
   */
  cancelled(cause) {
    const reason = this.options.signal?.reason;
    if (reason instanceof Error) return reason;
    return this.peer.error(rpc.RPC_CANCELLED, { name: 'AbortError', message: this.reason, cause });
  }

  /** The core has failed. @param {any} error */
  broken(error) {
    unlisten(this.options.signal, this);
    this.reject(error);
  }
}

/** The handle of a request that has ended and was cancelled: nothing is made on its behalf any more. */
const ENDED = -1;

/**
 * A request that came in. Handlers get it as their second argument, so what they may use is public and survives
 * destructuring; each is made when it is first read.
 */
export class IncomingRequest {
  handle = 0;
  /** @type {AbortController | undefined} */
  #controller;
  #aborted = false;
  /** @type {string | undefined} */
  #reason;
  #peer;
  #handler;
  /** The handler said that it was cancelled, in an error of its own making. */
  #said = false;
  /** What its handler made of it. @type {Answer | undefined} */
  #answer;
  /** @type {Transferable[] | undefined} */
  #transfer;

  /**
   * @param {import('./peer.js').Peer} peer
   * @param {Handler | undefined} handler
   * @param {unknown} id
   * @param {string} method
   * @param {any} params
   */
  constructor(peer, handler, id, method, params) {
    this.#peer = peer;
    this.#handler = handler;
    /** The id that the other side gave it. */
    this.id = id;
    this.method = method;
    this.params = params;
  }

  // --- What a handler uses -------------------------------------------------------------------------

  /** Aborts when the request is cancelled or its caller is gone. The reason is an `AbortError`. */
  get signal() {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(abortError(this.#reason));
    }
    return this.#controller.signal;
  }

  /**
   * Makes a request as a part of this one: when this one is cancelled, so is that, and this one's answer waits
   * for that one's.
   */
  get request() {
    return (
      /** @type {string} */ method,
      /** @type {any} */ params = undefined,
      /** @type {import('./peer.js').RequestOptions} */ options = {},
    ) => this.#peer.requestFor(this.handle, method, params, options);
  }

  get notify() {
    return (/** @type {string} */ method, /** @type {any} */ params = undefined) =>
      this.#peer.notify(method, params);
  }

  /** Reports progress. Nothing is sent unless the caller asked for it, nor after a cancel. */
  get progress() {
    return (/** @type {any} */ info) => this.#peer.progress(this, info);
  }

  // --- What the peer tells it ----------------------------------------------------------------------

  async start() {
    /** @type {number} */
    let ending = rpc.RETURNED;
    try {
      const result = await /** @type {Handler} */ (this.#handler)(this.params, this);
      // JSON would leave it out, and with it all that makes this an answer.
      if (typeof result === 'function' || typeof result === 'symbol') {
        throw new TypeError(`A ${typeof result} is no result`);
      }
      this.#transfer = markedTransfer(result);
      this.#answer = { result: result === undefined ? this.#peer.dialect.nothing : result };
    } catch (error) {
      ending = saysCancelled(error, this.#peer.cancelledCode) ? rpc.GAVE_UP : rpc.THREW;
      this.#said = ending === rpc.GAVE_UP && error instanceof RpcError && error.name === 'RpcError';
      this.#answer = { error: toErrorObject(error) };
    }
    this.#peer.finish(this, ending);
    this.handle = this.#aborted ? ENDED : 0;
  }

  /** @param {string | undefined} reason */
  abort(reason) {
    this.#aborted = true;
    this.#reason = reason;
    this.#controller?.abort(abortError(reason));
  }

  /** @param {number} outcome */
  answer(outcome) {
    if (outcome === abp.COMPLETED) this.#peer.respond(this.id, this.#answer, this.#transfer);
    else this.#peer.respond(this.id, { error: this.#stopped(outcome) });
  }

  /** What the other side hears when its request was stopped. @param {number} outcome */
  #stopped(outcome) {
    const { dialect } = this.#peer;
    if (outcome === abp.DISCONNECTED) return this.#peer.errorObject(rpc.RPC_CLOSED);
    if (this.#said) return own(this.#answer, 'error');
    const data = dialect.cancelled?.(this.id);
    return { ...this.#peer.errorObject(rpc.RPC_CANCELLED), ...(data !== undefined && { data }) };
  }

  /** The core has failed. @param {any} error */
  broken(error) {
    if (!this.#answer) this.abort(error.message);
  }
}

/**
 * @callback Handler Answers a request. Its result is what it returns; throw an {@link RpcError} to choose the
 *   error, anything else is an internal error; once its signal has fired, whatever it throws says: cancelled.
 * @param {any} params
 * @param {IncomingRequest} context
 * @returns {any}
 */
