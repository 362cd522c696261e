// A worker of a pool, in Node or in a page.
import { serve, transfer } from '../../../parts/workers/pool.js';

const options =
  globalThis.process?.getBuiltinModule('node:worker_threads').workerData ??
  JSON.parse(decodeURIComponent(globalThis.location?.search.slice(1) || '{}'));

if (options.throws) throw new Error('broken at the start');
// As in a page that is not secure, and in one that may store nothing.
if (options.locks === 'none')
  Object.defineProperty(globalThis.navigator, 'locks', { value: undefined });
if (options.locks === 'refused')
  globalThis.navigator.locks.request = () => Promise.reject(new DOMException('', 'SecurityError'));

/**
 * Work that returns to nobody until its time is over, so that a test that fails ends all the same.
 */
function busy(round, ms = 60_000) {
  for (const end = performance.now() + ms; performance.now() < end;) round();
}

/** The progress of a task that has ended. */
let leftBehind;
/** One module for all tasks, as its memory is. */
let sieve;
async function instantiate(wasm) {
  const memory = new WebAssembly.Memory({ initial: 3, maximum: 3, shared: true });
  const { instance } = await WebAssembly.instantiate(wasm, { env: { memory } });
  return { memory, exports: instance.exports };
}

if (options.silent) setInterval(() => {}, 1000);
else {
  serve({
    echo: (params) => params,
    /** Leaves a mark where the test looks, and waits for its cancel. */
    marks: (_params, { signal, progress }) => {
      Atomics.add(new Int32Array(options.marks), 0, 1);
      progress({ progress: 0, stage: 'started' });
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    },
    /** The same, and streams. */
    async *streams() {
      Atomics.add(new Int32Array(options.marks), 0, 1);
      yield 'row';
    },
    /** Computes until its token says stop; `started` tells that it does. */
    asks: (_params, { token, progress }) => {
      progress({ progress: 0, stage: 'started' });
      busy(() => token.throwIfCancelled());
    },
    /** Computes and never asks. */
    deaf: (_params, { progress }) => {
      progress({ progress: 0, stage: 'started' });
      busy(() => {});
    },
    /** Yields, so that messages come in. */
    yields: async (_params, { token, signal, progress }) => {
      progress({ progress: 0, stage: 'started' });
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return {
        cancelled: token.cancelled,
        reason: signal.reason.message,
        name: signal.reason.name,
      };
    },
    /** Computes for ever, but breathes. */
    breathes: async (_params, { breathe, progress }) => {
      progress({ progress: 0, stage: 'started' });
      for (;;) await breathe();
    },
    fails: () => {
      throw Object.assign(new Error('no ink'), {
        code: 'RENDER_ERROR',
        retryable: true,
        details: { page: 3 },
      });
    },
    /** Reports how many rows it has made, at its end as `total`, with -1. */
    async *rows({ count, fails }, { progress }) {
      let made = 0;
      try {
        for (let i = 0; i < count; i++) {
          progress({ progress: ++made });
          yield i;
        }
        if (fails) throw Object.assign(new Error('no ink'), { code: 'X', retryable: false });
        return 'all rows';
      } finally {
        progress({ progress: -1, total: made });
      }
    },
    async *fails_to_end() {
      try {
        for (;;) yield 'row';
      } finally {
        await Promise.reject(new Error('no ink'));
      }
    },
    /** Says when it is closed, which is behind its last chunk. */
    closed(_params, { progress }) {
      let count = 0;
      const pull = (/** @type {any} */ controller) => {
        if (count++ < 3) return controller.enqueue('row');
        controller.close();
        progress({ progress: 1 });
      };
      return new ReadableStream({ pull });
    },
    async *odd() {
      yield 'even';
      yield () => {};
    },
    unsendable: () => ({ f() {} }),
    unsendableError: () => {
      throw Object.assign(new Error('no'), { code: 'X', retryable: false, details: () => {} });
    },
    size: ({ content }) => content.byteLength,
    bytes: ({ size }) => ({ content: new ArrayBuffer(size), mimeType: 'a/b' }),
    moved: ({ size }) => {
      const pixels = new Uint8Array(size);
      return transfer({ pixels }, [pixels.buffer]);
    },
    talks: (_params, { progress }) => {
      for (let i = 1; i <= 3; i++) progress({ progress: i, total: 3 });
      leftBehind = progress;
    },
    /** What an earlier task left behind speaks while this one is under way. */
    isInterrupted: () => leftBehind({ progress: 9 }),
    exits: () => globalThis.process.exit(3),
    throwsLater: () => {
      queueMicrotask(() => globalThis.nothing.there);
      return new Promise(() => {});
    },
    throwsInATimer: (_params, { progress }) => {
      progress({ progress: 0, stage: 'started' });
      return new Promise(() => setTimeout(() => globalThis.nothing.there));
    },
    ...Object.fromEntries(
      Object.entries({
        throwsText: 'out of ink',
        throwsObject: { ink: 'out' },
        throwsNothing: undefined,
      }).map(([name, thrown]) => [
        name,
        () =>
          new Promise(() =>
            setTimeout(() => {
              throw thrown;
            }),
          ),
      ]),
    ),
    rejectsLater: (_params, { progress }) => {
      progress({ progress: 0, stage: 'started' });
      void Promise.reject(new Error('no ink'));
      return new Promise(() => {});
    },
    /** The program looks after its rejections itself. */
    handlesRejections: async () => {
      const handled = new Promise((resolve) => {
        const handle = (event) => (event.preventDefault(), resolve());
        globalThis.addEventListener('unhandledrejection', handle, { once: true });
      });
      void Promise.reject(new Error('no ink'));
      await handled;
      await new Promise((resolve) => setTimeout(resolve, 300));
      return 'done';
    },
    throwsAside: () => {
      setTimeout(() => globalThis.nothing.there);
      return 'done';
    },
    closes: (_params, { progress }) => {
      progress({ progress: 0, stage: 'started' });
      globalThis.close();
      return new Promise(() => {});
    },
    closesAtItsEnd: () => {
      globalThis.close();
      return 'done';
    },
    /** What its memory may hold is bounded by its owner. */
    exhausts: () => {
      const all = [];
      for (;;) all.push(new Array(1e5).fill(all.length));
    },
    busy: ({ ms }) => {
      busy(() => {}, ms);
      return 'done';
    },
    hangs: (_params, { progress }) => {
      progress({ progress: 0, stage: 'started' });
      return new Promise(() => {});
    },
    /** demo/examples/sieve.c: counts primes below the limit, or says -1 if its token stopped it. */
    sieve: async ({ wasm, limit }, { token, progress }) => {
      sieve ??= await instantiate(wasm);
      token.bind(sieve.memory, sieve.exports.sieve_token());
      progress({ progress: 0, stage: 'started' });
      return sieve.exports.sieve(limit);
    },
    bindsItsOwn: (_params, { token }) => token.bind(new WebAssembly.Memory({ initial: 1 }), 0),
    shares: (_params, { token }) => !(token.word.buffer instanceof ArrayBuffer),
  });
  if (options.twice) serve({});
  if (options.closes) globalThis.close();
}
