/** The report as text. */
import { pressesOf } from '../presses.js';

/**
 * @typedef {import('../run.js').Report & { stopcheck: string, protocol: string, endpoint: string,
 *   call: string, within: number }} FullReport
 *
 * @typedef {object} Finding
 * @property {string[]} presses after which it was found
 * @property {import('../rules.js').Kind} kind
 * @property {string} text of the first of them
 * @property {string} says the sentence on which it rests
 * @property {string} where it stands
 * @property {string} again the command that shows it alone
 * @property {boolean} isScored
 */

const WIDTHS = [11, 40, 34];

/** @param {string[]} cells */
const row = (cells) =>
  cells
    .map((cell, i) => (i < WIDTHS.length ? fit(cell, WIDTHS[i]) : cell))
    .join('  ')
    .trimEnd();

/**
 * @param {string} cell
 * @param {number} width
 */
const fit = (cell, width) =>
  (cell.length > width ? `${cell.slice(0, width - 1)}…` : cell).padEnd(width);

/**
 * Without what moves a terminal's cursor.
 * @param {string} text
 */
export const printable = (text) => text.replaceAll(/\p{C}+/gu, ' ');

/**
 * What was said of a press, in the order of time.
 * @param {import('../run.js').Line} line
 */
export function saidText({ calls: [call] }) {
  const { said = [], pressed = 0 } = call ?? {};
  const after = said.filter(
    ({ at, by, word }) => at >= pressed && (word !== 'running' || by !== 'stream'),
  );
  const words = after.map(({ by, word, text }) => `${by}: ${word ?? text}`);
  return printable([...new Set(words)].join(', ')) || 'nothing';
}

/**
 * What the work did, in ms after the press.
 * @param {import('../run.js').Line} line
 */
export function doneText({ done: { what, last }, calls: [call] }) {
  const ms = last === undefined || call?.pressed === undefined ? undefined : last - call.pressed;
  if (ms === undefined) return what;
  const isEnd = what === 'stopped' || what === 'ended';
  if (ms <= 0) return `${what}, ${isEnd ? 'at once' : 'before the stop'}`;
  return `${what}, ${ms} ms after the stop`;
}

/** @param {import('../run.js').Line} line */
export function verdictText({ untried, checks, notes, calls: [call], press }) {
  if (untried) return `not tried: ${untried}`;
  const wrong = checks.flatMap((check) => check.wrong ?? []);
  if (wrong.length) return wrong.join('; ');
  if (call && call.pressed === undefined && press !== 'repeat')
    return 'too late: the call was over';
  const noted = notes.map((note) => note.wrong);
  return [checks.length ? 'ok' : 'not judged', ...noted].join('; ');
}

/** @param {import('../run.js').Line} line */
export const lineText = (line) =>
  row([
    line.press,
    line.untried ? '' : saidText(line),
    line.untried ? '' : doneText(line),
    printable(verdictText(line)),
  ]);

/**
 * @param {import('../trial.js').Whole} whole
 * @param {number} within
 */
export function headOf({ length, amount, starts }, within) {
  const work = amount ? `effects: ${starts}` : 'work that nothing sees';
  const enough = 3 * within;
  const advice = `\nThis is short: take work of ${enough} ms or more, or a smaller --within.`;
  return `Without a stop: ${Math.round(length)} ms, ${work}.${length < enough ? advice : ''}\n\n${row(['press', 'said', 'done', 'verdict'])}`;
}

/**
 * What was found, each kind once.
 * @param {FullReport} report
 * @param {ReturnType<typeof import('../rules.js').rulesOf>} rules
 * @param {(press: string) => string} again
 * @returns {Finding[]}
 */
export function findingsOf({ lines }, { sentences }, again) {
  /** @type {Map<string, Finding>} */
  const found = new Map();
  const wrong = lines.flatMap(({ checks }) => checks.filter((check) => check.wrong));
  const noted = lines.flatMap(({ notes }) => notes);
  for (const check of [...wrong, ...noted]) {
    const { press, kind, wrong: text = '' } = check;
    const isScored = wrong.includes(check);
    const name = `${kind} ${isScored}`;
    const known = found.get(name);
    if (known?.presses.includes(press)) continue;
    if (known) known.presses.push(press);
    else {
      const { says, where = 'ours: the protocol is silent' } = sentences[kind];
      found.set(name, { presses: [press], kind, text, says, where, again: again(press), isScored });
    }
  }
  return [...found.values()];
}

/** @param {import('../judge.js').Score} score */
export const scoreTexts = ({ words, ended, unharmed }) =>
  Object.entries({ 'true words': words, 'ended in time': ended, 'others unharmed': unharmed }).map(
    ([name, { ok, of }]) => `${name} ${of ? `${ok} of ${of}` : '–'}`,
  );

/**
 * @param {FullReport} report
 * @param {Finding[]} findings
 */
export function summaryOf({ score, silent, witness, client, whole }, findings) {
  const seen = whole.amount
    ? `seen by ${witness}`
    : witness
      ? `${witness} saw nothing: only words are scored`
      : 'the work is not seen: only words are scored';
  const lines = [
    '',
    `${scoreTexts(score).join(', ')}, silent after ${silent}`,
    `${client}; ${seen}`,
  ];
  for (const { presses, text, says, where, again, isScored } of findings) {
    const [press, ...others] = presses;
    const also = others.length ? ` (also ${others.join(', ')})` : '';
    lines.push('', `${isScored ? 'Finding' : 'Note'}, ${press}${also}: ${printable(text)}`);
    lines.push(`  “${says}” (${where})`, `  ${again}`);
  }
  return lines.join('\n');
}

/**
 * What a run would send.
 * @param {import('../options.js').Options} options
 */
export function dryRun({ protocol, endpoint, tool, input, presses: names }) {
  const presses = pressesOf(names);
  const calls = presses.reduce((sum, press) => sum + press.calls, 0);
  return [
    `${protocol}, ${endpoint}: at most ${calls} calls of ${tool || 'a text'} with`,
    `  ${input}`,
    ...presses.map(({ name, says, calls: of }) => `  ${of}  ${name.padEnd(WIDTHS[0])} ${says}`),
    'Besides these: the handshake, a question without effects after each press, and the stops.',
    'Nothing was sent.',
  ].join('\n');
}
