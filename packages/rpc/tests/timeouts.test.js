// Timeouts: when they pass, what begins them anew, and which answers still count.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { useClock } from '../../../tests/support/clock.js';
import { fired, gate, outcome, peerPair, scriptedPeer } from './support/rpc.js';
import { DIALECTS, CANCEL, aTurn, closeBoth } from './support/dialects.js';

for (const dialect of DIALECTS) {
  test(`${dialect}: a timeout cancels the request and rejects with a TimeoutError`, async () => {
    const pair = peerPair(dialect);
    const { a, b } = pair;
    const aborted = gate();
    b.handle('slow', async (_, { signal }) => {
      aborted.open(await fired(signal));
      throw new Error('unwound');
    });
    const { err } = await outcome(a.request('slow', {}, { timeout: 20 }));
    // MCP answers nothing to what was cancelled.
    const data = { timeout: 20, outcome: dialect === 'mcp' ? 'unknown' : 'failed' };
    assert.deepEqual([err.name, err.code, err.data], ['TimeoutError', -32001, data]);
    assert.equal(err.cause?.code, dialect === 'mcp' ? undefined : -32800);
    assert.equal((await aborted.opened).name, 'AbortError');
    closeBoth(pair);
  });

  test(`${dialect}: an answer after the timeout does not change the TimeoutError`, async () => {
    // MCP's are not answered: that is waited for no longer than this.
    const limits = dialect === 'mcp' ? { grace: 10 } : {};
    const pair = peerPair(dialect, { a: { limits } });
    const { a, b } = pair;
    b.handle('slow', (_, { signal }) => fired(signal).then(() => ['nothing found']));
    const options = { timeout: 10, maxTotalTimeout: 60_000, wait: true };
    const { err } = await outcome(a.request('slow', {}, options));
    assert.deepEqual([err.name, err.code], ['TimeoutError', -32001]);
    closeBoth(pair);
  });
}

for (const [dialect, asked] of /** @type {const} */ ([
  ['mcp', ({ _meta }) => _meta.progressToken],
  ['lsp', ({ workDoneToken }) => workDoneToken],
]))
  test(`${dialect}: resetTimeoutOnProgress asks for progress by itself`, async (t) => {
    const clock = useClock(t);
    const pair = peerPair(dialect);
    const started = gate();
    const end = gate();
    pair.b.handle('slow', async (params, { progress }) => {
      started.open({ params, progress });
      return end.opened;
    });
    const options = { timeout: 50, resetTimeoutOnProgress: true };
    const slow = outcome(pair.a.request('slow', { x: 1 }, options));
    const { params, progress } = await started.opened;
    assert.notEqual(asked(params), undefined);
    clock.advance(40);
    progress({ progress: 1 });
    await aTurn();
    clock.advance(40);
    end.open({ done: true });
    assert.deepEqual(await slow, { ok: { done: true } });
    closeBoth(pair);
  });

test('a timeout of 0 never passes', async (t) => {
  const clock = useClock(t);
  const { peer, post, said } = scriptedPeer('lsp');
  const pending = outcome(peer.request('slow', {}, { timeout: 0, maxTotalTimeout: 0 }));
  await said(1);
  clock.advance(24 * 3600_000);
  post({ jsonrpc: '2.0', id: 1, result: 'late' });
  assert.deepEqual(await pending, { ok: 'late' });
  peer.close();
});

test('a TimeoutError has the limit that passed', async () => {
  const { peer } = scriptedPeer('mcp');
  const awake = setInterval(() => {}, 1000);
  const limits = [
    [{ timeout: 60_000, maxTotalTimeout: 5 }, 5],
    [{ timeout: 4, maxTotalTimeout: 60_000 }, 4],
    [{ timeout: 3 }, 3],
    [{ timeout: 0, maxTotalTimeout: 2 }, 2],
  ];
  for (const [options, limit] of limits) {
    const { err } = await outcome(peer.request('slow', {}, options));
    assert.deepEqual(
      [err.name, err.data],
      ['TimeoutError', { timeout: limit, outcome: 'unknown' }],
    );
  }
  clearInterval(awake);
  peer.close();
});

test('a timeout keeps its process alive as long as its request is pending', async () => {
  const script = `
    import { createPeer } from '${new URL('../src/index.js', import.meta.url)}';
    const nobody = { post() {}, close() {}, onMessage() {} };
    const peer = createPeer(nobody, { dialect: 'acp', limits: { grace: 1 } });
    const answered = peer.request('answered', {}, { timeout: 3_600_000 });
    nobody.onMessage({ jsonrpc: '2.0', id: 1, result: 'an answer' }, []);
    console.log(await answered);
    console.log((await peer.request('unanswered', {}, { timeout: 1 }).catch((error) => error)).name);`;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', script],
    { timeout: 60_000 },
  );
  assert.equal(stdout, 'an answer\nTimeoutError\n');
});

for (const dialect of DIALECTS) {
  test(`${dialect}: answers and progress that have arrived are read before timeouts pass`, async (t) => {
    const clock = useClock(t);
    const { peer, post, said, heard } = scriptedPeer(dialect);
    const limits = { timeout: 50, resetTimeoutOnProgress: true };
    const first = outcome(peer.request('a', {}, limits));
    const second = outcome(peer.request('b', {}, limits));
    const third = outcome(peer.request('c', {}, { ...limits, onProgress() {} }));
    await said(3);
    const [one, two, three] = heard.map(({ id }) => id);
    // The thread was busy: both timeouts have passed when the answers are read, in one turn.
    clock.pass(60);
    post({ jsonrpc: '2.0', id: one, result: 1 }, { jsonrpc: '2.0', id: two, result: 2 });
    if (dialect === 'mcp') {
      const params = { progressToken: three, progress: 1 };
      post({ jsonrpc: '2.0', method: 'notifications/progress', params });
    }
    clock.fire();
    await aTurn();
    assert.deepEqual([await first, await second], [{ ok: 1 }, { ok: 2 }]);
    const cancels = heard.filter(({ method }) => method === CANCEL[dialect][0]);
    assert.equal(cancels.length, dialect === 'mcp' ? 0 : 1);
    if (dialect === 'mcp') {
      clock.advance(49);
      await aTurn();
      assert.equal(heard.length, 3);
      clock.advance(2);
    } else {
      post({ jsonrpc: '2.0', id: three, error: { code: -32800, message: 'stopped' } });
    }
    assert.equal((await third).err.name, 'TimeoutError');
    peer.close();
  });

  test(`${dialect}: a request that was answered is not cancelled, even if its timeout passes before the answer is read`, async () => {
    const pair = peerPair(dialect);
    pair.b.handle('busy', () => {
      const until = performance.now() + 20;
      while (performance.now() < until);
      return 'done';
    });
    await pair.a.request('busy'); // the core is loaded
    pair.log.length = 0;
    const { err } = await outcome(pair.a.request('busy', {}, { timeout: 10 }));
    await aTurn();
    // A machine that is slow to deliver the request may cancel it, but never once it was answered.
    const said = pair.log.map(({ msg }) => msg.method ?? 'answer');
    const cancelled = said.indexOf(CANCEL[dialect][0]);
    if (err) assert.equal(cancelled, 1, said.join());
    else assert.deepEqual(said, ['busy', 'answer']);
    closeBoth(pair);
  });
}
