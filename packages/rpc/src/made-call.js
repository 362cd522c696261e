/** A call that is made here: a promise, and the signal that may end it early. */
import { abp, getOwn, offAbort, reasonText } from 'abp-bridge/driver';
import * as rpc from './rpc-boundary.js';
import { RpcError } from './errors.js';

/**
 * @typedef {{ result: unknown } | { error: unknown } | { thrown: unknown }} Answer `thrown` is this
 *   side's own error
 */

/** The default reasons of the platform's signals. */
const PLATFORMS = new Map([
  ['AbortError', rpc.RPC_CANCELLED],
  ['TimeoutError', rpc.RPC_TIMEOUT],
]);

/**
 * The outcome of the work, as reported by the other side, if it was.
 * @param {abp.Fate} fate
 * @param {unknown} told
 */
function became(fate, told) {
  const outcome = getOwn(told, 'outcome');
  if (abp.FATES.indexOf(outcome) <= 0) return { outcome: abp.FATES[fate] };
  const said = ['report', 'progress'].map((name) => [name, getOwn(told, name)]);
  return { outcome, ...Object.fromEntries(said.filter(([, value]) => value !== undefined)) };
}

/**
 * Options that request progress, or parts. Progress also restarts a timeout, for which no callback
 * is needed.
 */
const ASKING = /** @type {const} */ (['onProgress', 'onPartialResult', 'resetTimeoutOnProgress']);

/** It is its own abort listener, so no closure is needed. */
export class MadeCall {
  /** In the core; 0 until it begins. @type {rpc.Handle} */
  handle = 0;
  /** Its id on the wire, once it is sent. */
  number = 0;
  /** The name by which it can be stopped. @type {unknown} */
  name = undefined;

  /**
   * @param {import('./peer.js').Peer} peer
   * @param {(result: unknown) => void} resolve
   * @param {(error: unknown) => void} reject
   * @param {string} method
   * @param {unknown} params
   * @param {import('./peer.js').RequestOptions} options
   */
  constructor(peer, resolve, reject, method, params, options) {
    this.signal = options.signal;
    /** The dialect's form of requesting progress or parts, if requested. */
    this.asks = ASKING.some((name) => options[name]) ? peer.dialect.progress : undefined;
    this.peer = peer;
    this.resolve = resolve;
    this.reject = reject;
    this.method = method;
    this.params = params;
    this.options = options;
  }

  /** Called when the signal has fired. */
  handleEvent() {
    this.peer.cancel(this.handle, reasonText(this.signal?.reason));
  }

  /**
   * @param {abp.Outcome} outcome
   * @param {Answer | undefined} answer the other side's, if it settles the call
   * @param {number | undefined} timeout that has passed, in ms
   * @param {abp.Fate} fate the outcome of its work, unless the other side reports it
   */
  settle(outcome, answer, timeout, fate) {
    if (answer && 'thrown' in answer) return this.fail(answer.thrown);
    const cause = answer && 'error' in answer ? RpcError.from(answer.error) : undefined;
    if (outcome === abp.DISCONNECTED) return this.fail(this.peer.closedError(fate));
    if (outcome === abp.TIMED_OUT) {
      const told =
        getOwn(getOwn(answer, 'error'), 'data') ?? getOwn(getOwn(answer, 'result'), '_meta');
      const data = { timeout, ...became(fate, told) };
      return this.fail(this.peer.error(rpc.RPC_TIMEOUT, { name: 'TimeoutError', data, cause }));
    }
    if (outcome !== abp.COMPLETED) return this.fail(this.cancelled(fate, cause));
    if (cause) return this.fail(cause);
    offAbort(this.signal, this);
    this.resolve(this.peer.answered(this, getOwn(answer, 'result')));
  }

  /**
   * The error of a cancelled call: the signal's own reason, if the caller made that error itself,
   * or else an RpcError with the other side's answer as its cause. Without a fate it was not sent.
   * @param {abp.Fate} [fate]
   * @param {RpcError} [cause]
   */
  cancelled(fate = abp.FATE_UNSTARTED, cause = undefined) {
    const reason = this.signal?.reason;
    // The default reasons of `abort()` and `AbortSignal.timeout()` are not the caller's own.
    const platforms = reason instanceof DOMException ? PLATFORMS.get(reason.name) : undefined;
    if (reason instanceof Error && platforms === undefined) return reason;
    const name = platforms === rpc.RPC_TIMEOUT ? 'TimeoutError' : 'AbortError';
    const more = { name, message: reasonText(reason), data: became(fate, cause?.data), cause };
    return this.peer.error(platforms ?? rpc.RPC_CANCELLED, more);
  }

  /**
   * Ends it with an error, its own or that of the core.
   * @param {unknown} error
   */
  fail(error) {
    offAbort(this.signal, this);
    this.reject(error);
  }
}
