/** Waits that a signal can end early. */
import { offAbort, onAbort } from './signals.js';

/**
 * Calls a function when a signal fires, or at once if it has fired.
 * @param {AbortSignal | undefined} signal the signal, if there is one
 * @param {() => void} act what to do
 * @returns {() => void} stops listening to the signal
 */
export function whenAborted(signal, act) {
  const record = { handleEvent: act };
  if (signal?.aborted) act();
  else onAbort(signal, record);
  return () => offAbort(signal, record);
}

/**
 * Waits for a promise unless a signal fires first.
 * @template T
 * @param {AbortSignal | undefined} signal the signal, if there is one
 * @param {Promise<T>} promise the promise
 * @returns {Promise<T>} settles like the promise; rejects with the signal's reason
 */
export function unless(signal, promise) {
  return new Promise((resolve, reject) => {
    const release = whenAborted(signal, () => reject(signal?.reason));
    promise.then(resolve, reject).finally(release);
  });
}
