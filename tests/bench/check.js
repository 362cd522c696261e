/**
 * Whether rows of ours have become worse than those that were written. It only compares numbers:
 * `bench.js` measures them.
 * @typedef {object} Entry the median, and the middle half of the rounds, if there were several
 * @property {number} median
 * @property {number} [from]
 * @property {number} [to]
 * @typedef {Record<string, Record<string, Entry>>} Rows by table and row
 */

/**
 * What is measured once differs this much from one run to the next, and so may the edges of what is
 * measured often.
 */
const MARGIN = 0.02;

/**
 * The rows that are worse than before by more than the spread of both: less is better, and the
 * better half of the rounds now, but for its best quarter, lies above the middle half of those
 * then. So a row that has merely more spread is not worse, nor one whose rounds cannot be told
 * apart from those before.
 * @param {Rows} before what was written
 * @param {Rows} now what is measured. A table that is not there was not measured; a row that is not
 *   there is worse
 * @returns {{ table: string, row: string, before: Entry, now?: Entry }[]}
 */
export function worse(before, now) {
  const found = [];
  for (const [table, rows] of Object.entries(before)) {
    if (!now[table]) continue;
    for (const [row, then] of Object.entries(rows)) {
      const entry = now[table][row];
      const most = (then.to ?? then.median) * (1 + MARGIN);
      // Not a number is worse, too.
      if (!((entry?.from ?? entry?.median) <= most))
        found.push({ table, row, before: then, now: entry });
    }
  }
  return found;
}

/**
 * Rows that look worse are measured again, so that a moment in which the machine was busy fails
 * nobody: only what is worse each time is.
 * @param {Rows} before
 * @param {Rows} now
 * @param {(rows: Rows) => Promise<Rows>} measure measures these rows again
 * @param {number} [times] how often at most
 */
export async function worseEachTime(before, now, measure, times = 2) {
  let found = worse(before, now);
  for (let i = 0; i < times && found.length; i++) {
    /** @type {Rows} */
    const again = {};
    for (const { table, row, before: then } of found) (again[table] ??= {})[row] = then;
    found = worse(again, { ...emptied(again), ...(await measure(again)) });
  }
  return found;
}

/**
 * Tables of which nothing has been measured.
 * @param {Rows} rows
 */
const emptied = (rows) => Object.fromEntries(Object.keys(rows).map((table) => [table, {}]));

/**
 * What a failure says.
 * @param {ReturnType<typeof worse>[number]} found
 */
export function describe({ table, row, before, now }) {
  return `${table}, ${row}: ${now ? text(now) : 'not measured'}, and the table says ${text(before)}`;
}

/** @param {Entry} entry */
const text = ({ median, from, to }) =>
  from === undefined ? number(median) : `${number(median)} (${number(from)} to ${number(to)})`;

/**
 * Three digits that mean something.
 * @param {number | undefined} value
 */
const number = (value) => String(Number(value?.toPrecision(3)));
