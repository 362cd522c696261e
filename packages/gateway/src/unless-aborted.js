/**
 * Waiting under a signal. What is made while something is waited for must not outlive a signal that was aborted meanwhile: so
 * the signal is looked at once more after every wait, and that is done here.
 */

/**
 * @template T
 * @param {Promise<T>} promise
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>} rejects with the signal's reason if it is aborted by the time that the promise has settled
 */
export async function unlessAborted(promise, signal) {
  if (!signal) return promise;
  /** @type {() => void} */
  let release = () => {};
  const aborted = new Promise((_resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    release = () => signal.removeEventListener('abort', abort);
  });
  try {
    const value = await Promise.race([aborted, promise]);
    signal.throwIfAborted();
    return /** @type {T} */ (value);
  } finally {
    release();
  }
}
