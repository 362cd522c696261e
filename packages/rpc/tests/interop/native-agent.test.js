// The agent in C of demo/examples/native, driven by the client of the ACP SDK over standard input
// and output. It is built with AddressSanitizer, so its exit code tells of leaks, too.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Readable, Writable } from 'node:stream';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { client, ndJsonStream } from '@agentclientprotocol/sdk';
import { gate, outcome } from '../support/rpc.js';

const file = new URL('../../../../build/test/tests/core/native/acp_agent', import.meta.url);
const start = () => {
  const child = spawn(fileURLToPath(file), { stdio: ['pipe', 'pipe', 'inherit'] });
  process.once('exit', () => child.kill('SIGKILL'));
  return child;
};

/** A session with the agent. `said` has what it says; `speaks` resolves when it first does. */
async function withSession() {
  const child = start();
  const ended = once(child, 'exit');
  const said = [];
  const speaks = gate();
  const app = client().onNotification(
    'session/update',
    (params) => params,
    ({ params }) => {
      said.push(params.update.content.text);
      speaks.open();
    },
  );
  const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const { agent } = app.connect(stream);
  const { protocolVersion } = await agent.request('initialize', { protocolVersion: 1 });
  assert.equal(protocolVersion, 1);
  const { sessionId } = await agent.request('session/new', { cwd: '/', mcpServers: [] });
  const prompt = (text, options) =>
    agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] }, options);
  return { agent, sessionId, prompt, said, speaks: speaks.opened, child, ended };
}

/** More words than can be said in the time of a test. */
const ENDLESS = 'word '.repeat(100_000);

test('an agent in C answers a prompt', async () => {
  const { prompt, said, child, ended } = await withSession();
  assert.deepEqual(await prompt('one two  three'), { stopReason: 'end_turn' });
  assert.deepEqual(said, ['one ', 'two  ', 'three']);
  child.stdin.end();
  assert.deepEqual(await ended, [0, null]);
});

test('an agent in C obeys a cancel: -32800 names the request', async () => {
  const { prompt, speaks, child, ended } = await withSession();
  const controller = new AbortController();
  const call = outcome(prompt(ENDLESS, { cancellationSignal: controller.signal }));
  await speaks;
  controller.abort();
  const { err } = await call;
  assert.equal(err.code, -32800);
  assert.equal(typeof err.data.requestId, 'number');
  assert.deepEqual(await prompt('still here'), { stopReason: 'end_turn' });
  child.stdin.end();
  assert.deepEqual(await ended, [0, null]);
});

test('an agent in C ends a turn, which is no cancel of the request', async () => {
  const { agent, sessionId, prompt, speaks, child, ended } = await withSession();
  const call = prompt(ENDLESS);
  await speaks;
  await agent.notify('session/cancel', { sessionId });
  assert.deepEqual(await call, { stopReason: 'cancelled' });
  child.stdin.end();
  assert.deepEqual(await ended, [0, null]);
});

test('an agent in C answers what is no request as the SDK does, and what was asked before its input ended', async () => {
  const child = start();
  const ended = once(child, 'exit');
  const prompt = { sessionId: 's', prompt: [{ type: 'text', text: 'last words' }] };
  const request = (id, method, params) => JSON.stringify({ jsonrpc: '2.0', id, method, params });
  const cancel = { jsonrpc: '2.0', method: '$/cancel_request', params: { requestId: 'never' } };
  child.stdin.end(
    [
      'no JSON',
      '[]',
      '{}',
      '{"jsonrpc":"2.0","id":99,"result":{}}',
      '{"jsonrpc":"2.0","method":"$/cancel_request"}',
      request('x', 'nobody/knows'),
      request('y'.repeat(300), 'initialize'),
      request('never', 'session/prompt', prompt),
      JSON.stringify(cancel),
      'z'.repeat(2 ** 20 + 1),
      request(null, 'session/prompt', prompt),
      '',
    ].join('\n'),
  );
  const text = await child.stdout.toArray();
  const answers = Buffer.concat(text).toString().trim().split('\n').map(JSON.parse);
  const said = answers.map(({ id, error, result, method }) =>
    method === undefined ? [id, error?.code ?? result] : method,
  );
  assert.deepEqual(said, [
    [null, -32700],
    [null, -32600],
    [null, -32600],
    ['x', -32601],
    ['y'.repeat(300), -32600],
    ['never', -32800],
    [null, -32700],
    'session/update',
    'session/update',
    [null, { stopReason: 'end_turn' }],
  ]);
  assert.deepEqual(await ended, [0, null]);
});
