/**
 * The iterator of an async iterable or of a `ReadableStream`, which not every browser can iterate.
 * @param {any} source
 * @returns {{ next(): Promise<IteratorResult<unknown>>, return?(reason?: unknown): unknown, [Symbol.toStringTag]?: string }}
 */
export function iteratorOf(source) {
  if (typeof source.getReader !== 'function') return source[Symbol.asyncIterator]();
  const reader = source.getReader();
  return { next: () => reader.read(), return: (reason) => reader.cancel(reason) };
}
