/** Servers that lie, each in its way: each lie is found, and nothing else. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  AT_ONCE,
  addressOf,
  reportOf,
  program,
  shortfalls,
  stepsSeen,
} from './support/stopcheck.js';

/** Looks on for long: a liar on a busy machine may be slow to go on. */
const LONG = '--quiet=3000';

/** The texts of what is scored, each as expected. */
function assertFound({ findings, code }, expected) {
  const found = findings.filter(({ isScored }) => isScored).map(({ text }) => text);
  assert.equal(found.length, expected.length, found.join('; '));
  for (const [i, each] of expected.entries()) assert.match(found[i], each);
  assert.equal(code, expected.length ? 1 : 0);
}

describe('MCP', AT_ONCE, () => {
  const check = (temper, press, ...more) => {
    const call = ['--tool', 'slow', '--args', stepsSeen(), ...more];
    return reportOf('mcp', LONG, '--press', press, ...call, ...program('mcp.js', temper));
  };
  for (const [temper, press, ...expected] of [
    ['deaf', '50%', /it worked to its end/],
    ['liar', '50%', /said stopped \(answer\): it worked for/, /it worked to its end/],
    ['boaster', '50%', /said finished \(answer\): the work was not finished/],
    ['killer', 'neighbours', /a neighbour: work stopped, said stopped/],
    ['doubler', '50%', /the work was done more than once/],
    ['quitter', '50%', /the session ended/],
  ])
    test(`a ${temper} is caught`, async () => assertFound(await check(temper, press), expected));

  test('a liar is caught by the SDK 1.x', async () =>
    assertFound(await check('liar', '50%', '--sdk=1'), [/said stopped/, /it worked to its end/]));

  test('what a file shows is seen', async () => {
    const how = JSON.stringify({ file: '{file}', steps: 10 });
    const args = [LONG, '--press=50%', '--tool=slow', '--args', how];
    const honest = await reportOf('mcp', ...args, ...program('mcp.js', 'honest'));
    assert.deepEqual([honest.witness, shortfalls(honest)], ['a file', []]);
    const deaf = await reportOf('mcp', ...args, ...program('mcp.js', 'deaf'));
    assert.match(deaf.texts.join(), /50%: it worked to its end/);
  });

  test('an answer that is read to its end, or left, is seen', async () => {
    const how = JSON.stringify({ url: '{witness:4000}' });
    const args = [LONG, '--press=50%,neighbours', '--tool=read', '--args', how];
    const honest = await reportOf('mcp', ...args, ...program('mcp.js', 'honest'));
    assert.deepEqual([honest.witness, shortfalls(honest)], ['requests', []]);
    assert.deepEqual(honest.lines[1].done.what, 'stopped');
    const deaf = await reportOf('mcp', ...args, ...program('mcp.js', 'deaf'));
    assert.match(deaf.texts.join(), /50%: it worked to its end/);
  });

  test('what processes show is seen', async () => {
    const how = JSON.stringify({ command: `sleep 2 & wait # {key}` });
    const args = [LONG, '--press=50%,neighbours', '--processes', '--tool=shell', '--args', how];
    const honest = await reportOf('mcp', ...args, ...program('mcp.js', 'honest'));
    assert.deepEqual([honest.witness, shortfalls(honest)], ['processes', []]);
    const deaf = await reportOf('mcp', ...args, ...program('mcp.js', 'deaf'));
    assert.match(deaf.texts.join(), /50%: it worked to its end/);
  });

  test('work that nothing sees: only words are scored', async () => {
    const call = ['--tool=slow', '--args={"file":"/dev/null"}', '--press=50%,neighbours'];
    const report = await reportOf('mcp', ...call, ...program('mcp.js', 'deaf'));
    const { score, witness, code } = report;
    assert.deepEqual([witness, score.ended.of, code], [undefined, 0, 0]);
  });

  test('a deaf server over HTTP is caught', async (t) => {
    const address = await addressOf(t, 'mcp-http.js', 'deaf');
    const call = ['--tool=slow', '--args', stepsSeen(), '--revision=2026-07-28'];
    const report = await reportOf('mcp', LONG, '--press=50%', ...call, address);
    assertFound(report, [/it worked to its end/]);
  });

  test('a server without sessions, to which a message can name no call, is caught', async (t) => {
    const address = await addressOf(t, 'mcp-http.js', 'honest');
    const call = ['--tool=slow', '--args', stepsSeen(), '--press=50%'];
    assertFound(await reportOf('mcp', LONG, ...call, address), [/it worked to its end/]);
  });
});

describe('A2A', AT_ONCE, () => {
  const check = async (t, temper, press) => {
    const address = await addressOf(t, 'a2a.js', temper);
    return reportOf('a2a', LONG, '--press', press, '--text', stepsSeen(), address);
  };
  test('a liar is caught: canceled, and the work goes on', async (t) => {
    const { texts } = await check(t, 'liar', '50%');
    assert.match(texts.join(), /50%: said stopped \((stream|cancel)\): it worked for/);
  });
  test('a forger is caught: its store says another thing than its stream', async (t) => {
    const { texts } = await check(t, 'forger', '50%');
    assert.match(texts.join(), /stream: stopped.*store: finished/);
  });
  test('a silent agent is caught', async (t) => {
    const { texts } = await check(t, 'silent', '50%');
    assert.match(texts.join(), /it worked to its end/);
  });
});

describe('ACP', AT_ONCE, () => {
  const check = (temper, ...how) =>
    reportOf('acp', ...how, '--press=50%', '--text', stepsSeen(), ...program('acp.js', temper));

  test('a liar is caught: cancelled, and the turn goes on', async () => {
    const { texts } = await check('liar', LONG);
    assert.match(texts.join(), /50%: said stopped \(answer\): it worked for/);
  });

  test('a silent agent is caught', async () => {
    const { texts } = await check('silent', '--within=1000', '--quiet=1000');
    assert.match(texts.join(), /50%: nobody said what became of it/);
  });
});
