/**
 * Calls of tools, from either side, with a cancel whose outcome is known where the other side is ours. MCP sends nothing
 * after a cancel, so the result that was not sent is asked for by another request.
 */
import { reasonText } from '../common/errors.js';
import { onAbort, offAbort } from '../common/signals.js';
import { getOwn, milliseconds } from '../common/values.js';
import { RpcError, saysTimedOut, toErrorObject } from '../rpc/errors.js';
import { OUTCOME, recordOf } from './protocol.js';

/** @typedef {import('../rpc/peer.js').Peer} Peer */
/** @typedef {import('../rpc/incoming-request.js').IncomingRequest} IncomingRequest */

/** How long the other side may take to unwind a call that was cancelled, in ms. */
const PATIENCE = 5000;
/** Cancelled calls that have ended and whose outcome nobody has asked for. */
const MAX_UNASKED = 64;
const CANCELLED = -32800;

/**
 * @typedef {object} ToolOptions
 * @property {AbortSignal} [signal] cancels the call
 * @property {number} [timeout] ms after which the call is cancelled; 0 or absent is never
 * @property {(info: { progress: number, total?: number, message?: string }) => void} [onProgress]
 */

/** @param {AbortSignal | undefined} signal @param {unknown} timeout ms */
function limited(signal, timeout) {
  const ms = milliseconds(timeout);
  if (!ms) return signal;
  const clock = AbortSignal.timeout(ms);
  return signal ? AbortSignal.any([signal, clock]) : clock;
}

/**
 * The error of a call that its caller has cancelled.
 * @param {AbortSignal} signal
 * @param {'cancelled' | 'unknown'} outcome
 * @param {unknown} [said] what the call came to
 */
function cancelledError({ reason }, outcome, said) {
  const timedOut = saysTimedOut(reason);
  const message = reasonText(reason) ?? 'The call was cancelled';
  const name = timedOut ? 'TimeoutError' : 'AbortError';
  return new RpcError(CANCELLED, message, { outcome }, { name, cause: said ?? reason });
}

/**
 * Calls a tool of the other side.
 * @param {Peer} peer
 * @param {{ name: string, arguments?: any, _meta?: any }} params
 * @param {ToolOptions} options
 * @param {boolean} tells whether the other side tells what becomes of a cancelled call
 * @returns {Promise<any>} the result. Rejects with an {@link RpcError}; that of a cancelled call is named `AbortError` or
 *   `TimeoutError`, and its `data.outcome` is `'cancelled'` where the call is known to have stopped, or `'unknown'`
 */
export async function callTool(peer, params, { signal: given, timeout, onProgress }, tells) {
  const signal = limited(given, timeout);
  if (signal?.aborted) throw cancelledError(signal, 'cancelled');
  try {
    if (!tells || !signal) return await peer.request('tools/call', params, { signal, onProgress });
    return await callAndAsk(peer, params, signal, onProgress);
  } catch (error) {
    const isOurs = error instanceof RpcError && getOwn(error.data, 'outcome') !== undefined;
    if (!signal?.aborted || isOurs || peer.ended) throw error;
    throw cancelledError(signal, 'unknown');
  }
}

let calls = 0;

/**
 * @param {Peer} peer
 * @param {{ name: string, arguments?: any, _meta?: any }} params
 * @param {AbortSignal} signal
 * @param {ToolOptions['onProgress']} onProgress
 */
async function callAndAsk(peer, params, signal, onProgress) {
  const call = `${++calls}`;
  const marked = { ...params, _meta: { ...params._meta, [OUTCOME]: call } };
  // An answer that has crossed the cancel is still taken.
  const answered = peer.request('tools/call', marked, { signal, onProgress, wait: true });
  let abort = { handleEvent() {} };
  const told = new Promise((resolve, reject) => {
    abort = {
      handleEvent: () =>
        void peer
          .request(OUTCOME, { call }, { timeout: PATIENCE })
          .then((said) => resolve(outcomeOf(signal, said)))
          .catch(reject),
    };
    // After the peer's own listener: the cancel goes first.
    onAbort(signal, abort);
  });
  try {
    return await Promise.race([answered, told]);
  } finally {
    offAbort(signal, abort);
    for (const late of [answered, told]) late.catch(() => {});
  }
}

/**
 * @param {AbortSignal} signal
 * @param {unknown} said
 */
function outcomeOf(signal, said) {
  const { result, error } = recordOf(said);
  if (result !== undefined && getOwn(result, 'isError') !== true) return result;
  throw cancelledError(signal, 'cancelled', error === undefined ? result : RpcError.from(error));
}

/**
 * Answers the other side's calls of tools, and tells what became of those that it has cancelled.
 * @param {Peer} peer
 * @param {(params: Record<string, any>, context: IncomingRequest) => unknown} run
 */
export function serveCalls(peer, run) {
  /** By the names that the other side gave them. @type {Map<unknown, Promise<object>>} */
  const outcomes = new Map();
  /** @type {string[]} */
  const unasked = [];
  peer.handle('tools/call', (params, context) => {
    const work = (async () => run(recordOf(params), context))();
    const call = getOwn(getOwn(params, '_meta'), OUTCOME);
    if (typeof call !== 'string' || call.length > 64) return work;
    const outcome = work.then(
      (result) => ({ result }),
      (error) => ({ error: toErrorObject(error) }),
    );
    outcomes.set(call, outcome);
    void outcome.then(() => {
      if (!context.aborted) return outcomes.delete(call);
      unasked.push(call);
      return (
        unasked.length > MAX_UNASKED && outcomes.delete(/** @type {string} */ (unasked.shift()))
      );
    });
    return work;
  });
  // One that is not known was cancelled before it began: what was answered has been read before this is.
  peer.handle(OUTCOME, (params) => {
    const call = getOwn(params, 'call');
    const outcome = outcomes.get(call) ?? {};
    outcomes.delete(call);
    return outcome;
  });
}
