/**
 * The results as tables for the terminal, and in results.json: for the site (tables.js), and to be
 * compared with the next run.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { DOWNLOAD, TARGETS as OWN_TARGETS } from './ours.js';
import { ACROSS, BY_ITSELF, FLOOR, FLOORS, HEAP, OURS, SAME, STREAMS } from './shared.js';
import { RESULTS, cell, namesOf, ownRows, readResults, titlesOf, withSpread } from './tables.js';

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

const libraries = (tables) => Object.entries(tables).filter(([place]) => place !== BY_ITSELF);

const rounded = (entry) =>
  Object.fromEntries(
    Object.entries(entry).map(([key, value]) => [key, value && Number(value.toPrecision(4))]),
  );

/**
 * Our own rows, by table.
 * @returns {import('./check.js').Rows}
 */
export const rowsOf = (tables) =>
  Object.fromEntries(
    Object.entries(tables).map(([place, table]) => [
      place,
      Object.fromEntries(
        titlesOf(table)
          .filter((title) => table[title][OURS])
          .map((title) => {
            const { median, from, to } = table[title][OURS];
            return [title, rounded({ median, from, to })];
          }),
      ),
    ]),
  );

/**
 * The rows that were written last.
 * @returns {import('./check.js').Rows}
 */
export const readRows = () => rowsOf(readResults().tables);

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
  const own = ownRows(marked(tables)).map(([what, measured, target]) => ({
    what,
    measured,
    target,
  }));
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

/**
 * Marks the entries of the libraries that lead, and those of ours that have a target.
 * @param {Record<string, import('./tables.js').Table>} tables
 */
function marked(tables) {
  const entries =
    (place, table) =>
    ([title, column]) => {
      const leads = table[title][OURS] && place !== BY_ITSELF ? leading(column) : [];
      const mark = ([name, { median, from, to, early }]) => [
        name,
        {
          ...rounded({ median, from, to }),
          early,
          leads: leads.includes(name) || undefined,
          target: name === OURS ? TARGETS[place]?.[title] : undefined,
        },
      ];
      return [title, Object.fromEntries(Object.entries(column).map(mark))];
    };
  return Object.fromEntries(
    Object.entries(tables).map(([place, table]) => [
      place,
      Object.fromEntries(Object.entries(table).map(entries(place, table))),
    ]),
  );
}

/** Writes results.json, from which the site's page is made; what was not measured stays. */
export async function write({ where, tables, growth }) {
  const before = existsSync(RESULTS) ? readResults() : { tables: {} };
  const text = JSON.stringify({
    where,
    tables: { ...before.tables, ...marked(tables) },
    growth: growth ?? before.growth,
  });
  const config = await resolveConfig(fileURLToPath(RESULTS));
  writeFileSync(RESULTS, await format(text, { ...config, parser: 'json' }));
}
