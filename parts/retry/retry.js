/**
 * Trying again: sessions that were lost, and calls that failed and may succeed later; and asking
 * what became of a call, or what the app supports. Loaded when that happens.
 */
import { FATES } from '../../js/driver/abp-boundary.js';
import { requireOptions } from '../../js/common/check-options.js';
import { AbpError, invokeReportingErrors, reasonText } from '../../js/common/errors.js';
import { offAbort, onAbort } from '../../js/common/signals.js';
import { milliseconds } from '../../js/common/values.js';
import { OUTCOME, isOpen } from '../../js/wire/messages.js';

export { supportOf } from '../../js/session/capability-support.js';

/** @import { Response } from '../../js/wire/messages.js' */
/** @import { Client, OutcomeOptions } from '../../js/agent/client.js' */

/**
 * What remembers keys: its id, and for how many ms.
 * @typedef {{ id: string, rememberFor: number }} Named
 */

/**
 * How often and how soon something is tried again. The defaults are in parentheses.
 * @typedef {object} Patience
 * @property {number} [attempts] how often it is tried at most: a session after it was lost
 *   (Infinity), a call with the first time (3)
 * @property {number} [delay] ms until it is tried again; doubled each time, and shortened at random
 *   by up to a half (250)
 * @property {number} [maxDelay] ms that are waited at most (30000), unless the app asks with
 *   `retryAfter` for longer: that is waited for as long as the call's `timeout` allows or, without
 *   one, up to 600000
 */

/**
 * How an agent reconnects. The defaults are in parentheses.
 * @typedef {Patience & Reloading} Reconnecting
 */

/**
 * What an app's iframe does when a session could not be begun again.
 * @typedef {object} Reloading
 * @property {boolean | ((iframe: HTMLIFrameElement) => unknown)} [reload] whether an app's iframe
 *   loads its document again after an attempt that has failed (false), or what does that: it is
 *   waited for, as long as a handshake may take. Then `attempts` is 5 if it is not given
 */

/** Attempts of those who reload, because what loads its document again for ever helps nobody. */
const RELOADING_ATTEMPTS = 5;
/** ms that a session must have lasted for its loss to be taken for the first one. */
const STABLE = 10_000;
/**
 * ms that a call may be on its way to its app, at most: after as long a silence a session is
 * lost.
 */
const MAX_DELIVERY = 30_000;
/**
 * ms that an app may ask for with `retryAfter`, where the call has no timeout that says how long it
 * may last.
 */
const MAX_RETRY_AFTER = 600_000;

/**
 * ms for which a session is waited for, and an answer that needs no waiting, unless the caller says
 * how long.
 */
const MAX_SILENCE = 60_000;

/** @type {import('../../js/common/check-options.js').Kinds<OutcomeOptions>} */
const OPTIONS = { settled: 'a boolean', signal: 'an AbortSignal', timeout: 'a number' };

/**
 * @param {boolean | Reconnecting | undefined} patience
 * @returns {{ attempts?: number, delay: number, maxDelay: number } & Reloading}
 */
const read = (patience) => ({ delay: 250, maxDelay: 30_000, ...Object(patience) });

/**
 * @param {{ delay: number, maxDelay: number }} patience
 * @param {number} failures
 * @returns {number} ms
 */
const delayAfter = ({ delay, maxDelay }, failures) =>
  Math.min(delay * 2 ** (failures - 1), maxDelay) * (1 - Math.random() / 2);

/**
 * Waits until the first of these: time is up, a signal fires, something else has settled.
 * @template T
 * @param {number} ms Infinity is no limit
 * @param {AbortSignal | undefined} signal
 * @param {Promise<T>} [other]
 * @returns {Promise<T | undefined>} what that gave, if it was the first; never rejects
 */
export function wait(ms, signal, other) {
  return new Promise((resolve) => {
    const record = { handleEvent: () => end() };
    const timer = ms === Infinity ? undefined : setTimeout(() => end(), milliseconds(ms));
    const end = (/** @type {T | undefined} */ given = undefined) => {
      clearTimeout(timer);
      offAbort(signal, record);
      resolve(given);
    };
    if (signal?.aborted) return end();
    onAbort(signal, record);
    other?.then(end, () => end());
  });
}

/**
 * Where sessions are begun, and how it went until now.
 * @typedef {object} Place
 * @property {any} [target] to which they connect. If a function opens it, the first try waits, too,
 *   for up to `delay`: a server that comes back is not called by all its clients at once
 * @property {HTMLIFrameElement} [iframe] in which the app is, if it is in one
 * @property {number} limit ms that a handshake may take; 0 for no limit
 * @property {boolean | Reconnecting} [patience]
 * @property {boolean} [hasFailed] whether an attempt was made already, and has failed
 * @property {number} failures in a row
 * @property {number} since when the last session began, in ms of `performance.now()`
 */

/**
 * How a client comes to its app.
 * @typedef {Place & Coming} Route
 */
/**
 * @typedef {object} Coming What is done for a session.
 * @property {any} origin the app's, if it is in an iframe
 * @property {AbortController} attempt of the session that was to begin last: aborts when that is
 *   closed, or another is to begin
 * @property {AbortController & { done: Promise<boolean> }} [restoring] what reconnects by itself,
 *   and whether that has led to a session
 * @property {((value?: any) => void)[]} waiting those who wait for a session
 */

/**
 * Whether there is a session, as soon as that is known.
 * @param {{ connected: boolean }} client
 * @param {Route} route
 * @param {boolean} [waits] whether one is waited for that the program may begin, unless it has
 *   closed this client
 * @returns {Promise<boolean>}
 */
export async function isReady(client, route, waits) {
  for (;;) {
    const { restoring } = route;
    if (!client.connected) await restoring?.done;
    if (client.connected) return true;
    // The program may begin one while the client tries to.
    if (restoring !== route.restoring) continue;
    if (!waits || restoring || route.attempt.signal.aborted) return false;
    await new Promise((resolve) => route.waiting.push(resolve));
  }
}

/**
 * Begins a new session in place of one that was lost, however often it takes. A session that does
 * not last is a failure, too: nobody is called in a loop without pauses.
 *
 * An iframe that is in no document is waited for, as long as a handshake may take: who moves it
 * puts it back. One that has loaded a document is tried at once, however long the pause is: that is
 * not the one that was lost, or did not answer.
 * @param {() => Promise<void>} begin begins a session; rejects when that failed
 * @param {AbortSignal} signal ends it
 * @param {Place} place
 * @param {() => void} again called when it has given up, and the iframe comes back: then that loads
 *   its document
 * @returns {Promise<void>} rejects with what made it give up
 */
export async function restore(begin, signal, place, again) {
  const { target, iframe = target?.iframe, hasFailed, patience } = place;
  const { reload, attempts = reload ? RELOADING_ATTEMPTS : Infinity, ...delays } = read(patience);
  const longest = place.limit || Infinity;
  let isAgain = hasFailed;
  let reloads = 0;
  let hasLoaded = false;
  /** @type {(value?: unknown) => void} */
  let heard;
  const onLoad = () => {
    hasLoaded = true;
    heard();
  };
  const nextLoad = () => {
    hasLoaded = false;
    return new Promise((resolve) => (heard = resolve));
  };
  let loaded = nextLoad();
  const isAway = () => iframe && !iframe.contentWindow;
  /**
   * @param {number} ms
   * @param {Promise<unknown>} [other]
   */
  const pause = async (ms, other) => {
    await wait(ms, signal, other);
    signal.throwIfAborted();
  };
  /**
   * Waits for the iframe to be in a document.
   * @returns {Promise<number>} ms that it was waited for in vain
   */
  const comesBack = async () => {
    const until = performance.now() + longest;
    for (let left = longest; isAway() && left > 0; left = until - performance.now()) {
      await pause(left, loaded);
      loaded = nextLoad();
    }
    return isAway() ? longest : 0;
  };
  if (performance.now() - place.since > STABLE) place.failures = 0;
  iframe?.addEventListener('load', onLoad);
  try {
    for (; ; isAgain = true) {
      if (place.failures) await pause(delayAfter(delays, place.failures), loaded);
      else if (typeof target === 'function') await pause(delays.delay * Math.random());
      const waited = isAway() ? await comesBack() : 0;
      if (iframe && isAgain && reload && !waited && !hasLoaded && !isAway()) {
        await pause(
          longest,
          loadAgain(iframe, reload, () => reloads++),
        );
      }
      signal.throwIfAborted();
      // A worker of Node's says so; nobody says it of a page's.
      if (/** @type {any} */ (target)?.threadId === -1)
        throw new AbpError('DISCONNECTED', `The worker has ended${STARTS_NO_MORE}`);
      loaded = nextLoad();
      place.failures++;
      try {
        await begin();
        place.since = performance.now();
        return;
      } catch (error) {
        if (signal.aborted) throw error;
        // What was final may be so no more where the iframe shows, or is to show, another document
        // than the one that was asked.
        const isFinal = waited || (error instanceof AbpError && !error.retryable && !isAway());
        if ((isFinal && !hasLoaded) || place.failures >= attempts) {
          const tried = triedAgain(waited, place.failures, reloads);
          if (!iframe || !(error instanceof AbpError) || !tried) throw error;
          const why = `${error.message} (given up: ${tried})`;
          throw new AbpError(error.code, why, { ...error, cause: error });
        }
      }
    }
  } catch (error) {
    iframe?.addEventListener('load', again, { once: true, signal });
    throw error;
  } finally {
    iframe?.removeEventListener('load', onLoad);
  }
}

const STARTS_NO_MORE =
  ', and does not run again: give connect a function that starts one (docs/workers.md#apps-that-live-in-a-worker)';

/**
 * Makes an iframe load its document again.
 * @param {HTMLIFrameElement} iframe which is in a document
 * @param {true | ((iframe: HTMLIFrameElement) => unknown)} reload
 * @param {() => void} done called when that has begun
 * @returns {Promise<unknown>} settles then, or when that has failed
 */
async function loadAgain(iframe, reload, done) {
  if (typeof reload === 'function')
    return invokeReportingErrors(async () => {
      await reload(iframe);
      done();
    });
  // Whatever its address: setting one that has a hash would not load anything.
  const { parentNode, nextSibling } = iframe;
  iframe.remove();
  parentNode?.insertBefore(iframe, nextSibling);
  done();
}

/**
 * Says what was tried.
 * @param {number} waited ms for the iframe to be in a document again
 * @param {number} attempts
 * @param {number} reloads
 */
const triedAgain = (waited, attempts, reloads) =>
  [
    waited && `it was waited for ${waited} ms`,
    attempts > 1 && `${attempts} attempts were made`,
    reloads && `its document was loaded again ${reloads} times`,
  ]
    .filter(Boolean)
    .join(', ');

/**
 * Whether the handler of a call that failed may have run.
 * @param {Response} response
 */
const mayHaveRun = ({ success, metadata }) =>
  !success && ![undefined, 'unstarted'].includes(metadata?.outcome);

/**
 * Makes a call again as long as its error says that this may help. A call that has a key, and may
 * have run, is made again only to the memory that knows its key, and as long as that knows it.
 * @param {Response} response of the first time
 * @param {object} about
 * @param {(options: import('../../js/session/call.js').MadeOptions) => Promise<Response>} about.call
 *   makes it again
 * @param {{ connected: boolean, memory: Named | undefined, features: { outcomes: boolean } }}
 *   about.client which says what remembers keys in its session
 * @param {Route} about.route how it comes to one
 * @param {Named | undefined} about.memory what remembered keys the first time
 * @param {number[]} about.sent when that was: ms of `Date.now()`, which counts while a computer
 *   sleeps, and of `performance.now()`, which nobody sets back
 * @param {import('../../js/agent/client.js').CallOptions} about.options `timeout` and `signal` are for all
 *   attempts together
 * @returns {Promise<Response>} of the last time. If an earlier one may have run, its outcome is not
 *   hidden
 */
export async function callAgain(response, { call, client, route, memory, sent, options }) {
  const { retry: patience, signal, timeout, idempotencyKey, callId } = options;
  const { attempts = 3, ...delays } = read(patience);
  const keyed = idempotencyKey !== undefined;
  const deadline = sent[1] + (milliseconds(timeout) || Infinity);
  const left = () => deadline - performance.now();
  /** The latest attempt that may have run and says most of it. @type {Response | undefined} */
  let ran = mayHaveRun(response) ? response : undefined;
  for (let made = 1; made < attempts; made++) {
    const { success, cancelled, error } = response;
    if (success || cancelled) break;
    const isLost = error?.code === 'DISCONNECTED';
    if (error?.retryable !== true && !(keyed && isLost)) break;
    const asked = milliseconds(error.retryAfter);
    const pause = isLost ? 0 : asked || delayAfter(delays, made);
    if (pause >= left() || (deadline === Infinity && asked > MAX_RETRY_AFTER)) break;
    if (pause) await wait(pause, signal);
    const isThere = await wait(left(), signal, isReady(client, route));
    // A signal that has fired is answered as in any other call.
    if (!signal?.aborted) {
      if (!isThere) break;
      if (!keyed || !isOpen(ran?.metadata?.outcome)) {
        ({ memory } = client);
        sent = [Date.now(), performance.now()];
      } else if (client.memory?.id !== memory?.id || !isRemembered(memory, sent)) break;
    }
    response = await call({
      ...options,
      timeout: deadline === Infinity ? undefined : Math.max(1, left()),
      // Its id names an attempt that may have run, too: if this one does not, who asks is not told
      // that it never ran.
      about: ran && client.features.outcomes ? callId : undefined,
    });
    // One that had the same key knows better; of one that had none, the earlier attempt may have
    // done something else.
    if (mayHaveRun(response) && (keyed || !isOpen(ran?.metadata?.outcome))) ran = response;
  }
  return ran && ran !== response && !response.success ? asEarlier(response, ran, keyed) : response;
}

/**
 * Whether a key of that time is still known, and will be when a call arrives that is sent now.
 * @param {Named | undefined} memory
 * @param {number[]} sent
 */
function isRemembered(memory, [date, time]) {
  if (!memory) return false;
  const elapsed = Math.max(Date.now() - date, performance.now() - time);
  return elapsed < memory.rememberFor - Math.min(MAX_DELIVERY, memory.rememberFor / 2);
}

/**
 * The response of an attempt, where an earlier one may have run.
 * @param {import('../../js/wire/messages.js').Failure} response
 * @param {Response} ran that of the earlier one
 * @param {boolean} keyed
 * @returns {Response}
 */
function asEarlier(response, ran, keyed) {
  const { outcome, report, progress } = ran.metadata ?? {};
  const metadata = { ...response.metadata, outcome, report, progress };
  if (report === undefined) delete metadata.report;
  if (progress === undefined) delete metadata.progress;
  const error = { ...response.error, retryable: response.error.retryable && !keyed };
  const told = { ...response, error, metadata };
  return 'settled' in ran
    ? Object.defineProperty(told, 'settled', { get: () => ran.settled })
    : told;
}

// --- Asking later --------------------------------------------------------------------------------

/**
 * Asks an app what became of a call.
 * @param {Client} client
 * @param {Route} route how it comes to a session
 * @param {unknown} callId
 * @param {OutcomeOptions} options
 * @returns {Promise<import('../../js/types/outcome.js').CallFate>}
 */
export async function askOutcome(client, route, callId, options) {
  if (typeof callId !== 'string') {
    throw new AbpError('INVALID_PARAMS', 'outcome needs the callId of a call, a string');
  }
  requireOptions('outcome', options, OPTIONS);
  const { settled = false, signal, timeout } = options ?? {};
  const deadline = performance.now() + (milliseconds(timeout) || Infinity);
  const left = () => deadline - performance.now();
  const longest = timeout === undefined ? MAX_SILENCE : Infinity;
  /**
   * Whether the app answers what it need not wait for: a page that hangs says nothing, and its
   * driver may not notice.
   */
  const isThere = async () => {
    const quick = { signal, timeout: Math.min(left(), MAX_SILENCE) };
    return (await askOutcome(client, route, callId, quick)).error?.code !== 'TIMEOUT';
  };
  for (;;) {
    const known = isReady(client, route, settled);
    const isBegun = await wait(Math.min(left(), longest), signal, known);
    // The one that there was may be lost by now.
    if (isBegun && !client.connected) continue;
    if (!client.connected || !client.features.outcomes) return { outcome: 'unknown' };
    const { sessionId } = client;
    const over = new AbortController();
    /** @type {Response | undefined} */
    let response;
    const asking = client
      .call(OUTCOME, { callId, settled }, { signal: over.signal })
      .then((answer) => (response = answer));
    do await wait(Math.min(left(), MAX_SILENCE), signal, asking);
    while (
      !(response || signal?.aborted || left() <= 0) &&
      (settled ? await isThere() : timeout !== undefined)
    );
    over.abort();
    if (response?.success) {
      const { outcome, report, progress } = Object(response.data);
      return {
        outcome: FATES.indexOf(outcome) > 0 ? outcome : 'unknown',
        ...(report !== undefined && { report }),
        ...(progress !== undefined && { progress }),
      };
    }
    // A session that ends while the answer is waited for, lost or closed, may be followed by
    // another.
    const isOver = response && (client.sessionId !== sessionId || !client.connected);
    if (isOver && !signal?.aborted && left() > 0) continue;
    const [code, message] = signal?.aborted
      ? ['CANCELLED', reasonText(signal.reason) ?? 'The question was cancelled']
      : ['TIMEOUT', 'The app has not answered what became of the call'];
    const error = response?.error ?? { code, message, retryable: true };
    return { outcome: 'unknown', error };
  }
}
