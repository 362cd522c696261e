// Lists of tasks, without a store and on the backends that need nothing but Node; tests/fleet has
// NATS.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { memoryBackend, sqliteBackend } from '../src/index.js';
import { testLists } from './contracts/lists.js';
import { VERSIONS, ask, deferred, serve } from '../../a2a/tests/support/a2a.js';

const folder = mkdtempSync(join(tmpdir(), 'abp-lists-'));
after(() => rmSync(folder, { recursive: true }));
let files = 0;

testLists('memory', async () => memoryBackend());

if (await import('node:sqlite').catch(() => undefined))
  testLists('SQLite', () => sqliteBackend(join(folder, `${files++}`)), 200);

const V1 = VERSIONS['1.0'];
const list = async (url, params = {}) => {
  const { user, ...rest } = params;
  const headers = { ...V1.headers, ...(user && { 'x-user': user }) };
  return (await ask(url, V1.list, rest, headers)).result;
};

/** An agent without a store. Its users are named in a header. */
async function served(t, execute, options = {}) {
  const one = await serve(execute, { limits: { remembered: 5000 }, ...options });
  t.after(() => one.close());
  one.http.removeAllListeners('request');
  one.http.on('request', (request, response) => {
    request.user = request.headers['x-user'];
    return one.agent.handle(request, response);
  });
  return one;
}

test('without a store each page says how many tasks there are, and never counts those of others', async (t) => {
  const authorize = (task, access, { user }) => !user || task.user === user;
  for (const options of [{}, { authorize }]) {
    const { url } = await served(
      t,
      ({ emitStatus, message: { parts } }) => {
        if (parts[0].text === 'asks') emitStatus('input-required');
      },
      options,
    );
    for (let i = 0; i < 9; i++) {
      const message = { ...V1.message(i % 3 ? 'ends' : 'asks'), contextId: `context-${i % 2}` };
      const headers = { ...V1.headers, 'x-user': i < 5 ? 'ann' : 'bob' };
      await ask(url, V1.send, { message }, headers);
    }
    const totals = async (params) => {
      const found = [];
      let pageToken;
      do {
        const { tasks, totalSize, nextPageToken } = await list(url, { ...params, pageToken });
        found.push([tasks.length, totalSize]);
        pageToken = nextPageToken || undefined;
      } while (pageToken);
      return found;
    };
    assert.deepEqual(await totals({ pageSize: 4 }), [
      [4, 9],
      [4, 9],
      [1, 9],
    ]);
    assert.deepEqual(await totals({ pageSize: 2, status: 'TASK_STATE_INPUT_REQUIRED' }), [
      [2, 3],
      [1, 3],
    ]);
    assert.deepEqual(await totals({ contextId: 'context-1', status: 'TASK_STATE_COMPLETED' }), [
      [3, 3],
    ]);
    assert.deepEqual(await totals({ tenant: 'other' }), [[0, 0]]);
    if (!options.authorize) continue;
    assert.deepEqual(await totals({ pageSize: 3, user: 'ann' }), [
      [3, 5],
      [2, 5],
    ]);
    assert.deepEqual(await totals({ user: 'eve' }), [[0, 0]]);
  }
});

test('without a store others have their turn while a list is made', async (t) => {
  const began = deferred();
  const { url } = await served(t, () => {}, {
    authorize(task, access) {
      if (access !== 'list') return true;
      began.resolve();
      // As one that takes its time would.
      for (const end = performance.now() + 0.5; performance.now() < end;);
      return true;
    },
  });
  let id;
  for (let i = 0; i < 300; i++)
    ({ id } = (await ask(url, V1.send, { message: V1.message('x') }, V1.headers)).result.task);
  const order = [];
  const listing = list(url, { pageSize: 1 }).then(({ totalSize }) => order.push(totalSize));
  await began.promise;
  await ask(url, V1.get, { id }, V1.headers).then(() => order.push('get'));
  await listing;
  assert.deepEqual(order, ['get', 300]);
});
