/** The report as a page that stands alone: a table, and a picture of each press. */
import { doneText, saidText, scoreTexts, verdictText } from './terminal.js';

const WIDTH = 760;
/** Where time begins, and ends. */
const [LEFT, RIGHT] = [20, WIDTH - 20];
/** Height of what is said, of one call's work, and of the axis. */
const [ABOVE, LANE, BELOW] = [76, 26, 22];
/** Rows of words, one below the other where they would meet. */
const ROWS = 4;

/** @param {unknown} text */
const escaped = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);

/**
 * Above the line what was said, below it what was done.
 * @param {import('../run.js').Line} line
 * @param {import('../trial.js').Whole} whole
 */
function picture({ press, calls }, whole) {
  const [first] = calls;
  if (!first) return '';
  const times = calls.flatMap(({ begun, ended = 0, said, signs }) => [
    begun,
    ended,
    ...[...said, ...signs].map(({ at }) => at),
  ]);
  const end = Math.max(whole.length, ...times) * 1.05;
  const x = (/** @type {number} */ at) => LEFT + ((RIGHT - LEFT) * Math.max(0, at)) / end;
  const lanes = calls.filter(({ signs, isPressed }) => signs.length || isPressed);
  const height = ABOVE + LANE * lanes.length + BELOW;
  const words = first.said.filter(({ by, word }) => !(by === 'stream' && word === 'running'));
  const parts = [
    `<line class="axis" x1="${LEFT}" x2="${RIGHT}" y1="${ABOVE}" y2="${ABOVE}"/>`,
    ...words.map(({ at, by, word, text }, i) => {
      const y = 16 + (i % ROWS) * 15;
      const isLate = x(at) > WIDTH * 0.7;
      const name = escaped(`${by}: ${word ?? text}`);
      return `<line class="word" x1="${x(at)}" x2="${x(at)}" y1="${y}" y2="${ABOVE}"/>
<text x="${x(at) + (isLate ? -4 : 4)}" y="${y + 4}"${isLate ? ' text-anchor="end"' : ''}>${name}<title>${escaped(text)}</title></text>`;
    }),
    ...first.said
      .filter(({ word, by }) => word === 'running' && by !== 'store')
      .map(({ at }) => `<circle class="running" cx="${x(at)}" cy="${ABOVE - 5}" r="2"/>`),
    ...lanes.flatMap(({ signs }, i) => {
      const y = ABOVE + i * LANE + 6;
      const begins = signs.filter(({ what }) => what === 'begin');
      const ends = signs.filter(({ what }) => what === 'end');
      return [
        ...begins.map(({ at }, n) => {
          const until = ends[n]?.at ?? end;
          return `<rect class="held" x="${x(at)}" y="${y + 3}" width="${Math.max(1, x(until) - x(at))}" height="8"/>`;
        }),
        ...signs
          .filter(({ what }) => what === 'effect')
          .map(
            ({ at }) => `<rect class="effect" x="${x(at) - 1}" y="${y}" width="2" height="14"/>`,
          ),
      ];
    }),
    ...(first.pressed === undefined
      ? []
      : [
          `<line class="stop" x1="${x(first.pressed)}" x2="${x(first.pressed)}" y1="4" y2="${height - BELOW}"/>`,
          `<text class="stop" x="${x(first.pressed)}" y="${height - 6}" text-anchor="middle">stop</text>`,
        ]),
    `<text class="time" x="${LEFT}" y="${height - 6}">0</text>`,
    `<text class="time" x="${RIGHT}" y="${height - 6}" text-anchor="end">${Math.round(end)} ms</text>`,
  ];
  return `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(press)}: what was said above, what was done below">
${parts.join('\n')}
</svg>`;
}

const STYLE = `
:root { color-scheme: light dark; --ink: light-dark(#1b1f24, #e6e8ea); --soft: light-dark(#6a737d, #99a1a8);
  --said: light-dark(#0b62c4, #6cb2ff); --done: light-dark(#1c7f37, #58c878); --stop: light-dark(#c62828, #ff7b72);
  --line: light-dark(#d8dde2, #3a4148); --back: light-dark(#fff, #14171a); }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2.5rem; } h3 { font-size: 1rem; margin: 2rem 0 0; }
code { font: 0.9em ui-monospace, monospace; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 0.8rem 0.3rem 0; border-bottom: 1px solid var(--line); }
.wrong { color: var(--stop); } .soft, .untried td { color: var(--soft); }
blockquote { margin: 0.3rem 0; padding-left: 0.8rem; border-left: 3px solid var(--line); color: var(--soft); }
svg { width: 100%; min-width: 34rem; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--said); } svg text.time { fill: var(--soft); } svg text.stop { fill: var(--stop); }
a { color: var(--said); }
.axis { stroke: var(--line); } .word { stroke: var(--said); } .stop { stroke: var(--stop); stroke-width: 1.5; } text.stop { stroke: none; }
.running { fill: var(--said); opacity: 0.5; } .effect { fill: var(--done); } .held { fill: var(--done); opacity: 0.6; }
`;

/**
 * @param {import('./terminal.js').FullReport} report
 * @param {import('./terminal.js').Finding[]} findings
 * @returns {string} HTML without scripts and without anything from elsewhere
 */
export function pageOf(report, findings) {
  const { stopcheck, protocol, endpoint, call, client, witness, whole, within, silent } = report;
  const lines = report.lines.filter(({ press }) => press !== 'none');
  const rows = lines.map((line) => {
    const cells = line.untried ? ['', ''] : [saidText(line), doneText(line)];
    const isWrong = line.checks.some(({ wrong }) => wrong);
    const kind = line.untried ? ' class="untried"' : '';
    return `<tr${kind}><th scope="row"><a href="#${escaped(line.press)}">${escaped(line.press)}</a></th>${cells
      .map((cell) => `<td>${escaped(cell)}</td>`)
      .join('')}<td${isWrong ? ' class="wrong"' : ''}>${escaped(verdictText(line))}</td></tr>`;
  });
  const found = findings.map(
    ({
      presses,
      text,
      says,
      where,
      again,
      isScored,
    }) => `<h3>${isScored ? 'Finding' : 'Note'}: ${escaped(text)}</h3>
<p>After ${escaped(presses.join(', '))}.</p><blockquote>“${escaped(says)}” (${escaped(where)})</blockquote>
<p>See it again: <code>${escaped(again)}</code></p>`,
  );
  const pictures = report.lines
    .filter(({ untried }) => !untried)
    .map(
      (line) => `<h3 id="${escaped(line.press)}">${escaped(line.press)}</h3>
<p class="soft">${escaped(line.says)}</p><div class="scroll">${picture(line, whole)}</div>`,
    );
  const seen = whole.amount ? `seen by ${witness}` : 'not seen: only words are scored';
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>stopcheck: ${escaped(endpoint)}</title>
<style>${STYLE}</style>
<h1>stopcheck ${escaped(protocol)} <code>${escaped(endpoint)}</code></h1>
<p><strong>${escaped(scoreTexts(report.score).join(', '))}</strong>, silent after ${silent}</p>
<p class="soft">${escaped(call)}. Work of ${Math.round(whole.length)} ms, ${seen}; it must end within ${within} ms of the stop.
${escaped(client)}; stopcheck ${escaped(stopcheck)}.</p>
<div class="scroll"><table><thead><tr><th>press</th><th>said</th><th>done</th><th>verdict</th></tr></thead>
<tbody>${rows.join('\n')}</tbody></table></div>
${found.length ? `<h2>Findings</h2>${found.join('\n')}` : ''}
<h2>Pictures</h2>
<p class="soft">Above the line what was said, below it what was done. Bars last, strokes are effects.</p>
${pictures.join('\n')}
</html>
`;
}
