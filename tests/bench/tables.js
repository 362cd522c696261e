/**
 * The results of `npm run bench -- --write` as the tables and pictures of the site's page of
 * benchmarks.
 */
import { readFileSync } from 'node:fs';
import { chart, growthChart } from './chart.js';
import { ACROSS, BOUND, BY_ITSELF, FLOORS, NAMES, OURS, SAME, STREAMS } from './shared.js';

/**
 * @typedef {object} Entry one measurement, of which less is better
 * @property {number} median
 * @property {number} [from] the middle half of the rounds, if there were several
 * @property {number} [to]
 * @property {boolean} [early] it ended before the app had stopped, and is not compared
 * @property {boolean} [leads] it is the best, or cannot be told apart from it
 * @property {number} [target]
 *
 * @typedef {Record<string, Record<string, Entry>>} Table by title and library
 *
 * @typedef {object} Results
 * @property {string} where the browser, Node and the machine
 * @property {Record<string, Table>} tables
 * @property {Record<string, { counts: number[], rows: Record<string, number[]> }>} growth
 */

const ALL = [...new Set([...FLOORS, 'readable-stream', ...NAMES])];
export const RESULTS = new URL('results.json', import.meta.url);

/** @returns {Results} the results that were written last */
export const readResults = () => JSON.parse(readFileSync(RESULTS, 'utf8'));

/**
 * Two significant digits; all digits of the integer part.
 * @param {number} value
 */
export const digits = (value) =>
  value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
/** @param {Partial<Entry>} [entry] */
export const cell = (entry) =>
  typeof entry?.median === 'number' ? `${digits(entry.median)}${entry.early ? '*' : ''}` : '–';
/**
 * A number and its middle half.
 * @param {Entry} [entry]
 */
export const withSpread = (entry) =>
  entry?.from === undefined || entry.to === undefined
    ? cell(entry)
    : `${cell(entry)} (${digits(entry.from)} to ${digits(entry.to)})`;

/**
 * The titles of a table that compare libraries.
 * @param {Table} table
 */
export const titlesOf = (table) => Object.keys(table).filter((title) => title !== BOUND);
/**
 * The libraries of a table.
 * @param {Table} table
 */
export const namesOf = (table) =>
  ALL.filter((name) => titlesOf(table).some((title) => table[title][name]));

/**
 * Our rows: a title, the measurement, and its target.
 * @param {Record<string, Table>} tables
 */
export const ownRows = (tables) =>
  Object.entries(tables).flatMap(([place, table]) =>
    Object.entries(table).flatMap(([title, { [OURS]: ours, 'json-text': bound }]) => {
      const entry = title === BOUND ? bound : ours;
      if (!entry) return [];
      const { median, target } = entry;
      if (title !== BOUND && target === undefined && place !== BY_ITSELF) return [];
      const missed = target !== undefined && median > target ? ', missed' : '';
      const aim = target === undefined ? '' : `${digits(target)}${missed}`;
      return [[place === BY_ITSELF ? title : `${title}, ${place}`, withSpread(entry), aim]];
    }),
  );

/**
 * @param {string[]} head
 * @param {string[][]} lines
 */
const markdownTable = (head, lines) =>
  [head, head.map((_text, i) => (i ? '--:' : '---')), ...lines]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');

/**
 * @param {Record<string, Table>} tables
 * @param {string} place
 */
function tableOfLibraries(tables, place, chosen = (/** @type {string} */ _title) => true) {
  const table = tables[place];
  const titles = titlesOf(table).filter(chosen);
  const text = (/** @type {Entry | undefined} */ entry) =>
    entry?.leads ? `**${cell(entry)}**` : cell(entry);
  return markdownTable(
    [place, ...titles],
    namesOf(table).map((name) => [name, ...titles.map((title) => text(table[title][name]))]),
  );
}

const isPage = (/** @type {string} */ title) => title.startsWith('page,');

/**
 * @param {Results} results
 * @returns {Record<string, string>} Markdown, by the markers of docs/benchmarks.md that it replaces
 */
export const markdownOf = ({ where, tables, growth }) => ({
  where: `${where}.`,
  libraries: [
    '![One chart a measure, a dot a library](bench.svg)',
    tableOfLibraries(tables, ACROSS, (title) => !isPage(title)),
    tableOfLibraries(tables, SAME),
  ].join('\n\n'),
  pages: tableOfLibraries(tables, ACROSS, isPage),
  bridge: markdownTable(
    ['the bridge', 'measured (middle half of the rounds)', 'target'],
    ownRows(tables),
  ),
  streams: tableOfLibraries(tables, STREAMS),
  growth: [
    '![A line a measure, by pending calls and by connections](growth.svg)',
    ...Object.entries(growth).map(([title, { counts, rows }]) =>
      markdownTable(
        [title, ...counts.map((count) => count.toLocaleString('en'))],
        Object.entries(rows).map(([row, values]) => [
          row,
          ...values.map((median) => cell({ median })),
        ]),
      ),
    ),
  ].join('\n\n'),
});

/**
 * @param {Results} results
 * @returns {Record<string, string>} SVG, by the names of the files that the page shows
 */
export const picturesOf = ({ tables, growth }) => ({
  'bench.svg': chart(namesOf(tables[ACROSS]), tables[ACROSS], OURS),
  'growth.svg': growthChart(growth),
});
