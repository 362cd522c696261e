/** Asks an app what became of a call. Loaded when somebody asks. */
import * as abp from '../driver/abp-boundary.js';
import { AbpError } from '../common/errors.js';
import { requireOptions } from '../common/check-options.js';
import { OUTCOME } from '../wire/messages.js';
import { copyRecord, getOwn, milliseconds } from '../common/values.js';
import { wait } from './retry.js';

/** ms for which a session is waited for, unless the caller says how long. */
const MAX_AWAY = 60_000;

/** @type {import('../common/check-options.js').Kinds<import('./client.js').OutcomeOptions>} */
// prettier-ignore
const OPTIONS = {
  settled: 'a boolean', signal: 'an AbortSignal', timeout: 'a number',
};

/**
 * @param {import('./client.js').Client} client
 * @param {unknown} callId
 * @param {import('./client.js').OutcomeOptions} options
 * @param {(waits: boolean) => Promise<boolean>} ready settles when it is known whether there is a session; waits for one that the
 *   program may begin, if it is to
 * @returns {Promise<import('../types/outcome.js').CallFate>}
 */
export async function askOutcome(client, callId, options, ready) {
  if (typeof callId !== 'string') {
    throw new AbpError('INVALID_PARAMS', 'outcome needs the callId of a call, a string');
  }
  requireOptions('outcome', options, OPTIONS);
  const { settled = false, signal, timeout } = options ?? {};
  const deadline = performance.now() + (milliseconds(timeout) || Infinity);
  const left = () => deadline - performance.now();
  const away = settled && timeout === undefined ? MAX_AWAY : Infinity;
  for (;;) {
    let isReady = false;
    await wait(
      Math.min(left(), away),
      signal,
      ready(settled).then((is) => (isReady = is)),
    );
    if (!isReady || !client.features.outcomes) return { outcome: 'unknown' };
    const ms = deadline === Infinity ? undefined : Math.max(1, left());
    const { sessionId } = client;
    const response = await client.call(OUTCOME, { callId, settled }, { signal, timeout: ms });
    if (response.success) return read(response.data);
    // A session that ends while the answer is waited for, lost or closed, may be followed by another.
    const isOver = client.sessionId !== sessionId || !client.connected;
    if (!isOver || signal?.aborted || left() <= 0)
      return { outcome: 'unknown', error: response.error };
  }
}

/**
 * @param {unknown} said what an app said
 * @returns {import('../types/outcome.js').CallFate}
 */
function read(said) {
  const { report, progress } = copyRecord(said);
  const word = getOwn(said, 'outcome');
  const outcome = /** @type {import('../types/outcome.js').CallOutcome} */ (
    abp.FATES.indexOf(word) > 0 ? word : 'unknown'
  );
  return {
    outcome,
    ...(report !== undefined && { report }),
    ...(progress !== undefined && { progress }),
  };
}
