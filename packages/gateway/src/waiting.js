/** Promises that other code settles. */

/**
 * A promise, and its `resolve`.
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
 * Waits for `ms` at most: then rejects with a DOMException.
 * @template T
 * @param {number} ms
 * @param {Promise<T>} promise
 */
export const within = (ms, promise) => unlessAborted(promise, AbortSignal.timeout(ms));

/**
 * Waits under a signal. A result must not outlive the signal, so that is checked again after the
 * wait.
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
