/** Servers that are honest score full, after each press that their protocol knows. */
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

/** Of a protocol where a call has a name only when it runs. */
const NAMED =
  'at-once,10%,50%,90%,end,after,twice,unknown,reason,close,timeout,question,stream,neighbours,repeat';
const asking = stepsSeen({ asks: true });

describe('honest', AT_ONCE, () => {
  for (const sdk of ['1', '2'])
    test(`an MCP server, by the SDK ${sdk}.x`, async () => {
      const call = ['--tool=slow', '--args', asking, '--sdk', sdk];
      const report = await reportOf('mcp', ...call, ...program('mcp.js', 'honest'));
      assert.deepEqual(shortfalls(report), []);
      assert.equal(report.lines.length, 17);
      assert.match(report.client, new RegExp(`(sdk|client) ${sdk}`));
    });

  test('an MCP server over HTTP, 2026-07-28', async (t) => {
    const address = await addressOf(t, 'mcp-http.js', 'honest');
    const press = '--press=at-once,10%,50%,90%,end,reason,close,timeout,neighbours,repeat';
    const call = ['--tool=slow', '--args', stepsSeen(), '--revision=2026-07-28', press];
    assert.deepEqual(shortfalls(await reportOf('mcp', ...call, address)), []);
  });

  for (const [way, press] of Object.entries({ streamed: NAMED, polled: '50%,question,neighbours' }))
    test(`an A2A agent, ${way}`, async (t) => {
      const address = await addressOf(t, 'a2a.js', 'honest', way);
      const report = await reportOf('a2a', '--press', press, '--text', asking, address);
      assert.deepEqual(shortfalls(report), []);
    });

  test('an ACP agent', async () => {
    const report = await reportOf(
      'acp',
      '--press',
      NAMED,
      '--text',
      asking,
      ...program('acp.js', 'honest'),
    );
    assert.deepEqual(shortfalls(report), []);
  });
});
