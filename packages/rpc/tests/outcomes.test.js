// What a handler reports of its work, beside what became of it, when its request does not succeed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RpcError } from '../src/index.js';
import { fired, gate, outcome, peerPair } from './support/rpc.js';

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
    const told = { outcome: 'stopped', report: { applied: 12 }, progress: { progress: 12 } };
    const controller = new AbortController();
    const stopped = outcome(pair.a.request('work', {}, { signal: controller.signal }));
    await started.opened;
    controller.abort();
    assert.deepEqual((await stopped).err.data, told);
    const late = await outcome(pair.a.request('work', {}, { timeout: 1 }));
    assert.deepEqual(late.err.data, { timeout: 1, ...told });
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
