/**
 * The budget of a circle of scripts/jobs.js, in seconds of CPU of the machine that measured
 * scripts/costs.json. The seconds of a slower machine are divided by how much longer the job in the
 * middle takes there: no change makes most jobs dearer. A budget is held where nothing else runs.
 */
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { setTimeout } from 'node:timers/promises';

/** @type {Record<string, number>} */
const BUDGETS = { working: 240, landing: 900 };

/** @returns {number} seconds that the processors have worked, for all processes */
const busySeconds = () =>
  cpus().reduce((total, { times }) => total + times.user + times.nice + times.sys, 0) / 1000;

/** @returns {Promise<boolean>} whether something else runs on this machine */
async function isBusy() {
  const before = busySeconds();
  await setTimeout(2000);
  return busySeconds() - before > 0.3;
}

/**
 * The slowdown of this machine against that one. Jobs missing in the table count as no slower.
 * @param {Map<string, number>} cost
 * @param {Map<string, number>} known both in seconds by job
 */
function slownessOf(cost, known) {
  const ratios = [...cost].map(([name, cpu]) => cpu / (known.get(name) ?? cpu));
  return Math.max(1, ratios.sort((a, b) => a - b)[ratios.length >> 1]);
}

/**
 * Begins to measure a circle.
 * @param {string} circle
 * @returns {Promise<(cost: Map<string, number>) => Promise<boolean>>} call it at the end, when
 *   nothing of the circle runs any more: it returns whether the budget is kept, and prints the jobs
 *   that grew; `cost` has seconds of CPU by job
 */
export async function holdBudget(circle) {
  const most = BUDGETS[circle];
  if (!most) return async () => true;
  const wasBusy = await isBusy();
  return async (cost) => {
    const spent = [...cost.values()].reduce((total, cpu) => total + cpu, 0);
    if (wasBusy || (await isBusy())) {
      console.log('Something else runs on this machine: the budget was not held.');
      return true;
    }
    /** @type {Map<string, number>} */
    const known = new Map(Object.entries(JSON.parse(readFileSync('scripts/costs.json', 'utf8'))));
    const slowness = slownessOf(cost, known);
    const seconds = Math.round(spent / slowness);
    const than = `a machine ${slowness.toFixed(2)} times slower than that of the table`;
    console.log(`${circle}: ${seconds} s of CPU of ${most}, on ${than}`);
    if (seconds <= most) return true;
    for (const [name, cpu] of cost) {
      const [then, now] = [known.get(name) ?? 0, Math.round(cpu / slowness)];
      if (now > then) console.log(`  ${name}: ${then} s, now ${now} s`);
    }
    console.log(`failed: the budget of ${circle}`);
    return false;
  };
}
