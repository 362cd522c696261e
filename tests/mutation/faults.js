/**
 * Puts the faults of promises.js in, one at a time, in a copy of the tree, and says which test
 * noticed: the C transcripts (for a fault in C), then files of tests/node, then Chromium. All of
 * these judge from outside. A fault fails if no test notices it, if its text is not there any more,
 * or if the test that noticed it is red without it.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { run } from 'node:test';
import { FAULTS } from './promises.js';

const COPY = 'build/mutation/tree';
/**
 * ms after which a file of tests counts as red: what a fault holds up does not end. A browser's is
 * all of its suites.
 */
const TIMEOUT = 180_000;
const BROWSER_TIMEOUT = 1_200_000;
/** Files of tests that are about texts of the repository, or about other processes. */
const LEFT_OUT =
  /\/(boundary|defaults|demo|entries|errors|jobs|module-scope|process|recipes|rooms|samples|security|supply|workerd)\.test\.js$/;

const quiet = { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] };

/**
 * What git knows, and what it does not know yet.
 * @param {string} path a folder, a file or a pattern
 */
export const filesIn = (path) =>
  execFileSync('git', ['ls-files', '-co', '--exclude-standard', path], quiet)
    .split('\n')
    .filter((file) => existsSync(file));

/**
 * @param {string} folder
 * @returns {string[]} its tests for Node that take seconds and reach what they test in their own
 *   process
 */
export const quickTests = (folder) =>
  filesIn(`:(glob)${folder}/*.test.js`).filter((file) => !LEFT_OUT.test(file));

/** Makes the copy, or renews what differs in it: what was built of the rest stays. */
function copy() {
  const files = filesIn('.').filter((file) => !/^(docs\/site|tests\/fuzz\/corpus)\//.test(file));
  for (const file of files) {
    const text = readFileSync(file);
    const to = join(COPY, file);
    if (existsSync(to) && readFileSync(to).equals(text)) continue;
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(to, text);
  }
  const known = new Set(files);
  for (const folder of ['src', 'js', 'parts', 'tests', 'packages']) {
    for (const entry of readdirSync(join(COPY, folder), { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath ?? entry.path, entry.name);
      if (entry.isFile() && !known.has(path.slice(COPY.length + 1))) rmSync(path);
    }
  }
  for (const shared of ['node_modules', 'build/deps'])
    if (!existsSync(join(COPY, shared))) {
      mkdirSync(dirname(join(COPY, shared)), { recursive: true });
      symlinkSync(resolve(shared), join(COPY, shared));
    }
}

/**
 * @param {string} line for bash, in the copy
 * @returns {string | undefined} what it says, if it fails
 */
function failure(line) {
  const { status, stdout, stderr } = spawnSync('bash', ['-euo', 'pipefail', '-c', line], quiet);
  return status === 0 ? undefined : stdout + stderr;
}

/** @param {string} line that must not fail */
function need(line) {
  const said = failure(line);
  if (said !== undefined) throw new Error(`${line}\n${said}`);
}

/** @returns {string | undefined} the first section that fails in C */
function redTranscript() {
  need('cmake --build build/test --target transcript_runner -j2');
  const said = failure(
    'for file in tests/transcripts/[a-z]*.md; do build/test/tests/core/transcript_runner $file; done',
  );
  return said && `in C: ${/FAIL (.*)/.exec(said)?.[1] ?? said}`;
}

/** Builds all that tests of JavaScript run and that is not a source. */
const buildForNode = () =>
  need(`cmake --build build/wasm -j2 --target abp_wasm rpc_wasm tasks_wasm
    node packages/automation/scripts/in-page.js`);

/**
 * @typedef {object} Red
 * @property {string} file of tests; none of the transcripts in C
 * @property {string} test
 */

/**
 * @param {string[]} files of tests
 * @returns {Promise<Red | undefined>} the first test that fails, and its file
 */
async function redTest(files) {
  if (!files.length) return undefined;
  const timeout = files[0].includes('/browser/') ? BROWSER_TIMEOUT : TIMEOUT;
  const stop = new AbortController();
  const stream = run({ files, concurrency: 2, timeout, signal: stop.signal });
  let red;
  for await (const { type, data } of stream) {
    if (red || type !== 'test:fail') continue;
    const { name, file = '' } = data;
    const path = relative('.', file || resolve(name));
    red = { file: path, test: path === name ? 'does not run to its end' : name };
    stop.abort();
  }
  return red;
}

/**
 * @param {typeof FAULTS[number]} fault which is in the copy
 * @returns {Promise<Red | undefined>} the test that notices it first
 */
async function noticedBy({ file, by }) {
  const inC = file.startsWith('src/') && redTranscript();
  if (inC) return { file: '', test: inC };
  buildForNode();
  const node = quickTests('tests/node').filter((path) => path !== by);
  const first = [by].filter((path) => path && existsSync(path));
  process.env.SUITES = 'session trust outcomes';
  return (await redTest(first)) ?? (await redTest(node)) ?? redTest(['tests/browser/engine.js']);
}

/**
 * @param {string[]} words of rooms or promises; none are all
 * @returns {Promise<boolean>} whether each fault was noticed
 */
export async function tryFaults(words) {
  const faults = FAULTS.filter(({ room, promise }) =>
    words.every((word) => `${room} ${promise}`.includes(word)),
  );
  const root = process.cwd();
  copy();
  process.chdir(COPY);
  Object.assign(process.env, { FLOOD: '10000', FC_RUNS: '20' });
  need('node scripts/link-sources.js'); // names of packages lead into the copy
  need(
    `emcmake cmake --preset wasm -DABP_CJSON_SOURCE_DIR=build/deps/cjson && cmake --preset test`,
  );
  buildForNode();
  /** The faults that each file of tests has noticed, by file. @type {Map<string, number>} */
  const noticing = new Map();
  let missed = 0;
  for (const fault of faults) {
    const { room, promise, file, from, to } = fault;
    const text = readFileSync(file, 'utf8');
    const parts = text.split(from);
    let noticed;
    if (parts.length === 2) {
      writeFileSync(file, parts.join(to));
      noticed = await noticedBy(fault).finally(() => writeFileSync(file, text));
    }
    if (!noticed) missed++;
    else if (noticed.file) noticing.set(noticed.file, (noticing.get(noticed.file) ?? 0) + 1);
    const lost =
      parts.length === 2
        ? 'NOT NOTICED'
        : `NOT THERE: ${file} has its text ${parts.length - 1} times`;
    const words = noticed && [noticed.file, noticed.test].filter(Boolean).join(': ');
    console.log(`${room.padEnd(10)}  ${promise}\n    ${words ?? lost}`);
  }
  // A test that fails without a fault notices nothing.
  buildForNode();
  for (const [file, count] of noticing) {
    const red = await redTest([file]);
    if (!red) continue;
    missed += count;
    console.log(`RED WITHOUT A FAULT: ${file}: ${red.test}`);
  }
  console.log(`${faults.length - missed} of ${faults.length} faults are noticed`);
  process.chdir(root);
  return faults.length > 0 && missed === 0;
}
