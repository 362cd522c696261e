/** The program: its command line, and an MCP server that is honest. */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { program, reportOf, shortfalls, stepsSeen, stopcheck } from './support/stopcheck.js';

const HONEST = program('mcp.js', 'honest');
const call = (more) => ['--tool', 'slow', '--args', stepsSeen(more)];

test('an honest MCP server scores full', async () => {
  const report = await reportOf('mcp', '--press=50%,neighbours,close', ...call(), ...HONEST);
  assert.deepEqual(shortfalls(report), []);
  assert.equal(report.witness, 'requests');
  assert.deepEqual(report.score.unharmed, { ok: 4, of: 4 });
});

test('a dry run says what would be sent, and starts nothing', async () => {
  const { code, stdout } = await stopcheck('mcp', '--dry-run', ...call(), '--', 'no-such-program');
  assert.equal(code, 0);
  assert.match(stdout, /at most 19 calls of slow/);
  assert.match(stdout, /^ +3 {2}neighbours /m);
});

test('what is not on this machine is not called unless one may', async () => {
  const { code, stderr } = await stopcheck('mcp', ...call(), 'https://tools.example/mcp');
  assert.equal(code, 2);
  assert.match(stderr, /not on this machine.*--i-may/);
});

for (const [what, args, message] of [
  ['no protocol', ['nothing'], /mcp, a2a, acp, abp, webmcp/],
  ['no tool', ['mcp', '--', 'x'], /--tool NAME/],
  ['no text', ['a2a', 'http://127.0.0.1:1'], /--text TEXT/],
  ['nothing to check', ['mcp', '--tool', 't'], /its address, or its command/],
  [
    'an address and a command',
    ['mcp', '--tool', 't', 'http://127.0.0.1:1', '--', 'x'],
    /or its command/,
  ],
  ['arguments that are no JSON', ['mcp', '--tool', 't', '--args', '{', '--', 'x'], /as JSON/],
  [
    'a press that is none',
    ['mcp', '--tool', 't', '--press', 'hard', '--', 'x'],
    /no press hard: .*at-once/,
  ],
  ['a file that is not there', ['abp', '--tool', 't', 'no.html'], /There is no file/],
  ['an unknown option', ['mcp', '--toll', 't'], /--toll/],
])
  test(`${what} is a mistake that is named`, async () => {
    const { code, stderr } = await stopcheck(...args);
    assert.equal(code, 2);
    assert.match(stderr, message);
  });

test('the program has at most 2,500 lines that are not blank', () => {
  const folder = fileURLToPath(new URL('../src', import.meta.url));
  const files = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith('.js'));
  const lines = files.flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'));
  const count = lines.filter((line) => line.trim()).length;
  assert.ok(count <= 2500, `${count} lines`);
});
