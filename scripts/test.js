/**
 * Runs tests, after it has set up and built what is missing. It imports no package, since it
 * installs them.
 *
 *   node scripts/test.js           the circle `working` of scripts/jobs.js
 *   node scripts/test.js landing   the further requirements of a landing
 *   node scripts/test.js all       all three circles
 *   node scripts/test.js JOB...    jobs by their names
 */
import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { holdBudget } from './budget.js';
import { circles, jobs } from './jobs.js';

process.chdir(fileURLToPath(new URL('../', import.meta.url)));
const started = Date.now();
const elapsed = () => `${Math.round((Date.now() - started) / 1000)} s`.padStart(6);

/** The running jobs, by name: each is a process group of its own. @type {Map<string, number>} */
const running = new Map();
let stopping = false;

/**
 * @param {number} group
 * @param {NodeJS.Signals | 0} signal
 * @returns {boolean} whether the group is still there
 */
function signalGroup(group, signal) {
  try {
    return process.kill(-group, signal);
  } catch {
    return false;
  }
}

/** Asks first: a process that has started a browser ends it. */
async function stop() {
  if (stopping) return;
  stopping = true;
  const groups = [...running.values()];
  for (const group of groups) signalGroup(group, 'SIGTERM');
  const patience = Date.now() + 5000;
  while (groups.some((group) => signalGroup(group, 0)) && Date.now() < patience)
    await setTimeout(100);
  for (const group of groups) signalGroup(group, 'SIGKILL');
  process.exit(130);
}
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => void stop());
process.on('exit', () => running.forEach((group) => signalGroup(group, 'SIGTERM')));

/**
 * Runs a line of bash. Processes that it has left behind end with it.
 * @param {string} name
 * @param {string} line
 * @param {number | 'inherit'} [output] the file descriptor of its output
 * @returns {Promise<boolean>} whether it succeeded
 */
function run(name, line, output = 'inherit') {
  const options = ['-euo', 'pipefail', '-c', line];
  const child = spawn('bash', options, { detached: true, stdio: ['ignore', output, output] });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => {
      if (stopping) return;
      signalGroup(/** @type {number} */ (child.pid), 'SIGKILL');
      running.delete(name);
      resolve(code === 0);
    });
    running.set(name, /** @type {number} */ (child.pid));
  });
}

const logOf = (/** @type {string} */ name) => readFileSync(`build/logs/${name}.log`, 'utf8');
/**
 * @param {string} text
 * @param {RegExp} pattern with one group, a number
 * @returns {number} the sum of its matches
 */
const sumOf = (text, pattern) =>
  [...text.matchAll(pattern)].reduce((total, [, number]) => total + Number(number), 0);

/**
 * The last output of the shell: minutes and seconds of itself, and of its waited-for children.
 */
const TIMES = 'times:\n';
/** Seconds of CPU by job. @type {Map<string, number>} */
const cost = new Map();

/**
 * Runs a job, and prints in a line how it ended.
 * @param {string} name
 * @returns {Promise<boolean>} whether it passed
 */
async function runJob(name) {
  const output = openSync(`build/logs/${name}.log`, 'w');
  const timed = `trap 'printf "${TIMES}"; LC_ALL=C times' EXIT\n${jobs[name]}`;
  const passed = await run(name, timed, output);
  closeSync(output);
  const [log, times = ''] = logOf(name).split(TIMES);
  const cpu = 60 * sumOf(times, /(\d+)m/g) + sumOf(times, /m([\d.]+)s/g);
  cost.set(name, cpu);
  const tests = /^ℹ pass \d+/m.test(log) ? `, ${sumOf(log, /^ℹ pass (\d+)/gm)} tests` : '';
  const outcome = passed ? 'passed' : 'FAILED';
  console.log(`${elapsed()}  ${name.padEnd(16)} ${outcome}, ${Math.round(cpu)} s of CPU${tests}`);
  return passed;
}

/**
 * Ends the run unless a step before the jobs succeeds.
 * @param {string} name
 * @param {string} line
 */
async function need(name, line) {
  if (!(await run(name, line))) process.exit(1);
}

const asked = process.argv.slice(2);
if (!asked.length) asked.push('working');
const named = asked.flatMap((name) => {
  if (name === 'all') return Object.values(circles).flatMap((circle) => Object.keys(circle));
  return Object.hasOwn(circles, name) ? Object.keys(circles[name]) : [name];
});
const names = [...new Set(named)];
const unknown = names.filter((name) => !Object.hasOwn(jobs, name));
if (unknown.length) {
  const known = ['all', ...Object.keys(circles), ...Object.keys(jobs)].join(', ');
  console.error(`no such job: ${unknown.join(' ')}. There are: ${known}`);
  process.exit(1);
}

const isWorking = names.every((name) => name in circles.working);
await need('setup', `scripts/setup.sh ${isWorking ? 'test' : 'all'}`);
await need('build', 'scripts/build.sh wasm test');
const isKept = await holdBudget(asked.length > 1 ? '' : asked[0]);
rmSync('build/logs', { recursive: true, force: true });
mkdirSync('build/logs');
// Packing builds, so the jobs that install the packages share them.
if (names.some((name) => /^(package|reach)/.test(name))) {
  rmSync('build/packed', { recursive: true, force: true });
  mkdirSync('build/packed');
  await need('pack', 'node scripts/pack.js build/packed >build/logs/pack.log');
  process.env.PACKED = `${process.cwd()}/build/packed`;
}

const ticker = setInterval(
  () => console.log(`${elapsed()}  … ${[...running.keys()].join(' ')}`),
  20_000,
);
// Browsers wait often, so there may be more jobs at once than processors.
const queue = [...names];
/** @type {string[]} */
const failed = [];
async function work() {
  for (let name; (name = queue.shift());) if (!(await runJob(name))) failed.push(name);
}
await Promise.all(Array.from({ length: availableParallelism() + 1 }, work));
clearInterval(ticker);
for (const name of failed) console.log(`\n== ${name}\n${logOf(name)}`);
if (failed.length) console.log(`\nfailed: ${failed.join(' ')}`);
// The runners' counts: node's "pass 3" and "fail 0", and ctest's "0 tests failed out of 22".
const logs = names.map(logOf).join('\n');
const failedInC = sumOf(logs, / (\d+) tests failed out of /g);
const passed =
  sumOf(logs, /^ℹ pass (\d+)/gm) + sumOf(logs, / tests failed out of (\d+)/g) - failedInC;
const inJobs = [...cost.values()].reduce((total, cpu) => total + cpu, 0);
console.log(`\n${Math.round(inJobs)} s of CPU in these jobs`);
if (!(await isKept(cost))) process.exitCode = 1;
console.log(`${passed} passed, ${sumOf(logs, /^ℹ (?:fail|cancelled) (\d+)/gm) + failedInC} failed`);
if (failed.length) process.exitCode = 1;
