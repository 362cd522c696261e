// Nothing is left behind: listeners, records, places in the table.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';

test('a signal that outlives many calls keeps no listener of theirs', async () => {
  const { port1, port2 } = new MessageChannel();
  const shared = new AbortController(); // of the app, for calls within calls
  const app = expose(
    {
      app: { id: 'a', name: 'A', version: '1' },
      capabilities: {
        echo: (params) => params,
        fail: () => {
          throw new Error('no');
        },
        nested: (params, { call }) =>
          Promise.all(
            ['echo', 'nothing'].map((name) => call(name, params, { signal: shared.signal })),
          ),
      },
    },
    { port: port1 },
  );
  const client = await connect(port2, { agent: { name: 'a', version: '1' } });
  const { signal } = new AbortController();
  const call = (name) => client.call(name, 1, { signal, timeout: 60_000, onProgress() {} });
  await Promise.all(['echo', 'fail', 'nested', 'unknown'].map(call));
  assert.equal((await client.call('echo', { f() {} }, { signal })).error.code, 'INVALID_PARAMS');
  // Nor do calls that were refused before they left.
  const twice = ['same', 'same'].map((callId) => client.call('echo', 1, { signal, callId }));
  assert.equal((await Promise.all(twice))[1].error.code, 'INVALID_PARAMS');
  assert.deepEqual(getEventListeners(signal, 'abort'), []);
  assert.deepEqual(getEventListeners(shared.signal, 'abort'), []);
  assert.equal(client.counters.inFlightOut, 0);
  assert.equal(app.counters[0].inFlightIn, 0);
  assert.equal(app.counters[0].inFlightOut, 0);

  // Nor when the session ends under them.
  app.set('hang', () => new Promise(() => {}));
  const pending = client.call('hang', {}, { signal });
  client.close();
  assert.equal((await pending).cancelled, true);
  assert.deepEqual(getEventListeners(signal, 'abort'), []);
});

test('many more calls than a frame holds all come back, each with its own answer', async () => {
  const { port1, port2 } = new MessageChannel();
  expose(
    { app: { id: 'a', name: 'A', version: '1' }, capabilities: { echo: (params) => params } },
    { port: port1, limits: { maxCalls: 20_000 } },
  );
  const client = await connect(port2, {
    agent: { name: 'a', version: '1' },
    limits: { maxCalls: 20_000 },
  });
  const all = await Promise.all(Array.from({ length: 20_000 }, (_, i) => client.call('echo', i)));
  assert.deepEqual(
    all.map(({ data }) => data),
    Array.from({ length: 20_000 }, (_, i) => i),
  );
  const [one, other] = await Promise.all([client.call('echo', 1), client.call('echo', 2)]);
  assert.deepEqual([one.data, other.data], [1, 2]);
  client.close();
});

test('a signal that many calls share raises no warning of a leak', async (t) => {
  const warnings = [];
  const note = (warning) => warnings.push(warning);
  process.on('warning', note);
  t.after(() => process.off('warning', note));
  const { port1, port2 } = new MessageChannel();
  const hang = (_params, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  const app = expose(
    { app: { id: 'a', name: 'A', version: '1' }, capabilities: { hang } },
    { port: port1 },
  );
  const client = await connect(port2, { agent: { name: 'a', version: '1' } });
  const controller = new AbortController();
  const { signal } = controller;
  const calls = Array.from({ length: 20 }, () => client.call('hang', {}, { signal }));
  controller.abort();
  for (const { cancelled } of await Promise.all(calls)) assert.equal(cancelled, true);
  assert.deepEqual(warnings, []);
  client.close();
  app.close();
});
