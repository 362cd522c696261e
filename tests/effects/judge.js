/** Whether what a caller was told of a call contradicts what stands in the database. */

/** @typedef {import('./work.js').Row} Row */
/** @typedef {'unstarted' | 'stopped' | 'finished' | 'running' | 'unknown' | 'failed'} Outcome */

/**
 * @typedef {object} Told
 * @property {boolean} success
 * @property {string} [outcome] an {@link Outcome}, unless it succeeded
 * @property {{ applied?: number, remaining?: number }} [report] what the handler said of its work
 * @property {number} [waited] ms from the stop to the answer, as its caller measures them
 */

/**
 * @typedef {object} Circumstances
 * @property {boolean} cut whether by then the connection was cut, or the app is gone
 * @property {boolean} patient whether the app waits for its handlers as long as they like
 * @property {boolean} [foreign] whether the peer cannot tell what became of a call
 * @property {boolean} [reports] whether the handler's own words come with the outcome
 * @property {boolean} [joined] whether another call with the same key may have run the handler
 * @property {boolean} [asked] whether the app was asked for it, which is there
 */

/** What a handler came to, as each outcome says it. @type {Record<string, string[]>} */
const ENDS = { stopped: ['stopped'], finished: ['returned'], failed: ['broke'] };

/**
 * @param {Row[]} rows all of one call, in order; the one that is `told` among them
 * @param {Told} told
 * @param {Circumstances} circumstances
 * @returns {string | undefined} what is wrong
 */
export function contradiction(
  rows,
  { success, outcome, report },
  { cut, patient, foreign, reports, joined, asked },
) {
  const told = rows.findIndex(({ at }) => at === 'told');
  const before = rows.slice(0, told);
  const begun = rows.filter(({ at }) => at === 'begin').length;
  const end = before.find(({ at }) => at === 'end')?.how;
  const effects = rows.filter(({ at }) => at === 'effect').length;
  const late = rows.slice(told).filter(({ at }) => at === 'effect').length;

  if (begun > 1) return `it ran ${begun} times`;
  if (success) return end === 'returned' ? undefined : 'success, and the handler had not returned';
  if (outcome === undefined) return 'no outcome was told';
  if (outcome === 'unknown') {
    // What never arrived may still be under way.
    const excused = cut || foreign || (asked && !begun);
    return excused ? undefined : 'unknown, and the app is there';
  }
  if (outcome === 'unstarted') {
    return begun && !joined ? 'unstarted, and the handler ran' : undefined;
  }
  // The state of a task, where no word says more.
  if (outcome === 'canceled') {
    const told = rows.some(({ at }) => at === 'signal');
    if (begun && !told) return 'canceled, and the handler was not told to stop';
    return patient && begun && !end ? 'canceled, and the handler had not ended' : undefined;
  }
  // Who asks is told so of a call that waits for its turn, too.
  if (!begun && !(asked && outcome === 'running')) return `${outcome}, and the handler never ran`;
  if (outcome === 'running') {
    if (asked) return end ? 'running, and the handler had ended' : undefined;
    return patient && !cut ? 'running, and the app waits for its handlers' : undefined;
  }
  if (!Object.hasOwn(ENDS, outcome)) return `"${outcome}" is no outcome`;
  if (!end) return `${outcome}, and the handler had not ended`;
  if (!ENDS[outcome].includes(end)) return `${outcome}, and the handler ${end}`;
  if (late) return `${outcome}, and ${late} effects came afterwards`;
  if (reports && (report?.applied ?? 0) !== effects) {
    return `${report?.applied ?? 'nothing'} reported, and ${effects} effects stand`;
  }
  return undefined;
}
