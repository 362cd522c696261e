/**
 * The results as tables for the terminal and for docs/benchmarks.md, as numbers to be read back,
 * and as pictures.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { format, resolveConfig } from 'prettier';
import { chart, growthChart } from './chart.js';
import { GROWTH } from './growth.js';
import { BY_ITSELF, DOWNLOAD, TARGETS as OWN_TARGETS } from './ours.js';
import { putInto } from './page.js';
import { ACROSS, BOUND, FLOOR, HEAP, NAMES, OURS, SAME } from './shared.js';
import { STREAMS } from './streams.js';

const docs = new URL('../../docs/', import.meta.url);
const rowsFile = new URL('benchmarks.json', docs);
const FLOORS = [FLOOR, 'raw-window'];
const ALL = [...new Set([...FLOORS, 'readable-stream', ...NAMES])];

const budgets = JSON.parse(readFileSync(new URL('../size/budgets.json', import.meta.url), 'utf8'));
/** What ours are to be at most, by table and column. */
const TARGETS = {
  [ACROSS]: {
    'one at a time': 1.05,
    '1,000 in flight': 0.08,
    'connect, first visit': 3,
    'connect, later visit': 2,
    'abort to signal': 1.1,
    'abort to settled': 1.2,
    [HEAP]: 400,
  },
  [SAME]: { 'one at a time': 1.1, '1,000 in flight': 0.12 },
  [STREAMS]: { '64 KiB moved': 1.1, 'first chunk': 1.1 },
  [BY_ITSELF]: { ...OWN_TARGETS, [DOWNLOAD]: budgets['esbuild, one file'].both / 1000 },
};

/** Two digits that mean something: what is large is told whole. */
const digits = (value) =>
  value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
const cell = (entry) =>
  entry?.median !== undefined ? `${digits(entry.median)}${entry.early ? '*' : ''}` : '–';
/** A number and its middle half. */
const withSpread = (entry) =>
  entry?.from === undefined
    ? cell(entry)
    : `${cell(entry)} (${digits(entry.from)} to ${digits(entry.to)})`;

/** What is in a table besides our own rows is not of a library. */
const titlesOf = (table) => Object.keys(table).filter((title) => title !== BOUND);
const namesOf = (table) =>
  ALL.filter((name) => titlesOf(table).some((title) => table[title][name]));

/**
 * The libraries that are first, and those that are not to be told from the first: the middle halves
 * of their rounds overlap. Not the floors, nor what settles too early to be compared.
 */
function leading(column) {
  const able = Object.keys(column).filter((name) => !FLOORS.includes(name) && !column[name].early);
  able.sort((a, b) => column[a].median - column[b].median);
  const { median, to = median } = column[able[0]];
  return able.filter((name) => (column[name].from ?? column[name].median) <= to);
}

const isOf = (title, what) => title.startsWith(what);
const libraries = (tables) => Object.entries(tables).filter(([place]) => place !== BY_ITSELF);

/**
 * Our own rows, by table.
 * @returns {import('./check.js').Rows}
 */
export function rowsOf(tables) {
  const round = (value) => value && Number(value.toPrecision(4));
  return Object.fromEntries(
    Object.entries(tables).map(([place, table]) => [
      place,
      Object.fromEntries(
        titlesOf(table)
          .filter((title) => table[title][OURS])
          .map((title) => {
            const { median, from, to } = table[title][OURS];
            return [title, { median: round(median), from: round(from), to: round(to) }];
          }),
      ),
    ]),
  );
}

/**
 * The rows that were written last.
 * @returns {import('./check.js').Rows}
 */
export function readRows() {
  if (!existsSync(rowsFile)) throw new Error('no docs/benchmarks.json: npm run bench -- --write');
  return JSON.parse(readFileSync(rowsFile, 'utf8')).rows;
}

/** Each row of ours: what it is, what was measured, and its target. */
const ownRows = (tables) =>
  Object.entries(tables).flatMap(([place, table]) =>
    Object.entries(table).flatMap(([title, { [OURS]: mine, 'json-text': bound }]) => {
      const target = TARGETS[place][title];
      const isBound = title === BOUND && bound;
      if (!isBound && (!mine || (target === undefined && place !== BY_ITSELF))) return [];
      const what = place === BY_ITSELF ? title : `${title}, ${place}`;
      const missed = mine?.median > target ? ', missed' : '';
      const aim = target === undefined ? '' : `${digits(target)}${missed}`;
      return [[what, withSpread(mine ?? bound), aim]];
    }),
  );

/** Prints it all. */
export function print({ where, tables, growth }) {
  console.log(where);
  for (const [place, table] of libraries(tables)) {
    const names = namesOf(table);
    const show = (text) =>
      console.table(
        Object.fromEntries(
          names.map((name) => [
            name,
            Object.fromEntries(titlesOf(table).map((title) => [title, text(table[title][name])])),
          ]),
        ),
      );
    console.log(`${place}: the ratio to ${FLOOR}, its median and its middle half over the rounds`);
    show(withSpread);
    console.log('milliseconds, or bytes in the host and in the app, for orientation:');
    show((entry) =>
      (entry?.sides ?? [entry?.ms])
        .map((value) => value && Number(value.toPrecision(3)))
        .join(' + '),
    );
    for (const title of titlesOf(table)) {
      const ahead = table[title][OURS] ? leading(table[title]) : [OURS];
      if (!ahead.includes(OURS)) console.log(`${place}, ${title}: first is ${ahead.join(', ')}`);
    }
  }
  const own = ownRows(tables).map(([what, measured, target]) => ({ what, measured, target }));
  if (own.length) console.table(own);
  for (const [what, { counts, rows }] of Object.entries(growth ?? {})) {
    console.log(`by ${what}`);
    const line = (values) =>
      Object.fromEntries(counts.map((count, i) => [count, cell({ median: values[i] })]));
    console.table(
      Object.fromEntries(Object.entries(rows).map(([row, values]) => [row, line(values)])),
    );
  }
}

const markdownTable = (head, lines) =>
  [head, head.map((_text, i) => (i ? '--:' : '---')), ...lines]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');

function tableOfLibraries(tables, place, chosen = () => true) {
  const table = tables[place];
  const titles = titlesOf(table).filter(chosen);
  const strong = (title, name) =>
    leading(table[title]).includes(name)
      ? `**${cell(table[title][name])}**`
      : cell(table[title][name]);
  return markdownTable(
    [place, ...titles],
    namesOf(table).map((name) => [name, ...titles.map((title) => strong(title, name))]),
  );
}

const markdown = ({
  where,
  tables,
}) => `${where}. Times are ratios to the raw port, measured right before or after; each is the median over the rounds;
memory and download are of both sides together. Less is better. Bold is the best of the libraries, with those
whose rounds cannot be told apart from its own.

![One chart a measure, a dot a library](bench.svg)

${tableOfLibraries(tables, ACROSS, (title) => !isOf(title, 'page,'))}

${tableOfLibraries(tables, SAME)}

\\* settles at the caller's own abort, whether or not the app has stopped: not compared. – cannot do it.

From the navigation to the host's page to the first answer, which is mostly what a browser needs for two pages:

${tableOfLibraries(tables, ACROSS, (title) => isOf(title, 'page,'))}

${markdownTable(['the bridge', 'measured (middle half of the rounds)', 'target'], ownRows(tables))}`;

const markdownOfStreams = ({ where, tables }) => `${where}. Times are ratios
to the raw port, which sends without waiting for its reader; \`readable-stream\` is the engine's own, transferred. The last
column is what is made for a reader that has read one chunk of 64 KiB and pauses. Less is better.

${tableOfLibraries(tables, STREAMS)}

– cannot do it.`;

const markdownOfGrowth = ({ where, growth }) => `${where}.

![A line a measure, by pending calls and by connections](growth.svg)

${Object.entries(growth)
  .map(([what, { counts, rows }]) =>
    markdownTable(
      [what, ...counts.map((count) => count.toLocaleString('en'))],
      GROWTH.filter((row) => rows[row]).map((row) => [
        row,
        ...rows[row].map((median) => cell({ median })),
      ]),
    ),
  )
  .join('\n\n')}`;

/** Writes docs/benchmarks.md, between its markers, the rows to be read back, and the pictures. */
export async function write(results) {
  const { where, tables, growth } = results;
  await putInto(new URL('benchmarks.md', docs), {
    ...(tables[STREAMS] && { streams: markdownOfStreams(results) }),
    ...(tables[ACROSS] && { bench: markdown(results) }),
    ...(growth && { growth: markdownOfGrowth(results) }),
  });
  const before = tables[ACROSS] ? {} : readRows();
  const text = JSON.stringify({ where, rows: { ...before, ...rowsOf(tables) } });
  writeFileSync(
    rowsFile,
    await format(text, { ...(await resolveConfig(rowsFile)), parser: 'json' }),
  );
  if (tables[ACROSS])
    writeFileSync(new URL('bench.svg', docs), chart(namesOf(tables[ACROSS]), tables[ACROSS], OURS));
  if (growth) writeFileSync(new URL('growth.svg', docs), growthChart(growth));
}
