// A core that cannot have more memory: what does not fit is refused with a typed error, and what
// runs goes on.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limitMemory } from '../../../tests/support/little-memory.js';

limitMemory();
const { outcome, peerPair } = await import('./support/rpc.js');

/**
 * Two peers; the second one echoes, or works until it is asked to stop. They are closed with the
 * test: while ports are open, a process whose test has failed does not end, and says nothing.
 * @param {import('node:test').TestContext} t
 */
function pair(t) {
  const { a, b } = peerPair('acp');
  b.handle('echo', (params) => params);
  b.handle(
    'lasts',
    (_params, { signal }) =>
      new Promise((_resolve, reject) => (signal.onabort = () => reject(signal.reason))),
  );
  const close = () => (a.close(), b.close());
  t.after(close);
  return { a, close };
}

test('requests for which there is no memory are refused, once, and the others go on', async (t) => {
  const { a } = pair(t);
  const stop = new AbortController();
  const errors = [];
  const requests = [];
  while (!errors.length) {
    assert.ok(requests.length < 4096, 'memory is short before the limit of requests is reached');
    for (let i = 0; i < 100; i++) {
      const request = outcome(a.request('lasts', {}, { signal: stop.signal }));
      requests.push(request.then(({ err }) => errors.push(err)));
    }
    await new Promise(setImmediate);
  }
  const refused = errors.splice(0);
  for (const { code, data } of refused)
    assert.deepEqual([code, data.outcome], [-32603, 'unstarted']);
  stop.abort();
  await Promise.all(requests);
  assert.equal(refused.length + errors.length, requests.length);
  for (const { code } of errors) assert.equal(code, -32800);
  assert.deepEqual(await a.request('echo', ['again']), ['again']);
});

test('peers for which there is no memory are closed and say so; the others go on', async (t) => {
  t.mock.method(console, 'error', () => {});
  const first = pair(t);
  assert.deepEqual(await first.a.request('echo', ['before']), ['before']);
  const pairs = Array.from({ length: 600 }, () => pair(t));
  const answers = await Promise.all(pairs.map(({ a }) => outcome(a.request('echo', [1]))));
  const failed = answers.filter(({ err }) => err);
  assert.ok(failed.length > 0);
  for (const { err } of failed) assert.equal(err.constructor.name, 'RpcError', String(err));
  assert.deepEqual(await first.a.request('echo', ['meanwhile']), ['meanwhile']);
  for (const { close } of [first, ...pairs]) close();
  const { a } = pair(t);
  assert.deepEqual(await a.request('echo', ['again']), ['again']);
});
