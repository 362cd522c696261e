/**
 * The judge: whether what was said of a call is what it did. It sees times and signs alone, of all
 * protocols alike.
 */

/**
 * @typedef {import('./rules.js').Kind} Kind
 * @typedef {import('./trial.js').Whole} Whole
 *
 * @typedef {object} Done What the work of a call did.
 * @property {'unseen' | 'nothing' | 'stopped' | 'finished' | 'ended' | 'running' | 'repeated'} what
 *   `ended`: stopped or finished, which processes do not show; `running`: still at the end of the
 *   watch; `repeated`: more than once
 * @property {number} [last] ms, of its last sign
 *
 * @typedef {object} Check One question to a press, and its answer.
 * @property {Kind} kind
 * @property {string} press
 * @property {string} [wrong] absent if all is well
 */

/**
 * Ms within which two messages on two connections may have changed their order, or a process is
 * not noticed to be gone.
 */
const ORDER = 250;

/** What is scored, and the kinds of findings in it. */
const SCORED = /** @type {const} */ ({
  words: ['untrue', 'silent', 'answered', 'differs'],
  ended: ['ended', 'closed'],
  unharmed: ['harmed', 'session', 'twice'],
});

/**
 * @param {import('./call.js').Call} call
 * @param {Whole} whole
 * @returns {Done}
 */
function doneBy({ work: { signs, amount } }, whole) {
  const last = signs.at(-1)?.at;
  const isSeen = whole.amount > 0 && !(whole.isRough && last === undefined);
  if (!isSeen) return { what: 'unseen' };
  if (last === undefined) return { what: 'nothing' };
  const count = (/** @type {string} */ what) => signs.filter((sign) => sign.what === what).length;
  const isRunning = count('begin') > count('end');
  if (whole.isRough) return { what: isRunning ? 'running' : 'ended', last };
  if (count('effect') + count('begin') > whole.starts) return { what: 'repeated', last };
  if (isRunning) return { what: 'running', last };
  return { what: amount >= whole.amount ? 'finished' : 'stopped', last };
}

/**
 * How a word contradicts the work.
 * @param {import('./call.js').Said} said
 * @param {Done} done
 * @param {number} pressed ms
 * @returns {string | false | undefined}
 */
function contradiction({ word, at, by }, { what, last = -Infinity }, pressed) {
  if (what === 'unseen' || what === 'repeated') return undefined;
  const after = last > at + ORDER && `it worked for ${Math.round(last - at)} ms after that`;
  const isWhole = what === 'finished' && last > pressed + ORDER;
  switch (word) {
    case 'unstarted':
      return what !== 'nothing' && 'it had begun';
    case 'stopped':
    case 'failed':
      return after || (what === 'running' && 'it works on') || (isWhole && 'all of it was done');
    case 'finished':
      return after || (what !== 'finished' && what !== 'ended' && 'the work was not finished');
    case 'running':
      // Who asks the store asks when all is quiet.
      return by === 'store' && what !== 'running' && 'the work had ended';
    default:
      return undefined;
  }
}

/** What is to be said of one press. */
export class Verdict {
  /** @type {Done} */
  done = { what: 'unseen' };
  /** @type {Check[]} */
  checks = [];
  /** What the protocol would not have, and harms nobody: not scored. @type {Check[]} */
  notes = [];
  #trial;
  #rules;

  /**
   * @param {import('./trial.js').Trial} trial
   * @param {import('./rules.js').Rules} rules
   * @param {Whole} whole
   */
  constructor(trial, rules, whole) {
    this.#trial = trial;
    this.#rules = rules;
    const { press, calls, neighbours, isCut, lives, untried } = trial;
    const [call] = calls;
    if (!call) return;
    this.done = doneBy(call, whole);
    const isPressed = call.pressed !== undefined || press.when === 'never';
    if (untried || !press.when || !isPressed) return;
    if (press.name === 'unknown') this.#askUnknown(call);
    else if (press.name === 'repeat') this.#askRepeat();
    else {
      this.#askWords(call);
      this.#askEnd(call);
      if (this.done.what === 'repeated') this.#check('twice', 'the work was done more than once');
    }
    for (const each of neighbours) {
      const { what } = doneBy(each, whole);
      const word = each.said.findLast(({ isLast }) => isLast)?.word ?? 'nothing';
      const isFine = word === 'finished' && ['finished', 'ended', 'unseen'].includes(what);
      this.#check('harmed', !isFine && `a neighbour: work ${what}, said ${word}`);
    }
    if (!isCut && lives !== undefined) this.#check('session', !lives && 'the session ended');
  }

  /** @type {(kind: Kind, wrong: string | false | undefined) => void} */
  #check = (kind, wrong) => {
    this.checks.push({ kind, press: this.#trial.press.name, ...(wrong && { wrong }) });
  };

  /** @type {(kind: Kind, wrong: string | false | undefined) => void} */
  #note = (kind, wrong) => {
    if (wrong) this.notes.push({ kind, press: this.#trial.press.name, wrong });
  };

  /**
   * Nothing must be told of a call that never was but that.
   * @param {import('./call.js').Call} call
   */
  #askUnknown({ said }) {
    const word = said.find(({ isLast }) => isLast)?.word;
    if (this.#rules.answer === 'due' || word)
      this.#check('untrue', word && `said ${word} of a call that never was`);
  }

  #askRepeat() {
    const isTwice = this.done.what === 'repeated';
    if (!this.#trial.isCut || this.done.what === 'unseen') return;
    if (this.#trial.keys) this.#check('twice', isTwice && 'the work was done more than once');
    else this.#note('twice', isTwice && 'done twice: a repeated call has no key here');
  }

  /**
   * Whether the words are true and the same, an answer came where one is due, and none where none
   * is.
   * @param {import('./call.js').Call} call
   */
  #askWords({ said, pressed = Infinity }) {
    const { press, isCut } = this.#trial;
    const { answer, isExact } = this.#rules;
    const isEarly = press.when === 'early' && !isCut;
    for (const each of said) {
      const { word, by, isLast } = each;
      const misfit =
        (press.name === 'question' && word === 'finished' && 'its question was open') ||
        (isExact && isEarly && word === 'failed' && 'it was stopped');
      if (this.done.what === 'unseen' ? !misfit : !isLast && by !== 'store') continue;
      const wrong = misfit || contradiction(each, this.done, pressed);
      this.#check('untrue', wrong && `said ${word} (${by}): ${wrong}`);
    }
    const after = said.filter(({ at, by }) => {
      return (by === 'answer' && at > pressed) || (by === 'stream' && at > pressed + ORDER);
    });
    const late = after.at(-1);
    const ms = late && Math.round(late.at - pressed);
    const messages =
      late && `messages after the stop: ${after.length}, the last after ${ms} ms: ${late.text}`;
    if (answer === 'barred' && isEarly) this.#check('answered', messages);
    if (answer === 'unasked' && isEarly) this.#note('answered', messages);
    const last = said.filter(({ isLast }) => isLast);
    const isAnswered = last.length || said.some(({ by }) => by === 'answer' || by === 'cancel');
    if (answer === 'due' && press.when !== 'never' && !isCut)
      this.#check('silent', !isAnswered && 'nobody said what became of it');
    if (new Set(last.map(({ by }) => by)).size > 1) {
      const isSame = last.every(({ word }) => word === last[0].word);
      this.#check('differs', !isSame && last.map(({ by, word }) => `${by}: ${word}`).join(', '));
    }
  }

  /**
   * Whether the work ended.
   * @param {import('./call.js').Call} call
   */
  #askEnd({ pressed = 0 }) {
    const { press, isCut, within } = this.#trial;
    const { what, last = -1 } = this.done;
    if (press.when === 'never' || what === 'unseen' || what === 'repeated') return;
    const ms = Math.max(0, Math.round(last - pressed));
    // Nothing was left to be stopped, or so little that either is right.
    const isWhole = what === 'finished' && press.when === 'early' && ms > ORDER;
    const how = what === 'finished' ? 'it worked to its end, for' : 'it worked for';
    const wrong = (ms > within || what === 'running' || isWhole) && `${how} ${ms} ms`;
    if (!isCut) this.#check('ended', wrong);
    else if (this.#rules.closing === 'scored') this.#check('closed', wrong);
    else if (this.#rules.closing) this.#note('closed', wrong);
  }
}

/**
 * @typedef {Record<keyof typeof SCORED, { ok: number, of: number }>} Score
 * @param {Check[]} checks
 * @returns {Score}
 */
export function scoreOf(checks) {
  const rows = Object.entries(SCORED).map(([group, kinds]) => {
    const its = checks.filter(({ kind }) => /** @type {readonly Kind[]} */ (kinds).includes(kind));
    return [group, { ok: its.filter(({ wrong }) => !wrong).length, of: its.length }];
  });
  return Object.fromEntries(rows);
}
