// A cancelled request: what stops, what is sent, and what its caller receives.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RpcError } from '../src/index.js';
import { useClock } from '../../../tests/support/clock.js';
import { fired, gate, outcome, peerPair, scriptedPeer } from './support/rpc.js';
import {
  DIALECTS,
  ANSWERING,
  CANCEL,
  request,
  cancelOf,
  aTurn,
  closeBoth,
} from './support/dialects.js';

for (const dialect of DIALECTS) {
  test(`${dialect}: a request cancelled in the same read never starts`, async () => {
    const { peer, heard, post, quiet } = scriptedPeer(dialect);
    let ran = false;
    peer.handle('slow', () => (ran = true));
    post(request(7), cancelOf(dialect, 7));
    await quiet();
    assert.equal(ran, false);
    const code = dialect === 'mcp' ? [] : [-32800];
    assert.deepEqual(
      heard.map(({ error }) => error.code),
      code,
    );
    assert.equal(peer.counters.inFlightIn, 0);
    peer.close();
  });

  test(`${dialect}: one cancel is sent however often signal and clock fire, and none after the answer`, async (t) => {
    const clock = useClock(t);
    const pair = peerPair(dialect);
    const { a, b, sent } = pair;
    const started = gate();
    b.handle('slow', async (_, { signal }) => {
      started.open();
      throw await fired(signal);
    });
    b.handle('quick', () => 1);
    const controller = new AbortController();
    const { signal } = controller;
    const slow = outcome(a.request('slow', {}, { signal, timeout: 50, maxTotalTimeout: 60 }));
    await started.opened;
    controller.abort('enough');
    clock.advance(60);
    const { err } = await slow;
    assert.deepEqual([err.name, err.message], ['AbortError', 'enough']);
    await a.request('quick', {}, { signal: AbortSignal.any([]) });
    const cancels = sent('a2b').filter(({ method }) => method === CANCEL[dialect][0]);
    assert.equal(cancels.length, 1);
    closeBoth(pair);
  });

  test(`${dialect}: a cancel that is malformed, or of an unknown, finished or outgoing request, does nothing`, async () => {
    const { peer, heard, post, quiet, said } = scriptedPeer(dialect);
    const [method, key] = CANCEL[dialect];
    const aborted = gate();
    peer.handle('quick', () => ({ done: true }));
    peer.handle('slow', async (_, { signal }) => {
      aborted.open(await fired(signal));
      return {};
    });
    const pending = outcome(peer.request('theirs'));
    await said(1);
    post(cancelOf(dialect, 5), request(5, 'quick'));
    await said(2);
    assert.deepEqual(
      heard[1].result,
      { done: true },
      'a cancel before its request is not remembered',
    );
    post(request(6));
    post(
      cancelOf(dialect, 5),
      cancelOf(dialect, 1), // ours, not theirs
      cancelOf(dialect, '6'),
      { jsonrpc: '2.0', method },
      { jsonrpc: '2.0', method, params: [6] },
      { jsonrpc: '2.0', method, params: null },
      { jsonrpc: '2.0', method, params: { [key]: null } },
      { jsonrpc: '2.0', method, params: { [key === 'id' ? 'requestId' : 'id']: 6 } },
      { jsonrpc: '2.0', method, params: Object.create({ [key]: 6 }) },
    );
    if (dialect === 'mcp') post(cancelOf(dialect, 6, { reason: { not: 'text' } }));
    await quiet();
    assert.equal(heard.length, 2);
    assert.equal(peer.counters.inFlightIn, 1);
    post(cancelOf(dialect, 6, { reason: 'why' }));
    const { message, cause } = await aborted.opened;
    assert.deepEqual(
      [message, cause],
      [dialect === 'mcp' ? 'why' : 'The operation was cancelled', undefined],
    );
    post({ jsonrpc: '2.0', id: 1, result: 1 });
    assert.deepEqual(await pending, { ok: 1 });
    peer.close();
  });

  test(`${dialect}: a cancel sent as a request is unknown, even to a fallback`, async () => {
    const { peer, post, said } = scriptedPeer(dialect, { onRequest: () => 'fallback' });
    const { params, method } = cancelOf(dialect, 1);
    post({ jsonrpc: '2.0', id: 1, method, params });
    const { error } = (await said(1))[0];
    const words = {
      acp: { message: `"Method not found": ${method}`, data: { method } },
      lsp: { message: `Unhandled method ${method}` },
      mcp: { message: 'Method not found' },
    };
    assert.deepEqual(error, { code: -32601, ...words[dialect] });
    peer.close();
  });
}

test('a reason that is an error is what the request rejects with', async () => {
  const pair = peerPair('mcp');
  pair.b.handle('slow', (_, { signal }) => fired(signal).then(() => Promise.reject(new Error())));
  const controller = new AbortController();
  const slow = outcome(pair.a.request('slow', {}, { signal: controller.signal }));
  const reason = new Error('mine');
  controller.abort(reason);
  assert.equal((await slow).err, reason);
  closeBoth(pair);
});

for (const dialect of ANSWERING) {
  test(`${dialect}: the answer of the handler decides what a cancelled request settles with`, async () => {
    const pair = peerPair(dialect);
    const { a, b } = pair;
    const endings = {
      value: () => ({ partial: true }),
      anything: () => Promise.reject(new TypeError('oops')),
      reason: (reason) => Promise.reject(reason),
      own: () => Promise.reject(new RpcError(-32800, 'Stopped', { retry: false })),
    };
    const ended = {};
    for (const [name, end] of Object.entries(endings)) {
      const started = gate();
      b.handle(name, async (_, { signal }) => {
        started.open();
        return end(await fired(signal));
      });
      const controller = new AbortController();
      const pending = outcome(a.request(name, {}, { signal: controller.signal }));
      await started.opened;
      controller.abort('enough');
      const { ok, err } = await pending;
      ended[name] = ok ?? [err.name, err.cause.code, err.cause.message];
    }
    assert.deepEqual(ended, {
      value: { partial: true },
      anything: ['AbortError', -32800, 'Request cancelled'],
      reason: ['AbortError', -32800, 'Request cancelled'],
      own: ['AbortError', -32800, 'Stopped'],
    });
    closeBoth(pair);
  });

  test(`${dialect}: wait: false settles at once, and the late answer is dropped`, async () => {
    const pair = peerPair(dialect);
    const { a, b } = pair;
    const [started, release] = [gate(), gate()];
    b.handle('slow', async () => {
      started.open();
      await release.opened;
      return 1;
    });
    const controller = new AbortController();
    const { signal } = controller;
    const slow = outcome(a.request('slow', {}, { signal, wait: false }));
    await started.opened;
    controller.abort();
    assert.equal((await slow).err.name, 'AbortError');
    release.open();
    while (!a.counters.late) await aTurn();
    closeBoth(pair);
  });
}

test('mcp: wait: true waits for an answer, as long as the grace period', async () => {
  const pair = peerPair('mcp', { a: { limits: { grace: 20 } } });
  const { a, b } = pair;
  b.handle('slow', (_, { signal }) => fired(signal));
  const controller = new AbortController();
  const slow = outcome(a.request('slow', {}, { signal: controller.signal, wait: true }));
  setTimeout(() => controller.abort(), 5);
  assert.equal((await slow).err.name, 'AbortError');
  closeBoth(pair);
});

test('the grace period begins with the cancel, however long the connection was silent', async (t) => {
  const clock = useClock(t);
  const { peer, post, said } = scriptedPeer('acp', { limits: { grace: 1000 } });
  const controller = new AbortController();
  const { signal } = controller;
  const pending = outcome(peer.request('slow', {}, { signal, wait: true }));
  const [{ id }] = await said(1);
  clock.advance(60_000);
  controller.abort();
  clock.advance(900);
  post({ jsonrpc: '2.0', id, result: 'in spite of it' });
  assert.deepEqual(await pending, { ok: 'in spite of it' });
  peer.close();
});

test('mcp: an AbortError of a handler without a cancel is an error', async () => {
  const pair = peerPair('mcp');
  pair.b.handle('limited', () => {
    throw new DOMException('out of context', 'AbortError');
  });
  const { err } = await outcome(pair.a.request('limited'));
  assert.deepEqual([err.name, err.code, err.message], ['RpcError', -32603, 'out of context']);
  closeBoth(pair);
});

test('a TimeoutError of a handler is a cancelled request in ACP, and an error in the others', async () => {
  const answers = {};
  for (const dialect of DIALECTS) {
    const pair = peerPair(dialect);
    pair.b.handle('limited', () => {
      throw new DOMException('out of time', 'TimeoutError');
    });
    const { err } = await outcome(pair.a.request('limited'));
    answers[dialect] = [err.code, err.message];
    closeBoth(pair);
  }
  assert.deepEqual(answers, {
    acp: [-32800, 'Request cancelled'],
    lsp: [-32603, 'out of time'],
    mcp: [-32603, 'out of time'],
  });
});

test('mcp: the cancel of a server ends a subscription, and no other request', async () => {
  const { peer, post, said } = scriptedPeer('mcp');
  const other = outcome(peer.request('tools/call'));
  const subscription = outcome(peer.request('subscriptions/listen'));
  await said(2);
  post(cancelOf('mcp', 1), cancelOf('mcp', 2));
  const { err } = await subscription;
  assert.deepEqual([err.name, err.code], ['AbortError', -32800]);
  post({ jsonrpc: '2.0', id: 1, result: 'an answer' });
  assert.deepEqual(await other, { ok: 'an answer' });
  peer.close();
});

test('an abort and AbortSignal.timeout() reject with the answer of the other side as cause', async () => {
  const pair = peerPair('acp');
  const { a, b } = pair;
  const started = [gate(), gate()];
  b.handle('slow', async ({ n }, { signal }) => {
    started[n].open();
    await fired(signal);
    throw new RpcError(-32800, 'Stopped', { saved: 3 });
  });
  const controller = new AbortController();
  const aborted = outcome(a.request('slow', { n: 0 }, { signal: controller.signal }));
  await started[0].opened;
  controller.abort();
  const timer = new AbortController();
  const timed = outcome(a.request('slow', { n: 1 }, { signal: timer.signal }));
  await started[1].opened;
  // As AbortSignal.timeout() does.
  timer.abort(new DOMException('The operation timed out', 'TimeoutError'));
  const errors = [(await aborted).err, (await timed).err];
  assert.deepEqual(
    errors.map(({ name, code, data, cause }) => [name, code, data.outcome, cause.data]),
    [
      ['AbortError', -32800, 'stopped', { outcome: 'stopped', saved: 3 }],
      ['TimeoutError', -32001, 'stopped', { outcome: 'stopped', saved: 3 }],
    ],
  );
  closeBoth(pair);
});

for (const dialect of ['acp', 'lsp']) {
  test(`${dialect}: the error of a cancelled request has the outcome that the callee knows`, async () => {
    const pair = peerPair(dialect, { b: { limits: { maxConcurrent: 1 } } });
    const { a, b } = pair;
    for (const [how, expected] of [
      [(signal) => Promise.reject(signal.reason), 'stopped'],
      [() => Promise.reject(new Error('disk full')), 'failed'],
      [() => Promise.reject(new RpcError(-32800, 'Stopped', { pages: 3 })), 'stopped'],
      [() => Promise.reject(new RpcError(-32050, 'no luck', 'a text')), 'failed'],
    ]) {
      const started = gate();
      b.handle('work', async (_, { signal }) => {
        started.open();
        await fired(signal);
        return how(signal);
      });
      const [first, second] = [new AbortController(), new AbortController()];
      const running = outcome(a.request('work', {}, { signal: first.signal }));
      await started.opened;
      // There is room for one, so this waits.
      const waiting = outcome(a.request('work', {}, { signal: second.signal }));
      second.abort();
      assert.deepEqual((await waiting).err.data, { outcome: 'unstarted' });
      first.abort();
      const { data } = (await running).err;
      assert.equal(data.outcome, expected);
    }
    const unsent = await outcome(a.request('work', {}, { signal: AbortSignal.abort() }));
    assert.deepEqual(unsent.err.data, { outcome: 'unstarted' });
    closeBoth(pair);
  });

  test(`${dialect}: the outcome is unknown where the other side does not report it or never answers`, async (t) => {
    const clock = useClock(t);
    const { peer, post, said } = scriptedPeer(dialect);
    const answers = [undefined, 'a text', { outcome: 'none' }, { outcome: 5 }];
    for (const [i, data] of answers.entries()) {
      const controller = new AbortController();
      const cancelled = outcome(peer.request('slow', {}, { signal: controller.signal }));
      await said(2 * i + 1);
      controller.abort();
      const error = { code: -32800, message: 'no', ...(data !== undefined && { data }) };
      post({ jsonrpc: '2.0', id: i + 1, error });
      assert.deepEqual((await cancelled).err.data, { outcome: 'unknown' });
    }
    const silent = outcome(peer.request('slow', {}, { timeout: 10 }));
    await said(2 * answers.length + 1);
    clock.advance(10);
    await said(2 * answers.length + 2);
    clock.advance(5000);
    assert.deepEqual((await silent).err.data, { timeout: 10, outcome: 'unknown' });
    peer.close();
  });
}
