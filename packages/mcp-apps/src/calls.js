/**
 * Calls of tools, from either side. MCP sends nothing after a cancel, so two sides of this library
 * ask: the peer that ran the call returns what became of it (`Peer.became`).
 */
import { RPC_CANCELLED, RPC_CLOSED, RpcError } from '@abp-bridge/rpc';
import {
  copyRecord,
  getOwn,
  milliseconds,
  reasonText,
  requireForm,
  requireOptions,
  saysTimeout,
  unless,
} from 'abp-bridge/driver';
import { CANCELLED, OUTCOME, defined } from './protocol.js';

/** @import { Peer } from '@abp-bridge/rpc' */
/** @import { Params } from './protocol.js' */

/**
 * @typedef {object} ToolOptions Options of a tool's call.
 * @property {AbortSignal} [signal] cancels the call
 * @property {number} [timeout] ms after which the call is cancelled; 0 or absent for no limit
 * @property {(info: { progress: number, total?: number, message?: string }) => void} [onProgress]
 *   called with each report of progress
 */

/** @type {import('abp-bridge/driver').Kinds<ToolOptions>} */
const OPTIONS = { onProgress: 'a function', signal: 'an AbortSignal', timeout: 'a number' };

/**
 * The outcome of the work of a failed call, in a result of this library.
 * @param {unknown} result
 * @returns {{ outcome: string, report?: unknown } | undefined}
 */
export function becameIn(result) {
  const { outcome, report } = copyRecord(getOwn(getOwn(result, '_meta'), OUTCOME));
  return typeof outcome === 'string' ? defined({ outcome, report }) : undefined;
}

/**
 * The error of a call that its caller has cancelled.
 * @param {AbortSignal} signal
 * @param {Params} told the other side's report on it
 */
function cancelledError({ reason }, { result, error, outcome = 'unknown' }) {
  const failed = result !== undefined && (becameIn(result) ?? { outcome: 'failed' });
  const became = failed || defined({ outcome, report: getOwn(getOwn(error, 'data'), 'report') });
  const message = reasonText(reason) ?? 'The call was cancelled';
  const name = saysTimeout(reason) ? 'TimeoutError' : 'AbortError';
  const cause = error === undefined ? (result ?? reason) : RpcError.from(error);
  return new RpcError(CANCELLED, message, became, { name, cause });
}

/**
 * True for the error of a call that its caller has cancelled.
 * @param {unknown} error
 */
export const isCancelled = (error) =>
  getOwn(error, 'code') === CANCELLED && getOwn(getOwn(error, 'data'), 'outcome') !== undefined;

/**
 * Calls a tool of the other side.
 * @param {Peer} peer
 * @param {{ name: string, arguments?: unknown }} params
 * @param {ToolOptions} options
 * @param {boolean} tells whether the other side reports what becomes of a cancelled call
 * @returns {Promise<any>} the result. Rejects with an {@link RpcError}; that of a cancelled call is
 *   named `AbortError` or `TimeoutError`, and its `data` is what became of the work: `{ outcome,
 *   report }`
 */
export async function callTool(peer, params, options, tells) {
  requireForm('callTool', 'callTool(name, params, { signal })', [options]);
  requireOptions('callTool', options, OPTIONS);
  const { timeout, onProgress } = options;
  const ms = milliseconds(timeout);
  const signals = [options.signal ?? [], ms ? AbortSignal.timeout(ms) : []].flat();
  const signal = signals.length > 1 ? AbortSignal.any(signals) : signals[0];
  if (signal?.aborted) throw cancelledError(signal, { outcome: 'unstarted' });
  const over = new AbortController();
  /** The other side's latest report on a cancelled call. @type {Params} */
  let told = {};
  const onCancelled = async (/** @type {number} */ id) => {
    for (const settled of [false, true]) {
      told = copyRecord(await peer.request(OUTCOME, { id, settled }, { signal: over.signal }));
      if (told.outcome !== 'running') break;
    }
    const { result } = told;
    const succeeded = result !== undefined && getOwn(result, 'isError') !== true;
    return succeeded ? { result } : { error: peer.errorObject(RPC_CANCELLED) };
  };
  const asks = tells && { wait: true, onCancelled };
  try {
    return await peer.request('tools/call', params, { signal, onProgress, ...asks });
  } catch (error) {
    const closed = peer.errorObject(RPC_CLOSED);
    const isClosed = getOwn(error, 'code') === closed.code && reasonText(error) === closed.message;
    // The only answer is that the other side closes: the call has not failed, and its outcome is
    // not known.
    if (isClosed && getOwn(getOwn(error, 'data'), 'outcome') === undefined) {
      const data = { closedBy: 'peer', outcome: 'unknown' };
      throw peer.error(RPC_CLOSED, { data, cause: error });
    }
    throw signal?.aborted && !peer.ended ? cancelledError(signal, told) : error;
  } finally {
    over.abort();
  }
}

/**
 * The callback for the progress of a request, if its caller wants it.
 * @param {import('@abp-bridge/rpc').IncomingRequest} context
 */
export const progressOf = ({ params, progress }) =>
  getOwn(getOwn(params, '_meta'), 'progressToken') === undefined ? undefined : progress;

/**
 * Answers the other side's questions about the calls that it has cancelled.
 * @param {Peer} peer
 */
export function serveOutcomes(peer) {
  peer.handle(OUTCOME, (params, { signal }) => {
    const { id, settled } = copyRecord(params);
    return unless(signal, peer.became(id, settled === true));
  });
}
