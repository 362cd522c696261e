// Tasks in a store, on the backends that need nothing but Node; tests/fleet has NATS.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { memoryBackend, sqliteBackend, taskStore } from '../src/store/index.js';
import { createTaskServer } from '../src/index.js';
import { testStore } from './contracts/store.js';
import { VERSIONS, ask, deferred, gist, open, post, serve } from './support/a2a.js';

const folder = mkdtempSync(join(tmpdir(), 'abp-store-'));
after(() => rmSync(folder, { recursive: true }));
let files = 0;

testStore('memory', async () => memoryBackend());

if (await import('node:sqlite').catch(() => undefined))
  testStore('SQLite', () => sqliteBackend(join(folder, `${files++}`)));

test('without a store, draining refuses new tasks and keeps the streams of those that run', async (t) => {
  const go = deferred();
  const { agent, url, close } = await serve(() => go.promise.then(() => {}));
  t.after(close);
  const { headers, message, stream, send } = VERSIONS['1.0'];
  const running = await open(url, stream, { message: message('go') }, headers);
  await running.next();
  const drained = agent.drain();
  const body = { jsonrpc: '2.0', id: 1, method: send, params: { message: message('no') } };
  const refused = await post(url, JSON.stringify(body), headers);
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
  go.resolve();
  assert.equal(gist((await running.rest()).at(-1)), 'completed');
  await drained;
});

test('what still runs when draining has waited is aborted', async (t) => {
  const aborted = deferred();
  const { agent, url, close } = await serve((context) => {
    context.signal.addEventListener('abort', () => aborted.resolve());
    return new Promise(() => {});
  });
  t.after(close);
  const { headers, message, send } = VERSIONS['1.0'];
  const sent = ask(url, send, { message: message('go') }, headers);
  while (agent.counters.live !== 1) await new Promise(setImmediate);
  await agent.drain({ ms: 1 });
  await aborted.promise;
  assert.equal((await sent).result.task.status.state, 'TASK_STATE_CANCELED');
});

test('a store that is none is refused where it is given', () => {
  const card = { name: 'x' };
  const execute = () => {};
  for (const store of [{}, 1, { attach: 1 }])
    assert.throws(() => createTaskServer({ card, execute }, { store }), { code: 'INVALID_PARAMS' });
  const backend = memoryBackend();
  for (const options of [{}, { backend: {} }, { backend, term: -1 }, { backend, onOrphan: 'x' }])
    assert.throws(() => taskStore(options), { code: 'INVALID_PARAMS' });
  assert.throws(() => taskStore({ backend, terms: 1 }), { code: 'INVALID_PARAMS' });
});
