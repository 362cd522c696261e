/** Work that is seen in other ways than by requests, and MCP by its other clients and ways. */
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
  shortfalls,
  stepsSeen,
} from './support/stopcheck.js';

describe('seen', AT_ONCE, () => {
  test('by a file', async () => {
    const how = JSON.stringify({ file: '{file}', ...HELD });
    const args = [LONG, '--press=50%', '--tool=slow', '--args', how];
    const honest = await reportOf('mcp', ...args, ...program('mcp.js', 'honest'));
    assert.deepEqual([honest.witness, shortfalls(honest)], ['a file', []]);
    const deaf = await reportOf('mcp', ...args, ...program('mcp.js', 'deaf'));
    assert.match(deaf.texts.join(), /50%: it worked to its end/);
  });

  test('by an answer that is read to its end, or left', async () => {
    const how = JSON.stringify({ url: '{witness:4000}' });
    const args = [LONG, '--press=50%,neighbours', '--tool=read', '--args', how];
    const honest = await reportOf('mcp', ...args, ...program('mcp.js', 'honest'));
    assert.deepEqual([honest.witness, shortfalls(honest)], ['requests', []]);
    assert.deepEqual(honest.lines[1].done.what, 'stopped');
    const deaf = await reportOf('mcp', ...args, ...program('mcp.js', 'deaf'));
    assert.match(deaf.texts.join(), /50%: it worked to its end/);
  });

  test('by processes', async () => {
    const how = JSON.stringify({ command: `sleep 4 & wait # {key}` });
    const args = [LONG, '--press=50%,neighbours', '--processes', '--tool=shell', '--args', how];
    const honest = await reportOf('mcp', ...args, ...program('mcp.js', 'honest'));
    assert.deepEqual([honest.witness, shortfalls(honest)], ['processes', []]);
    const deaf = await reportOf('mcp', '--within=1000', ...args, ...program('mcp.js', 'deaf'));
    assert.match(deaf.texts.join(), /50%: it worked for \d{4} ms/);
  });

  test('by nothing: only words are scored', async () => {
    const call = ['--tool=slow', '--args={"file":"/dev/null"}', '--press=50%,neighbours'];
    const report = await reportOf('mcp', ...call, ...program('mcp.js', 'deaf'));
    const { score, witness, code } = report;
    assert.deepEqual([witness, score.ended.of, code], [undefined, 0, 0]);
  });
});

describe('MCP', AT_ONCE, () => {
  test('a liar is caught by the SDK 1.x', async () => {
    const call = ['--press=50%', '--sdk=1', '--tool=slow', '--args', stepsSeen(HELD)];
    const report = await reportOf('mcp', LONG, ...call, ...program('mcp.js', 'liar'));
    assertFound(report, [/said stopped/, /it worked to its end/]);
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
