/**
 * The ways to press stop. Each makes the calls that it needs, and no more. The first one, `none`,
 * presses nothing: it shows how the work goes.
 */
import { UsageError } from './options.js';

/**
 * @typedef {import('./trial.js').Trial} Trial
 *
 * @typedef {object} Press
 * @property {string} name
 * @property {string} says
 * @property {'early' | 'race' | 'never'} [when] it comes: `early` if the work must not be finished,
 *   `race` if it may be; `never` if there is no work to be stopped. Absent: there is no stop
 * @property {(trial: Trial) => unknown} run
 * @property {number} calls that it makes
 */

/**
 * @param {number} part of the work after which stop is pressed
 * @param {(trial: Trial, call: import('./call.js').Call) => unknown} [act] in place of the stop
 */
const at =
  (part, act = (trial, call) => trial.stop(call)) =>
  async (/** @type {Trial} */ trial) => {
    const call = trial.call();
    await trial.reached(call, part);
    await act(trial, call);
  };

/** A reason that is no plain word, such as one that a page passes on. */
const ODD_REASON = 'the user pressed “stop” ✋\n{"not": "JSON"';

/** @type {Record<string, Omit<Press, 'name' | 'calls'> & { calls?: number }>} */
const PRESSES = {
  none: {
    says: 'no stop: how long the work takes, and what it does',
    run: (trial) => trial.call().over,
  },
  before: {
    when: 'never',
    says: 'a stop that overtakes its call: either outcome is right',
    run: (trial) => trial.call((call) => void (call.isOvertaken = true)).over,
  },
  'at-once': {
    when: 'early',
    says: 'as soon as the call can be named',
    async run(trial) {
      const call = trial.call();
      await call.untilOver(() => call.id !== undefined);
      trial.stop(call);
    },
  },
  '10%': { when: 'early', says: 'after a tenth of the work', run: at(0.1) },
  '50%': { when: 'early', says: 'after half of the work', run: at(0.5) },
  '90%': { when: 'race', says: 'after nine tenths of the work', run: at(0.9) },
  end: { when: 'race', says: 'in the turn of the last work', run: at(1) },
  after: {
    when: 'never',
    says: 'after the answer',
    async run(trial) {
      const call = trial.call();
      await call.over;
      await trial.stopById(call);
    },
  },
  twice: {
    when: 'early',
    says: 'two stops, after half of the work',
    run: at(0.5, async (trial, call) => {
      trial.stop(call);
      await trial.stopById(call);
    }),
  },
  unknown: {
    when: 'never',
    says: 'a stop of a call that never was',
    calls: 0,
    run: (trial) => trial.stopUnknown(),
  },
  reason: {
    when: 'early',
    says: 'with a reason of several lines, quotes and signs, after half of the work',
    run: at(0.5, (trial, call) => trial.stop(call, ODD_REASON)),
  },
  close: {
    when: 'early',
    says: 'the line is closed, after half of the work',
    run: at(0.5, (trial, call) => trial.cut(call)),
  },
  timeout: {
    when: 'early',
    says: "the client's time limit, half of what the work takes",
    run: (trial) => trial.callFor(0.5).over,
  },
  question: {
    when: 'early',
    says: 'while a question is open',
    async run(trial) {
      const call = trial.call((each) => void (each.leavesQuestions = true));
      await trial.heard(call, 'question', 1);
      trial.stop(call);
    },
  },
  stream: {
    when: 'early',
    says: 'at the second message of a stream, or of its progress',
    async run(trial) {
      const call = trial.call((each) => void (each.wantsProgress = true));
      await trial.heard(call, 'stream', 2);
      trial.stop(call);
    },
  },
  neighbours: {
    when: 'early',
    says: 'the second of three at once, after half of its work',
    calls: 3,
    async run(trial) {
      trial.call(undefined, trial.neighbours);
      const call = trial.call();
      trial.call(undefined, trial.neighbours);
      await trial.reached(call, 0.5);
      trial.stop(call);
      await Promise.all(trial.neighbours.map(({ over }) => over));
    },
  },
  repeat: {
    when: 'never',
    says: 'the line is closed at the last work, so that the answer is lost, and the call repeated',
    calls: 2,
    run: at(1, async (trial, call) => {
      trial.cut(call);
      await trial.repeat(call);
    }),
  },
};

/**
 * The presses of these names, after `none`.
 * @param {string[]} names all, if there are none
 * @returns {Press[]}
 * @throws {UsageError} if there is no such press
 */
export function pressesOf(names) {
  const [none, ...all] = Object.entries(PRESSES).map(([name, press]) => ({
    calls: 1,
    ...press,
    name,
  }));
  const known = all.map(({ name }) => name);
  const wrong = names.find((name) => !known.includes(name));
  if (wrong !== undefined)
    throw new UsageError(`There is no press ${wrong}: there are ${known.join(', ')}`);
  return [none, ...all.filter(({ name }) => !names.length || names.includes(name))];
}
