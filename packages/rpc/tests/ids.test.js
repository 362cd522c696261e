// Ids of requests: which are told apart, which are refused, and how far they count.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fired, gate, outcome, peerPair, scriptedPeer } from './support/rpc.js';
import { DIALECTS, CANCEL, request, cancelOf, closeBoth } from './support/dialects.js';

for (const dialect of DIALECTS) {
  test(`${dialect}: a request with an id in use is refused, and the first one goes on`, async () => {
    const { peer, post, quiet, said } = scriptedPeer(dialect);
    const release = gate();
    let runs = 0;
    peer.handle('slow', async () => {
      runs++;
      await release.opened;
      return { first: true };
    });
    post(request('same'), request('same'));
    const heard = await quiet();
    assert.equal(runs, 1);
    assert.deepEqual([heard[0].id, heard[0].error.code], ['same', -32600]);
    release.open();
    assert.deepEqual((await said(2))[1], { jsonrpc: '2.0', id: 'same', result: { first: true } });
    post(request('same'));
    assert.deepEqual((await said(3))[2].result, { first: true });
    peer.close();
  });

  test(`${dialect}: ids are told apart by type and value`, async () => {
    const { peer, post, quiet } = scriptedPeer(dialect);
    const aborted = [];
    peer.handle('slow', async (_, { id, signal }) => {
      await fired(signal);
      aborted.push(id);
      return {};
    });
    const ids = [7, '7', 0, '', '0', -3, 2 ** 53 - 1, 4294967296, 'null', 'ключ'];
    if (dialect !== 'mcp') ids.push(1.5, '1.5');
    if (dialect === 'acp') ids.push(null);
    post(...ids.map((id) => request(id)));
    await quiet();
    assert.equal(peer.counters.inFlightIn, ids.length);
    const expected = [];
    for (const id of ids) {
      post(cancelOf(dialect, id));
      await quiet();
      expected.push(id);
      assert.deepEqual(aborted, expected);
    }
    peer.close();
  });

  test(`${dialect}: ids that cannot be told apart are refused, and ids of unknown types are dropped`, async () => {
    const { peer, heard, post, quiet } = scriptedPeer(dialect);
    let runs = 0;
    peer.handle('slow', () => runs++);
    const refused = [2 ** 53, -(2 ** 60), 1e300, JSON.parse('1e400'), NaN];
    post(...refused.map((id) => request(id)));
    await quiet();
    assert.deepEqual(
      heard.splice(0).map(({ id, error }) => [id, error.code]),
      refused.map(() => [null, -32600]),
    );
    const longest = 'i'.repeat(257);
    post(request(longest), request('lone \ud800'), request('nul \0'));
    await quiet();
    assert.deepEqual(
      heard.splice(0).map(({ id, error }) => [id, error.code]),
      [longest, 'lone \ud800', 'nul \0'].map((id) => [id, -32600]),
    );
    const none = [
      {},
      [],
      true,
      ...(dialect === 'acp' ? [] : [null]),
      ...(dialect === 'mcp' ? [1.5] : []),
    ];
    const before = peer.counters.malformed;
    post(...none.map((id) => request(id)));
    await quiet();
    if (dialect === 'acp')
      assert.deepEqual(
        heard.splice(0).map(({ id, error }) => [id, error.code]),
        none.map(() => [null, -32600]),
      );
    else assert.equal(peer.counters.malformed - before, none.length);
    assert.equal(runs, 0);
    assert.deepEqual(heard, []);
    peer.close();
  });
}

test('ids go on beyond 2^31', async () => {
  for (const dialect of DIALECTS) {
    const firstNumber = 2 ** 31 - 2;
    const pair = peerPair(dialect, { a: { limits: { firstNumber } } });
    const { a, b, sent } = pair;
    const asked = gate();
    b.handle('echo', (params) => params);
    b.handle('slow', async (_, { signal }) => {
      asked.open();
      throw await fired(signal);
    });
    for (let n = 0; n < 5; n++) assert.deepEqual(await a.request('echo', { n }), { n });
    const controller = new AbortController();
    const slow = outcome(a.request('slow', {}, { signal: controller.signal }));
    await asked.opened;
    controller.abort('enough');
    assert.equal((await slow).err.name, 'AbortError');
    assert.deepEqual(
      sent('a2b').flatMap(({ id }) => id ?? []),
      Array.from({ length: 6 }, (_, n) => firstNumber + n),
    );
    const { params } = sent('a2b').find(({ method }) => method === CANCEL[dialect][0]);
    assert.equal(params[CANCEL[dialect][1]], firstNumber + 5);
    closeBoth(pair);
  }
});
