/** Waiting with a request for what becomes of a call: its progress and its questions go to the client of that request. */
import { ProtocolError, ProtocolErrorCode } from '@modelcontextprotocol/server';
import { progressSender } from './progress.js';
import { PATIENCE_WITH_CLIENTS } from './runs.js';
import { cleanText } from './texts.js';

/** How long a client may take to say that it has read what it was sent, in ms. */
const PING_TIMEOUT = 1000;

/**
 * @typedef {import('./runs.js').Run} Run
 * @typedef {import('./mcp-server.js').Context} Context
 */

/**
 * The client's reason, in the words that the app's handler gets.
 * @param {{ reason?: any }} cancel a signal, or what the client says
 */
export function reasonOf({ reason }) {
  if (typeof reason === 'string' && reason) return cleanText(reason, 500);
  // The SDK's own error is what it says of a connection that is gone.
  if (reason?.name === 'AbortError' || reason === undefined) return 'the client cancelled';
  return 'the client disconnected';
}

/** The answer to a request that was cancelled: nobody reads it. */
export const cancelledError = () =>
  new ProtocolError(ProtocolErrorCode.InternalError, 'The request was cancelled');

/**
 * @param {import('./mcp-server.js').McpServer} server
 * @param {Run} run
 * @param {Context} ctx
 * @param {object} options
 * @param {number} options.patience ms
 * @param {boolean} options.owns whether the run ends with this request
 * @param {Record<string, unknown>} [options.meta] goes along with questions
 * @returns {Promise<'ended' | 'late' | 'asked'>} 'asked' in the version that has no requests of servers
 */
export async function attend(server, run, ctx, { patience, owns, meta }) {
  const { signal, _meta } = ctx.mcpReq;
  const drained = server.exchange?.()?.drained;
  const progress = progressSender(
    _meta?.progressToken,
    async (params) => {
      await drained?.();
      if (!signal.aborted) await ctx.mcpReq.notify({ method: 'notifications/progress', params });
    },
    // In the newer version servers ask nothing.
    server.isModern
      ? undefined
      : () => ctx.mcpReq.send({ method: 'ping' }, { signal, timeout: PING_TIMEOUT }),
  );
  run.onProgress = progress.report;
  if (run.progress) progress.report(run.progress);
  run.wait(1);
  try {
    let event;
    // What it takes to answer is the user's time, not the app's: the wait begins anew.
    do {
      event = await run.next(signal, patience);
      if (event === 'asked' && !server.isModern) await ask(run, ctx, meta);
    } while (event === 'asked' && !server.isModern);
    progress.stop();
    if (event !== 'aborted') await progress.drain();
    if (signal.aborted) {
      if (owns) {
        run.abort(reasonOf(signal));
        void server.gateway.runs.release(run);
      }
      throw cancelledError();
    }
    return /** @type {'ended' | 'late' | 'asked'} */ (event);
  } finally {
    progress.stop();
    run.wait(-1);
    if (run.onProgress === progress.report) run.onProgress = () => {};
  }
}

/**
 * Puts the app's question to a client of the older version, by a request of ours.
 * @param {Run} run
 * @param {Context} ctx
 * @param {Record<string, unknown>} [meta]
 */
async function ask(run, { mcpReq }, meta) {
  const { question } = run;
  if (!question) return;
  const over = new AbortController();
  const abort = () => over.abort('the question is over');
  mcpReq.signal.addEventListener('abort', abort);
  // It may be over by other ways than an answer to this request.
  void question.answered.then(abort);
  const params = { ...question.form.params, ...(meta && { _meta: meta }) };
  const request = /** @type {import('@modelcontextprotocol/server').ElicitRequest} */ ({
    method: 'elicitation/create',
    params,
  });
  try {
    const options = { signal: over.signal, timeout: PATIENCE_WITH_CLIENTS };
    const result = await mcpReq.send(request, options);
    if (run.question === question) run.answer(result);
  } catch {
    // Nobody answered, or nobody could: that is no consent.
    if (run.question === question && !mcpReq.signal.aborted) run.answer({ action: 'cancel' });
  } finally {
    mcpReq.signal.removeEventListener('abort', abort);
  }
}
