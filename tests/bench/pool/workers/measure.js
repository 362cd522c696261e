/** What it takes to stop a worker, in Node or in a page. */
import { pool } from '../../../../parts/workers/pool.js';

const EVERY = [1, 16, 256, 4096];
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
const turn = () => new Promise((resolve) => setTimeout(resolve));

/** Median of what an action takes, in ms. */
async function time(times, action) {
  const taken = [];
  for (let i = 0; i < times; i++) taken.push(await action());
  return median(taken);
}

/**
 * @param {() => any} start makes a worker
 * @param {boolean} quick a smoke run
 * @returns the unit, one round trip to a worker, in ms; and ratios to it
 */
export async function measure(start, quick) {
  const times = (count) => (quick ? 3 : count);
  let worker;
  const workers = pool(() => (worker = start()), { size: 1, grace: 0 });
  const echo = () => workers.run('echo')(1);
  await echo();

  /** What the bare worker does, without the pool. */
  const bare = () =>
    new Promise((resolve) => {
      const begun = performance.now();
      const heard = (message) => {
        if ((message.data ?? message) !== 'pong') return;
        (worker.off ?? worker.removeEventListener).call(worker, 'message', heard);
        resolve(performance.now() - begun);
      };
      (worker.on ?? worker.addEventListener).call(worker, 'message', heard);
      worker.ref?.();
      worker.postMessage('ping');
    });
  const task = async () => {
    const begun = performance.now();
    await echo();
    return performance.now() - begun;
  };
  /** From an abort to what `then` waits for, of a task that computes. */
  const stop = async (name, params, then) => {
    const controller = new AbortController();
    let ended;
    await new Promise((started) => {
      const options = { signal: controller.signal, progress: started };
      ended = workers
        .run(name)(params, options)
        .catch(() => {});
    });
    await turn();
    const begun = performance.now();
    controller.abort();
    return (await then(ended, begun)) - begun;
  };
  const settled = async (ended) => (await ended, performance.now());
  const fresh = async (ended) => {
    await echo();
    const now = performance.now();
    await ended;
    return now;
  };
  const beat = new Int32Array(new SharedArrayBuffer(4));
  /** When the computation was last seen to go on. */
  const still = async (ended, begun) => {
    let last = begun;
    for (let seen = -1, since = begun; performance.now() - since < 20; await turn()) {
      const now = Atomics.load(beat, 0);
      if (now !== seen) {
        last = since = performance.now();
        seen = now;
      }
    }
    await ended;
    await echo();
    return last;
  };

  const unit = await time(times(300), bare);
  const rows = {
    'a task of the pool, there and back': await time(times(300), task),
    'by its token, abort to settled': await time(times(100), () => stop('asks', {}, settled)),
    'by ending it, abort to its last step': await time(times(10), () =>
      stop('deaf', { beat }, still),
    ),
    'by ending it, abort to settled': await time(times(10), () => stop('deaf', { beat }, settled)),
    'by ending it, abort to a fresh one’s answer': await time(times(10), () =>
      stop('deaf', { beat }, fresh),
    ),
  };

  const rounds = quick ? 1e5 : 2e7;
  const run = async (every) => (await workers.run('rounds')({ rounds, every })).ms;
  const asking = Object.fromEntries(EVERY.map((every) => [every, []]));
  for (let i = 0; i < times(9); i++) {
    for (const every of EVERY) {
      // It is compared with the runs right before and after it.
      const [before, ms, after] = [await run(0), await run(every), await run(0)];
      asking[every].push({
        ratio: (2 * ms) / (before + after),
        ns: ((ms - before) / rounds) * 1e6,
      });
    }
  }
  await workers.close();
  return {
    unit,
    rows,
    asking: EVERY.map((every) => ({
      every,
      ratio: median(asking[every].map(({ ratio }) => ratio)),
      ns: median(asking[every].map(({ ns }) => ns)),
    })),
  };
}
