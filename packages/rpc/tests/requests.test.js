// Requests, notifications and their handlers: values, errors, limits, names, and the trace of them.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { RpcError, createPeer, portTransport, transfer } from '../src/index.js';
import { fired, gate, outcome, peerPair, scriptedPeer } from './support/rpc.js';
import { DIALECTS, CANCEL, request, cancelOf, aTurn, closeBoth } from './support/dialects.js';

for (const dialect of DIALECTS) {
  test(`${dialect}: requests, errors with code and data, notifications and fallback handlers arrive`, async () => {
    const pair = peerPair(dialect, { b: { onRequest: (params, { method }) => [method, params] } });
    const { a, b } = pair;
    b.handle('fails', () => {
      throw new RpcError(-32050, 'no luck', { tries: 3 });
    });
    b.handle('breaks', () => {
      throw new TypeError('x is not a function');
    });
    const noted = gate();
    b.onNotification('*', (params, { method }) => noted.open([method, params]));
    a.notify('log/it', { level: 1 });
    assert.deepEqual(await noted.opened, ['log/it', { level: 1 }]);
    assert.deepEqual(await a.request('any/thing', { x: 1 }), ['any/thing', { x: 1 }]);
    const { err } = await outcome(a.request('fails'));
    assert.ok(err instanceof RpcError);
    const data = { tries: 3, ...(dialect !== 'mcp' && { outcome: 'failed' }) };
    assert.deepEqual([err.code, err.message, err.data], [-32050, 'no luck', data]);
    const broken = await outcome(a.request('breaks'));
    assert.deepEqual([broken.err.code, broken.err.message], [-32603, 'x is not a function']);
    for (const [thrown, words] of [
      [{ seat: 7 }, '{"seat":7}'],
      [undefined, 'The operation failed'],
      [new AggregateError([new Error('a'), 'b'], 'all'), 'all: a; b'],
    ]) {
      b.handle('throws', () => Promise.reject(thrown));
      assert.equal((await outcome(a.request('throws'))).err.message, words);
    }
    closeBoth(pair);
  });

  test(`${dialect}: a request beyond the limit is refused on either side with an ordinary error`, async () => {
    const { peer, heard, post, quiet } = scriptedPeer(dialect, { limits: { maxCalls: 2 } });
    peer.handle('slow', (_, { signal }) => fired(signal));
    post(request(1), request(2), request(3));
    await quiet();
    // The question of `quiet` is the fourth.
    assert.deepEqual([heard[0].id, heard[0].error.code], [3, -32005]);
    const first = outcome(peer.request('a'));
    const second = outcome(peer.request('b'));
    const { err } = await outcome(peer.request('c'));
    assert.equal(err.code, -32005);
    peer.close();
    await Promise.all([first, second]);
  });
}

test('a handler that returns a function or a symbol fails', async () => {
  const { peer, heard, post, said } = scriptedPeer('acp');
  peer.handle('function', () => () => {});
  peer.handle('symbol', () => Symbol('s'));
  post(request(1, 'function'), request(2, 'symbol'));
  await said(2);
  assert.deepEqual(
    heard.map(({ id, error }) => [id, error.code, error.message]),
    [
      [1, -32603, 'A function cannot be a result'],
      [2, -32603, 'A symbol cannot be a result'],
    ],
  );
  peer.close();
});

test('a request that cannot be sent rejects, and the other side receives nothing', async () => {
  const pair = peerPair('acp');
  const { a, b, sent } = pair;
  const { err } = await outcome(a.request('x', { f() {} }));
  assert.match(err.message, /cannot be sent/);
  b.handle('odd', () => ({ f() {} }));
  const odd = await outcome(a.request('odd'));
  assert.match(odd.err.message, /cannot be sent/);
  const buffer = new ArrayBuffer(8);
  b.handle('length', ({ buffer: moved }) => transfer({ moved }, [moved]));
  const result = await a.request('length', { buffer }, { transfer: [buffer] });
  assert.deepEqual([buffer.byteLength, result.moved.byteLength], [0, 8]);
  assert.equal(sent('a2b').filter(({ method }) => method === 'x').length, 0);
  closeBoth(pair);
});

test('members of Object.prototype are not handlers, and prototypes are not read', async () => {
  const { peer, heard, post, quiet } = scriptedPeer('lsp');
  peer.handle('echo', (params) => params);
  const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty'];
  post(...names.map((name) => request(name, name)));
  await quiet();
  assert.deepEqual(
    heard.splice(0).map(({ id, error }) => [id, error.code]),
    names.map((name) => [name, -32601]),
  );
  post(JSON.parse('{"jsonrpc":"2.0","id":1,"method":"echo","params":{"__proto__":{"x":1}}}'));
  await quiet();
  assert.ok(Object.hasOwn(heard[0].result, '__proto__'));
  assert.equal({}.x, undefined);
  post(Object.create(request(2, 'echo')));
  await quiet();
  assert.equal(heard.filter(({ result }) => result).length, 1);
  peer.close();
});

test('lsp: a message without a version is accepted', async () => {
  const { peer, post, said } = scriptedPeer('lsp');
  peer.handle('echo', (params) => params);
  post({ id: 1, method: 'echo', params: [1] });
  assert.deepEqual((await said(1))[0].result, [1]);
  peer.close();
});

test('a method that arrives as another kind of message than it is registered for causes one warning', async (t) => {
  const warnings = [];
  t.mock.method(console, 'warn', (message) => warnings.push(message));
  const { peer, post, said } = scriptedPeer('acp');
  const calls = [];
  peer.handle('session/cancel', () => calls.push('handle'));
  peer.onNotification('ask', () => calls.push('onNotification'));
  peer.handle('both', () => calls.push('both'));
  peer.onNotification('both', () => calls.push('told'));
  const cancel = { jsonrpc: '2.0', method: 'session/cancel', params: {} };
  post(cancel, cancel);
  for (const id of [1, 2]) post(request(id, 'ask'));
  post({ jsonrpc: '2.0', method: 'both' }, { jsonrpc: '2.0', method: 'unknown' });
  post(request(3, 'unknown'), request(4, 'both'));
  await said(4);
  while (warnings.length < 2) await aTurn();
  assert.deepEqual(calls, ['told', 'both']);
  assert.match(
    warnings[0],
    /session.cancel has arrived as a notification.*with handle\. Register it with onNotification/,
  );
  assert.match(
    warnings[1],
    /ask has arrived as a request.*with onNotification\. Register it with handle/,
  );
  assert.equal(warnings.length, 2);
  peer.close();
});

test('mcp: ping is answered by default, and by a handler where there is one', async () => {
  const { peer, post, said } = scriptedPeer('mcp');
  post(request(1, 'ping'));
  assert.deepEqual((await said(1))[0].result, {});
  peer.handle('ping', () => ({ mine: true }));
  post(request(2, 'ping'));
  assert.deepEqual((await said(2))[1].result, { mine: true });
  peer.close();
});

test('handlers and listeners can be removed', async () => {
  const { peer, post, said } = scriptedPeer('acp');
  const heard = [];
  peer.handle('x', () => 1).onNotification('n', () => heard.push('n'));
  post(request(1, 'x'), { jsonrpc: '2.0', method: 'n' });
  await said(1);
  peer.removeHandler('x').removeListener('n');
  post(request(2, 'x'), { jsonrpc: '2.0', method: 'n' });
  assert.equal((await said(2))[1].error.code, -32601);
  assert.deepEqual(heard, ['n']);
  peer.close();
});

test('with start: false nothing is read before start(), so later handlers miss nothing', async () => {
  const { port1, port2 } = new MessageChannel();
  const caller = createPeer(portTransport(port1), { dialect: 'acp' });
  const answer = caller.request('late');
  const callee = createPeer(portTransport(port2), { dialect: 'acp', start: false });
  await aTurn();
  callee.handle('late', () => 'in time');
  callee.start();
  callee.start();
  assert.equal(await answer, 'in time');
  caller.close();
  callee.close();
  port1.close();
});

for (const dialect of DIALECTS) {
  test(`${dialect}: an empty method name is a method like any other`, async () => {
    const { peer, said } = scriptedPeer(dialect);
    const controller = new AbortController();
    const pending = outcome(peer.request('', {}, { signal: controller.signal, wait: false }));
    await said(1);
    controller.abort();
    assert.equal((await pending).err.name, 'AbortError');
    assert.equal((await said(2))[1].method, CANCEL[dialect][0]);
    peer.close();
  });
}

test('an error of a listener or of onProgress is reported, and ends nothing', async () => {
  const script = `
    import { createPeer } from '${new URL('../src/index.js', import.meta.url)}';
    const sent = [];
    const nobody = { post: (message) => sent.push(message), close() {}, onMessage() {} };
    const peer = createPeer(nobody, { dialect: 'mcp' });
    const awake = setInterval(() => {}, 1000);
    const fail = (how) => {
      if (how === 'throws') throw new Error('it throws');
      return how === 'rejects' ? Promise.reject(new Error('it rejects')) : 'fine';
    };
    peer.onNotification('note', ({ how }) => fail(how));
    const answer = peer.request('work', {}, { onProgress: ({ message }) => fail(message) });
    while (!sent.length) await new Promise(setImmediate);
    const { progressToken } = sent[0].params._meta;
    for (const how of ['throws', 'rejects']) {
      nobody.onMessage({ jsonrpc: '2.0', method: 'note', params: { how } }, []);
      const params = { progressToken, progress: 1, message: how };
      nobody.onMessage({ jsonrpc: '2.0', method: 'notifications/progress', params }, []);
    }
    await new Promise(setImmediate);
    nobody.onMessage({ jsonrpc: '2.0', id: sent[0].id, result: 'an answer' }, []);
    console.log(await answer);
    clearInterval(awake);`;
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', script],
    { timeout: 60_000 },
  );
  assert.equal(stdout, 'an answer\n');
  assert.deepEqual(stderr.match(/Error: it (throws|rejects)/g), [
    'Error: it throws',
    'Error: it throws',
    'Error: it rejects',
    'Error: it rejects',
  ]);
});

test('each of 1,000 requests in flight settles once, though a third of them is cancelled', async () => {
  const pair = peerPair('acp');
  const { a, b } = pair;
  b.handle('work', async ({ n }, { signal }) => {
    if (n % 3) return { n };
    throw await fired(signal);
  });
  const all = Array.from({ length: 1000 }, (_, n) => {
    const controller = new AbortController();
    const pending = outcome(a.request('work', { n }, { signal: controller.signal }));
    if (n % 3 === 0) setTimeout(() => controller.abort('enough'), n % 7);
    return pending;
  });
  const ended = await Promise.all(all);
  ended.forEach(({ ok, err }, n) => {
    if (n % 3) assert.equal(ok.n, n);
    else assert.equal(err.name, 'AbortError');
  });
  assert.deepEqual([a.counters.inFlightOut, b.counters.inFlightIn], [0, 0]);
  closeBoth(pair);
});

test('a trace reports what is sent, dropped and refused, and why the connection ended', async () => {
  const events = [];
  const { peer, post, said, transport } = scriptedPeer('mcp', {
    trace: (event) => events.push(event),
  });
  const pending = peer.request('ours');
  await said(1);
  const answer = { jsonrpc: '2.0', id: 1, result: 1 };
  const unknown = request('u', 'nobody');
  post(answer, answer, { ...answer, id: 9 }, 5, unknown, cancelOf('mcp', 'z'));
  await pending;
  const unreadable = new Error('no JSON');
  transport.onUnreadable(unreadable);
  const cause = new Error('cut');
  transport.onClose(cause);
  const [last] = events.splice(-1);
  assert.deepEqual([last.type, last.error.cause], ['closed', cause]);
  const dropped = events
    .filter(({ type }) => !['sent', 'received'].includes(type))
    .map(({ type, message, error }) => [type, message, error?.code ?? error]);
  assert.deepEqual(dropped, [
    ['late', answer, undefined],
    ['stray', { ...answer, id: 9 }, undefined],
    ['malformed', 5, undefined],
    ['refused', unknown, -32601],
    ['stray', cancelOf('mcp', 'z'), undefined],
    ['malformed', undefined, unreadable],
  ]);
  const sent = events.filter(({ type }) => type === 'sent').map(({ message }) => message);
  assert.deepEqual(
    sent.map(({ method, error }) => method ?? error.code),
    ['ours', -32601],
  );
  assert.equal(events.filter(({ type }) => type === 'received').length, 6);
});

test('mcp: a batch is accepted where the version has batches, and is answered as one', async () => {
  const { peer, heard, post, said, quiet } = scriptedPeer('mcp');
  const release = gate();
  peer.handle('initialize', ({ protocolVersion }) => ({ protocolVersion }));
  peer.handle('echo', (params) => params);
  peer.handle('slow', () => release.opened);
  const noted = [];
  peer.onNotification('note', ({ n }) => noted.push(n));
  const batch = [
    request(1, 'echo', { n: 1 }),
    { jsonrpc: '2.0', method: 'note', params: { n: 2 } },
    request(2, 'slow'),
    request(3, 'nobody'),
    request('cancelled', 'slow'),
    cancelOf('mcp', 'cancelled'),
    request(null, 'echo'),
    7,
  ];
  post(batch);
  assert.equal((await said(1)).pop().error.code, -32600);
  post(request(0, 'initialize', { protocolVersion: '2025-03-26' }));
  assert.equal((await said(1)).pop().result.protocolVersion, '2025-03-26');
  assert.equal(peer.protocolVersion, '2025-03-26');
  const pending = peer.request('ours');
  await said(1);
  const { id } = heard.pop();
  post([{ jsonrpc: '2.0', id, result: 'an answer' }]);
  assert.equal(await pending, 'an answer');
  post(batch);
  await quiet();
  assert.deepEqual([noted, heard], [[2], []]);
  release.open({ done: true });
  const [answers] = await said(1);
  assert.deepEqual(
    answers.map(({ id, result, error }) => [id, result ?? error.code]),
    [
      [3, -32601],
      [1, { n: 1 }],
      [2, { done: true }],
    ],
  );
  heard.pop();
  post([], new Array(2 ** 32 - 1));
  assert.deepEqual(
    (await said(2)).map(({ id, error }) => [id, error.code]),
    [
      [null, -32600],
      [null, -32600],
    ],
  );
  peer.close();
});

test('mcp: the answer to a batch does not wait for a cancelled request', async () => {
  const { peer, post, said } = scriptedPeer('mcp');
  peer.protocolVersion = '2025-03-26';
  const started = gate();
  peer.handle('echo', (params) => params);
  peer.handle('hangs', () => {
    started.open();
    return new Promise(() => {});
  });
  post([request(1, 'echo', { n: 1 }), request(2, 'hangs')]);
  await started.opened;
  post(cancelOf('mcp', 2));
  assert.deepEqual(await said(1), [[{ jsonrpc: '2.0', id: 1, result: { n: 1 } }]]);
  peer.close();
});
