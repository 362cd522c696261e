/**
 * Mutants of JavaScript, by Stryker: each is one change such as `<` to `<=`, or a block without its statements. The tests
 * of Node that run the changed code have to notice. What they do not notice stands in survivors.json, some with the reason
 * why, and a survivor that does not stand there fails.
 *
 *   npm run mutate -- js/session            the files of a room, of a package's folder, or one file
 *   npm run mutate -- js/session --write    the same, and writes what survives into survivors.json
 *   npm run mutate -- changed --write       the files that have changed since they were tried
 *   npm run mutate -- survivors --write     the lines of those that survived for no reason, when tests were written
 *   npm run mutate -- tried --sample 20 --seed 7  in each room as many lines, chosen by the seed, of files that are as they
 *                                           were when all of their mutants were tried
 *   npm run mutate -- RUNNING               C: those of tests/core/mutate.js
 *   npm run mutate                          C, and all of JavaScript: hours
 *
 * Stryker, because it is the one tool for JavaScript that is kept, knows more than twenty kinds of change, and compiles
 * all mutants into one copy of the code, so that a run needs no build. Its runner for TAP takes files as they are for
 * `node --test`, each in a process of its own, and knows after one run which files reach which mutant. Version 9 is the
 * last one for Node 20.
 *
 * survivors.json has the files of which all mutants were tried. Of the others only samples were (`-- js/app --sample 30`), which
 * also show what is to be read next.
 *
 * The gateway and the frameworks are no rooms here: their tests start browsers and other processes, seconds for each mutant.
 *
 * Texts are left alone: most are words for people. Files with functions that are injected into pages as text are left out
 * where the tests inject them, because the instrumented code calls functions of its module.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
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

const root = join(import.meta.dirname, '../..');
process.chdir(root);
const SURVIVORS = 'tests/mutation/survivors.json';
const WORK = 'build/mutation';
const REPORT = `${WORK}/report.json`;
const ROOMS = ['js', 'packages/a2a', 'packages/automation', 'packages/inspector'].concat(
  ['mcp-apps', 'rpc', 'webmcp', 'workers'].map((name) => `packages/${name}`),
);
/** Files of tests that are about texts of the repository, about other processes, or take minutes. */
const LEFT_OUT =
  /\/(boundary|defaults|demo|entries|errors|instance|jobs|memory|module-scope|old-beside-new|process|properties|rooms|samples|security|stranger|transcripts|workers)\.test\.js$/;
/** The files of tests/node that are about a room, and quick: the beginnings of their names. */
const ABOUT = {
  'js/agent': ['agent-', 'asked-later', 'invoke', 'outcomes', 'session', 'waits', 'mistakes'],
  'js/app': ['app-', 'asked-', 'bounds', 'foreign-apps', 'handler', 'mistakes', 'outcomes'].concat([
    'reentrancy',
    'relay',
    'schema',
    'session',
  ]),
  'js/common': ['binary', 'common-'],
  'js/core': ['core', 'machine'],
  'js/session': [
    ...['handler', 'invoke', 'limits', 'outcomes', 'reentrancy', 'session', 'trace', 'waits'],
  ],
  'js/transports': ['transports'],
  'js/wire': ['binary', 'wire-'],
};

const run = (command, args, env = {}) =>
  spawnSync(command, args, { stdio: 'inherit', env: { ...process.env, ...env } }).status;
/** What git knows, and what it does not know yet. @param {string} path a folder, a file or a pattern */
const filesIn = (path) =>
  spawnSync('git', ['ls-files', '-co', '--exclude-standard', path], { encoding: 'utf8' })
    .stdout.trim()
    .split('\n')
    .filter(Boolean);
const digestOf = (text) => createHash('sha256').update(text).digest('hex').slice(0, 16);

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    write: { type: 'boolean' },
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    concurrency: { type: 'string', default: '1' },
  },
});
/** Names for files that are in survivors.json. */
const OF_KNOWN = ['tried', 'changed', 'survivors'];
if (!positionals.length) positionals.push('C', ...ROOMS);
const ofC = positionals.filter(
  (name) => !name.includes('/') && !['js', ...OF_KNOWN].includes(name),
);
const paths = positionals.filter((name) => !ofC.includes(name));
let failed = 0;
for (const name of ofC) {
  const rows = name === 'C' ? [] : [name];
  failed |= run(process.execPath, ['tests/core/mutate.js', ...rows]);
}
const known = JSON.parse(readFileSync(SURVIVORS, 'utf8'));
/** The files to be changed, by room. @type {Map<string, string[]>} */
const rooms = new Map();
for (const file of new Set(paths.flatMap(filesOf)).values()) {
  const room = roomOf(file);
  rooms.set(room, [...(rooms.get(room) ?? []), file]);
}
for (const [room, files] of rooms) failed |= mutate(room, files);
process.exitCode = failed ? 1 : 0;

function roomOf(file) {
  return file.split('/').slice(0, 2).join('/');
}

/**
 * @param {string} path a folder, a file, `tried` (files that are as they were when they were tried), `changed` (the others) or
 *   `survivors` (those of the first in which mutants survive for no reason)
 */
function filesOf(path) {
  if (!OF_KNOWN.includes(path)) return filesIn(path).filter(isMutated);
  const hasChanged = (file) => digestOf(readFileSync(file)) !== known[file].digest;
  const files = Object.keys(known).filter((file) => existsSync(file));
  const changed = files.filter(hasChanged);
  if (path === 'changed') return changed;
  if (changed.length) console.log(`changed since they were tried: ${changed.join(', ')}`);
  const tried = files.filter((file) => !changed.includes(file));
  return path === 'tried' ? tried : tried.filter((file) => unexplained(file).length);
}

/** What survives in a file for no reason. @param {string} file */
function unexplained(file) {
  return known[file].survivors.filter(({ why }) => !why);
}

/** @param {string} room @param {string[]} files of it @returns {boolean} whether something new survives */
function mutate(room, files) {
  install();
  if (values.sample) console.log(`seed ${values.seed}`);
  const mutants = values.sample
    ? sample(files, Number(values.sample), Number(values.seed))
    : positionals.includes('survivors')
      ? files.flatMap((file) => linesOf(file, unexplained(file)))
      : files;
  const tests = testsOf(room);
  console.log(`${room}: ${files.length} files, ${tests.length} files of tests`);
  rmSync(WORK, { recursive: true, force: true });
  mkdirSync(WORK, { recursive: true });
  const config = {
    testRunner: 'tap',
    plugins: ['@stryker-mutator/tap-runner'],
    tap: {
      testFiles: tests,
      // Neither a connection that a test leaves open nor one that waits for ever holds up each mutant.
      nodeArgs: ['--test-reporter=tap', '--test-force-exit', '--test-timeout=15000'].concat([
        '-r',
        '{{hookFile}}',
        '{{testFile}}',
      ]),
      forceBail: true,
    },
    coverageAnalysis: 'perTest',
    mutate: mutants,
    mutator: { excludedMutations: ['StringLiteral'] },
    // What tests need beside the sources is copied, and so is what was built.
    ignorePatterns: [
      ...[
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
    ],
    concurrency: Number(values.concurrency),
    timeoutMS: 15_000,
    timeoutFactor: 2,
    dryRunTimeoutMinutes: 20,
    tsconfigFile: 'none', // it asks a TypeScript that has another interface
    checkers: [],
    tempDirName: `${WORK}/copy`,
    reporters: ['json', 'progress-append-only'],
    jsonReporter: { fileName: REPORT },
    allowConsoleColors: false,
  };
  writeFileSync(`${WORK}/stryker.json`, JSON.stringify(config));
  const stryker = 'tests/mutation/node_modules/@stryker-mutator/core/bin/stryker.js';
  const status = run(process.execPath, [stryker, 'run', `${WORK}/stryker.json`], {
    UNMUTATED: root, // for tests that read sources
    FLOOD: '10000',
    FC_RUNS: '20',
  });
  return status !== 0 || judge(JSON.parse(readFileSync(REPORT, 'utf8')));
}

function install() {
  const age = (file) => (existsSync(file) ? statSync(file).mtimeMs : 0);
  const installed = 'tests/mutation/node_modules/.package-lock.json';
  if (age(installed) >= age('tests/mutation/package.json')) return;
  run('npm', ['install', '--no-save', '--prefix', 'tests/mutation', '--silent']);
  utimesSync(installed, new Date(), new Date());
}

function isMutated(file) {
  if (!/^(js|packages\/[\w-]+\/src)\/.*\.js$/.test(file) || /\/types\/|-boundary\.js$/.test(file))
    return false;
  if (ABOUT[roomOf(file)]) return true;
  const words = readFileSync(file, 'utf8').replace(/\s+\*?\s*/g, ' ');
  return !/\binjected (?:[\w/,]+ ){0,6}as text/i.test(words);
}

/** @param {string} room */
function testsOf(room) {
  if (room.startsWith('packages/')) {
    const own = filesIn(`${room}/tests/*.test.js`);
    return own.filter(
      (file) => !/\/(browser|interop|fleet|peers)\//.test(file) && !LEFT_OUT.test(file),
    );
  }
  const about = ABOUT[room];
  return filesIn('tests/node/*.test.js').filter((file) =>
    about ? about.some((name) => file.startsWith(`tests/node/${name}`)) : !LEFT_OUT.test(file),
  );
}

/** The lines of these survivors, as ranges that Stryker takes. */
function linesOf(file, survivors) {
  const texts = new Set(survivors.map(({ line }) => line));
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.flatMap((line, i) => (texts.has(line.trim()) ? `${file}:${i + 1}-${i + 1}` : []));
}

/** So many lines of code, as ranges that Stryker takes. */
function sample(files, count, seed) {
  let state = seed >>> 0 || 1;
  const random = (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const lines = files.flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line, i) =>
        /^\s*(\/?\*|\/\/|import|export \{|[})\];,]*$)/.test(line)
          ? []
          : `${file}:${i + 1}-${i + 1}`,
      ),
  );
  const chosen = new Set();
  while (chosen.size < Math.min(count, lines.length)) chosen.add(lines[random(lines.length)]);
  return [...chosen];
}

/**
 * Compares what survived with what is known. A mutant is known by its change and its line, wherever that stands, and may
 * have a `why`: the reason for which no test notices it.
 */
function judge(report) {
  const counts = { noticed: 0, survived: 0, anew: 0 };
  const written = {};
  for (const [file, { source, mutants }] of Object.entries(report.files)) {
    const lines = source.split('\n');
    const before = known[file]?.survivors ?? [];
    const found = [];
    const tried = [];
    for (const { status, mutatorName, replacement, location } of mutants) {
      const isNoticed = status === 'Killed' || status === 'Timeout';
      if (!isNoticed && status !== 'Survived' && status !== 'NoCoverage') continue;
      const where = `${file}:${location.start.line}`;
      const line = lines[location.start.line - 1].trim();
      const change = `${mutatorName}: ${replacement.replace(/\s+/g, ' ').slice(0, 80)}`;
      const isSame = (each) => each.line === line && each.change === change;
      tried.push({ line, change });
      counts[isNoticed ? 'noticed' : 'survived']++;
      // A slow machine must not decide that: look at it.
      if (status === 'Timeout') console.log(`${where} does not end\n    ${line}\n    ${change}`);
      if (isNoticed) continue;
      if (!before.some(isSame)) {
        counts.anew++;
        console.log(`${where} survives\n    ${line}\n    ${change}`);
      }
      found.push(before.find(isSame) ?? { line, change });
    }
    // Of lines alone not all is tried: not what is longer than they are.
    const wasTried = (each) =>
      tried.some(({ line, change }) => each.line === line && each.change === change);
    written[file] = positionals.includes('survivors')
      ? {
          ...known[file],
          survivors: [...found, ...before.filter((each) => !wasTried(each))],
        }
      : { digest: digestOf(source), tried: tried.length, survivors: found };
  }
  const { noticed, survived, anew } = counts;
  const rate = ((100 * noticed) / Math.max(1, noticed + survived)).toFixed(1);
  console.log(
    `${noticed} of ${noticed + survived} mutants are noticed (${rate} %), ${anew} survive anew`,
  );
  if (!values.write || values.sample) return anew > 0;
  // It may have changed meanwhile.
  const all = { ...JSON.parse(readFileSync(SURVIVORS, 'utf8')), ...written };
  const sorted = Object.fromEntries(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1)));
  writeFileSync(SURVIVORS, `${JSON.stringify(sorted, null, 2)}\n`);
  return false;
}
