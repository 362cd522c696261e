/**
 * Breaks every transition of src/call_state.c, src/session.c and src/task_state.c in turn, in every
 * way that still compiles into another table: the row is missing, leads elsewhere, owes or sends
 * one thing less, or says something else of what became of the work. One of the explorations that
 * have the table has to notice each of them.
 *
 *   node tests/core/mutate.js [a part of the mutants' names]
 */
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const root = join(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'mutate-'));
const run = promisify(execFile);
const COMPILER = process.env.CC ?? 'cc';
const FLAGS = ['-std=c11', '-O2', '-DSLAB_CALLS=8', `-I${root}/src`];
const WRAP = '-Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free';
const MAX_SECONDS = 300;

const CALLEE = [
  'QUEUED',
  'PREPARING',
  'RUNNING',
  'ASKED',
  'CANCELLING',
  'UNWINDING',
  'UNANSWERED',
  'RETURNED',
  'UNWOUND',
  'COMPLETED',
  'CANCELLED',
  'UNKNOWN',
];
const CALLER = ['WAITING', 'STOPPING', 'STOPPED', 'SETTLED'];
const SESSION = ['CONNECTING', 'READY', 'FAILED', 'CLOSED', 'LOST'];
const TASK = [
  'SUBMITTED',
  'WORKING',
  'COMPLETED',
  'FAILED',
  'CANCELED',
  'INPUT_REQUIRED',
  'REJECTED',
  'AUTH_REQUIRED',
  'CANCELING',
];

/** What a row may say became of the work. */
const FATES = ['UNSTARTED', 'STOPPED', 'FINISHED', 'RUNNING', 'UNKNOWN', 'FAILED'].map(
  (word) => `ABP_FATE_${word}`,
);

const TABLES = {
  'call_state.c': { nothing: 'FREE', states: [CALLEE, CALLER] },
  'session.c': { nothing: 'NONE', states: [SESSION] },
  'task_state.c': { nothing: 'UNKNOWN', states: [TASK] },
};
/**
 * The files of each exploration and its arguments, the quick ones first: most mutants are found in
 * a second.
 */
const CORE = ['utf8', 'siphash', 'call_state', 'call_table', 'calls'];
const ENDPOINT = [
  'session',
  'endpoint',
  'endpoint_actions',
  'endpoint_session',
  'endpoint_calls',
  'endpoint_cancels',
  'endpoint_streams',
];
const TESTS = ['arena', 'model', 'world', 'explore', 'explore_tasks', 'rpc_explore'];
const EXPLORE = [...CORE, ...ENDPOINT, 'arena', 'model', 'world', 'explore'];
const PROGRAMS = [
  { objects: EXPLORE, args: ['small'] },
  { objects: [...CORE, 'rpc', 'arena', 'rpc_explore'], args: [] },
  { objects: EXPLORE, args: [] },
  {
    objects: ['task_state', 'watch_state', 'tasks', 'siphash', 'call_table', 'explore_tasks'],
    args: [],
  },
];

/** Each row of a table: which it is, where it stands, where it leads, what else it says. */
function rowsOf(file) {
  const text = readFileSync(join(root, 'src', file), 'utf8');
  const rows = [];
  const state = /\[((?!TE_)[A-Z]+(?:_REQUIRED)?)\] =\s*\{/g;
  const row = /(?:\[((?:EV|SE|TE)_\w+)\] =|session_step ([A-Z]+) =) \{(\w+), ([^}]*)\}/g;
  const states = [...text.matchAll(state)];
  for (const match of text.matchAll(row)) {
    const [whole, event, constant, next, rest] = match;
    const from = states.findLast(({ index }) => index < match.index)?.[1];
    const start = match.index + whole.lastIndexOf('{');
    rows.push({
      file,
      text,
      name: constant ?? `${from} ${event}`,
      next,
      parts: rest.split(', '),
      replace: (next, parts) =>
        `${text.slice(0, start)}{${[next, ...parts].join(', ')}}${text.slice(match.index + whole.length)}`,
    });
  }
  return rows;
}

function mutantsOf({ file, name, next, parts, replace }) {
  const { nothing, states: kinds } = TABLES[file];
  const states = kinds.find((all) => all.includes(next)) ?? kinds[0];
  const mutants = [
    {
      name: `${name}: missing`,
      text: replace(
        nothing,
        parts.map(() => '0'),
      ),
    },
  ];
  for (const other of states)
    if (other !== next)
      mutants.push({ name: `${name}: leads to ${other}`, text: replace(other, parts) });
  parts.forEach((part, place) => {
    const terms = part.split(' | ').filter((term) => term !== '0');
    for (const term of terms) {
      const less = terms.filter((other) => other !== term).join(' | ') || '0';
      mutants.push({
        name: `${name}: without ${term}`,
        text: replace(next, parts.with(place, less)),
      });
    }
    if (FATES.includes(part)) {
      for (const other of FATES.filter((fate) => fate !== part)) {
        mutants.push({
          name: `${name}: says ${other}`,
          text: replace(next, parts.with(place, other)),
        });
      }
    }
  });
  return mutants.map((mutant) => ({ ...mutant, file }));
}

const object = (name) => join(folder, `${name}.o`);
const compile = (source, output) => [...FLAGS, '-c', source, '-o', output];

/** What found the last mutant of a row, by the row: it finds most of the others. */
const finders = new Map();

/**
 * How the explorations end on a mutant: the first line of what one says, or nothing if they are
 * happy.
 */
async function verdict(mutant, number) {
  const source = join(folder, `${number}.c`);
  writeFileSync(source, mutant.text);
  await run(COMPILER, compile(source, object(number)));
  const file = mutant.file.replace('.c', '');
  try {
    const [row] = mutant.name.split(':');
    const programs = PROGRAMS.filter(({ objects }) => objects.includes(file));
    const finder = finders.get(row);
    for (const program of finder ? [finder, ...programs] : programs) {
      const others = program.objects.filter((name) => name !== file);
      const found = await explored([...others, number], program.args, `${number}`);
      if (!found) continue;
      finders.set(row, program);
      return found;
    }
    return undefined;
  } finally {
    for (const made of [source, object(number)]) rmSync(made);
  }
}

/** How one exploration ends. */
async function explored(objects, args, name) {
  const program = join(folder, name);
  const wrap = objects.includes('arena') ? [WRAP] : [];
  await run(COMPILER, [...objects.map(object), ...wrap, '-o', program]);
  try {
    await run(program, args, { timeout: MAX_SECONDS * 1000, killSignal: 'SIGKILL' });
    return undefined;
  } catch (error) {
    if (error.killed) return undefined; // nothing was found in good time
    if (error.signal) return error.signal;
    return (
      error.stdout.split('\n').find((line) => line.includes('violated')) ?? error.stderr.trim()
    );
  } finally {
    rmSync(program);
  }
}

const began = Date.now();
for (const name of new Set(PROGRAMS.flatMap(({ objects }) => objects))) {
  const place = TESTS.includes(name) ? 'tests/core' : 'src';
  execFileSync(COMPILER, compile(join(root, place, `${name}.c`), object(name)));
}

const mutants = Object.keys(TABLES)
  .flatMap(rowsOf)
  .flatMap(mutantsOf)
  .filter(({ name }) => name.includes(process.argv[2] ?? ''));
const survivors = [];
let next = 0;
async function work() {
  while (next < mutants.length) {
    const number = next++;
    const found = await verdict(mutants[number], number);
    if (!found) survivors.push(mutants[number].name);
    console.log(`${found ? 'killed  ' : 'SURVIVED'}  ${mutants[number].name}  (${found ?? ''})`);
  }
}
await Promise.all(Array.from({ length: Math.min(2, availableParallelism()) }, work));
rmSync(folder, { recursive: true });
const seconds = Math.round((Date.now() - began) / 1000);
console.log(`${mutants.length} mutants, ${survivors.length} survived, ${seconds} s`);
for (const name of survivors) console.log(`  ${name}`);
process.exitCode = survivors.length || !mutants.length ? 1 : 0;
