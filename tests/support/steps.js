/**
 * Counts the steps of our code: how often the hottest block of each function runs, as V8 counts
 * them for coverage. In a worker, which has a count of its own: what the whole process counts is
 * not disturbed.
 */
import { once } from 'node:events';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';

/**
 * One worker for all that is counted: loading our code takes far longer than most of that.
 * @type {Worker | undefined}
 */
let counter;

/**
 * @param {URL} module
 * @param {string} name of an export of it, a function of a number
 * @param {number[]} sizes what it is called with, one after the other
 * @returns {Promise<number[]>} the steps of each
 */
export async function stepsOf(module, name, sizes) {
  counter ??= new Worker(new URL(import.meta.url), {
    workerData: { counts: true },
    env: { ...process.env, NODE_V8_COVERAGE: '' },
  });
  counter.ref();
  counter.postMessage({ module: module.href, name, sizes });
  const [steps] = await once(counter, 'message');
  counter.unref();
  if (steps instanceof Error) throw steps;
  return steps;
}

if (!isMainThread && workerData?.counts) {
  const { Session } = await import('node:inspector/promises');
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  /** The steps since this was called last. */
  const takeSteps = async () => {
    const { result } = await session.post('Profiler.takePreciseCoverage');
    return result
      .filter(({ url }) => /\/(js|packages\/[\w-]+\/src)\/[\w/-]+\.js$/.test(url))
      .flatMap(({ functions }) => functions)
      .reduce((sum, { ranges }) => sum + stepsIn(ranges), 0);
  };
  // Blocks that run equally often are reported as one, so a sum over all would depend on chance.
  const stepsIn = (ranges) => Math.max(...ranges.map(({ count }) => count));
  parentPort.on('message', async ({ module, name, sizes }) => {
    try {
      const { [name]: run } = await import(module);
      await run(sizes[0]); // what is loaded on demand is not counted
      await takeSteps();
      const steps = [];
      for (const n of sizes) {
        await run(n);
        steps.push(await takeSteps());
      }
      parentPort.postMessage(steps);
    } catch (error) {
      parentPort.postMessage(error);
    }
  });
}
