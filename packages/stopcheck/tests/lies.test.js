/** Servers that lie, each in its way: each lie is found, and nothing else. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  AT_ONCE,
  HELD,
  LONG,
  addressOf,
  assertFound,
  program,
  reportOf,
  stepsSeen,
} from './support/stopcheck.js';

describe('MCP', AT_ONCE, () => {
  const call = ['--tool', 'slow', '--args', stepsSeen(HELD)];
  for (const [temper, press, ...expected] of [
    ['deaf', '50%', /it worked to its end/],
    ['liar', '50%', /said stopped \(answer\): it worked for/, /it worked to its end/],
    ['boaster', '50%', /said finished \(answer\): the work was not finished/],
    ['killer', 'neighbours', /a neighbour: work stopped, said stopped/],
    ['doubler', '50%', /the work was done more than once/],
    ['quitter', '50%', /the session ended/],
  ])
    test(`a ${temper} is caught`, async () => {
      const server = program('mcp.js', temper);
      assertFound(await reportOf('mcp', LONG, '--press', press, ...call, ...server), expected);
    });
});

describe('A2A', AT_ONCE, () => {
  const check = async (t, temper, press) => {
    const address = await addressOf(t, 'a2a.js', temper);
    return reportOf('a2a', LONG, '--press', press, '--text', stepsSeen(HELD), address);
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
    reportOf('acp', ...how, '--press=50%', '--text', stepsSeen(HELD), ...program('acp.js', temper));

  test('a liar is caught: cancelled, and the turn goes on', async () => {
    const { texts } = await check('liar', LONG);
    assert.match(texts.join(), /50%: said stopped \(answer\): it worked for/);
  });

  test('a silent agent is caught', async () => {
    const { texts } = await check('silent', '--within=1000', '--quiet=1000');
    assert.match(texts.join(), /50%: nobody said what became of it/);
  });
});
