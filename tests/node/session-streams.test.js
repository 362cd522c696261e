// Results that flow: what a generator yields reaches its reader chunk by chunk, no faster than that
// reads, and the call still has one outcome.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { AbpError, connect, expose } from '../../parts/main/index.js';
import { TRANSPORTS } from '../contracts/channels.js';
import { entriesOf } from '../support/frames.js';
import { openPair } from '../support/pair.js';
import { all, assertClean, handlers, pair } from '../support/streams.js';

/** Frames, text messages, and a page that is driven. */
const CONNECTIONS = [
  ...TRANSPORTS.filter(({ name }) => /^MessageChannel$|the agent dials/.test(name)),
  { name: 'a page that is driven', driven: true },
];

for (const { name, ...connection } of [...TRANSPORTS, ...CONNECTIONS.slice(-1)])
  test(`over ${name}, every chunk arrives in order, then what the generator returned`, async () => {
    const { client, exposed } = await pair(connection);
    assert.equal(client.features.streams, true);
    const stream = client.stream('count', { to: 500 });
    assert.deepEqual(await all(stream), [...Array(500).keys()]);
    const { success, data } = await stream.response;
    assert.deepEqual([success, data], [true, 'counted to 500']);
    assert.deepEqual(await all(client.stream('pages')), [
      { page: 1, rows: [[1, 'a']] },
      { page: 2, rows: [] },
    ]);
    assert.deepEqual(await all(client.stream('readable')), ['a', 'b']);
    assertClean(client, exposed);
  });

for (const { name, ...connection } of CONNECTIONS) {
  describe(`streams over ${name}`, () => {
    test('a fast generator with a reader that does not read is held at the window', async () => {
      const limits = { agent: { streamChunks: 4 } };
      const { client, exposed } = await pair({ ...connection, limits });
      const stream = client.stream('count', { to: 1000 });
      assert.deepEqual((await stream.next()).value, 0);
      // A round trip and another: what was sent has arrived, and another call is not held up.
      assert.equal((await client.call('plain')).data, 42);
      assert.equal((await client.call('plain')).data, 42);
      assert.ok(handlers.log.length <= 7, `${handlers.log.length} chunks were made`);
      assert.equal((await all(stream)).length, 999);
      assertClean(client, exposed);
    });

    test('a reader says how many bytes may come ahead of it, for one stream', async () => {
      const { client, exposed } = await pair(connection);
      // Two numbers.
      const stream = client.stream('count', { to: 1000 }, { highWaterMark: 16 });
      assert.deepEqual((await stream.next()).value, 0);
      assert.equal((await client.call('plain')).data, 42);
      assert.equal((await client.call('plain')).data, 42);
      assert.ok(handlers.log.length <= 5, `${handlers.log.length} chunks were made`);
      assert.equal((await all(stream)).length, 999);
      assert.equal((await all(client.stream('count', { to: 100 }))).length, 100);
      assertClean(client, exposed);
    });
  });
}

describe('streams', () => {
  test('the window counts bytes, too, and the smaller one of the two sides', async () => {
    const limits = { agent: { streamBytes: 100 }, app: { streamChunks: 2 } };
    const { client } = await pair({ limits });
    const numbers = client.stream('count', { to: 100 });
    await numbers.next();
    await client.call('plain');
    await client.call('plain');
    assert.ok(handlers.log.length <= 5, `${handlers.log.length} chunks were made`);
    assert.equal((await all(numbers)).length, 99);
    assert.equal((await all(client.stream('count', { to: 100 }))).length, 100);
  });

  test('a highWaterMark may be of one byte, and more than the limits is what these allow', async () => {
    const { client } = await pair({ limits: { app: { streamBytes: 16 } } });
    for (const [highWaterMark, most] of [
      [1, 4],
      [17, 5],
      [2 ** 32 + 1, 5],
      [Infinity, 5],
      [undefined, 5],
    ]) {
      handlers.log = [];
      const stream = client.stream('count', { to: 100 }, { highWaterMark });
      await stream.next();
      await client.call('plain');
      await client.call('plain');
      assert.ok(
        handlers.log.length <= most,
        `${handlers.log.length} chunks were made at ${highWaterMark}`,
      );
      assert.equal((await all(stream)).length, 99);
    }
  });

  test('a highWaterMark that is no number of bytes is refused, and nothing runs', async () => {
    const { client } = await pair();
    for (const highWaterMark of [0, -1, 1.5, NaN, -Infinity, null, false, '16', {}]) {
      const stream = client.stream('count', { to: 1 }, { highWaterMark });
      const is = { name: 'AbpError', code: 'INVALID_PARAMS', message: /highWaterMark/ };
      await assert.rejects(stream.next(), is);
      await assert.rejects(stream.response, is);
    }
    assert.deepEqual(handlers.log, []);
  });

  test('any async iterable streams', async () => {
    const { client } = await pair();
    const stream = client.stream('iterable');
    assert.deepEqual(await all(stream), [2, 1]);
    assert.equal((await stream.response).data, 'none left');
  });

  test('by hand: next gives the chunks, and at the end what was returned', async () => {
    const { client } = await pair();
    const stream = client.stream('count', { to: 2 });
    const asked = [stream.next(), stream.next(), stream.next(), stream.next()];
    assert.deepEqual(await Promise.all(asked), [
      { done: false, value: 0 },
      { done: false, value: 1 },
      { done: true, value: 'counted to 2' },
      { done: true, value: undefined },
    ]);
  });

  test('call collects: what was returned or, if that is nothing, every chunk', async () => {
    for (const upgrade of ['frames', 'port', 'none']) {
      const { client } = await pair({ upgrade });
      assert.equal((await client.call('count', { to: 3 })).data, 'counted to 3');
      const { data, metadata } = await client.call('readable');
      assert.deepEqual(data, ['a', 'b']);
      assert.equal(metadata.collected, true);
      assert.equal((await client.call('plain')).metadata.collected, undefined);
    }
  });

  test('a generator may return the protocol’s own response, and it is the outcome', async () => {
    const error = { code: 'OWN', message: 'No more', retryable: false };
    const { client } = await openPair({
      async *fails() {
        yield 1;
        return { success: false, error };
      },
      async *says() {
        yield 1;
        return { success: true, data: 'all' };
      },
      async *cancelled() {
        yield 1;
        return { success: false, cancelled: true, error: { ...error, code: 'CANCELLED' } };
      },
    });
    const failed = client.stream('fails');
    await assert.rejects(all(failed), { code: 'OWN' });
    assert.equal((await failed.response).success, false);
    assert.deepEqual((await client.call('fails')).error, error);
    assert.equal((await client.call('says')).data, 'all');
    assert.equal((await client.call('cancelled')).cancelled, true);
  });

  test('an iterator that has thrown is not told to return', async () => {
    const returned = [];
    const iterable = (next) => ({
      [Symbol.asyncIterator]: () => ({ next, return: (why) => returned.push(why) }),
    });
    const broken = () => Promise.reject(new AbpError('OWN', 'broken'));
    const { client } = await openPair({
      broken: () => iterable(broken),
      unsendable: () => iterable(async () => ({ done: false, value: () => {} })),
    });
    assert.equal((await client.call('broken')).error.code, 'OWN');
    await assert.rejects(all(client.stream('broken')), { code: 'OWN' });
    assert.equal(returned.length, 0);
    await assert.rejects(all(client.stream('unsendable')), { code: 'OPERATION_FAILED' });
    assert.equal(returned.length, 1);
  });

  test('over plain messages a stream has its chunks all at once', async () => {
    const { client } = await pair({ upgrade: 'none' });
    assert.equal(client.features.streams, false);
    assert.deepEqual(await all(client.stream('readable')), ['a', 'b']);
    const counted = client.stream('count', { to: 3 });
    assert.deepEqual(await all(counted), []);
    assert.equal((await counted.response).data, 'counted to 3');
  });

  test('over a port without frames chunks are messages', async () => {
    const { client, exposed } = await pair({ upgrade: 'port' });
    assert.equal(client.features.streams, true);
    assert.equal((await all(client.stream('count', { to: 300 }))).length, 300);
    assertClean(client, exposed);
  });

  test('a ReadableStream that is marked to be moved is moved, not read', async () => {
    const { client } = await pair();
    const { data } = await client.call('moved');
    assert.ok(data instanceof ReadableStream);
  });

  test('what does not stream has no chunks', async () => {
    const { client } = await pair();
    const stream = client.stream('plain');
    assert.deepEqual(await all(stream), []);
    assert.equal((await stream.response).data, 42);
  });

  test('a generator that throws: the chunks before it arrive, then its error', async () => {
    const { client } = await pair();
    const stream = client.stream('breaks');
    assert.equal((await stream.next()).value, 1);
    await assert.rejects(stream.next(), { name: 'AbpError', code: 'OWN', message: 'half of it' });
    assert.deepEqual(await stream.next(), { done: true, value: undefined });
    assert.equal((await stream.response).error.code, 'OWN');
  });

  test('a chunk that cannot be sent ends the stream with an error, and never with a success', async () => {
    for (const upgrade of ['frames', 'port']) {
      const { client } = await pair({ upgrade });
      const stream = client.stream('unsendable');
      const chunks = [];
      await assert.rejects(
        async () => {
          for await (const chunk of stream) chunks.push(chunk);
        },
        { code: 'OPERATION_FAILED', message: /A chunk cannot be sent/ },
      );
      assert.equal(chunks[0], 'first');
      assert.ok(!chunks.includes('done'));
      assert.equal((await stream.response).success, false);
      await handlers.unwound.promise;
    }
  });

  test('refused, it throws, and has sent nothing', async () => {
    const { client } = await pair();
    await assert.rejects(all(client.stream('refuses')), { code: 'CAPABILITY_UNAVAILABLE' });
    await assert.rejects(all(client.stream('nothing')), { code: 'UNKNOWN_CAPABILITY' });
    await assert.rejects(all(client.stream(7)), { code: 'INVALID_PARAMS' });
  });

  test('two streams, one unread, do not wait for each other', async () => {
    const { client } = await pair({ limits: { agent: { streamChunks: 2 } } });
    const unread = client.stream('deaf');
    assert.equal((await all(client.stream('count', { to: 200 }))).length, 200);
    await unread.return();
    assert.equal((await unread.response).cancelled, true);
  });
});

/** A stream over a channel of which each side's frames are counted: the entries of each. */
async function counted(rows) {
  const { port1, port2 } = new MessageChannel();
  const sent = [port1, port2].map((port) => {
    const frames = [];
    const post = port.postMessage.bind(port);
    port.postMessage = (message, transfer) => {
      if (Array.isArray(message) || typeof message === 'string') frames.push(entriesOf(message));
      return post(message, transfer);
    };
    return frames;
  });
  const exposed = expose(
    { app: { id: 'a.b', name: 'A', version: '1' }, capabilities: { rows: () => rows(sent[0]) } },
    { port: port1 },
  );
  const client = await connect(port2, { agent: { name: 'test', version: '1' } });
  let read = 0;
  const stream = client.stream('rows');
  while (!(await stream.next()).done) read++;
  client.close();
  exposed.close();
  return { read, frames: sent[0].length, credits: sent[1].length };
}

test('chunks that follow one another travel together, and so does their credit', async () => {
  const count = 2000;
  const { read, frames, credits } = await counted(async function* () {
    for (let i = 0; i < count; i++) yield 'token';
  });
  assert.equal(read, count);
  assert.ok(frames < count / 4, `${frames} frames for ${count} chunks`);
  assert.ok(credits < count / 4, `${credits} messages with credit for ${count} chunks`);
});

test('chunks that take their time are not held back', async () => {
  await counted(async function* (frames) {
    for (let i = 0; i < 10; i++) {
      const from = performance.now();
      while (performance.now() - from < 2);
      yield 'row';
      const sent = frames.flat().filter(([, , , chunk]) => chunk === 'row').length;
      assert.equal(sent, i + 1);
    }
  });
});
