/** One call that is stopped at a moment that a seed decides, in Node or in a page. */
import { random } from '../differential/scripts.js';
import {
  MANNER_NAMES,
  TEMPER_NAMES,
  callsInner,
  shapesWithout,
  streams,
  turn,
  turns,
} from './work.js';

/** @typedef {import('./judge.js').Told} Told */

export const APP = { id: 'a.b', name: 'A', version: '1' };
export const AGENT = { name: 'a', version: '1' };

/** What stops a call: its signal, its id, or who reads its chunks and leaves. */
const STOPS = ['signal', 'cancel', 'return', 'break'];

/**
 * @typedef {object} Plan of a call
 * @property {string} handler
 * @property {import('./work.js').Params} params
 * @property {string} key names it in the database
 * @property {number} moment when it is stopped
 * @property {number} count how many steps later
 * @property {string} by what stops it: one of {@link STOPS}
 * @property {boolean} inChunks whether its caller reads what it streams
 * @property {boolean} [keyed] whether it has an `idempotencyKey`
 * @property {boolean} [retried] whether it is repeated by itself
 */

/**
 * @typedef {object} CallOptions
 * @property {AbortSignal} signal
 * @property {string} by
 * @property {boolean} inChunks
 * @property {number} [timeout]
 * @property {string} callId
 * @property {string} [idempotencyKey]
 * @property {object} [retry]
 */

/**
 * @typedef {(name: string, params: object, options: CallOptions) => Promise<Told>} Call what a way
 *   tells of a call
 */

/**
 * @typedef {object} Caller
 * @property {(row: import('./work.js').Row) => unknown} write
 * @property {() => Promise<unknown>} [pace] a turn there
 * @property {(key: string) => Promise<unknown>} [begun] resolves when the handler begins, where
 *   calls take long to arrive
 */

/**
 * @param {string} key
 * @param {(below: number) => number} below
 * @param {readonly string[]} [lacking] what the way lacks
 * @returns {Plan}
 */
export function planOf(key, below, lacking = []) {
  const one = (/** @type {string[]} */ all) => all[below(all.length)];
  const shapes = shapesWithout(lacking);
  const handler = below(3) ? one(shapes) : 'plain';
  const inner = one(shapes.filter((shape) => !callsInner(shape) && shape !== 'reads'));
  const [manner, temper, seed] = [one(MANNER_NAMES), one(TEMPER_NAMES), below(2 ** 31)];
  const inChunks = below(2) > 0 && streams(handler) && !lacking.includes('chunks');
  const stops = STOPS.slice(0, inChunks ? 4 : 2).filter((by) => !lacking.includes(by));
  return {
    handler,
    params: { key, seed, manner, temper, ...(callsInner(handler) && { inner }) },
    key,
    moment: below(6),
    count: below(10),
    by: one(stops),
    inChunks,
  };
}

/**
 * Whether anything stops the call.
 * @param {Plan} plan
 * @param {boolean} [untimed] whether it has no timeout
 */
export function isStopped({ params, moment, by }, untimed) {
  // What is stuck ends only if it is told to stop, or is never stuck.
  if (moment === 1) return !untimed && params.temper !== 'is_stuck';
  // Its reader leaves when the next chunk has come, if one comes.
  return by !== 'break';
}

/** @param {number} count of microtasks to let pass */
async function microtasks(count) {
  for (let i = 0; i < count; i++) await undefined;
}

/**
 * @param {Call} call
 * @param {Caller} caller
 * @param {Plan} plan
 * @returns {Promise<Told>}
 */
export async function makeCall(call, { write, pace, begun }, plan) {
  const { handler, key, params, moment, count, by, inChunks, keyed, retried } = plan;
  const controller = new AbortController();
  const { signal } = controller;
  let since = performance.now();
  const stop = () => {
    since = performance.now();
    controller.abort(new DOMException('the test stops it', 'AbortError'));
  };
  /** @type {CallOptions} */
  const options = {
    signal,
    callId: key,
    by,
    inChunks,
    ...(keyed && { idempotencyKey: key }),
    ...(retried && { retry: { attempts: 5, delay: 1 } }),
  };
  if (moment === 0) stop();
  if (moment === 1 && isStopped(plan)) options.timeout = 1 + count;
  const calling = call(handler, params, options);
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
  return { ...told, waited: performance.now() - since };
}

/**
 * What a response of the protocol tells.
 * @param {any} response
 * @returns {Told}
 */
export const outcomeTold = ({ success, metadata, chunks }) => ({
  success,
  outcome: metadata?.outcome,
  report: metadata?.report,
  ...(chunks !== undefined && { chunks }),
});

/**
 * What an agent that asks is told.
 * @param {any} fate
 * @returns {Told}
 */
export const fateOf = ({ outcome, report }) => ({ success: false, outcome, report });

/**
 * @param {AbortSignal} signal
 * @param {() => unknown} act
 */
export function onAbort(signal, act) {
  if (signal.aborted) act();
  else signal.addEventListener('abort', act, { once: true });
}

/**
 * What is streamed to a handler.
 * @param {() => Promise<unknown>} [pace]
 */
async function* items(pace) {
  for (let i = 0; i < 6; i++) {
    await turns(i % 3, pace);
    yield i;
  }
}

/**
 * Calls by a client of this library, in the manner of each plan.
 * @param {() => import('../../parts/main/index.js').Client} clientNow
 * @param {() => Promise<unknown>} [pace]
 * @returns {(...given: Parameters<Call>) => Promise<any>} resolves with its response
 */
export const callsBy =
  (clientNow, pace = turn) =>
  async (name, params, { signal, by, inChunks, ...options }) => {
    const client = clientNow();
    const given = {
      ...options,
      ...(by === 'signal' && { signal }),
      ...(name === 'reads' && { input: items(pace), retry: undefined }),
    };
    const cancels = () =>
      by === 'cancel' && onAbort(signal, () => client.cancel(options.callId, 'by its id'));
    if (!inChunks) {
      const answering = client.call(name, params, given);
      cancels();
      return answering;
    }
    const stream = client.stream(name, params, given);
    cancels();
    if (by === 'return') onAbort(signal, () => stream.return().catch(() => {}));
    let [chunks, isRead] = [0, false];
    try {
      for await (const chunk of stream) {
        if (chunk !== options.callId) throw new Error(`a chunk of another call: ${chunk}`);
        chunks++;
        if (by === 'break' && signal.aborted) break;
        if (params.seed % 3 === 0) await pace();
      }
      isRead = !signal.aborted && client.features.streams;
    } catch {
      // Its response says how it ended.
    }
    const response = await stream.response;
    return isRead ? Object.assign(response, { chunks }) : response;
  };

/**
 * Answers what handlers ask: soon, or so late that the call may have been stopped.
 * @param {Caller} caller
 */
export const answersBy =
  ({ write, pace }) =>
  async (/** @type {string} */ key) => {
    const below = random([...key].reduce((sum, each) => 31 * sum + each.charCodeAt(0), 0));
    await turns(below(3) ? below(8) : 30, pace);
    const confirmed = below(6) > 0;
    if (confirmed) write({ key, at: 'answered' });
    return { confirmed };
  };

/**
 * As an option of `connect`.
 * @param {Caller} caller
 */
export function onElicitationBy(caller) {
  const answer = answersBy(caller);
  return (/** @type {{ params: { message: string } }} */ { params }) => answer(params.message);
}
