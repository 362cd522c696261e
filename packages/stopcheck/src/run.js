/** A run: the work without a stop, each press, and what is to be said of all of them. */
import { Checked } from './checked.js';
import { Verdict, scoreOf } from './judge.js';
import { Trial } from './trial.js';

/**
 * @typedef {import('./judge.js').Check} Check
 *
 * @typedef {object} Line What one press came to. Times are ms from its begin.
 * @property {string} press
 * @property {string} says of the press
 * @property {string} [untried] why it was not made
 * @property {boolean} isSilent whether nobody said what became of the work
 * @property {import('./judge.js').Done} done
 * @property {Check[]} checks
 * @property {Check[]} notes
 * @property {{ isPressed: boolean, begun: number, pressed?: number, ended?: number,
 *   said: import('./call.js').Said[], signs: import('./witness.js').Sign[] }[]} calls
 *
 * @typedef {object} Report
 * @property {string} client
 * @property {string} [witness]
 * @property {import('./trial.js').Whole} whole
 * @property {Line[]} lines
 * @property {import('./judge.js').Score} score
 * @property {number} silent presses after which nobody said what became of the work
 */

/**
 * @param {object} given
 * @param {import('./checked.js').Plan} given.plan
 * @param {import('./rules.js').Rules} given.rules
 * @param {import('./presses.js').Press[]} given.presses `none` first
 * @param {number} given.within
 * @param {number} [given.quiet]
 * @param {(line: Line, whole: import('./trial.js').Whole) => void} given.tell of each, when it is
 *   made
 * @returns {Promise<Report>} rejects if the call fails when nobody stops it
 */
export async function run({ plan, rules, presses, within, quiet, tell }) {
  const checked = new Checked(plan);
  /** @type {Line[]} */
  const lines = [];
  let client = '';
  /** @type {import('./trial.js').Whole} */
  let whole = { length: 0, amount: 0, isRough: false, starts: 0, gap: 0 };
  try {
    for (const press of presses) {
      const isFirst = press.name === 'none';
      const trial = new Trial({ press, checked, within, quiet, ...(!isFirst && { whole }) });
      try {
        await checked.open();
        await trial.run();
      } catch (error) {
        if (isFirst) throw error;
        trial.untried = `it could not be opened again: ${/** @type {Error} */ (error).message}`;
      }
      client = checked.session?.client ?? client;
      if (isFirst) whole = wholeOf(trial, plan.byProcesses);
      // The first call may have waited for a browser to start, or a model to be loaded.
      else if (press.name === 'after' && trial.calls[0]?.said.some(({ isLast }) => isLast))
        whole.length = Math.min(whole.length, lengthOf(trial));
      const line = lineOf(trial, rules, whole);
      lines.push(line);
      tell(line, whole);
    }
    const checks = lines.flatMap((line) => line.checks);
    const silent = lines.filter(({ isSilent }) => isSilent).length;
    return { client, witness: checked.witness, whole, lines, score: scoreOf(checks), silent };
  } finally {
    await checked.close();
  }
}

/**
 * How long the work of a call took that nobody stopped, in ms.
 * @param {Trial} trial
 */
const lengthOf = ({ calls: [{ begun, ended = 0, work }] }) =>
  Math.max(ended, work.signs.at(-1)?.at ?? 0) - begun;

/**
 * @param {Trial} trial
 * @param {boolean} isRough
 * @returns {import('./trial.js').Whole}
 * @throws {Error} if it failed
 */
function wholeOf(trial, isRough) {
  const [call] = trial.calls;
  const last = call.said.findLast(({ isLast }) => isLast);
  if (last?.word !== 'finished') {
    const what = last ? `${last.word}: ${last.text}` : 'nothing was answered';
    throw new Error(`The call fails also if nobody stops it (${what})`);
  }
  const { signs, amount } = call.work;
  const gaps = signs.slice(1).map(({ at }, i) => at - signs[i].at);
  return {
    length: lengthOf(trial),
    amount,
    isRough,
    starts: signs.filter(({ what }) => what === 'effect' || what === 'begin').length,
    gap: Math.max(0, ...gaps),
  };
}

/**
 * @param {Trial} trial
 * @param {import('./rules.js').Rules} rules
 * @param {import('./trial.js').Whole} whole
 * @returns {Line}
 */
function lineOf(trial, rules, whole) {
  const { press, untried, calls, neighbours, started, isCut } = trial;
  const { done, checks, notes } = new Verdict(trial, rules, whole);
  /** @param {number | undefined} at */
  const since = (at) => (at === undefined ? undefined : Math.round(at - started));
  /** @type {<T extends { at: number }>(all: T[]) => T[]} */
  const shifted = (all) => all.map((each) => ({ ...each, at: Math.round(each.at - started) }));
  const isStopped = calls[0]?.pressed !== undefined && press.when !== 'never' && !isCut;
  return {
    press: press.name,
    says: press.says,
    ...(untried && { untried }),
    isSilent: isStopped && !calls[0].said.some(({ isLast }) => isLast),
    done: { ...done, ...(done.last !== undefined && { last: since(done.last) }) },
    checks,
    notes,
    calls: [...calls, ...neighbours].map((call, i) => ({
      isPressed: i === 0,
      begun: /** @type {number} */ (since(call.begun)),
      pressed: since(call.pressed),
      ended: since(call.ended),
      said: shifted(call.said),
      // Who repeats a call shares its work.
      signs: calls.indexOf(call) > 0 ? [] : shifted(call.work.signs),
    })),
  };
}
