// A long life: calls by the million, a realistic part of them cancelled, timed out, refused or cut
// off, and memory that stays as it was. `npm run soak` makes ten million calls.
import assert from 'node:assert/strict';
import { setMaxListeners } from 'node:events';
import { test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { MemorySamples } from './memory.js';

const CALLS = Number(process.env.CALLS ?? 300_000);
const BATCH = 500;
const SAMPLES = 10;

test(`${CALLS.toLocaleString('en')} calls: each settles once, and memory stays flat`, async () => {
  let running = 0;
  const capabilities = {
    echo: (params) => params,
    fail() {
      throw new Error('no');
    },
    /** Works until it is stopped. */
    hang: (_params, { signal }) =>
      new Promise((_resolve, reject) => {
        running++;
        signal.addEventListener('abort', () => {
          running--;
          reject(signal.reason);
        });
      }),
  };
  const pair = async () => {
    const { port1, port2 } = new MessageChannel();
    const app = expose(
      { app: { id: 'a', name: 'A', version: '1' }, capabilities },
      { port: port1, limits: { maxCalls: BATCH } },
    );
    const client = await connect(port2, { agent: { name: 'soak', version: '1' } });
    return {
      app,
      client,
      end() {
        client.close();
        app.close();
        for (const port of [port1, port2]) port.close();
      },
    };
  };

  const seen = {};
  /** Counts how a call ended; every batch adds up, so none settles twice or never. */
  const settle = ({ success, error }) => {
    const how = success ? 'completed' : error.code;
    seen[how] = (seen[how] ?? 0) + 1;
  };
  const batch = async (client, i) => {
    const controller = new AbortController();
    const { signal } = controller;
    setMaxListeners(0, signal);
    const calls = [];
    for (let n = 0; n < BATCH; n++) {
      if (n % 10 === 0) calls.push(client.call('hang', {}, { signal }));
      else if (n % 97 === 0) calls.push(client.call('hang', {}, { timeout: 1 }));
      else if (n % 89 === 0) calls.push(client.call('fail'));
      else if (n % 83 === 0) {
        const callId = `${i}/${n}`;
        calls.push(client.call('hang', {}, { callId }));
        void client.cancel(callId, 'changed my mind');
      } else calls.push(client.call('echo', { n, text: 'some text' }, n % 2 ? { signal } : {}));
    }
    await calls[1];
    // A flood beyond the limit is refused, and stops nothing else.
    const flood = i % 20 === 0 ? Array.from({ length: BATCH }, () => client.call('echo', i)) : [];
    controller.abort('soaked');
    const all = await Promise.all([...calls, ...flood]);
    all.forEach(settle);
    return all.length;
  };

  const memory = new MemorySamples(CALLS, SAMPLES);
  let made = 0;
  let { app, client, end } = await pair();
  for (let i = 1; made < CALLS; i++) {
    made += await batch(client, i);
    if (i % 50 === 0) {
      // The agent goes away with calls in flight, and another comes.
      const cut = Array.from({ length: 20 }, () => client.call('hang'));
      end();
      (await Promise.all(cut)).forEach(settle);
      made += cut.length;
      ({ app, client, end } = await pair());
    }
    if (await memory.take(made)) {
      assert.deepEqual(
        [client.counters.inFlightOut, app.counters[0].inFlightIn],
        [0, 0],
        'nothing is pending',
      );
    }
  }
  end();
  assert.equal(running, 0, 'every handler was stopped');
  assert.equal(
    Object.values(seen).reduce((a, b) => a + b),
    made,
  );
  for (const how of ['completed', 'CANCELLED', 'TIMEOUT', 'OPERATION_FAILED', 'RATE_LIMITED']) {
    assert.ok(seen[how] > 0, `${how}: ${JSON.stringify(seen)}`);
  }
  console.log(`${JSON.stringify(seen)}\n${memory}`);
  memory.assertFlat(); // eight bytes a call would be more
});
