// Reports which lines and branches of src/ the C tests run, and fails below the numbers that must hold. Run by
// scripts/coverage.sh, in the build folder; gcov counts, once for each object file, and this adds up.
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { relative } from 'node:path';

const LEAST = { lines: 95, branches: 90 };
const source = new URL('..', import.meta.url).pathname;
/** By file, then by line: how often it ran, and how often each way out of it. */
const files = new Map();

const counts = readdirSync('.', { recursive: true }).filter((name) => name.endsWith('.gcda'));
for (const data of counts) {
  const text = execFileSync('gcov', ['--json-format', '--stdout', '--branch-probabilities', data], {
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'ignore'],
  }).toString();
  for (const document of text.split('\n').filter(Boolean)) {
    for (const { file, lines } of JSON.parse(document).files) {
      const name = relative(source, file);
      if (!name.startsWith('src/')) continue;
      const known = files.get(name) ?? new Map();
      files.set(name, known);
      for (const { line_number: number, count, branches } of lines) {
        const line = known.get(number) ?? { count: 0, branches: [] };
        known.set(number, line);
        line.count += count;
        branches.forEach((way, i) => (line.branches[i] = (line.branches[i] ?? 0) + way.count));
      }
    }
  }
}

const percent = (part, whole) => (whole ? (part / whole) * 100 : 100);
const total = { lines: [0, 0], branches: [0, 0] };
for (const [name, lines] of [...files].sort()) {
  const all = [...lines.values()];
  const ways = all.flatMap(({ branches }) => branches);
  const ran = {
    lines: [all.filter(({ count }) => count).length, all.length],
    branches: [ways.filter(Boolean).length, ways.length],
  };
  let row = name.padEnd(24);
  for (const what of ['lines', 'branches']) {
    total[what] = total[what].map((n, i) => n + ran[what][i]);
    row += `${percent(...ran[what])
      .toFixed(1)
      .padStart(6)} % of ${ran[what][1]} ${what}`;
  }
  console.log(row);
  if (process.argv.includes('--missed')) {
    for (const [number, { count, branches }] of [...lines].sort(([a], [b]) => a - b)) {
      if (!count) console.log(`  ${name}:${number} never ran`);
      else if (branches.includes(0))
        console.log(`  ${name}:${number} never ${branches.map((n) => (n ? '+' : '-')).join('')}`);
    }
  }
}
let failed = files.size === 0;
for (const what of ['lines', 'branches']) {
  const reached = percent(...total[what]);
  console.log(`${reached.toFixed(1)} % of all ${what}; ${LEAST[what]} % must be`);
  failed ||= reached < LEAST[what];
}
process.exitCode = failed ? 1 : 0;
