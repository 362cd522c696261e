// Requests that a handler makes on behalf of the request that it serves: they end with it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fired, gate, outcome, peerPair } from './support/rpc.js';
import { DIALECTS, ANSWERING, CANCEL, aTurn, closeBoth } from './support/dialects.js';

for (const dialect of DIALECTS) {
  test(`${dialect}: a cancel reaches all requests below its request, three levels deep`, async () => {
    const pair = peerPair(dialect);
    const { a, b, sent } = pair;
    const deepest = gate();
    const order = [];
    const pass = (name) => async (_, context) => {
      context.request('next', { from: name }).catch(() => {});
      order.push(name, await fired(context.signal).then((reason) => reason.message));
      throw new Error('unwound');
    };
    b.handle('outer', pass('outer'));
    a.handle('next', pass('middle'));
    b.handle('next', async (_, { signal }) => {
      deepest.open();
      await fired(signal);
      throw new Error('unwound');
    });
    const controller = new AbortController();
    const outer = outcome(a.request('outer', {}, { signal: controller.signal }));
    await deepest.opened;
    controller.abort('all of it');
    assert.equal((await outer).err.name, 'AbortError');
    if (dialect !== 'mcp') {
      // Every answer follows those to what was asked on its behalf.
      const ended = pair.log.filter(({ msg }) => msg.error).map(({ dir, msg }) => [dir, msg.id]);
      assert.deepEqual(ended, [
        ['b2a', 2],
        ['a2b', 1],
        ['b2a', 1],
      ]);
    } else {
      while (b.counters.inFlightIn + a.counters.inFlightIn) {
        await aTurn();
      }
      assert.deepEqual(order, ['outer', 'all of it', 'middle', 'all of it']);
    }
    const cancels = [...sent('a2b'), ...sent('b2a')].filter(
      ({ method }) => method === CANCEL[dialect][0],
    );
    assert.equal(cancels.length, 3);
    closeBoth(pair);
  });
}

test('a request that a handler does not wait for goes on after the handler has returned', async () => {
  const pair = peerPair('lsp');
  const { a, b, sent } = pair;
  const [asked, release] = [gate(), gate()];
  let shown;
  b.handle('quick', (_, context) => {
    shown = context.request('show');
    return { done: true };
  });
  a.handle('show', async () => {
    asked.open();
    await release.opened;
    return { seen: true };
  });
  assert.deepEqual(await a.request('quick'), { done: true });
  await asked.opened;
  release.open();
  assert.deepEqual(await shown, { seen: true });
  assert.equal(sent('b2a').filter(({ method }) => method === CANCEL.lsp[0]).length, 0);
  closeBoth(pair);
});

test("after its signal fired, a handler's context makes no requests", async () => {
  const pair = peerPair('lsp');
  const { a, b, sent } = pair;
  const [started, late] = [gate(), gate()];
  b.handle('slow', async (_, { signal, request: ask }) => {
    started.open();
    await fired(signal);
    late.open(outcome(ask('clean/up')));
    return {};
  });
  const controller = new AbortController();
  const slow = outcome(a.request('slow', {}, { signal: controller.signal }));
  await started.opened;
  controller.abort();
  assert.equal((await late.opened).err.name, 'AbortError');
  await slow;
  assert.ok(!sent('b2a').some(({ method }) => method === 'clean/up'));
  closeBoth(pair);
});

for (const dialect of ANSWERING) {
  test(`${dialect}: a request waits for those below it no longer than the grace period`, async () => {
    const pair = peerPair(dialect, { b: { limits: { grace: 30 } } });
    const { a, b } = pair;
    const [asked, release] = [gate(), gate()];
    a.handle('deaf', async () => {
      asked.open();
      await release.opened;
      return { late: true };
    });
    b.handle('outer', async (_, context) => {
      context.request('deaf').catch(() => {});
      throw await fired(context.signal);
    });
    const controller = new AbortController();
    const outer = outcome(a.request('outer', {}, { signal: controller.signal }));
    await asked.opened;
    controller.abort('enough');
    assert.equal((await outer).err.cause.code, -32800);
    assert.equal(b.counters.late, 0);
    release.open();
    while (!b.counters.late) await aTurn();
    closeBoth(pair);
  });
}

test('acp: a handler that throws an AbortError cancels its requests, and is answered after them', async () => {
  const pair = peerPair('acp');
  const { a, b, log } = pair;
  const asked = gate();
  a.handle('ask', async (_, { signal }) => {
    asked.open();
    throw await fired(signal);
  });
  b.handle('outer', async (_, context) => {
    context.request('ask').catch(() => {});
    await asked.opened;
    throw new DOMException('out of context', 'AbortError');
  });
  const { err } = await outcome(a.request('outer'));
  assert.deepEqual([err.name, err.code], ['RpcError', -32800]);
  assert.deepEqual(
    log.map(({ dir, msg }) => `${dir} ${msg.method ?? msg.error.code}`),
    ['a2b outer', 'b2a ask', 'b2a $/cancel_request', 'a2b -32800', 'b2a -32800'],
  );
  closeBoth(pair);
});
