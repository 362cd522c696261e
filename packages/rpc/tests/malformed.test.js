// Malformed and hostile messages: each is answered or counted, and harms no other.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { acpStream } from '../src/adapters/acp.js';
import { mcpTransport } from '../src/adapters/mcp.js';
import {
  createPeer,
  headerTransport,
  hostChannel,
  lineTransport,
  windowChannel,
} from '../src/index.js';
import { outcome, scriptedPeer } from './support/rpc.js';
import { DIALECTS, CANCEL, request } from './support/dialects.js';

for (const dialect of DIALECTS) {
  test(`${dialect}: malformed messages are answered or counted as in the SDK of the dialect, and affect no other`, async () => {
    const { peer, heard, post, quiet, transport } = scriptedPeer(dialect);
    peer.handle('echo', (params) => params);
    const bad = [
      1,
      'text',
      null,
      true,
      {},
      { jsonrpc: '2.0' },
      { jsonrpc: '2.0', method: 5, id: 1 },
      { jsonrpc: '2.0', method: {} },
      Array.from({ length: 10_000 }, (_, id) => request(id, 'echo')),
      [],
    ];
    if (dialect !== 'lsp')
      bad.push({ jsonrpc: '1.0', id: 1, method: 'echo' }, { id: 1, method: 'echo' });
    post(...bad);
    transport.onUnreadable(new Error('no JSON'));
    await quiet();
    const answers = heard.splice(0);
    if (dialect === 'acp') {
      // What is no message is repeated, as its SDK does; a batch is not looked into.
      const [number, , , , empty] = answers;
      assert.deepEqual([number.error.data, empty.error.data], [1, {}]);
      assert.equal('data' in answers[8].error, false);
      const codes = [...bad.map(() => -32600), -32700];
      assert.deepEqual(
        answers.map(({ id, error }) => [id, error.code]),
        codes.map((code) => [null, code]),
      );
    } else {
      // Whoever sends a batch waits for its answers.
      assert.deepEqual(
        answers.map(({ id, error }) => [id, error.code]),
        [
          [null, -32600],
          [null, -32600],
        ],
      );
      assert.equal(peer.counters.malformed, bad.length - 2 + 1);
    }
    post(request(1, 'echo', { fine: true }));
    await quiet();
    assert.deepEqual(heard[0].result, { fine: true });
    peer.close();
  });
}

test('responses with unknown ids, ids of another type, or repeated ids are dropped', async () => {
  const { peer, heard, post, said } = scriptedPeer('acp');
  const first = outcome(peer.request('a'));
  await said(1);
  post(
    { jsonrpc: '2.0', id: '1', result: 'of a text' },
    { jsonrpc: '2.0', id: 99, result: 'to nothing' },
    { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'what?' } },
    { jsonrpc: '2.0', id: {}, result: 1 },
    { jsonrpc: '2.0', id: 1, result: 'right', extra: true },
    { jsonrpc: '2.0', id: 1, result: 'again' },
  );
  assert.deepEqual(await first, { ok: 'right' });
  assert.equal(heard.length, 1);
  assert.deepEqual([peer.counters.stray, peer.counters.late], [4, 1]);
  peer.close();
});

test('a malformed response rejects its request', async () => {
  const { peer, post, said } = scriptedPeer('acp');
  for (const wrong of [{}, { error: 'no' }, { error: { code: 'x' } }, { error: null }]) {
    const pending = outcome(peer.request('a'));
    const { id } = (await said(1)).pop();
    post({ jsonrpc: '2.0', id, ...wrong });
    assert.equal((await pending).err.code, -32600);
  }
  peer.close();
});

for (const dialect of DIALECTS) {
  test(`${dialect}: getters and proxies that throw are malformed messages`, async () => {
    const { peer, post, quiet } = scriptedPeer(dialect);
    const trap = new Proxy(
      {},
      {
        getOwnPropertyDescriptor() {
          throw new Error('gotcha');
        },
      },
    );
    post(
      {
        jsonrpc: '2.0',
        get method() {
          throw new Error('gotcha');
        },
      },
      trap,
      {
        jsonrpc: '2.0',
        method: CANCEL[dialect][0],
        get params() {
          throw new Error('gotcha');
        },
      },
    );
    const hidden = {
      get [CANCEL[dialect][1]]() {
        throw new Error('gotcha');
      },
    };
    post({ jsonrpc: '2.0', method: CANCEL[dialect][0], params: hidden });
    await quiet();
    // Those three, one cancel that names nobody, and the question of `quiet`.
    assert.equal(peer.counters.malformed + peer.counters.refused, 5);
    peer.close();
  });
}

test('progress whose params are huge costs no time', async () => {
  // Each took seconds to hours, and gigabytes.
  const text = 'x'.repeat(2 ** 25);
  const values = [
    new Array(2 ** 28),
    1n << 33_000_000n,
    text,
    [text],
    { token: new Array(2 ** 28) },
  ];
  for (const dialect of DIALECTS) {
    const { peer, post, quiet } = scriptedPeer(dialect);
    const heard = [];
    for (const method of ['$/progress', 'notifications/progress']) {
      peer.onNotification(method, (params) => void heard.push(params));
      for (const value of values) {
        post(
          { jsonrpc: '2.0', method, params: value },
          { jsonrpc: '2.0', method, params: { token: value, progressToken: value } },
        );
      }
    }
    await quiet();
    assert.equal(heard.length, 4 * values.length);
    peer.close();
  }
});

test('mcp: getters that throw in results and params affect no request', async () => {
  const { peer, heard, post, said } = scriptedPeer('mcp');
  const thrower = (name) =>
    Object.defineProperty({}, name, {
      enumerable: true,
      get() {
        throw new Error('not to be read');
      },
    });
  const onProgress = () => {};
  const task = peer.request('tools/call', {}, { onProgress });
  await said(1);
  post({ jsonrpc: '2.0', id: heard.pop().id, result: { task: { taskId: 't' } } });
  await task;
  const results = [thrower('protocolVersion'), thrower('task'), thrower('_meta')];
  for (const result of results) {
    const pending = peer.request('initialize', {}, { onProgress });
    await said(1);
    post({ jsonrpc: '2.0', id: heard.pop().id, result });
    assert.equal(await pending, result);
  }
  const noted = [];
  peer.onNotification('note', (params) => noted.push(params));
  for (const params of results) post({ jsonrpc: '2.0', method: 'note', params });
  assert.deepEqual(noted, results);
  peer.handle('initialize', () => results[0]);
  post(request('theirs', 'initialize'));
  assert.equal((await said(1)).pop().id, 'theirs');
  peer.close();
});

test('createPeer and its methods reject invalid arguments', async () => {
  assert.throws(() => createPeer({}, { dialect: 'soap' }), /dialect .* one of acp, lsp, mcp/);
  const wrong = { code: 'INVALID_PARAMS' };
  for (const options of [
    undefined,
    {},
    { dialect: 'toString' },
    { dialect: 'acp', limits: 5 },
    { dialect: 'acp', limits: { maxCalls: 'many' } },
    { dialect: 'acp', limits: { grace: -1 } },
    { dialect: 'acp', onRequest: 'x' },
    { dialect: 'acp', onNotification: {} },
    { dialect: 'acp', trace: true },
  ]) {
    assert.throws(() => createPeer({}, options), wrong);
  }
  assert.throws(() => createPeer(undefined, { dialect: 'acp' }), wrong);
  const { peer, heard } = scriptedPeer('acp');
  assert.throws(() => peer.handle('x'), wrong);
  assert.throws(() => peer.onNotification(5, () => {}), wrong);
  await assert.rejects(peer.request(5), wrong);
  for (const options of [
    'now',
    null,
    { signal: {} },
    { signal: 'abort' },
    { onProgress: 1 },
    { onPartialResult: 'x' },
    { onInputRequired: 'x' },
    { onTagged: 'x' },
    { timeout: '5' },
    { timeout: -5 },
    { timeout: NaN },
    { maxTotalTimeout: {} },
  ]) {
    await assert.rejects(peer.request('x', {}, options), wrong);
  }
  await assert.rejects(peer.stream('x', {}, { timeout: 'x' }).result, wrong);
  for (const options of ['now', null, { signal: {} }]) {
    assert.throws(() => peer.stream('x', {}, options), wrong);
  }
  assert.deepEqual(heard, []);
  peer.close();
});

test('transports reject invalid options', () => {
  const wrong = { code: 'INVALID_PARAMS' };
  const streams = { readable: new ReadableStream(), writable: new WritableStream() };
  for (const options of [{ maxMessage: 'long' }, { maxMessage: -1 }, { maxBacklog: NaN }]) {
    assert.throws(() => lineTransport(streams, options), wrong);
    assert.throws(() => headerTransport(streams, options), wrong);
  }
  const origin = 'https://a.example';
  assert.throws(() => windowChannel({}, { origin, upgrade: 'port' }), wrong);
  assert.throws(() => hostChannel({ origins: [origin], host: {}, upgrade: true }), wrong);
});

test('adapters reject objects that are not transports', () => {
  for (const adapt of [acpStream, mcpTransport])
    for (const wrong of [undefined, null, 'ws://a', [], {}, { post() {} }, { post: 1, close() {} }])
      assert.throws(() => adapt(wrong), { code: 'INVALID_PARAMS' });
});
