/**
 * The iterator of an async iterable, of a generator or of a `ReadableStream`, which not every
 * browser can iterate.
 * @param {any} source
 * @returns {{ next(): Promise<IteratorResult<unknown>>, return?(reason?: unknown): unknown,
 *   [Symbol.toStringTag]?: string, isDone?: boolean }} `isDone`: a stream was read to its end, and
 *   was not cancelled
 */
export function iteratorOf(source) {
  if (source[Symbol.toStringTag] === 'Generator') return asAsync(source);
  if (!source.getReader) return source[Symbol.asyncIterator]();
  const reader = source.getReader();
  const iterator = {
    isDone: false,
    next: () => reader.read(),
    return: (/** @type {unknown} */ reason) => ((isLeft = true), reader.cancel(reason)),
  };
  let isLeft = false;
  const ended = () => (iterator.isDone = !isLeft);
  reader.closed.then(ended, () => {});
  return iterator;
}

/** @param {Generator<unknown>} source */
async function* asAsync(source) {
  return yield* source;
}
