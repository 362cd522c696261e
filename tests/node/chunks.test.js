// Both ends of what flows, by hand: who reads chunks that come when they come, and sources that are
// stopped while they are at work.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { transfer } from '../../parts/main/index.js';
import { closeAfter, openPair } from '../support/pair.js';

const OVER = { done: true, value: undefined };
const turn = () => new Promise(setImmediate);
function deferred() {
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
}

/** Who reads what flows from a source to the other side. `ended` settles when its call has. */
const READERS = {
  async 'an agent'(source) {
    const { client } = await openPair({ source: () => source });
    const stream = client.stream('source');
    return { reader: stream, ended: stream.response };
  },
  async 'a handler, of its input'(source) {
    const [begun, finished] = [deferred(), deferred()];
    const { client } = await openPair({
      take(_params, { input }) {
        begun.resolve(input);
        return finished.promise;
      },
    });
    const ended = client.call('take', {}, { input: source });
    closeAfter(finished.resolve);
    return { reader: await begun.promise, ended };
  },
};

for (const [who, open] of Object.entries(READERS)) {
  describe(`${who} that reads by hand`, () => {
    /** A source that gives what a test tells it to. */
    function source() {
      const gates = [deferred()];
      return {
        give: (...chunks) => gates.at(-1).resolve({ chunks, next: gates.push(deferred()) }),
        end: (value) => gates.at(-1).resolve({ value }),
        fail: (error) => gates.at(-1).resolve({ error }),
        async *[Symbol.asyncIterator]() {
          for (let i = 0; ; i++) {
            const { chunks, value, error } = await gates[i].promise;
            if (error) throw error;
            if (!chunks) return value;
            yield* chunks;
          }
        },
      };
    }
    const valuesOf = (results) => results.map(({ value }) => value);

    test('gets chunks in order, whether it asks before they come or after', async () => {
      const from = source();
      const { reader } = await open(from);
      assert.equal(reader[Symbol.asyncIterator](), reader);
      const early = [reader.next(), reader.next()];
      from.give('a', 'b', 'c', 'd');
      assert.deepEqual(await Promise.all(early), [
        { done: false, value: 'a' },
        { done: false, value: 'b' },
      ]);
      assert.equal((await reader.next()).value, 'c');
      from.give('e');
      from.end('returned');
      assert.deepEqual(valuesOf([await reader.next(), await reader.next()]), ['d', 'e']);
      assert.deepEqual(await reader.next(), { done: true, value: 'returned' });
      assert.deepEqual(await reader.next(), OVER);
    });

    for (const fails of [false, true]) {
      test(`of all that wait the first is told that the source ${fails ? 'failed' : 'has returned'}`, async () => {
        const from = source();
        const { reader } = await open(from);
        const [first, ...others] = [reader.next(), reader.next(), reader.next()];
        if (fails) from.fail(Object.assign(new Error('broken'), { code: 'OWN', retryable: false }));
        else from.end('returned');
        if (fails) await assert.rejects(first, { code: 'OWN', message: 'broken' });
        else assert.deepEqual(await first, { done: true, value: 'returned' });
        assert.deepEqual(await Promise.all(others), [OVER, OVER]);
        assert.deepEqual(await reader.next(), OVER);
      });
    }

    test('gets nothing more once it has left, neither what it asked for nor what had come', async () => {
      const from = source();
      const { reader } = await open(from);
      from.give('a', 'b', 'c');
      assert.equal((await reader.next()).value, 'a');
      await turn();
      assert.deepEqual(await reader.return('mine'), { done: true, value: 'mine' });
      from.give('d');
      assert.deepEqual(await Promise.all([reader.next(), reader.next()]), [OVER, OVER]);
    });

    test('that leaves while it waits is told that nothing comes', async () => {
      const { reader } = await open(source());
      const waiting = [reader.next(), reader.next()];
      await reader.return();
      assert.deepEqual(await Promise.all(waiting), [OVER, OVER]);
    });
  });
}

describe('a source that is stopped', () => {
  test('while it makes a chunk is told so once, and the chunk goes to nobody', async () => {
    const [asked, chunk] = [deferred(), deferred()];
    let stops = 0;
    const { client } = await openPair({
      source: () => ({
        [Symbol.asyncIterator]: () => ({
          next: () => (asked.resolve(), chunk.promise),
          return: () => (stops++, OVER),
        }),
      }),
    });
    const controller = new AbortController();
    const stream = client.stream('source', {}, { signal: controller.signal });
    const read = stream.next();
    await asked.promise;
    controller.abort('enough');
    await assert.rejects(read, { name: 'AbortError', message: 'enough' });
    chunk.resolve({ done: false, value: 1 });
    assert.equal((await stream.response).cancelled, true);
    assert.deepEqual(await stream.next(), OVER);
    assert.equal(stops, 1);
  });

  for (const [what, cleanup, shown] of [
    ['has no cleanup', undefined, []],
    [
      'has one that fails, which the console shows',
      () => Promise.reject(new Error('no')),
      [["abp-bridge: a stream's cleanup failed:", 'no']],
    ],
  ]) {
    test(`and ${what} is stopped all the same`, async (t) => {
      const said = t.mock.method(console, 'error', () => {});
      const { client } = await openPair({
        source: () => ({
          [Symbol.asyncIterator]: () => ({ next: async () => ({ value: 1 }), return: cleanup }),
        }),
      });
      const stream = client.stream('source');
      assert.equal((await stream.next()).value, 1);
      await stream.return();
      assert.equal((await stream.response).cancelled, true);
      assert.deepEqual(
        said.mock.calls.map(({ arguments: [words, error] }) => [words, error.message]),
        shown,
      );
    });
  }
});

describe('a stream that is collected', () => {
  for (const [most, size, success] of [
    ['64 MiB', 2 ** 26, true],
    ['a byte more', 2 ** 26 + 1, false],
  ]) {
    test(`may have ${most}: ${success}`, async () => {
      const { client } = await openPair({
        async *source() {
          const content = new ArrayBuffer(size);
          yield transfer({ '': content }, [content]);
          return 'all of it';
        },
      });
      const { error, ...response } = await client.call('source');
      assert.equal(response.success, success);
      if (!success) {
        assert.equal(error.code, 'OPERATION_FAILED');
        assert.match(error.message, /too long to be collected; use client\.stream\(\): 67108864 b/);
      }
    });
  }

  test('counts each chunk as 64 at least, so that there are a million at most', async () => {
    const LEFT = 200;
    let made = 0;
    const { client } = await openPair({
      async *source() {
        const content = new ArrayBuffer(2 ** 26 - LEFT);
        yield transfer({ '': content }, [content]);
        for (;;) yield made++;
      },
    });
    assert.equal((await client.call('source')).error.code, 'OPERATION_FAILED');
    assert.equal(made, Math.floor(LEFT / 64) + 1);
  });
});

test('breathe returns to the event loop every 8 ms, once for all that wait, and throws when the work is to stop', async (t) => {
  const begun = deferred();
  const { client } = await openPair({
    work: (_params, context) =>
      new Promise((_resolve, reject) => begun.resolve({ context, reject })),
  });
  const controller = new AbortController();
  const pending = client.call('work', {}, { signal: controller.signal });
  const { context, reject } = await begun.promise;
  const { breathe, signal } = context;
  let now = performance.now() + 1e6;
  t.mock.method(performance, 'now', () => now);
  const isDue = () => breathe() !== undefined;
  await breathe();
  assert.equal(isDue(), false);
  now += 7.9;
  assert.equal(isDue(), false);
  now += 0.1;
  const order = [];
  setImmediate(() => order.push('what was queued'));
  await Promise.all([breathe(), breathe()]);
  assert.deepEqual(order, ['what was queued']);
  assert.equal(isDue(), false);
  controller.abort('stop');
  await new Promise((resolve) => signal.addEventListener('abort', resolve));
  assert.throws(breathe, { message: 'stop' });
  reject(signal.reason);
  assert.equal((await pending).cancelled, true);
});
