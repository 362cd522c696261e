/** One call that is stopped at a moment that a seed decides, in Node or in a page. */
import { NAMES, isStuck, turn } from './work.js';

/** @typedef {import('./judge.js').Told} Told */

/**
 * @typedef {object} Plan of a call
 * @property {string} handler
 * @property {string} key names it in the database
 * @property {number} seed of what the handler does
 * @property {number} moment when it is stopped
 * @property {number} count how many steps later
 * @property {boolean} [keyed] whether it has an `idempotencyKey`
 */

/** @typedef {{ signal?: AbortSignal, timeout?: number, callId: string, idempotencyKey?: string }} CallOptions */

/**
 * @typedef {(name: string, params: { key: string, seed: number }, options: CallOptions) => Promise<Told & {
 *   later?: Promise<Told | undefined> }>} Call what a way tells of a call; `later` is what it tells when the handler has ended after all
 */

/**
 * @param {string} key
 * @param {(below: number) => number} below
 * @returns {Plan}
 */
export const planOf = (key, below) => ({
  handler: NAMES[below(NAMES.length)],
  key,
  seed: below(2 ** 31),
  moment: below(6),
  count: below(10),
});

/** Whether anything stops the call. @param {Plan} plan @param {boolean} [untimed] whether it has no timeout */
export const isStopped = ({ handler, moment }, untimed) =>
  moment !== 1 || !(untimed || isStuck(handler));

/** @param {number} count of microtasks to let pass */
async function microtasks(count) {
  for (let i = 0; i < count; i++) await undefined;
}

/** @param {number} count @param {() => Promise<unknown>} [pace] one turn; one that fails has passed, too */
export async function turns(count, pace = turn) {
  for (let i = 0; i < count; i++) await pace().catch(() => {});
}

/**
 * @param {Call} call
 * @param {object} place where it is made
 * @param {(row: import('./work.js').Row) => unknown} place.write
 * @param {() => Promise<unknown>} [place.pace] a turn there
 * @param {(key: string) => Promise<unknown>} [place.begun] resolves when the handler begins, where calls take long to arrive
 * @param {Plan} plan
 * @returns {ReturnType<Call>}
 */
export async function makeCall(call, { write, pace, begun }, plan) {
  const { handler, key, seed, moment, count, keyed } = plan;
  const controller = new AbortController();
  const { signal } = controller;
  let stoppedAt = 0;
  const stop = () => {
    stoppedAt = performance.now();
    controller.abort(new DOMException('the test stops it', 'AbortError'));
  };
  /** @type {Parameters<Call>[2]} */
  const options = { signal, callId: key, ...(keyed && { idempotencyKey: key }) };
  if (moment === 0) stop();
  // What is stuck ends only if it is told to stop, or is never stuck.
  if (moment === 1 && isStopped(plan)) options.timeout = 1 + count;
  const calling = call(handler, { key, seed }, options);
  if (moment === 2) stop();
  if (moment === 3) void microtasks(count).then(stop);
  if (moment === 4 || (moment > 4 && !begun)) void turns(2 * count, pace).then(stop);
  else if (moment > 4) {
    // Its place may be held by handlers that wait until all callers have been told.
    const begins = Promise.race([begun(key), turns(20, pace)]);
    void begins.then(() => turns(count)).then(stop);
  }
  const told = await calling;
  write({ key, at: 'told', how: told.success ? 'success' : told.outcome });
  return signal.aborted ? { ...told, waited: performance.now() - stoppedAt } : told;
}

/** What a response of the protocol tells. @param {any} response @returns {Told} */
export const toldOf = ({ success, metadata }) => ({
  success,
  outcome: metadata?.outcome,
  report: metadata?.report,
});
