/**
 * Breaks the code, to see which tests notice. A tool, for a room when somebody works on it and
 * whole before a release.
 *
 *   npm run mutate -- promises                     faults where a promise to users is kept
 *                                                  (promises.js); with words, those that have one
 *                                                  of them in their room or their promise
 *   npm run mutate -- js/session                   mutants of a room, of a package's folder, or of
 *                                                  a file
 *   npm run mutate -- js/app --sample 20 --seed 7  of as many of its lines, chosen by the seed
 *   npm run mutate -- RUNNING                      C: those of tests/core/mutate.js, of rows with
 *                                                  this in their name
 *   npm run mutate                                 all of these: hours
 *
 * Mutants of JavaScript are made by Stryker: each is one change such as `<` to `<=`, or a block
 * without its statements. What no test notices is listed, with the rate, and fails nothing: it may
 * show a promise without a test, or code without a purpose. Of the promises and of C, whose mutants
 * are rows of the tables, all must be noticed.
 *
 * Stryker, because it is the one tool for JavaScript that is kept, and compiles all mutants into
 * one copy of the code, so that a run needs no build. Its runner for TAP takes files as they are
 * for `node --test`, each in a process of its own, and knows after one run which files reach which
 * mutant. Version 9 is the last one for Node 20.
 */
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { filesIn, quickTests, tryFaults } from './faults.js';

const root = join(import.meta.dirname, '../..');
process.chdir(root);
const WORK = 'build/mutation';
const REPORT = `${WORK}/report.json`;
/**
 * Files of tests that take too long for each mutant that they reach, or have a copy of what they
 * call.
 */
const LEFT_OUT = /\/(memory|old-beside-new|path|properties|transcripts|workers)\.test\.js$/;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { sample: { type: 'string' }, seed: { type: 'string', default: '1' } },
});
const isPath = (name) => /^(js|parts|packages)\b/.test(name);
const [first, ...words] = positionals;
let passed = !first || first === 'promises' ? await tryFaults(words) : true;
if (first !== 'promises') {
  const names = first ? positionals : ['', 'js', 'parts', 'packages'];
  for (const rows of names.filter((name) => !isPath(name)))
    passed = run(process.execPath, ['tests/core/mutate.js', rows]) && passed;
  const files = [...new Set(names.filter(isPath).flatMap(filesIn))].filter(isMutated);
  const rooms = new Set(files.map(roomOf));
  for (const room of rooms) {
    const inRoom = files.filter((file) => roomOf(file) === room);
    passed = mutate(room, inRoom) && passed;
  }
}
process.exitCode = passed ? 0 : 1;

/** @returns {boolean} whether it succeeded */
function run(command, args, env = {}) {
  const options = { stdio: 'inherit', env: { ...process.env, ...env } };
  return spawnSync(command, args, options).status === 0;
}

function roomOf(file) {
  return file.split('/').slice(0, 2).join('/');
}

/**
 * Not what is generated, nor what is injected into pages as text, where nothing counts what runs.
 */
function isMutated(file) {
  if (
    !/^(js|parts|packages\/[\w-]+\/src)\/.*\.js$/.test(file) ||
    /\/types\/|-boundary\.js$/.test(file)
  )
    return false;
  const words = readFileSync(file, 'utf8').replace(/\s+\*?\s*/g, ' ');
  return !/\binjected (?:[\w/,]+ ){0,6}as text/i.test(words);
}

/**
 * @param {string} room
 * @param {string[]} files of it
 * @returns {boolean} whether it could be tried
 */
function mutate(room, files) {
  install();
  rmSync(`${WORK}/copy`, { recursive: true, force: true });
  mkdirSync(WORK, { recursive: true });
  const tests = quickTests(room.startsWith('packages/') ? `${room}/tests` : 'tests/node');
  const config = {
    testRunner: 'tap',
    plugins: ['@stryker-mutator/tap-runner'],
    tap: {
      testFiles: tests.filter((file) => !LEFT_OUT.test(file)),
      // Neither a connection that a test leaves open nor one that waits for ever holds up each
      // mutant.
      nodeArgs: ['--test-reporter=tap', '--test-force-exit', '--test-timeout=15000'].concat([
        '-r',
        '{{hookFile}}',
        '{{testFile}}',
      ]),
      forceBail: true,
    },
    coverageAnalysis: 'perTest',
    mutate: values.sample ? sample(files, Number(values.sample), Number(values.seed)) : files,
    mutator: { excludedMutations: ['StringLiteral'] },
    // What tests need beside the sources is copied, and so is what was built.
    ignorePatterns: [
      'build/*',
      '!build/wasm',
      'build/wasm/*',
      '!build/wasm/*.wasm',
      'docs',
      '!docs/*.md',
      'demo',
      'templates',
      'tests/fuzz',
      '.git',
      'packages/gateway',
    ],
    concurrency: 1,
    timeoutMS: 15_000,
    timeoutFactor: 2,
    dryRunTimeoutMinutes: 30,
    tsconfigFile: 'none', // it asks a TypeScript that has another interface
    checkers: [],
    tempDirName: `${WORK}/copy`,
    reporters: ['json', 'progress-append-only'],
    jsonReporter: { fileName: REPORT },
    allowConsoleColors: false,
  };
  writeFileSync(`${WORK}/stryker.json`, JSON.stringify(config));
  console.log(`${room}: ${config.mutate.length} ${values.sample ? 'lines' : 'files'}`);
  const stryker = 'tests/mutation/node_modules/@stryker-mutator/core/bin/stryker.js';
  // The first for tests that read sources.
  const env = { UNMUTATED: root, FLOOD: '10000', FC_RUNS: '20' };
  const wasTried = run(process.execPath, [stryker, 'run', `${WORK}/stryker.json`], env);
  if (wasTried) list(JSON.parse(readFileSync(REPORT, 'utf8')));
  return wasTried;
}

function install() {
  const age = (file) => (existsSync(file) ? statSync(file).mtimeMs : 0);
  const installed = 'tests/mutation/node_modules/.package-lock.json';
  if (age(installed) >= age('tests/mutation/package.json')) return;
  run('npm', ['install', '--no-save', '--prefix', 'tests/mutation', '--silent']);
  utimesSync(installed, new Date(), new Date());
}

/** So many lines of code, as ranges that Stryker takes. */
function sample(files, count, seed) {
  let state = seed >>> 0 || 1;
  const random = (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const isCode = (line) => !/^\s*(\/?\*|\/\/|import|export \{|[})\];,]*$)/.test(line);
  const rangesOf = (file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line, i) => (isCode(line) ? `${file}:${i + 1}-${i + 1}` : []));
  const lines = files.flatMap(rangesOf);
  const chosen = new Set();
  while (chosen.size < Math.min(count, lines.length)) chosen.add(lines[random(lines.length)]);
  return [...chosen];
}

/**
 * Lists what survived, and what ended by its time limit alone: a slow machine must not decide that.
 */
function list(report) {
  let noticed = 0;
  let survived = 0;
  for (const [file, { source, mutants }] of Object.entries(report.files)) {
    const lines = source.split('\n');
    for (const { status, mutatorName, replacement, location } of mutants) {
      if (!['Killed', 'Timeout', 'Survived', 'NoCoverage'].includes(status)) continue;
      const isNoticed = status === 'Killed' || status === 'Timeout';
      if (isNoticed) noticed++;
      else survived++;
      if (status === 'Killed') continue;
      const { line } = location.start;
      const change = `${mutatorName}: ${replacement.replace(/\s+/g, ' ').slice(0, 80)}`;
      const how = { Timeout: 'does not end', Survived: 'survives' }[status] ?? 'is never reached';
      console.log(`${file}:${line} ${how}\n    ${lines[line - 1].trim()}\n    ${change}`);
    }
  }
  const rate = ((100 * noticed) / Math.max(1, noticed + survived)).toFixed(1);
  console.log(`${noticed} of ${noticed + survived} mutants are noticed (${rate} %)`);
}
