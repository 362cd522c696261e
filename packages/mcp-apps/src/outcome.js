/**
 * Calls of tools, from either side, with a cancel whose outcome is known where the other side is ours. MCP sends nothing
 * after a cancel, so the result that was not sent is asked for by another request.
 */
import { requireOptions } from '../../../js/common/check-options.js';
import { reasonText } from '../../../js/common/errors.js';
import { onAbort, offAbort } from '../../../js/common/signals.js';
import { getOwn, milliseconds } from '../../../js/common/values.js';
import * as rpc from '../../rpc/src/rpc-boundary.js';
import { RpcError, saysCancelled, saysTimedOut, toErrorObject } from '../../rpc/src/errors.js';
import { OUTCOME, recordOf } from './protocol.js';

/** @typedef {import('../../rpc/src/peer.js').Peer} Peer */
/** @typedef {import('../../rpc/src/incoming-request.js').IncomingRequest} IncomingRequest */

/** How long a call that was cancelled may take to unwind before it is said to run, in ms. */
const GRACE = 3000;
/** How long the other side may take to say what became of it, in ms. */
const PATIENCE = 5000;
/** Cancelled calls that have ended and whose outcome nobody has asked for. */
const MAX_UNASKED = 64;
const CANCELLED = -32800;

/**
 * @typedef {object} ToolOptions How a tool is called.
 * @property {AbortSignal} [signal] cancels the call
 * @property {number} [timeout] ms after which the call is cancelled; 0 or absent is never
 * @property {(info: { progress: number, total?: number, message?: string }) => void} [onProgress] called with each report of progress
 */

/** @type {import('../../../js/common/check-options.js').Kinds<ToolOptions>} */
// prettier-ignore
const OPTIONS = {
  onProgress: 'a function', signal: 'an AbortSignal', timeout: 'a number',
};

/** @typedef {{ name: string, arguments?: unknown, _meta?: object }} ToolCall params of `tools/call` */

/** @param {AbortSignal | undefined} signal @param {unknown} timeout ms */
function limited(signal, timeout) {
  const ms = milliseconds(timeout);
  if (!ms) return signal;
  const clock = AbortSignal.timeout(ms);
  return signal ? AbortSignal.any([signal, clock]) : clock;
}

/** @typedef {{ outcome: string, report?: unknown }} Became what became of a call's work, and what its handler said of it */

/**
 * What a result of ours says became of the work of a call that failed.
 * @param {unknown} result
 * @returns {Became | undefined}
 */
export function becameIn(result) {
  const { outcome, report } = recordOf(getOwn(getOwn(result, '_meta'), OUTCOME));
  if (typeof outcome !== 'string') return undefined;
  return { outcome, ...(report !== undefined && { report }) };
}

/**
 * The error of a call that its caller has cancelled.
 * @param {AbortSignal} signal
 * @param {Became} became
 * @param {unknown} [answer] what the call came to
 */
function cancelledError({ reason }, became, answer) {
  const timedOut = saysTimedOut(reason);
  const message = reasonText(reason) ?? 'The call was cancelled';
  const name = timedOut ? 'TimeoutError' : 'AbortError';
  return new RpcError(CANCELLED, message, became, { name, cause: answer ?? reason });
}

/**
 * Whether an error is that of a call which its caller has cancelled.
 * @param {unknown} error
 */
export const isCancelled = (error) =>
  error instanceof RpcError &&
  error.code === CANCELLED &&
  getOwn(error.data, 'outcome') !== undefined;

/**
 * Calls a tool of the other side.
 * @param {Peer} peer
 * @param {ToolCall} params
 * @param {ToolOptions} options
 * @param {boolean} tells whether the other side tells what becomes of a cancelled call
 * @returns {Promise<any>} the result. Rejects with an {@link RpcError}; that of a cancelled call is named `AbortError` or
 *   `TimeoutError`, and its `data` says what became of the work: `{ outcome, report }`
 */
export async function callTool(peer, params, options, tells) {
  requireOptions('callTool', options, OPTIONS);
  const { signal: given, timeout, onProgress } = options;
  const signal = limited(given, timeout);
  if (signal?.aborted) throw cancelledError(signal, { outcome: 'unstarted' });
  try {
    if (!tells || !signal) return await peer.request('tools/call', params, { signal, onProgress });
    return await callAndAsk(peer, params, signal, onProgress);
  } catch (error) {
    if (saysClosed(peer, error)) {
      const data = { closedBy: 'peer', outcome: 'unknown' };
      throw peer.error(rpc.RPC_CLOSED, { data, cause: error });
    }
    const isOurs = isCancelled(error);
    if (!signal?.aborted || isOurs || peer.ended) throw error;
    throw cancelledError(signal, { outcome: 'unknown' });
  }
}

/**
 * Whether a call was answered with nothing but that the other side closes: it has not failed, and what it does is not known.
 * @param {Peer} peer
 * @param {unknown} error
 */
function saysClosed(peer, error) {
  const { code, message } = peer.errorObject(rpc.RPC_CLOSED);
  return (
    error instanceof RpcError &&
    error.code === code &&
    error.message === message &&
    getOwn(error.data, 'outcome') === undefined
  );
}

let calls = 0;

/**
 * @param {Peer} peer
 * @param {ToolCall} params
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
          .then((answer) => resolve(outcomeOf(signal, answer)))
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
 * @param {unknown} answer
 */
function outcomeOf(signal, answer) {
  const { result, error, outcome = 'unstarted' } = recordOf(answer);
  if (result !== undefined && getOwn(result, 'isError') !== true) return result;
  const became = becameIn(result) ?? { outcome: result === undefined ? outcome : 'failed' };
  throw cancelledError(signal, became, error === undefined ? result : RpcError.from(error));
}

/**
 * Answers the other side's calls of tools, and tells what became of those that it has cancelled.
 * @param {Peer} peer
 * @param {(params: import('./protocol.js').Params, context: IncomingRequest) => unknown} run
 * @param {boolean} [foreign] whether what runs is elsewhere, so that it says nothing of itself when it says: cancelled
 */
export function serveCalls(peer, run, foreign = false) {
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
      (error) => ({
        error: toErrorObject(error),
        outcome: outcomeIn(error, foreign),
      }),
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
  peer.handle(OUTCOME, async (params) => {
    const call = getOwn(params, 'call');
    const outcome = outcomes.get(call);
    if (!outcome) return {};
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const patience = new Promise((resolve) => (timer = setTimeout(resolve, GRACE)));
    const told = await Promise.race([outcome, patience]);
    clearTimeout(timer);
    if (told) outcomes.delete(call);
    return told ?? { outcome: 'running' };
  });
}

/**
 * @param {any} error that ended a call
 * @param {boolean} foreign
 */
function outcomeIn(error, foreign) {
  const told = getOwn(getOwn(error, 'data'), 'outcome');
  if (told !== undefined) return told;
  if (!saysCancelled(error, CANCELLED)) return 'failed';
  return foreign ? 'unknown' : 'stopped';
}
