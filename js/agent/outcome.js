/** Asks an app what became of a call. Loaded when somebody asks, and imports nothing that its side has, as js/agent/retry.js. */
import { isReady, wait } from './retry.js';

/** The capability by which an agent asks what became of a call. */
const OUTCOME = 'bridge/outcome';
/** ms for which a session is waited for, unless the caller says how long. */
const MAX_AWAY = 60_000;

/** @type {import('../common/check-options.js').Kinds<import('./client.js').OutcomeOptions>} */
// prettier-ignore
const OPTIONS = {
  settled: 'a boolean', signal: 'an AbortSignal', timeout: 'a number',
};

/**
 * @param {import('./client.js').Tools} tools
 * @param {import('./client.js').Client} client
 * @param {import('./retry.js').Way} way how it comes to a session
 * @param {unknown} callId
 * @param {import('./client.js').OutcomeOptions} options
 * @returns {Promise<import('../types/outcome.js').CallFate>}
 */
export async function askOutcome(tools, client, way, callId, options) {
  const { AbpError, FATES, milliseconds, requireOptions } = tools;
  if (typeof callId !== 'string') {
    throw new AbpError('INVALID_PARAMS', 'outcome needs the callId of a call, a string');
  }
  requireOptions('outcome', options, OPTIONS);
  const { settled = false, signal, timeout } = options ?? {};
  const deadline = performance.now() + (milliseconds(timeout) || Infinity);
  const left = () => deadline - performance.now();
  const away = settled && timeout === undefined ? MAX_AWAY : Infinity;
  for (;;) {
    let isThere = false;
    const known = isReady(client, way, settled).then((is) => (isThere = is));
    await wait(tools, Math.min(left(), away), signal, known);
    if (!isThere || !client.features.outcomes) return { outcome: 'unknown' };
    const ms = deadline === Infinity ? undefined : Math.max(1, left());
    const { sessionId } = client;
    const response = await client.call(OUTCOME, { callId, settled }, { signal, timeout: ms });
    if (response.success) {
      const { outcome, report, progress } = Object(response.data);
      return {
        outcome: FATES.indexOf(outcome) > 0 ? outcome : 'unknown',
        ...(report !== undefined && { report }),
        ...(progress !== undefined && { progress }),
      };
    }
    // A session that ends while the answer is waited for, lost or closed, may be followed by another.
    const isOver = client.sessionId !== sessionId || !client.connected;
    if (!isOver || signal?.aborted || left() <= 0)
      return { outcome: 'unknown', error: response.error };
  }
}
