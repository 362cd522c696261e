/** Whether what a caller was told of a call contradicts what stands in the database. */

/** @typedef {import('./work.js').Row} Row */
/** @typedef {'unstarted' | 'stopped' | 'finished' | 'running' | 'unknown' | 'failed'} Outcome */

/**
 * @typedef {object} Told
 * @property {boolean} success
 * @property {string} [outcome] an {@link Outcome}, unless it succeeded
 * @property {{ applied?: number, remaining?: number }} [report] what the handler said of its work
 * @property {number} [chunks] that were read of what the handler streams
 * @property {number} [waited] ms from the stop, or from the call, to the answer, as its caller
 *   measures them
 * @property {() => Promise<Told>} [settled] what the response says later
 */

/**
 * @typedef {object} Circumstances
 * @property {boolean} cut whether by then the connection was cut, or the app is gone
 * @property {boolean} patient whether the app waits for its handlers as long as they like
 * @property {boolean} [foreign] whether the peer cannot tell what became of a call
 * @property {boolean} [reports] whether the handler's own words come with the outcome
 * @property {boolean} [joined] whether another call with the same key may have run the handler
 * @property {boolean} [asked] whether the app was asked for it, which is there
 * @property {boolean} [atOnce] whether it answered without waiting for the handler
 * @property {boolean} [frees] whether what was stopped may run again under its key: the loss of its
 *   agent stopped it
 */

/**
 * What a handler came to, as each outcome says it. A source that is left ends where it is; a thread
 * that ends takes its handler with it.
 * @type {Record<string, string[]>}
 */
const ENDS = {
  stopped: ['stopped', 'left', 'left and broke', 'killed'],
  finished: ['returned'],
  failed: ['broke', 'left and broke', 'killed'],
};

/**
 * What a handler had come to by then.
 * @param {Row[]} before
 * @returns {string | undefined} undefined if it had not ended
 */
function endOf(before) {
  const end = before.find(({ at }) => at === 'end');
  if (end) return end.how;
  // Nobody tells such a source that it is not wanted any more.
  const isOpen = before.some(({ at, how }) => at === 'begin' && how === 'open');
  return isOpen && !before.some(({ at }) => at === 'goes on') ? 'left' : undefined;
}

/**
 * Whether a handler has ended as stopped before what it had called.
 * @param {Row[]} rows
 */
const leaves = (rows) => rows.some(({ at }) => at === 'leaves');

/**
 * Whether it is a source that works ahead: it may end by itself before a reader who has stopped
 * would read of that.
 * @param {Row[]} rows
 */
const isAhead = (rows) => rows.some(({ how }) => how === 'ahead');

/** What may run again under its key. */
const FREED = ['stopped', 'left', 'left and broke'];

/**
 * The rows of the run that somebody was told of: the last one that had begun by then.
 * @param {Row[]} rows
 * @param {boolean} [frees]
 * @returns {Row[] | undefined} undefined if it ran again and should not have
 */
function runOf(rows, frees) {
  const told = rows.findIndex(({ at }) => at === 'told');
  // A run begins where its call is passed on, if it is.
  const marks = rows.flatMap(({ at }, i) => (at === 'passes' || at === 'begin' ? i : []));
  const starts = marks.filter(
    (at, i) => rows[at].at === 'passes' || rows[marks[i - 1]]?.at !== 'passes',
  );
  let [from, to] = [0, rows.length];
  for (const start of starts.slice(1)) {
    const run = rows.slice(from, start);
    const end = endOf(run);
    const hasBegun = run.some(({ at }) => at === 'begin');
    // Who passes a call on may leave before that begins.
    if (!hasBegun && !leaves(run)) continue;
    const isLeft = leaves(run) || isAhead(run);
    const isFreed = !hasBegun || FREED.includes(end) || (end !== undefined && isLeft);
    if (!frees || !isFreed) return undefined;
    if (start > told) to = Math.min(to, start);
    else from = start;
  }
  return rows.slice(from, to);
}

/**
 * @param {Row[]} all rows of one call, in order; the one that is `told` among them. A call that is
 *   passed on has those of both handlers
 * @param {Told} told
 * @param {Circumstances} circumstances
 * @returns {string | undefined} what is wrong
 */
export function contradiction(
  all,
  { success, outcome, report, chunks },
  { cut, patient, foreign, reports, joined, asked, atOnce, frees },
) {
  const rows = runOf(all, frees);
  if (!rows) return 'it ran more than once';
  const count = (/** @type {Row['at']} */ what) => rows.filter(({ at }) => at === what).length;
  const told = rows.findIndex(({ at }) => at === 'told');
  const before = rows.slice(0, told);
  const begun = count('begin');
  const end = endOf(before);
  const effects = count('effect');
  const late = rows.slice(told).filter(({ at }) => at === 'effect').length;

  const [signal, answered, permitted] = /** @type {const} */ ([
    'signal',
    'answered',
    'permitted',
  ]).map((what) => rows.findIndex(({ at }) => at === what));
  if (permitted >= 0 && signal >= 0 && signal < answered) return 'a late permission was acted on';
  if (success) {
    if (end !== 'returned') return 'success, and the handler had not returned';
    if (leaves(before)) return 'success, and the handler had left';
    const isWhole = chunks === undefined || chunks === effects;
    return isWhole ? undefined : `${chunks} chunks were read, and ${effects} were made`;
  }
  if (outcome === undefined) return 'no outcome was told';
  if (outcome === 'unknown') {
    // What never arrived may still be under way; what a thread that died had done nobody knows.
    const excused = cut || foreign || (asked && !begun) || end === 'killed';
    return excused ? undefined : 'unknown, and the app is there';
  }
  if (outcome === 'unstarted') {
    return begun && !joined ? 'unstarted, and the handler ran' : undefined;
  }
  // The state of a task, where no word says more.
  if (outcome === 'canceled') {
    if (begun && signal < 0) return 'canceled, and the handler was not told to stop';
    return patient && begun && !end ? 'canceled, and the handler had not ended' : undefined;
  }
  if (!begun) {
    // Who asks is told so of a call that waits for its turn, too.
    if (asked && outcome === 'running') return undefined;
    // One that passes calls on may end before it does.
    const passed = count('passes') && ['stopped', 'failed', 'running'].includes(outcome);
    return passed ? undefined : `${outcome}, and the handler never ran`;
  }
  if (outcome === 'running') {
    // That a thread has died is noticed a while later.
    const ended = before.some(({ at, how }) => at === 'end' && how !== 'killed');
    // Who passes a call on returns a while after that; that a source which was left has ended, its
    // driver learns a turn later.
    if (atOnce && (count('passes') || end === 'left')) return undefined;
    if (asked) return ended ? 'running, and the handler had ended' : undefined;
    return patient && !cut ? 'running, and the app waits for its handlers' : undefined;
  }
  if (!Object.hasOwn(ENDS, outcome)) return `"${outcome}" is no outcome`;
  if (!end) return `${outcome}, and the handler had not ended`;
  // Its own handler has the word, and what that had called works no more.
  const isLeft = leaves(before);
  if (isLeft && outcome !== 'stopped') return `${outcome}, and the handler had left`;
  const isUnread = outcome === 'stopped' && isAhead(rows);
  // What broke when it was told to end has failed, unless it had said before that it stopped.
  const broke = before.some(({ at }) => at === 'breaks');
  const isBroken = broke && outcome === 'failed';
  if (broke && outcome === 'stopped' && end !== 'stopped' && !isLeft)
    return 'stopped, and it broke in that';
  if (!isLeft && !isUnread && !isBroken && !ENDS[outcome].includes(end))
    return `${outcome}, and the handler ${end}`;
  if (late) return `${outcome}, and ${late} effects came afterwards`;
  // The response of a success has no report to be passed on.
  const ended = rows.findIndex(({ at }) => at === 'end');
  const isPassed = count('passes') && end === 'returned' && (signal < 0 || signal > ended);
  if (reports && !isLeft && !isPassed && (report?.applied ?? 0) !== effects) {
    return `${report?.applied ?? 'nothing'} reported, and ${effects} effects stand`;
  }
  return undefined;
}
