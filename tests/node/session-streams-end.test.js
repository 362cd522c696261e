// How a stream ends: its reader leaves, it is cancelled, or the session ends. Its generator
// unwinds, and nothing is left behind.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AbpError, connect, expose } from '../../parts/main/index.js';
import { TRANSPORTS } from '../contracts/channels.js';
import { random } from '../differential/scripts.js';
import { APP } from '../support/pair.js';
import { deferred } from '../support/site.js';
import { CAPABILITIES, all, assertClean, handlers, pair } from '../support/streams.js';

/** Frames, text messages, and a page that is driven. */
const CONNECTIONS = [
  ...TRANSPORTS.filter(({ name }) => /^MessageChannel$|the agent dials/.test(name)),
  { name: 'a page that is driven', driven: true },
];

for (const { name, ...connection } of CONNECTIONS)
  test(`over ${name}, leaving the loop cancels the call, and the generator unwinds`, async () => {
    const { client } = await pair(connection);
    const stream = client.stream('deaf');
    let read = 0;
    for await (const chunk of stream) {
      assert.equal(chunk, 'more');
      if (++read === 3) break;
    }
    await handlers.unwound.promise;
    const { success, cancelled } = await stream.response;
    assert.deepEqual([success, cancelled], [false, true]);
    assert.deepEqual((await client.call('plain')).data, 42);
  });

describe('a stream ends', () => {
  const cancelled = { name: 'AbortError', code: 'CANCELLED' };

  test('by a signal, also while the handler waits for something else', async () => {
    const { client } = await pair();
    const controller = new AbortController();
    const stream = client.stream('hangs', {}, { signal: controller.signal });
    assert.equal((await stream.next()).value, 'first');
    controller.abort('enough');
    await assert.rejects(stream.next(), { ...cancelled, message: 'enough' });
    await handlers.unwound.promise;
  });

  test('by a signal while the generator waits for room', async () => {
    const { client } = await pair({ limits: { agent: { streamChunks: 1 } } });
    const controller = new AbortController();
    const stream = client.stream('deaf', {}, { signal: controller.signal });
    await client.call('plain');
    await client.call('plain');
    controller.abort();
    await handlers.unwound.promise;
    // What had come is still there to be read.
    assert.equal((await stream.next()).value, 'more');
    await assert.rejects(all(stream), cancelled);
  });

  test('by a signal that was aborted already: nothing is sent', async () => {
    const { client } = await pair();
    const stream = client.stream('count', { to: 3 }, { signal: AbortSignal.abort('no') });
    await assert.rejects(all(stream), { ...cancelled, message: 'no' });
    assert.deepEqual(handlers.log, []);
  });

  test('by a timeout', async () => {
    const { client } = await pair();
    const stream = client.stream('hangs', {}, { timeout: 5 });
    await assert.rejects(all(stream), { code: 'TIMEOUT' });
  });

  test('by cancel(callId)', async () => {
    const { client } = await pair();
    const stream = client.stream('hangs', {}, { callId: 'mine' });
    assert.equal((await stream.next()).value, 'first');
    assert.equal((await client.cancel('mine')).cancelled, true);
    await assert.rejects(stream.next(), cancelled);
    await handlers.unwound.promise;
  });

  test('with the session: closed by the agent, closed by the app, lost', async () => {
    for (const end of [
      ({ client }) => client.close(),
      ({ exposed }) => exposed.close(),
      ({ app }) => app.close(),
    ]) {
      handlers.log = [];
      handlers.unwound = deferred();
      const { port1, port2 } = new MessageChannel();
      const exposed = expose({ app: APP, capabilities: CAPABILITIES }, { port: port1 });
      const client = await connect(port2, { agent: { name: 'test', version: '1' } });
      const stream = client.stream('hangs');
      assert.equal((await stream.next()).value, 'first');
      end({ client, exposed, app: port1 });
      await assert.rejects(all(stream), (error) =>
        ['CANCELLED', 'DISCONNECTED'].includes(error.code),
      );
      await handlers.unwound.promise;
      client.close();
      exposed.close();
    }
  });

  test('a ReadableStream is cancelled', async () => {
    const { client } = await pair();
    for await (const chunk of client.stream('endless')) {
      assert.equal(chunk, 'x');
      break;
    }
    await handlers.unwound.promise;
  });

  test('after the result nothing more comes of it', async () => {
    const { client, exposed } = await pair();
    const stream = client.stream('count', { to: 10 });
    await stream.response;
    assert.equal((await all(stream)).length, 10);
    await stream.return();
    assert.deepEqual(await stream.next(), { done: true, value: undefined });
    assertClean(client, exposed);
  });
});

// STREAMS says how many.
test('streams that are cut off at random leave nothing behind', async () => {
  const count = Number(process.env.STREAMS ?? 200);
  const pick = random(Number(process.env.SEED ?? 1));
  let begun = 0;
  let ended = 0;
  const { port1, port2 } = new MessageChannel();
  const exposed = expose(
    {
      app: { id: 'a.b', name: 'A', version: '1' },
      capabilities: {
        async *rows({ rows, size, fails }) {
          begun++;
          try {
            for (let i = 0; i < rows; i++) yield { i, text: 'x'.repeat(size) };
            if (fails) throw new AbpError('OWN', 'as it was told to');
            return rows;
          } finally {
            ended++;
          }
        },
      },
    },
    { port: port1, limits: { streamChunks: 7, streamBytes: 300 } },
  );
  const client = await connect(port2, {
    agent: { name: 'test', version: '1' },
    limits: { streamChunks: 5, streamBytes: 500 },
  });
  const outcomes = {};
  async function one(n) {
    const [rows, cut] = [pick(40), pick(60)];
    const ending = ['break', 'abort', 'cancel', 'nothing'][pick(4)];
    const controller = new AbortController();
    const stream = client.stream(
      'rows',
      { rows, size: pick(100), fails: pick(4) === 0 },
      { signal: controller.signal, callId: `s${n}` },
    );
    let read = 0;
    try {
      for await (const { i } of stream) {
        assert.equal(i, read++);
        if (read <= cut) continue;
        if (ending === 'break') break;
        if (ending === 'abort') controller.abort();
        if (ending === 'cancel') void client.cancel(`s${n}`);
      }
    } catch (error) {
      assert.ok(['OWN', 'CANCELLED'].includes(error.code), error.message);
    }
    const { success, data, error } = await stream.response;
    if (success) assert.equal(data, rows);
    // What a success has sent has been read, unless its reader has left.
    if (success && ending !== 'break') assert.equal(read, rows);
    const outcome = success ? 'success' : error.code;
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  }
  for (let n = 0; n < count; n += 20) {
    await Promise.all(Array.from({ length: 20 }, (_, i) => one(n + i)));
  }
  assert.ok(
    outcomes.success > 0 && outcomes.OWN > 0 && outcomes.CANCELLED > 0,
    'all of it happens',
  );
  assert.equal(ended, begun);
  const { inFlightIn, overrun: granted, stray: unknown } = exposed.counters[0];
  const { inFlightOut, overrun, stray, malformed } = client.counters;
  assert.deepEqual([inFlightIn, granted, unknown], [0, 0, 0]);
  assert.deepEqual([inFlightOut, overrun, stray, malformed], [0, 0, 0, 0]);
  client.close();
  exposed.close();
});
