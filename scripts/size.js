// Prints what a page downloads, and who has how much of it.
//
//   node scripts/size.js             prints tables
//   node scripts/size.js --write     writes them to tests/size/sizes.md, too, which is checked in
import { readFileSync, writeFileSync } from 'node:fs';
import { format, resolveConfig } from 'prettier';
import { measureFiles, measureModule, measureSides } from './sizes.js';

const TABLE = new URL('../tests/size/sizes.md', import.meta.url);
const BUDGETS = new URL('../tests/size/budgets.json', import.meta.url);

/** @param {number} bytes */
const digits = (bytes) => bytes.toLocaleString('en');

/** @param {string[]} head @param {(string | number)[][]} rows */
const table = (head, rows) =>
  [head, head.map((_, i) => (i ? '--:' : '---')), ...rows]
    .map(
      (row) =>
        `| ${row.map((cell) => (typeof cell === 'number' ? digits(cell) : cell)).join(' | ')} |`,
    )
    .join('\n');

const STEPS = new URL('../tests/size/steps.md', import.meta.url);
const budgets = JSON.parse(readFileSync(BUDGETS, 'utf8'));
const sides = await measureSides();
const [expose, connect, both] = await Promise.all([
  measureFiles('expose'),
  measureFiles('connect'),
  measureFiles('both'),
]);
/** @param {typeof both} files @param {string} name */
const of = (files, name) => files.find((file) => file.name === name)?.gzipped ?? '';

const text = `# What a page downloads

Bytes, gzipped, of all that is loaded at once. \`npm run size -- --write\` makes this file; \`tests/size\` holds the budgets in
\`budgets.json\`, and fails when this file is more than 1 % off.

${table(
  ['', 'expose', 'connect', 'both'],
  [
    ...Object.entries(sides).flatMap(([name, size]) => [
      [name, size.expose, size.connect, size.both],
      ['its budget', budgets[name].expose, budgets[name].connect, budgets[name].both],
    ]),
  ],
)}

${readFileSync(STEPS, 'utf8')}
## By file

Of one file by esbuild, lazy parts aside: bytes minified of both sides, and by how much less the gzipped file of a side would
be without this one.

${table(
  ['', 'bytes', 'expose', 'connect', 'both'],
  both
    .toSorted((a, b) => b.gzipped - a.gzipped)
    .map(({ name, bytes, gzipped }) => [name, bytes, of(expose, name), of(connect, name), gzipped]),
)}

## By function of the module

Bytes, and by how much less the deflated module would be without it.

${table(
  ['', 'bytes', 'deflated'],
  measureModule('abp')
    .toSorted((a, b) => b.bytes - a.bytes)
    .map(({ name, bytes, deflated }) => [name, bytes, deflated]),
)}
`;

console.log(text);
if (process.argv.includes('--write')) {
  const options = { ...(await resolveConfig(TABLE)), parser: 'markdown' };
  writeFileSync(TABLE, await format(text, options));
}
