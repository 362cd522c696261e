/**
 * Counts the steps of our code: how often the hottest block of each function runs, as V8 counts them for coverage. In a
 * worker, which has a count of its own: what the whole process counts is not disturbed.
 */
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';

/**
 * @param {URL} module
 * @param {string} name of an export of it, a function of a number
 * @param {number[]} sizes what it is called with, each in a worker of its own
 * @returns {Promise<number[]>} the steps of each
 */
export const stepsOf = (module, name, sizes) =>
  Promise.all(
    sizes.map(
      (n) =>
        new Promise((resolve, reject) => {
          const worker = new Worker(new URL(import.meta.url), {
            workerData: { module: module.href, name, n },
            env: { ...process.env, NODE_V8_COVERAGE: '' },
          });
          worker.once('message', resolve);
          worker.once('error', reject);
          worker.once('exit', () => reject(new Error(`${name} has ended too early`)));
        }),
    ),
  );

if (!isMainThread && workerData?.module) {
  const { Session } = await import('node:inspector/promises');
  const { [workerData.name]: run } = await import(workerData.module);
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  await run(workerData.n);
  const { result } = await session.post('Profiler.takePreciseCoverage');
  let steps = 0;
  for (const { url, functions } of result) {
    if (!/\/(js|packages\/[\w-]+\/src)\/[\w/-]+\.js$/.test(url)) continue;
    // Blocks that run equally often are reported as one, so a sum over all would depend on chance.
    for (const { ranges } of functions) steps += Math.max(...ranges.map(({ count }) => count));
  }
  parentPort.postMessage(steps);
  process.exit();
}
