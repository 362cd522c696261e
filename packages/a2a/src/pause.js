/** Ms to wait before a failed operation is tried again. */
export const RETRY = 100;

/**
 * Resolves after a time.
 * @param {number} ms
 */
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Settles like a promise, or rejects after a time.
 * @template T
 * @param {Promise<T>} promise
 * @param {number} ms
 * @param {() => Error} why
 */
export async function within(promise, ms, why) {
  let timer;
  const late = new Promise((_resolve, reject) => {
    timer = setTimeout(() => reject(why()), ms);
  });
  try {
    return await Promise.race([promise, /** @type {Promise<never>} */ (late)]);
  } finally {
    clearTimeout(timer);
  }
}
