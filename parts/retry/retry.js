/**
 * Retries: sessions that were lost, and calls that failed and may succeed later. Also asks for the
 * outcome of a call, and for the capabilities that an app supports. Loaded on demand.
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
 * A memory of keys: its id, and for how many ms it keeps a key.
 * @typedef {{ id: string, rememberFor: number }} Named
 */

/**
 * The number and the times of retries. The defaults are in parentheses.
 * @typedef {object} Patience
 * @property {number} [attempts] the most attempts: for a session, after it was lost (Infinity); for
 *   a call, with the first attempt (3)
 * @property {number} [delay] ms until the first retry; doubled for each further one, and shortened
 *   at random by up to a half (250)
 * @property {number} [maxDelay] the longest pause, in ms (30000). A longer `retryAfter` of the app
 *   applies as far as the call's `timeout` allows or, without a timeout, up to 600000
 */

/**
 * How an agent reconnects. The defaults are in parentheses.
 * @typedef {Patience & Reloading} Reconnecting
 */

/**
 * How an app's iframe is reloaded when a session could not begin again.
 * @typedef {object} Reloading
 * @property {boolean | ((iframe: HTMLIFrameElement) => unknown)} [reload] whether the iframe loads
 *   its document again after a failed attempt (false), or a function that does that; the result is
 *   awaited as long as a handshake may take. With it, the default of `attempts` is 5
 */

/** The default of `attempts` with `reload`: reloading a document endlessly would be useless. */
const RELOADING_ATTEMPTS = 5;
/** A session that lasted this long, in ms, resets the count of failures. */
const STABLE = 10_000;
/**
 * The longest time of a call on its way to its app, in ms: after so long a silence a session is
 * lost.
 */
const MAX_DELIVERY = 30_000;
/** The longest `retryAfter` that applies, in ms, if the call has no timeout. */
const MAX_RETRY_AFTER = 600_000;

/**
 * The default time limits, in ms, for a session and for an answer that the app can give at once.
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
 * Waits until the time is up, a signal fires, or another promise settles, whichever is first.
 * @template T
 * @param {number} ms Infinity is no limit
 * @param {AbortSignal | undefined} signal
 * @param {Promise<T>} [other]
 * @returns {Promise<T | undefined>} the value of `other`, if it was the first; never rejects
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
 * The target of sessions, and the failures so far.
 * @typedef {object} Place
 * @property {any} [target] the target of `connect`. If a function opens it, the first attempt also
 *   waits for up to `delay`, so that a server that comes back is not called by all its clients at
 *   once
 * @property {HTMLIFrameElement} [iframe] the app's iframe, if it has one
 * @property {number} limit ms that a handshake may take; 0 for no limit
 * @property {boolean | Reconnecting} [patience]
 * @property {boolean} [hasFailed] whether an attempt has failed before
 * @property {number} failures in a row
 * @property {number} since when the last session began, in ms of `performance.now()`
 */

/**
 * The connection of a client to its app, across sessions.
 * @typedef {Place & Coming} Route
 */
/**
 * @typedef {object} Coming The state of the current attempts.
 * @property {any} origin the app's, if it is in an iframe
 * @property {AbortController} attempt of the latest session or handshake: aborts when that is
 *   closed, or another begins
 * @property {AbortController & { done: Promise<boolean> }} [restoring] automatic reconnecting;
 *   `done` resolves with whether it has led to a session
 * @property {((value?: any) => void)[]} waiting callbacks that wait for a session
 */

/**
 * Resolves with whether there is a session, as soon as that is known.
 * @param {{ connected: boolean }} client
 * @param {Route} route
 * @param {boolean} [waits] whether to wait for a session that the program begins, unless it has
 *   closed this client
 * @returns {Promise<boolean>}
 */
export async function isReady(client, route, waits) {
  for (;;) {
    const { restoring } = route;
    if (!client.connected) await restoring?.done;
    if (client.connected) return true;
    // The program may begin a session while the client tries to.
    if (restoring !== route.restoring) continue;
    if (!waits || restoring || route.attempt.signal.aborted) return false;
    await new Promise((resolve) => route.waiting.push(resolve));
  }
}

/**
 * Begins a new session in place of one that was lost, with as many attempts as allowed. A session
 * that does not last counts as a failure, so that there is always a pause.
 *
 * An iframe that is in no document gets as much time as a handshake: it may be moving to another
 * place. After the iframe has loaded a document the next attempt follows at once, whatever the
 * pause: the document is a new one.
 * @param {() => Promise<void>} begin begins a session; rejects if that fails
 * @param {AbortSignal} signal stops the attempts
 * @param {Place} place
 * @param {() => void} again called after it has given up, when the iframe loads a document again
 * @returns {Promise<void>} rejects with the last error if it gives up
 */
export async function restore(begin, signal, place, again) {
  const { target, iframe = target?.iframe, hasFailed, patience } = place;
  const { reload, attempts = reload ? RELOADING_ATTEMPTS : Infinity, ...delays } = read(patience);
  const longest = place.limit || Infinity;
  let isAgain = hasFailed;
  let reloads = 0;
  let hasLoaded = false;
  /** @type {(value?: unknown) => void} */
  let resolveLoad;
  const onLoad = () => {
    hasLoaded = true;
    resolveLoad();
  };
  const nextLoad = () => {
    hasLoaded = false;
    return new Promise((resolve) => (resolveLoad = resolve));
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
   * @returns {Promise<number>} the ms that it has waited in vain
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
      // Workers of Node report their end; those of pages do not.
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
        // A final error may no longer be final if the iframe shows, or will show, another document
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
 * @param {HTMLIFrameElement} iframe an iframe in a document
 * @param {true | ((iframe: HTMLIFrameElement) => unknown)} reload
 * @param {() => void} done called when loading has begun
 * @returns {Promise<unknown>} settles when loading has begun or failed
 */
async function loadAgain(iframe, reload, done) {
  if (typeof reload === 'function')
    return invokeReportingErrors(async () => {
      await reload(iframe);
      done();
    });
  // Works for every address: setting an address with a hash would not load the document.
  const { parentNode, nextSibling } = iframe;
  iframe.remove();
  parentNode?.insertBefore(iframe, nextSibling);
  done();
}

/**
 * Describes the attempts.
 * @param {number} waited ms of waiting for the iframe to be in a document
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
 * True if the handler of a failed call may have run.
 * @param {Response} response
 */
const mayHaveRun = ({ success, metadata }) =>
  !success && ![undefined, 'unstarted'].includes(metadata?.outcome);

/**
 * Retries a call as long as its error says that this may help. A call that has a key, and may have
 * run, is made again only to the memory that knows its key, and only while that keeps the key.
 * @param {Response} response of the first attempt
 * @param {object} about
 * @param {(options: import('../../js/session/call.js').MadeOptions) => Promise<Response>}
 *   about.call makes the call again
 * @param {{ connected: boolean, memory: Named | undefined, features: { outcomes: boolean } }}
 *   about.client its `memory` is that of the session
 * @param {Route} about.route how it connects
 * @param {Named | undefined} about.memory the memory of the first attempt
 * @param {number[]} about.sent the time of the first attempt: in ms of `Date.now()`, which counts
 *   while a computer sleeps, and of `performance.now()`, which cannot be set back
 * @param {import('../../js/agent/client.js').CallOptions} about.options `timeout` and `signal`
 *   apply to all attempts together
 * @returns {Promise<Response>} the response of the last attempt. If an earlier attempt may have
 *   run, it has that outcome
 */
export async function callAgain(response, { call, client, route, memory, sent, options }) {
  const { retry: patience, signal, timeout, idempotencyKey, callId } = options;
  const { attempts = 3, ...delays } = read(patience);
  const keyed = idempotencyKey !== undefined;
  const deadline = sent[1] + (milliseconds(timeout) || Infinity);
  const left = () => deadline - performance.now();
  /** The latest attempt that may have run and knows the most. @type {Response | undefined} */
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
    // A signal that has fired gives the same response as for any other call.
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
      // The callId names an earlier attempt that may have run, too. If this attempt does not run,
      // the app must not answer that the call never ran.
      about: ran && client.features.outcomes ? callId : undefined,
    });
    // With the same key, the later attempt knows more. Without a key, the earlier one may have done
    // other work.
    if (mayHaveRun(response) && (keyed || !isOpen(ran?.metadata?.outcome))) ran = response;
  }
  return ran && ran !== response && !response.success ? asEarlier(response, ran, keyed) : response;
}

/**
 * True if a key of that time is still kept, and will be when a call sent now arrives.
 * @param {Named | undefined} memory
 * @param {number[]} sent
 */
function isRemembered(memory, [date, time]) {
  if (!memory) return false;
  const elapsed = Math.max(Date.now() - date, performance.now() - time);
  return elapsed < memory.rememberFor - Math.min(MAX_DELIVERY, memory.rememberFor / 2);
}

/**
 * The response of an attempt after an earlier one that may have run.
 * @param {import('../../js/wire/messages.js').Failure} response
 * @param {Response} ran the response of the earlier one
 * @param {boolean} keyed
 * @returns {Response}
 */
function asEarlier(response, ran, keyed) {
  const { outcome, report, progress } = ran.metadata ?? {};
  const metadata = { ...response.metadata, outcome, report, progress };
  if (report === undefined) delete metadata.report;
  if (progress === undefined) delete metadata.progress;
  const error = { ...response.error, retryable: response.error.retryable && !keyed };
  const merged = { ...response, error, metadata };
  return 'settled' in ran
    ? Object.defineProperty(merged, 'settled', { get: () => ran.settled })
    : merged;
}

// --- Asking later --------------------------------------------------------------------------------

/**
 * Asks an app for the outcome of a call.
 * @param {Client} client
 * @param {Route} route how it connects
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
   * True if the app answers a question that needs no wait: a page that hangs does not answer, and
   * its driver may not notice.
   */
  const isThere = async () => {
    const quick = { signal, timeout: Math.min(left(), MAX_SILENCE) };
    return (await askOutcome(client, route, callId, quick)).error?.code !== 'TIMEOUT';
  };
  for (;;) {
    const known = isReady(client, route, settled);
    const isBegun = await wait(Math.min(left(), longest), signal, known);
    // The session may be lost again by now.
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
    // A session that ends before the answer, lost or closed, may be followed by another.
    const isOver = response && (client.sessionId !== sessionId || !client.connected);
    if (isOver && !signal?.aborted && left() > 0) continue;
    const [code, message] = signal?.aborted
      ? ['CANCELLED', reasonText(signal.reason) ?? 'The question was cancelled']
      : ['TIMEOUT', 'The app has not answered what became of the call'];
    const error = response?.error ?? { code, message, retryable: true };
    return { outcome: 'unknown', error };
  }
}
