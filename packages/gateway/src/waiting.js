/** Waiting for what somebody else settles. */

/**
 * A promise, and what settles it.
 * @template T
 * @returns {{ promise: Promise<T>, resolve: (value: T | PromiseLike<T>) => void }}
 */
export function deferred() {
  /** @type {any} */
  let resolve;
  const promise = new Promise((settle) => (resolve = settle));
  return { promise, resolve };
}

/**
 * Waits, but not for longer than `ms`: rejects then with a DOMException.
 * @template T
 * @param {number} ms
 * @param {Promise<T>} promise
 */
export const within = (ms, promise) => unlessAborted(promise, AbortSignal.timeout(ms));

/**
 * Waits under a signal. What is made meanwhile must not outlive it, so it is looked at once more
 * after the wait.
 * @template T
 * @param {Promise<T>} promise
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>} rejects with the signal's reason if it is aborted by the time that the
 *   promise has settled
 */
export async function unlessAborted(promise, signal) {
  const { promise: aborted, resolve } = deferred();
  if (signal?.aborted) resolve(undefined);
  signal?.addEventListener('abort', resolve);
  try {
    await Promise.race([aborted, promise]);
    signal?.throwIfAborted();
    return await promise;
  } finally {
    signal?.removeEventListener('abort', resolve);
  }
}
