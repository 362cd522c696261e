/**
 * What handlers stream that are stopped in the midst of it, in every form, and what is then to be
 * said of them. Each waits, after its first chunk, for its signal.
 */

/** Resolves when a signal has fired, in a later turn. */
export const fired = (signal) =>
  new Promise((resolve) => {
    const later = () => setTimeout(resolve);
    if (signal.aborted) later();
    else signal.addEventListener('abort', later, { once: true });
  });

/** @type {Record<string, { outcome: string, make: (signal: AbortSignal) => unknown }>} */
export const SOURCES = {
  'an async generator': {
    outcome: 'stopped',
    async *make(signal) {
      yield 'one';
      await fired(signal);
      yield 'two';
      yield 'never asked for';
    },
  },
  'a generator that never ends': {
    outcome: 'stopped',
    async *make() {
      for (;;) yield 'one';
    },
  },
  'a generator that throws what the signal says': {
    outcome: 'stopped',
    async *make(signal) {
      yield 'one';
      await fired(signal);
      signal.throwIfAborted();
    },
  },
  'an iterator by hand': {
    outcome: 'stopped',
    make: (signal) => {
      let first = true;
      return {
        [Symbol.asyncIterator]() {
          return this;
        },
        async next() {
          if (!first) await fired(signal);
          first = false;
          return { done: false, value: 'one' };
        },
      };
    },
  },
  'a ReadableStream': {
    outcome: 'stopped',
    make: () => new ReadableStream({ start: (controller) => controller.enqueue('one') }),
  },
  'a ReadableStream whose cancel gives back its reason': {
    outcome: 'stopped',
    make: () =>
      new ReadableStream({
        start: (controller) => controller.enqueue('one'),
        cancel: (reason) => Promise.reject(reason),
      }),
  },
  'a ReadableStream whose cancel fails': {
    outcome: 'failed',
    make: () =>
      new ReadableStream({
        start: (controller) => controller.enqueue('one'),
        cancel: () => Promise.reject(new Error('expected in this test')),
      }),
  },
  'an async generator that is done': {
    outcome: 'finished',
    async *make(signal) {
      yield 'one';
      await fired(signal);
    },
  },
  'an async generator that is done, with a value': {
    outcome: 'finished',
    async *make(signal) {
      yield 'one';
      await fired(signal);
      return 'two';
    },
  },
};
