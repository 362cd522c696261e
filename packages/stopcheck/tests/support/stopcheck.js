/** Runs the program, and the servers that it checks. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const path = (/** @type {string} */ relative) =>
  fileURLToPath(new URL(`../${relative}`, import.meta.url));
const PROGRAM = path('../src/main.js');

/** Of tests that wait more than they work. */
export const AT_ONCE = { concurrency: 4 };

/** Looks on for long: a liar on a busy machine may be slow to go on. */
export const LONG = '--quiet=3000';

/**
 * Work that waits for a stop after half of it: who sees it late presses in time all the same, and
 * what it does after that takes longer than any order of messages.
 */
export const HELD = { step: 100, holds: true };

/** The path of a server. */
export const server = (/** @type {string} */ name) => path(`servers/${name}`);

/** A server that is started as a program. */
export const program = (/** @type {string} */ name, /** @type {string} */ temper) => [
  '--',
  process.execPath,
  server(name),
  temper,
];

/**
 * Work of ten steps, which the witness of requests sees.
 * @param {object} [more]
 */
export const stepsSeen = (more) => JSON.stringify({ url: '{witness}', steps: 10, ...more });

/**
 * Runs the program to its end.
 * @param {...string} args
 * @returns {Promise<{ code: number, stdout: string, stderr: string }>}
 */
export async function stopcheck(...args) {
  const child = spawn(process.execPath, [PROGRAM, ...args]);
  const read = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) child[name].on('data', (data) => (read[name] += data));
  const code = await new Promise((resolve) => child.once('close', resolve));
  return { code, ...read };
}

/**
 * What it reports of a check.
 * @param {...string} args
 */
export async function reportOf(protocol, ...args) {
  // Work that ends late is nothing that a busy machine may show.
  const { code, stdout, stderr } = await stopcheck(protocol, '--json', '--within=600000', ...args);
  if (!stdout) throw new Error(stderr);
  const report = JSON.parse(stdout);
  const texts = report.findings.map(({ text, presses }) => `${presses[0]}: ${text}`);
  return { code, texts, ...report };
}

/**
 * Asserts what is scored against it.
 * @param {any} report
 * @param {RegExp[]} expected of each text
 */
export function assertFound({ findings, code }, expected) {
  const found = findings.filter(({ isScored }) => isScored).map(({ text }) => text);
  assert.equal(found.length, expected.length, found.join('; '));
  for (const [i, each] of expected.entries()) assert.match(found[i], each);
  assert.equal(code, expected.length ? 1 : 0);
}

/**
 * What a full score lacks.
 * @param {any} report
 */
export function shortfalls({ code, score, findings, lines }) {
  const wrong = Object.entries(score).flatMap(([group, { ok, of }]) =>
    ok === of ? [] : `${group}: ${ok} of ${of}`,
  );
  const found = findings.filter(({ isScored }) => isScored).map(({ text }) => text);
  const untried = lines.flatMap(({ press, untried: why, checks }) => {
    // A time limit may come too late where all is slower than it was.
    const isJudged =
      checks.length || ['none', 'timeout', 'unknown', 'close', 'repeat'].includes(press);
    return why || !isJudged ? `${press}: ${why ?? 'not judged'}` : [];
  });
  return [...wrong, ...found, ...untried, ...(code ? [`exit code ${code}`] : [])];
}

/**
 * Starts a server that prints its address.
 * @param {import('node:test').TestContext} t
 * @param {string} name
 * @param {...string} args
 * @returns {Promise<string>}
 */
export async function addressOf(t, name, ...args) {
  const child = spawn(process.execPath, [server(name), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill());
  for await (const line of createInterface(child.stdout)) return line;
  throw new Error(`${name} has ended`);
}
