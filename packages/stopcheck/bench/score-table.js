/** The table of docs/stopcheck/scores.md. Rows that are not made anew stay. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { format } from 'prettier';
import { SCORED } from './scored.js';

/** @typedef {import('./scored.js').Scored} Scored */

const PATH = fileURLToPath(new URL('../../../docs/stopcheck/scores.md', import.meta.url));
const [BEGIN, END] = ['<!-- scores -->', '<!-- /scores -->'];
const HEAD = [
  'implementation',
  'version',
  'protocol and client',
  'how the work is seen',
  'true words',
  'ended in time',
  'others unharmed',
  'silent after',
  'what was found',
];
const NAMES = { a2a: 'A2A', abp: 'ABP', acp: 'ACP', mcp: 'MCP', webmcp: 'WebMCP' };

/** Kinds of findings. */
const FOUND = {
  untrue: 'an untrue word',
  ended: 'the work went on',
  silent: 'no answer',
  answered: 'messages after the stop',
  harmed: 'another call was harmed',
  session: 'the session ended',
  twice: 'the work was done more than once',
  differs: 'answers differ',
  closed: 'the work went on when the line was closed',
};

const cell = (/** @type {string} */ text) =>
  text.replaceAll('|', '\\|').replaceAll(/[\s\p{C}]+/gu, ' ');

/** @param {Scored} row */
function nameCell(row) {
  const name = row.package ?? row.name;
  return name ? `[${row.name}](https://www.npmjs.com/package/${name})` : row.name;
}

/** @param {any} report */
function seenText({ whole, witness, call }) {
  if (!whole.amount) return 'not seen';
  if (/\{witness:\d+\}/.test(call)) return 'an answer that it reads';
  return { requests: 'requests', 'a file': 'lines in a file' }[String(witness)] ?? witness;
}

/**
 * What was found, with the presses after which it was.
 * @param {any} report
 */
function foundText({ lines }) {
  /** @type {Map<string, Set<string>>} */
  const found = new Map();
  for (const { press, checks, notes } of lines)
    for (const { wrong, kind } of [...checks, ...notes]) {
      // Where a protocol has no key, every implementation repeats a repeated call.
      const isNote = notes.some((/** @type {any} */ note) => note.kind === kind);
      if (!wrong || (kind === 'twice' && isNote)) continue;
      const text = FOUND[/** @type {'ended'} */ (kind)];
      const name = isNote ? `note: ${text}` : text;
      if (!found.has(name)) found.set(name, new Set());
      found.get(name)?.add(press);
    }
  const texts = [...found].map(([name, presses]) => `${name} (${[...presses].join(', ')})`);
  const sorted = texts.toSorted(
    (a, b) => Number(a.startsWith('note')) - Number(b.startsWith('note')),
  );
  return sorted.join('; ') || 'nothing';
}

/**
 * @param {Scored} row
 * @param {{ report?: any, error?: string }} result
 * @param {string} browser its version
 * @returns {string[]}
 */
function cellsOf(row, { report, error }, browser) {
  const version = row.version === '{chromium}' ? browser : row.version;
  const given = [nameCell(row), version];
  const protocol = NAMES[row.protocol];
  if (!report) {
    const why = cell(String(error))
      .replace(/^stopcheck: /, '')
      .slice(0, 120);
    return [...given, `${protocol}, ${row.how}`, '–', '–', '–', '–', '–', `not scored: ${why}`];
  }
  const of = (/** @type {{ ok: number, of: number }} */ one) =>
    one.of ? `${one.ok} of ${one.of}` : '–';
  const { words, ended, unharmed } = report.score;
  return [
    ...given,
    `${protocol}, ${row.how}; ${report.client}`,
    seenText(report),
    of(words),
    of(ended),
    of(unharmed),
    String(report.silent),
    foundText(report),
  ];
}

/**
 * Writes one row, in place of the one of that name.
 * @param {Scored} row
 * @param {{ report?: any, error?: string }} result
 * @param {{ chromium: string }} given
 */
export async function writeTable(row, result, { chromium }) {
  const browser = execFileSync(chromium, ['--version'], { stdio: ['ignore', 'pipe', 'ignore'] })
    .toString()
    .match(/[\d.]+/)?.[0];
  const text = readFileSync(PATH, 'utf8');
  const [before, rest] = text.split(BEGIN);
  const [old, after] = rest.split(END);
  const lines = old.split('\n').filter((line) => /^\| (?!implementation|-)/.test(line));
  const nameOf = (/** @type {string} */ line) => /^\| +\[?([^\]|]+?)(\]| +\|)/.exec(line)?.[1];
  const known = new Map(lines.map((line) => [nameOf(line), line]));
  const cells = cellsOf(row, result, String(browser));
  known.set(row.name, `| ${cells.map(cell).join(' | ')} |`);
  const sorted = SCORED.filter(({ name }) => known.has(name)).toSorted(
    (a, b) => a.protocol.localeCompare(b.protocol) || a.name.localeCompare(b.name),
  );
  const notes = sorted.filter(({ note }) => note).map(({ name, note }) => `- ${name}: ${note}`);
  const made = [
    `Last row made on ${new Date().toISOString().slice(0, 10)}, with Node ${process.versions.node}`,
    ` and Chromium ${browser}.`,
  ].join('');
  const table = [HEAD, HEAD.map(() => '---')].map((each) => `| ${each.join(' | ')} |`);
  const part = [made, '', ...table, ...sorted.map(({ name }) => known.get(name)), '', ...notes];
  const whole = `${before}${BEGIN}\n\n${part.join('\n')}\n\n${END}${after}`;
  writeFileSync(
    PATH,
    await format(whole, { parser: 'markdown', printWidth: 100, singleQuote: true }),
  );
}
