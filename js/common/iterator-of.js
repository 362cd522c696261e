/**
 * The iterator of an async iterable, of a generator or of a `ReadableStream`, which not every browser can iterate.
 * @param {any} source
 * @returns {{ next(): Promise<IteratorResult<unknown>>, return?(reason?: unknown): unknown, [Symbol.toStringTag]?: string }}
 */
export function iteratorOf(source) {
  if (source[Symbol.toStringTag] === 'Generator') return asAsync(source);
  if (!source.getReader) return source[Symbol.asyncIterator]();
  const reader = source.getReader();
  return { next: () => reader.read(), return: (reason) => reader.cancel(reason) };
}

/** @param {Generator<unknown>} source */
async function* asAsync(source) {
  return yield* source;
}
