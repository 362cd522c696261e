/** What the program reports, and what it cannot check. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { program, stepsSeen, stopcheck } from './support/stopcheck.js';

const HONEST = program('mcp.js', 'honest');
const call = () => ['--tool', 'slow', '--args', stepsSeen()];

test('what it finds has a sentence, and a command that shows it alone', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'stopcheck-page-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const page = join(folder, 'report.html');
  const args = [
    'mcp',
    '--press=50%,after',
    `--html=${page}`,
    ...call(),
    ...program('mcp.js', 'deaf'),
  ];
  const { code, stdout } = await stopcheck(...args);
  assert.equal(code, 1);
  assert.match(stdout, /^50% .* finished, \d+ ms after the stop +it worked to its end/m);
  assert.match(stdout, /^ {2}“.*Stop processing the cancelled request.*” \(2025-11-25/m);
  assert.match(stdout, /^ {2}npx stopcheck mcp --press=50% --tool=slow '--args=.*' -- /m);
  const html = readFileSync(page, 'utf8');
  assert.match(html, /<svg[^]*class="effect"[^]*class="stop"[^]*<\/svg>/);
  assert.doesNotMatch(html, /<script|src=|@import/);
});

test('a tool that is not there, and a program that is not: said, with its own exit code', async () => {
  const missing = await stopcheck('mcp', '--tool', 'fast', ...HONEST);
  assert.equal(missing.code, 3);
  assert.match(missing.stderr, /no tool "fast": there are slow/);
  const gone = await stopcheck('mcp', ...call(), '--', 'no-such-program');
  assert.equal(gone.code, 3);
  assert.match(gone.stderr, /no-such-program/);
});

test('a call that fails also if nobody stops it cannot be checked', async () => {
  const { code, stderr } = await stopcheck(
    'mcp',
    '--tool',
    'slow',
    '--args',
    '{"url":"no"}',
    ...HONEST,
  );
  assert.equal(code, 3);
  assert.match(stderr, /fails also if nobody stops it/);
});
