// What an agent streams to a handler arrives chunk by chunk, in both directions at once, and no
// faster than the handler reads.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { expose } from '../../parts/main/index.js';
import { TRANSPORTS } from '../contracts/channels.js';
import { CAPABILITIES, handlers, pair, source } from '../support/input.js';
import { APP, closeAfter } from '../support/pair.js';
import { deferred } from '../support/site.js';

/** Frames, text messages, and a page that is driven. */
const CONNECTIONS = [
  ...TRANSPORTS.filter(({ name }) => /^MessageChannel$|the agent dials/.test(name)),
  { name: 'a page that is driven', driven: true },
];

for (const { name, ...connection } of [...TRANSPORTS, ...CONNECTIONS.slice(-1)])
  test(`over ${name}, every value arrives in order, and the handler has the end`, async () => {
    const { client } = await pair(connection);
    const { values } = source(300);
    const { data } = await client.call('list', {}, { input: values });
    assert.deepEqual(data, [...Array(300).keys()]);
    assert.equal((await client.call('sum', {}, { input: source(10).values })).data, 45);
  });

for (const { name, ...connection } of CONNECTIONS) {
  describe(`input over ${name}`, () => {
    test('a handler says how many bytes may come ahead of it', async () => {
      const { client } = await pair(connection);
      const watched = source(100);
      // Two numbers.
      const call = client.call('marked', { highWaterMark: 16 }, { input: watched.values });
      while (!watched.made) await client.call('plain');
      for (let i = 0; i < 4; i++) await client.call('plain');
      assert.ok(watched.made <= 5, `${watched.made} chunks were made`);
      handlers.gate.resolve();
      assert.equal((await call).data, 100);
    });

    test('a source with a handler that does not read is held at the window', async () => {
      const { client } = await pair({ ...connection, limits: { app: { streamChunks: 4 } } });
      const watched = source(200);
      const call = client.call('slow', {}, { input: watched.values });
      assert.equal((await client.call('plain')).data, 42);
      assert.equal((await client.call('plain')).data, 42);
      assert.ok(watched.made <= 7, `${watched.made} values were made`);
      handlers.gate.resolve();
      assert.equal((await call).data, 200);
    });
  });
}

test('a highWaterMark of input that is no number of bytes fails the read, and nothing is taken from the source', async () => {
  const { client } = await pair();
  for (const highWaterMark of [0, -1, 1.5, NaN, null, '16']) {
    const watched = source(3);
    const call = client.call('marked', { highWaterMark }, { input: watched.values });
    const { error } = await call;
    assert.equal(error.code, 'INVALID_PARAMS');
    assert.match(error.message, /highWaterMark/);
    assert.equal(watched.made, 0);
  }
});

test('a call without input: its handler has none', async () => {
  const { client } = await pair();
  assert.deepEqual((await client.call('has')).data, [true, true]);
  assert.deepEqual((await client.call('has', {}, { input: source(1).values })).data, [false, true]);
});

test('input and a stream flow at once', async () => {
  for (const upgrade of ['frames', 'port']) {
    const { client, exposed } = await pair({
      upgrade,
      limits: { agent: { streamChunks: 2 }, app: { streamChunks: 2 } },
    });
    const stream = client.stream('double', {}, { input: source(50).values });
    const chunks = [];
    for await (const chunk of stream) chunks.push(chunk);
    assert.deepEqual(
      chunks,
      [...Array(50).keys()].map((n) => n * 2),
    );
    assert.equal((await stream.response).data, 'doubled');
    for (const counters of [client.counters, ...exposed.counters]) {
      const { overrun, stray, inFlightIn, inFlightOut } = counters;
      assert.deepEqual([overrun, stray, inFlightIn, inFlightOut], [0, 0, 0, 0]);
    }
  }
});

test('a ReadableStream and any async iterable are read, and bytes are bytes', async () => {
  const { client } = await pair();
  const input = new ReadableStream({
    start(controller) {
      controller.enqueue(new Uint8Array([1, 2]));
      controller.enqueue({ a: 1n });
      controller.close();
    },
  });
  const { data } = await client.call('list', {}, { input, callId: 'chosen' });
  assert.deepEqual(data, [new Uint8Array([1, 2]), { a: 1n }]);
  let left = 2;
  const iterable = {
    [Symbol.asyncIterator]: () => ({ next: async () => ({ done: !left, value: left-- }) }),
  };
  assert.deepEqual((await client.call('list', {}, { input: iterable })).data, [2, 1]);
});

test('input is refused where it cannot be carried, and its source is cancelled', async () => {
  const { client } = await pair({ upgrade: 'none' });
  const end = deferred();
  const input = new ReadableStream({ cancel: end.resolve });
  const { error } = await client.call('list', {}, { input });
  assert.equal(error.code, 'NOT_SUPPORTED');
  await end.promise;
  const exposed = expose({ app: APP, capabilities: CAPABILITIES }, { origins: [] });
  closeAfter(() => exposed.close());
  await exposed.abp.initialize({ agent: APP, protocolVersion: '0.1' });
  const said = await exposed.abp.call('list', {}, { input: source(1).values });
  assert.equal(said.error.code, 'NOT_SUPPORTED');
});

test('input that is no source is refused at once', async () => {
  const { client } = await pair();
  for (const input of [5, null, 'text', [1], {}]) {
    await assert.rejects(
      client.call('list', {}, { input }),
      /input of a call must be an async iterable/,
    );
  }
  const read = new ReadableStream();
  read.getReader();
  await assert.rejects(client.call('list', {}, { input: read }), TypeError);
  await assert.rejects(
    client.call('list', {}, { input: source(1).values, retry: true }),
    /cannot be retried/,
  );
});
