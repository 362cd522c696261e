/**
 * What a circle of scripts/jobs.js may cost. Seconds of CPU are those of the machine that the table in CONTRIBUTING.md was made
 * on; on a slower one they are more, by as much as a yardstick takes longer. A budget is held where nothing else runs.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus } from 'node:os';
import { setTimeout } from 'node:timers/promises';

/** @type {Record<string, number>} */
const BUDGETS = { working: 360, landing: 1140 };
/** What the yardstick takes on that machine. */
const YARDSTICK = 1;

/** @returns {number} seconds that the processors have worked, for whomever */
const busySeconds = () =>
  cpus().reduce((total, { times }) => total + times.user + times.nice + times.sys, 0) / 1000;

/** @returns {Promise<boolean>} whether something else runs on this machine */
async function isBusy() {
  const before = busySeconds();
  await setTimeout(2000);
  return busySeconds() - before > 0.3;
}

/** How much slower than that machine this one is, by work that is always the same, on each processor at once. */
async function measureSlowness() {
  const code = `
    const seen = new Map();
    let sum = 0;
    for (let i = 0; i < 4e6; i++)
      seen.set(i % 65536, (sum = (sum * 31 + i) % 1000003) + String(i).length);
    const { user, system } = process.cpuUsage();
    console.log((user + system) / 1e6);`;
  const one = () =>
    new Promise((resolve) => {
      const { stdout } = spawn(process.execPath, ['-e', code], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      stdout.once('data', (text) => resolve(Number(text)));
    });
  const all = await Promise.all(Array.from({ length: availableParallelism() }, one));
  return all.reduce((total, seconds) => total + seconds, 0) / all.length / YARDSTICK;
}

/**
 * Begins to measure a circle.
 * @param {string} circle
 * @returns {Promise<(cost: Map<string, number>) => Promise<boolean>>} tells at its end, when nothing of it runs any more, whether
 *   its budget is kept, and prints which jobs grew; `cost` has seconds of CPU by job
 */
export async function holdBudget(circle) {
  const most = BUDGETS[circle];
  if (!most) return async () => true;
  const slownessBefore = (await isBusy()) ? undefined : await measureSlowness();
  return async (cost) => {
    const spent = [...cost.values()].reduce((total, cpu) => total + cpu, 0);
    if (!slownessBefore || (await isBusy())) {
      console.log('Something else runs on this machine: the budget was not held.');
      return true;
    }
    const slowness = Math.max(1, slownessBefore, await measureSlowness());
    const seconds = Math.round(spent / slowness);
    const than = `a machine ${slowness.toFixed(2)} times slower than that of the table`;
    console.log(`${circle}: ${seconds} s of CPU of ${most}, on ${than}`);
    if (seconds <= most) return true;
    const table = readFileSync('CONTRIBUTING.md', 'utf8').matchAll(
      /^\| `([\w-]+)` +\| +(\d+) \|/gm,
    );
    const known = new Map([...table].map(([, name, then]) => [name, Number(then)]));
    for (const [name, cpu] of cost) {
      const [then, now] = [known.get(name) ?? 0, Math.round(cpu / slowness)];
      if (now > then) console.log(`  ${name}: ${then} s, now ${now} s`);
    }
    console.log(`failed: the budget of ${circle}`);
    return false;
  };
}
