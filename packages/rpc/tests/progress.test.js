// Progress: who asks for it, whose it is, and how much of it is sent.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gate, outcome, peerPair, scriptedPeer } from './support/rpc.js';
import { request, aTurn, closeBoth } from './support/dialects.js';

for (const [dialect, method, progress] of /** @type {const} */ ([
  ['mcp', 'notifications/progress', (progressToken, n) => ({ progressToken, progress: n })],
  ['lsp', '$/progress', (token, n) => ({ token, value: { progress: n } })],
])) {
  for (const listens of ['*', method]) {
    test(`${dialect}: progress goes to its request, late progress is counted, all other goes to listeners of ${listens}`, async () => {
      const { peer, post, said, quiet } = scriptedPeer(dialect);
      const seen = [];
      const others = [];
      peer.onNotification(listens, (params) => others.push(params));
      const pending = outcome(peer.request('a', {}, { onProgress: (info) => seen.push(info) }));
      const [{ params }] = await said(1);
      const token = params.workDoneToken ?? params._meta.progressToken;
      // LSP's servers make tokens, too, and count: 1 is not that of request 1.
      const theirs = dialect === 'lsp' ? 1 : '1';
      const report = (token, n) => post({ jsonrpc: '2.0', method, params: progress(token, n) });
      report(token, 0.5);
      report(theirs, 0.6);
      report(99, 0.7);
      post({ jsonrpc: '2.0', id: 1, result: {} });
      report(token, 1);
      await pending;
      await quiet();
      assert.deepEqual(seen, [{ progress: 0.5 }]);
      assert.deepEqual(others, [progress(theirs, 0.6), progress(99, 0.7)]);
      assert.deepEqual([peer.counters.stray, peer.counters.late], [0, 1]);
      peer.close();
    });
  }
}

test('progress cannot be requested with params that are not an object', async () => {
  for (const dialect of /** @type {const} */ (['lsp', 'mcp'])) {
    const { peer } = scriptedPeer(dialect);
    for (const params of [[1, 2], 'text', null]) {
      const { err } = await outcome(peer.request('x', params, { onProgress() {} }));
      assert.match(err.message, /params of request must be an object/);
    }
    peer.close();
  }
});

test('mcp: progress for the caller’s own token goes to listeners', async () => {
  const { peer, post, said } = scriptedPeer('mcp');
  const heard = [];
  peer.onNotification('notifications/progress', (params) => heard.push(params));
  const pending = outcome(peer.request('x', { _meta: { progressToken: 1 } }));
  await said(1);
  const params = { progressToken: 1, progress: 5 };
  post({ jsonrpc: '2.0', method: 'notifications/progress', params });
  assert.deepEqual(heard, [params]);
  peer.close();
  await pending;
});

test('mcp: the progress of a task goes on until the task ends, from both sides', async () => {
  const pair = peerPair('mcp');
  const { a, b } = pair;
  const working = gate();
  b.handle('tools/call', (_, { progress }) => {
    working.open(progress);
    return { task: { taskId: 't1', status: 'working' } };
  });
  b.handle('tasks/get', ({ status }) => ({ taskId: 't1', status }));
  const seen = [];
  const others = [];
  a.onNotification('notifications/progress', ({ progress }) => others.push(progress));
  await a.request('tools/call', {}, { onProgress: ({ progress }) => seen.push(progress) });
  const progress = await working.opened;
  for (const [n, status] of ['working', 'completed', 'completed'].entries()) {
    progress({ progress: n });
    await a.request('tasks/get', { status });
  }
  assert.deepEqual(seen, [0, 1]);
  assert.equal(a.counters.late, 1);
  assert.deepEqual(others, []);
  closeBoth(pair);
});

test('lsp: progress and partial results are requested and told apart', async () => {
  const pair = peerPair('lsp');
  const { a, b } = pair;
  b.handle('textDocument/references', (_, { progress, partialResult }) => {
    progress({ kind: 'begin', title: 'Searching' });
    partialResult(['a']);
    partialResult(['b']);
    return [];
  });
  const seen = [];
  const result = await a.request(
    'textDocument/references',
    {},
    {
      onProgress: ({ kind }) => seen.push(kind),
      onPartialResult: (part) => seen.push(part),
    },
  );
  assert.deepEqual([seen, result], [['begin', ['a'], ['b']], []]);
  const unasked = await a.request('textDocument/references', {}, { onProgress() {} });
  assert.deepEqual(unasked, []);
  assert.equal(pair.sent('b2a').filter(({ method }) => method).length, 4);
  closeBoth(pair);
});

test('mcp: a number is progress, and progress that does not rise is not sent', async () => {
  const { a, b, sent } = peerPair('mcp');
  b.handle('work', async (_params, { progress }) => {
    for (const info of [0.5, 0.5, { progress: 0.4 }, 0.75, NaN, Infinity, '5', { message: 'x' }]) {
      progress(info);
      await aTurn();
    }
    progress(undefined);
    progress({ progress: 2, total: 4 });
    return {};
  });
  const seen = [];
  await a.request('work', {}, { onProgress: (info) => seen.push(info) });
  const rising = [{ progress: 0.5 }, { progress: 0.75 }, { progress: 2, total: 4 }];
  assert.deepEqual(seen, rising);
  assert.equal(sent('b2a').length, rising.length + 1);
  closeBoth({ a, b });
});

test('progress in a loop: the first and last of each turn are sent, the last before the answer', async () => {
  for (const dialect of /** @type {const} */ (['lsp', 'mcp'])) {
    const { a, b, sent } = peerPair(dialect);
    b.handle('work', async (_params, { progress }) => {
      for (let i = 1; i <= 9; i++) progress({ progress: i });
      await aTurn();
      for (let i = 10; i <= 20; i++) progress({ progress: i });
      return {};
    });
    const seen = [];
    await a.request('work', {}, { onProgress: (info) => seen.push(info.progress) });
    assert.deepEqual(seen.at(-1), 20);
    // A turn that takes very long sends one now and then.
    assert.ok(seen.length < 20 && seen[0] === 1 && seen.includes(9), seen.join());
    assert.equal(sent('b2a').length, seen.length + 1);
    closeBoth({ a, b });
  }
});

test('a token is a string or an integer: for any other no progress and no parts are sent', async () => {
  for (const dialect of /** @type {const} */ (['lsp', 'mcp'])) {
    const { peer, post, said, heard } = scriptedPeer(dialect);
    peer.handle('parts', async function* (_params, { progress }) {
      progress(dialect === 'mcp' ? 1 : { kind: 'report' });
      yield [1];
      yield [2];
    });
    const tokens = [null, true, 1.5, {}, ['a'], '', 0, 'a'];
    for (const [id, token] of tokens.entries()) {
      const lsp = { workDoneToken: token, partialResultToken: token };
      const params = dialect === 'lsp' ? lsp : { _meta: { progressToken: token } };
      const isToken = typeof token === 'string' || Number.isInteger(token);
      post(request(id, 'parts', params));
      // Progress, two parts and an empty result, or the whole result.
      const count = isToken ? (dialect === 'lsp' ? 4 : 2) : 1;
      await said(count);
      const answer = heard.splice(0).pop();
      const whole = [1, 2];
      assert.deepEqual(answer, {
        jsonrpc: '2.0',
        id,
        result: isToken && dialect === 'lsp' ? null : whole,
      });
    }
    peer.close();
  }
});
