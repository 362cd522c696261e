/**
 * Counts the steps of our code: how often the hottest block of each function runs, as V8 counts them for coverage; and the functions
 * that run. In a worker, which has a count of its own: what the whole process counts is not disturbed.
 */
import { once } from 'node:events';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';

/** One worker for all that is counted: loading our code takes far longer than most of that. @type {Worker | undefined} */
let counter;

/**
 * @param {URL} module
 * @param {string} name of an export of it, a function of a number
 * @param {number[]} sizes what it is called with, one after the other
 * @returns {Promise<number[]>} the steps of each
 */
export const stepsOf = (module, name, sizes) => count({ module: module.href, name, sizes });

/**
 * @param {URL} module
 * @param {string} name of an export of it, a function
 * @returns {Promise<string[]>} the functions of ours that run when it is called for the second time, each behind its file
 */
export const functionsOf = (module, name) => count({ module: module.href, name });

/** @param {object} what @returns {Promise<any>} */
async function count(what) {
  counter ??= new Worker(new URL(import.meta.url), {
    workerData: { counts: true },
    env: { ...process.env, NODE_V8_COVERAGE: '' },
  });
  counter.ref();
  counter.postMessage(what);
  const [counted] = await once(counter, 'message');
  counter.unref();
  if (counted instanceof Error) throw counted;
  return counted;
}

if (!isMainThread && workerData?.counts) {
  const { Session } = await import('node:inspector/promises');
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  /** The functions that ran since it was asked last: of which file, and how often their hottest block ran. */
  const taken = async () => {
    const { result } = await session.post('Profiler.takePreciseCoverage');
    return result.flatMap(({ url, functions }) => {
      const file = /\/((js|packages\/[\w-]+\/src)\/[\w/-]+\.js)$/.exec(url)?.[1];
      if (!file) return [];
      // Blocks that run equally often are reported as one, so a sum over all would depend on chance.
      return functions.map(({ functionName, ranges }) => ({
        name: `${file}: ${functionName || 'a function without a name'}`,
        ran: ranges[0].count > 0,
        steps: Math.max(...ranges.map(({ count }) => count)),
      }));
    });
  };
  parentPort.on('message', async ({ module, name, sizes }) => {
    try {
      const { [name]: run } = await import(module);
      await run(sizes?.[0]); // what is loaded on demand is not counted
      await taken();
      const counted = [];
      for (const n of sizes ?? [undefined]) {
        await run(n);
        const functions = await taken();
        if (sizes) counted.push(functions.reduce((sum, { steps }) => sum + steps, 0));
        else counted.push(...functions.filter(({ ran }) => ran).map(({ name }) => name));
      }
      parentPort.postMessage(counted);
    } catch (error) {
      parentPort.postMessage(error);
    }
  });
}
