// Cores that cannot have more memory: what does not fit is refused with a typed error, what runs
// goes on, and what is given back serves the next.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limitMemory } from '../support/little-memory.js';

limitMemory();
const { connect, expose } = await import('../../parts/main/index.js');
const { AGENT, APP } = await import('../support/pair.js');

async function pair() {
  const { port1, port2 } = new MessageChannel();
  const capabilities = {
    echo: (params) => params,
    lasts: (_params, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      ),
  };
  const app = expose({ app: APP, capabilities }, { port: port1 });
  const end = () => {
    app.close();
    port1.close();
  };
  try {
    const client = await connect(port2, { agent: AGENT, timeout: 5000 });
    return { app, client, end: () => (client.close(), end()) };
  } catch (error) {
    end();
    return { error };
  }
}

test('calls for which there is no memory are refused, once, and the session goes on', async () => {
  const { client, app, end } = await pair();
  const told = [];
  const calls = [];
  const first = new AbortController();
  while (!told.length) {
    assert.ok(calls.length < 4096, 'memory is short before the limit of calls is reached');
    for (let i = 0; i < 100; i++) {
      const callId = `${calls.length}`.padEnd(200, 'x');
      const options = { callId, signal: calls.length ? undefined : first.signal };
      calls.push(client.call('lasts', {}, options).then((response) => told.push(response)));
    }
    await new Promise(setImmediate);
  }
  await client.call('echo');
  for (const { error, metadata } of told) {
    assert.deepEqual(
      [error.code, error.retryable, metadata.outcome],
      ['INTERNAL_ERROR', true, 'unstarted'],
    );
  }
  const refused = told.length;
  // What one gives back serves the next.
  first.abort();
  await calls[0];
  assert.equal((await client.call('echo', 'goes on')).data, 'goes on');
  client.close();
  await Promise.all(calls);
  assert.equal(told.length, calls.length);
  for (const { error } of told.slice(refused)) assert.equal(error.code, 'CANCELLED');
  end();
  while (app.sessions.length) await new Promise(setImmediate);
  const next = await pair();
  assert.equal((await next.client.call('echo', 'again')).data, 'again');
  next.end();
});

test('sessions for which there is no memory end with a typed error; the others go on', async (t) => {
  t.mock.method(console, 'error', () => {});
  const pairs = await Promise.all(Array.from({ length: 120 }, () => pair()));
  const [failed, begun] = [
    pairs.filter(({ error }) => error),
    pairs.filter(({ client }) => client),
  ];
  assert.ok(failed.length > 0 && begun.length > 0, `${begun.length} of ${pairs.length} have begun`);
  for (const { error } of failed) {
    assert.match(error.code, /^(INTERNAL_ERROR|DISCONNECTED|TIMEOUT)$/, String(error));
  }
  for (const { client, end } of begun) {
    const { success, error } = await client.call('echo', 1);
    // The last one may have had room for itself alone.
    assert.ok(success || ['INTERNAL_ERROR', 'DISCONNECTED'].includes(error.code), error?.code);
    end();
  }
  const next = await pair();
  assert.equal((await next.client.call('echo', 'again')).data, 'again');
  next.end();
});
