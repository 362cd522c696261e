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
