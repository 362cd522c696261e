// What a handler reports of its work, beside what became of it, when its request does not succeed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { SOURCES } from '../../../tests/support/stopped-sources.js';
import { RpcError } from '../src/index.js';
import { fired, gate, outcome, peerPair, scriptedPeer } from './support/rpc.js';

const ANSWERING = ['acp', 'lsp'];

/** What a request to this handler is rejected with. */
async function failureOf(t, dialect, handler) {
  const pair = peerPair(dialect);
  t.after(() => {
    pair.a.close();
    pair.b.close();
  });
  pair.b.handle('work', handler);
  const { err } = await outcome(pair.a.request('work', {}));
  const { error } = pair.sent('b2a').find((message) => 'error' in message) ?? {};
  assert.deepEqual(error?.data, err.data);
  return err;
}

for (const dialect of [...ANSWERING, 'mcp']) {
  test(`${dialect}: the latest report and progress of a handler that fails are told with the outcome`, async (t) => {
    const { data } = await failureOf(t, dialect, (_params, { report, progress }) => {
      const remaining = [13, 14];
      report({ applied: 11 });
      report({ applied: 12, remaining });
      remaining.length = 0;
      progress({ progress: 1, total: 40 });
      progress({ progress: 12, total: 40 });
      throw new Error('page 13 is broken');
    });
    assert.deepEqual(data, {
      outcome: 'failed',
      report: { applied: 12, remaining: [13, 14] },
      progress: { progress: 12, total: 40 },
    });
  });

  test(`${dialect}: what a handler's own error says stands`, async (t) => {
    const { data } = await failureOf(t, dialect, (_params, { report }) => {
      report({ applied: 1 });
      throw new RpcError(-32050, 'no luck', { outcome: 'finished', tries: 3 });
    });
    assert.deepEqual(data, { outcome: 'finished', report: { applied: 1 }, tries: 3 });
    const other = await failureOf(t, dialect, (_params, { report }) => {
      report({ applied: 1 });
      throw new RpcError(-32050, 'no luck', 'a text');
    });
    assert.equal(other.data, 'a text');
  });

  test(`${dialect}: a handler that reports nothing sends nothing`, async (t) => {
    const { data } = await failureOf(t, dialect, () => Promise.reject(new Error('no luck')));
    assert.deepEqual(data, dialect === 'mcp' ? undefined : { outcome: 'failed' });
  });

  for (const [what, report] of [
    ['larger than 4 KB', { applied: 'x'.repeat(4096) }],
    ['that is not JSON', undefined],
    ['that cannot be printed', 1n],
  ])
    test(`${dialect}: a report ${what} is not kept, nor is the one before it`, async (t) => {
      const error = t.mock.method(console, 'error', () => {});
      const { data } = await failureOf(t, dialect, (_params, context) => {
        context.report({ applied: 1 });
        context.report(report);
        context.progress({ progress: 1, message: 'x'.repeat(4096) });
        throw new RpcError(-32050, 'no luck', { tries: 3 });
      });
      assert.deepEqual(data, { ...(dialect !== 'mcp' && { outcome: 'failed' }), tries: 3 });
      assert.match(error.mock.calls[0].arguments[0], /work: a report is JSON of at most 4 KB/);
    });

  test(`${dialect}: nothing of it is in a result`, async (t) => {
    const pair = peerPair(dialect);
    t.after(() => {
      pair.a.close();
      pair.b.close();
    });
    pair.b.handle('work', (_params, { report }) => {
      report({ applied: 1 });
      return { done: true };
    });
    assert.deepEqual(await pair.a.request('work', {}), { done: true });
  });
}

for (const dialect of ANSWERING)
  test(`${dialect}: who cancels a request, and whose time is over, get the report, too`, async (t) => {
    const pair = peerPair(dialect);
    t.after(() => {
      pair.a.close();
      pair.b.close();
    });
    const started = gate();
    pair.b.handle('work', async (_params, { signal, report, progress }) => {
      progress({ progress: 12 });
      started.open();
      const reason = await fired(signal);
      report({ applied: 12 });
      throw reason;
    });
    const expected = { outcome: 'stopped', report: { applied: 12 }, progress: { progress: 12 } };
    const controller = new AbortController();
    const stopped = outcome(pair.a.request('work', {}, { signal: controller.signal }));
    await started.opened;
    controller.abort();
    assert.deepEqual((await stopped).err.data, expected);
    const late = await outcome(pair.a.request('work', {}, { timeout: 1 }));
    assert.deepEqual(late.err.data, { timeout: 1, ...expected });
  });

for (const dialect of ANSWERING)
  test(`${dialect}: a handler that does not know what became of its work says so`, async (t) => {
    const lost = Object.assign(new Error('The worker failed'), { outcome: 'unknown' });
    const { data } = await failureOf(t, dialect, () => Promise.reject(lost));
    assert.deepEqual(data, { outcome: 'unknown' });
    const odd = Object.assign(new Error('no'), { outcome: 'finished' });
    const other = await failureOf(t, dialect, () => Promise.reject(odd));
    assert.deepEqual(other.data, { outcome: 'failed' });
  });

/**
 * A peer of MCP whose handlers do as their params say, and one that asks it what became of its
 * requests.
 */
function asked(t, options = {}) {
  const { a, b, sent } = peerPair('mcp', options);
  t.after(() => (a.close(), b.close()));
  const [began, release] = [gate(), gate()];
  b.handle('work', async ({ ends }, { signal, report }) => {
    began.open();
    report({ applied: 1 });
    await fired(signal);
    if (ends === 'late') await release.opened;
    if (ends === 'stopped') throw signal.reason;
    if (ends === 'failed') throw new RpcError(-32050, 'no luck');
    return { done: true };
  });
  const call = (params, controller = new AbortController()) => {
    const calling = outcome(a.request('work', params, controller));
    const ids = () => sent('a2b').flatMap(({ id, method }) => (method === 'work' ? [id] : []));
    return { controller, calling, id: () => ids().at(-1) };
  };
  const settled = async () => {
    while (b.counters.inFlightIn) await new Promise(setImmediate);
  };
  return { a, b, began, release, call, settled };
}

for (const dialect of ANSWERING)
  for (const [what, { outcome: expected, make }] of Object.entries(SOURCES))
    test(`${dialect}: what a handler streams is told as what it was: ${what}`, async (t) => {
      t.mock.method(console, 'error', () => {});
      const { a, b } = peerPair(dialect);
      const began = gate();
      b.handle('work', (_params, { signal }) => {
        setTimeout(began.open);
        return make(signal);
      });
      const controller = new AbortController();
      const asked = outcome(a.request('work', {}, { signal: controller.signal }));
      await began.opened;
      controller.abort();
      const { ok, err } = await asked;
      // What a handler answers in spite of a cancel stands.
      assert.equal(ok === undefined ? err.data.outcome : 'finished', expected);
      a.close();
      b.close();
    });

test('lsp: a stream that had given all when its reader stopped: finished', async (t) => {
  const { peer, post, said } = scriptedPeer('lsp');
  t.after(() => peer.close());
  const waits = gate();
  const room = gate();
  t.mock.method(peer, 'room', () => (waits.open(), room.opened));
  let count = 0;
  const pull = (controller) => (count++ ? controller.close() : controller.enqueue(['a']));
  peer.handle('refs', () => new ReadableStream({ pull }));
  const params = { partialResultToken: 't' };
  post({ jsonrpc: '2.0', id: 1, method: 'refs', params });
  await waits.opened;
  post({ jsonrpc: '2.0', method: '$/cancelRequest', params: { id: 1 } });
  await new Promise(setImmediate);
  room.open();
  const { error } = (await said(2))[1];
  assert.deepEqual([error.code, error.data.outcome], [-32800, 'finished']);
});

test('a peer says what became of a request that was cancelled, and what its handler answered if that is kept', async (t) => {
  const { b, began, call, settled } = asked(t);
  await b.became(1).then((became) => assert.deepEqual(became, { outcome: 'unknown' }));
  b.keepsUnsent = true;
  const report = { applied: 1 };
  for (const [ends, became] of [
    ['finished', { result: { done: true } }],
    [
      'failed',
      { error: { code: -32050, message: 'no luck', data: { outcome: 'failed', report } } },
    ],
    ['stopped', { outcome: 'stopped' }],
  ]) {
    const { controller, calling, id } = call({ ends });
    await began.opened;
    while (!b.counters.inFlightIn) await new Promise(setImmediate);
    controller.abort('enough');
    await calling;
    await settled();
    const reported = await b.became(id());
    assert.equal(reported.outcome, ends);
    if ('outcome' in became) assert.deepEqual(reported.error.data, { outcome: ends, report });
    else assert.deepEqual(reported, { ...became, outcome: ends });
    assert.deepEqual(await b.became(`${id()}`), { outcome: 'unknown' });
  }
  b.keepsUnsent = false;
  const { controller, calling, id } = call({});
  while (!b.counters.inFlightIn) await new Promise(setImmediate);
  controller.abort();
  await calling;
  await settled();
  assert.equal(Object.keys(await b.became(id())).join(), 'outcome');
});

test('who asks waits until the handler has settled, or is told that it runs', async (t) => {
  const { b, began, release, call } = asked(t);
  b.keepsUnsent = true;
  const { controller, calling, id } = call({ ends: 'late' });
  await began.opened;
  controller.abort();
  await calling;
  assert.deepEqual(await b.became(id()), { outcome: 'running' });
  const waiting = b.became(id(), true);
  release.open();
  assert.deepEqual(await waiting, { outcome: 'finished', result: { done: true } });
  assert.deepEqual(await b.became(id(), true), { outcome: 'finished', result: { done: true } });
});

test('one that never began is known to have never begun, and who waits for it is told so', async (t) => {
  const { b, began, release, call } = asked(t, { b: { limits: { maxConcurrent: 1 } } });
  const first = call({ ends: 'late' });
  await began.opened;
  const second = call({});
  while (b.counters.inFlightIn < 2) await new Promise(setImmediate);
  const waiting = b.became(second.id(), true);
  second.controller.abort();
  assert.deepEqual(await waiting, { outcome: 'unstarted' });
  first.controller.abort();
  release.open();
  await Promise.all([first.calling, second.calling]);
});

/** Collects what nothing refers to. */
async function collect() {
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc');
  for (let i = 0; i < 3; i++) {
    await new Promise(setImmediate);
    gc();
  }
}

/** A peer of MCP, and a script that makes and cancels its requests. */
function cancelled(options = {}) {
  const { peer, post, quiet } = scriptedPeer('mcp', options);
  peer.keepsUnsent = true;
  const results = [];
  peer.handle('work', async (_params, { signal }) => {
    await fired(signal);
    const result = { done: true };
    results.push(new WeakRef(result));
    return result;
  });
  const request = (id) => ({ jsonrpc: '2.0', id, method: 'work' });
  const cancel = (requestId) => ({
    jsonrpc: '2.0',
    method: 'notifications/cancelled',
    params: { requestId },
  });
  return { peer, post, quiet, results, request, cancel };
}

test('what the core forgets is not kept', async () => {
  const { peer, post, quiet, results, request, cancel } = cancelled({ limits: { remembered: 2 } });
  for (const id of [1, 2, 3, 4, 5]) {
    post(request(id));
    await quiet();
    post(cancel(id));
    await quiet();
  }
  await collect();
  assert.deepEqual(
    results.map((result) => result.deref()),
    [undefined, undefined, undefined, { done: true }, { done: true }],
  );
  const reported = await Promise.all([1, 2, 3, 4, 5].map((id) => peer.became(id)));
  assert.deepEqual(
    reported.map(({ outcome: word }) => word),
    ['unknown', 'unknown', 'unknown', 'finished', 'finished'],
  );
  peer.close();
});

test('an id that is used again names the newest request', async () => {
  const { peer, post, quiet, request, cancel } = cancelled();
  post(request(7));
  await quiet();
  post(cancel(7));
  await quiet();
  assert.deepEqual(await peer.became(7), { outcome: 'finished', result: { done: true } });
  post(request(7), cancel(7));
  await quiet();
  assert.deepEqual(await peer.became(7), { outcome: 'unstarted' });
  peer.close();
});
