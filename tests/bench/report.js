/** The results as tables for the terminal and for docs/benchmarks.md, and the chart. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { chart } from './chart.js';
import { putInto } from './page.js';
import { FLOOR } from './peers.js';
import { STREAM_COLUMNS } from './streams.js';

const root = new URL('../../', import.meta.url);
const OURS = 'abp-bridge';
const FLOORS = [FLOOR, 'raw-window'];

/** The columns of the comparison. Less is better in each. `target`: of ours, across origins. */
export const COLUMNS = [
  { key: 'oneAtATime', title: 'one at a time', target: 1.05 },
  { key: 'inFlight', title: '1,000 in flight', target: 0.1 },
  { key: 'copy', title: '1 MiB copied' },
  { key: 'move', title: '1 MiB moved' },
  { key: 'connect', title: 'connect' },
  { key: 'signal', title: 'abort to signal', target: 1.1 },
  { key: 'settled', title: 'abort to settled' },
  { key: 'heap', title: 'bytes a pending call' },
  { key: 'bytes', title: 'KB to download' },
];

/** By column and library: a number, and how to write it. */
function tableOf({ names, tables, heap, bytes }, where) {
  const table = structuredClone(tables[where]);
  if (where === 'across origins') {
    const each = (value) =>
      Object.fromEntries(names.map((name) => [name, { median: value(name) }]));
    table.heap = each((name) => heap[name].both);
    table.bytes = each((name) => bytes[name].together / 1000);
  }
  return table;
}

/** Two digits that mean something: what is large is told whole. */
const digits = (value) =>
  value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
const cell = (entry) => (entry ? `${digits(entry.median)}${entry.early ? '*' : ''}` : '–');

/**
 * The libraries that are first, and those that are not to be told from the first: the middle halves of their
 * rounds overlap. Not the floors, nor what settles too early to be compared.
 */
function leading(table, key, names) {
  const able = names.filter(
    (name) => !FLOORS.includes(name) && table[key][name] && !table[key][name].early,
  );
  const column = table[key];
  able.sort((a, b) => column[a].median - column[b].median);
  const { median, to = median } = column[able[0]];
  return able.filter((name) => (column[name].from ?? column[name].median) <= to);
}

const wheres = ({ tables }) => Object.keys(tables);

/** Prints it all. Returns how many targets are missed. */
export function print({ where, rows, comparison }) {
  console.log(where);
  const missed = rows.filter(({ value, target }) => value > target);
  if (rows.length) {
    console.table(
      rows.map(({ what, value, low, high, target, more = '' }) => ({
        what,
        value: Number(value.toFixed(2)),
        spread: low === undefined ? '' : `${digits(low)} to ${digits(high)}`,
        target,
        ok: value <= target ? '' : 'MISSED',
        more,
      })),
    );
  }
  if (!comparison) return missed.length;
  const { names } = comparison;
  for (const place of wheres(comparison)) {
    const table = tableOf(comparison, place);
    console.log(`${place}: the ratio to ${FLOOR}, its median and its ends over the rounds`);
    const columns = COLUMNS.filter(({ key }) => table[key]);
    const line = (name) =>
      columns.map(({ key, title }) => {
        const entry = table[key][name];
        const ends =
          entry?.low === undefined ? '' : ` (${digits(entry.low)}–${digits(entry.high)})`;
        return [title, `${cell(entry)}${ends}`];
      });
    console.table(Object.fromEntries(names.map((name) => [name, Object.fromEntries(line(name))])));
    console.log('milliseconds, for orientation:');
    const ms = (name) =>
      columns
        .filter(({ key }) => table[key][name]?.ms)
        .map(({ key, title }) => [title, Number(table[key][name].ms.toPrecision(3))]);
    console.table(Object.fromEntries(names.map((name) => [name, Object.fromEntries(ms(name))])));
    if (!names.includes(OURS)) continue;
    for (const { key, title, target } of columns) {
      const mine = table[key][OURS];
      const ahead = leading(table, key, names);
      if (!ahead.includes(OURS)) console.log(`${place}, ${title}: first is ${ahead.join(', ')}`);
      if (place !== 'across origins' || target === undefined || mine.median <= target) continue;
      console.log(`${place}, ${title}: ${cell(mine)} MISSES its target of ${target}`);
      missed.push(title);
    }
  }
  console.table(
    Object.fromEntries(
      names.map((name) => [
        name,
        {
          'pending call, host': Math.round(comparison.heap[name].host),
          'pending call, app': Math.round(comparison.heap[name].app),
          'download, both sides in one': comparison.bytes[name].together,
          'download, a bundle a page': comparison.bytes[name].apart,
        },
      ]),
    ),
  );
  return missed.length;
}

const markdownTable = (head, lines) =>
  [head, head.map((_text, i) => (i ? '--:' : '---')), ...lines]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');

const comparisonTable = (comparison, place) =>
  tableOfLibraries(comparison.names, tableOf(comparison, place), COLUMNS, place);

function tableOfLibraries(names, table, known, corner) {
  const columns = known.filter(({ key }) => table[key]);
  const strong = (key, name) =>
    leading(table, key, names).includes(name)
      ? `**${cell(table[key][name])}**`
      : cell(table[key][name]);
  return markdownTable(
    [corner, ...columns.map(({ title }) => title)],
    names.map((name) => [name, ...columns.map(({ key }) => strong(key, name))]),
  );
}

function markdown({ where, rows, comparison }) {
  const own = rows.map(({ what, value, low, high, target }) => [
    what,
    `${digits(value)}${low === undefined ? '' : ` (${digits(low)} to ${digits(high)})`}`,
    value <= target ? digits(target) : `${digits(target)}, missed`,
  ]);
  return `${where}. Times are ratios to the raw port, measured right before or after; each is the median over the rounds;
memory and download are of both sides together. Less is better. Bold is the best of the libraries, with those
whose rounds cannot be described apart from its own.

![One chart a measure, a dot a library](bench.svg)

${wheres(comparison)
  .map((place) => comparisonTable(comparison, place))
  .join('\n\n')}

\\* settles at the caller's own abort, whether or not the app has stopped: not compared. – cannot do it.

${markdownTable(['the bridge by itself', 'measured (lowest to highest)', 'target'], own)}`;
}

/** Prints what streams cost. */
export function printStreams({ names, table }) {
  console.log(`streams, across origins: the ratio to ${FLOOR}, its median and its ends`);
  const lines = names.map((name) => {
    const line = STREAM_COLUMNS.map(({ key, title }) => {
      const entry = table[key][name];
      const ends = entry?.low === undefined ? '' : ` (${digits(entry.low)}–${digits(entry.high)})`;
      return [title, `${cell(entry)}${ends}`];
    });
    return [name, Object.fromEntries(line)];
  });
  console.table(Object.fromEntries(lines));
  for (const { key, title } of STREAM_COLUMNS) {
    const ahead = leading(table, key, names);
    if (!ahead.includes(OURS)) console.log(`streams, ${title}: first is ${ahead.join(', ')}`);
  }
}

const markdownOfStreams = ({ where, streams: { names, table } }) => `${where}. Times are ratios
to the raw port, which sends without waiting for its reader; \`readable-stream\` is the engine's own, transferred. The last
column is what is made for a reader that has read one chunk of 64 KiB and pauses. Less is better.

${tableOfLibraries(names, table, STREAM_COLUMNS, 'streams across origins')}

– cannot do it.`;

/** Writes docs/benchmarks.md, between its markers, and the chart. */
export async function write(results) {
  const { comparison, streams } = results;
  await putInto(new URL('docs/benchmarks.md', root), {
    ...(streams && { streams: markdownOfStreams(results) }),
    ...(comparison && { bench: markdown(results) }),
  });
  if (!comparison) return;
  mkdirSync(new URL('docs', root), { recursive: true });
  const table = tableOf(comparison, 'across origins');
  writeFileSync(new URL('docs/bench.svg', root), chart(comparison.names, table, COLUMNS, OURS));
}
