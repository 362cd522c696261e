// How a call's input ends: by its handler, its source, a cancel, or the end of the session. Nothing
// is read after that, and nothing is left behind.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, test } from 'node:test';
import { AbpError, connect, expose } from '../../parts/main/index.js';
import { TRANSPORTS } from '../contracts/channels.js';
import { random } from '../differential/scripts.js';
import { CAPABILITIES, handlers, pair, source } from '../support/input.js';
import { APP, closeAfter, openPair } from '../support/pair.js';
import { deferred } from '../support/site.js';

/** Frames, text messages, and a page that is driven. */
const CONNECTIONS = [
  ...TRANSPORTS.filter(({ name }) => /^MessageChannel$|the agent dials/.test(name)),
  { name: 'a page that is driven', driven: true },
];

for (const { name, ...connection } of CONNECTIONS) {
  describe(`input over ${name}`, () => {
    test('a handler that stops reading ends the source at once, and itself goes on', async () => {
      const { client } = await pair(connection);
      const { values, ended } = source(Infinity);
      const call = client.call('head', { count: 3 }, { input: values });
      await ended.promise;
      handlers.gate.resolve();
      assert.deepEqual((await call).data, [0, 1, 2]);
      assert.equal((await client.call('plain')).data, 42);
    });

    test('a cancel ends the handler’s loop and the source', async () => {
      const { client } = await pair(connection);
      const controller = new AbortController();
      const waiting = deferred();
      const done = deferred();
      async function* values() {
        try {
          yield 'first';
          waiting.resolve();
          yield* client.stream('plain'); // anything that ends
          await done.promise;
        } finally {
          done.finally = true;
        }
      }
      const { signal } = controller;
      const call = client.call('waits', {}, { input: values(), signal });
      await waiting.promise;
      controller.abort('enough');
      const error = await handlers.ended.promise;
      assert.equal(error.name, 'AbortError');
      assert.equal(handlers.ended.seen, 'first');
      done.resolve();
      const { cancelled } = await call;
      assert.equal(cancelled, true);
    });

    test('what has come before a cancel is not read any more', async () => {
      const { client } = await pair(connection);
      const watched = source(Infinity);
      const controller = new AbortController();
      const { signal } = controller;
      const call = client.call('late', {}, { input: watched.values, signal });
      await handlers.gate.promise;
      // All that the window holds is there, or on its way.
      for (let made = -1; made !== watched.made; await client.call('plain')) made = watched.made;
      controller.abort('enough');
      const { first, thrown, reason } = await handlers.ended.promise;
      assert.equal(first, 0);
      assert.equal(reason.name, 'AbortError');
      assert.deepEqual(thrown, [reason, reason, reason]);
      assert.equal((await call).cancelled, true);
    });
  });
}

for (const [what, end] of [
  ['is closed', ({ exposed }) => exposed.close()],
  ['is left by its agent', ({ client }) => client.close()],
]) {
  test(`what has come before the session ${what} is not read any more`, async () => {
    const both = await pair();
    const watched = source(Infinity);
    const call = both.client.call('late', {}, { input: watched.values });
    await handlers.gate.promise;
    for (let made = -1; made !== watched.made; await both.client.call('plain')) made = watched.made;
    end(both);
    const { thrown, reason } = await handlers.ended.promise;
    assert.deepEqual(thrown, [reason, reason, reason]);
    assert.equal((await call).success, false);
  });
}

test('input of which nothing was read before the cancel is not asked for', async () => {
  const { client } = await pair();
  const watched = source(Infinity);
  const controller = new AbortController();
  const { signal } = controller;
  const call = client.call('late', { unread: true }, { input: watched.values, signal });
  await handlers.gate.promise;
  controller.abort();
  const { thrown, reason } = await handlers.ended.promise;
  assert.deepEqual(thrown, [reason, reason, reason]);
  assert.equal(watched.made, 0);
  await call;
});

test('the error of a source that fails is thrown in the handler', async () => {
  const { client } = await pair();
  const fail = Object.assign(new Error('half of it'), { code: 'OWN', retryable: true });
  const { error } = await client.call('waits', {}, { input: source(2, { fail }).values });
  assert.deepEqual([error.code, error.message, error.retryable], ['OWN', 'half of it', true]);
  assert.equal(handlers.ended.seen, 1);
});

test('a value that cannot be sent ends the input with an error', async () => {
  for (const connection of [{ upgrade: 'frames' }, { upgrade: 'port' }, { driven: true }]) {
    const { client } = await pair(connection);
    const { ended, values } = source(0);
    async function* bad() {
      yield* values;
      yield () => {};
      yield 'more';
    }
    const { error } = await client.call('list', {}, { input: bad() });
    assert.equal(error.code, 'OPERATION_FAILED');
    assert.match(error.message, /A chunk cannot be sent/);
    await ended.promise;
  }
});

test('a source that is not read is cancelled when the call ends, however it ends', async () => {
  const { client } = await pair();
  const left = () => {
    const end = deferred();
    return [new ReadableStream({ cancel: end.resolve }), end.promise];
  };
  for (const name of ['plain', 'nothing']) {
    const [input, end] = left();
    await client.call(name, {}, { input });
    await end;
  }
  const [input, end] = left();
  await client.call('plain', {}, { input, signal: AbortSignal.abort() });
  await end;
  const [another, over] = left();
  client.close();
  const { error } = await client.call('plain', {}, { input: another });
  assert.equal(error.code, 'DISCONNECTED');
  await over;
});

test('a session that is closed, and one that is lost, end the source and the loop', async () => {
  for (const lose of [({ client }) => client.close(), ({ exposed }) => exposed.close()]) {
    const both = await pair({ limits: { app: { streamChunks: 1 } } });
    const watched = source(Infinity);
    const call = both.client.call('slow', {}, { input: watched.values });
    while (watched.made < 2) await both.client.call('plain');
    lose(both);
    handlers.gate.resolve();
    assert.equal((await call).success, false);
    await watched.ended.promise;
  }
});

test('leaving the input does not wait for a chunk that is under way', async () => {
  const left = deferred();
  let unwound;
  const { client } = await openPair({
    async leaves(_params, { input }) {
      const first = input.next();
      const result = await input.return('left');
      left.resolve(result);
      return [await first, await input.next()].map(({ done }) => done);
    },
  });
  const input = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise(() => {}),
      return: async () => ((unwound = true), { done: true }),
    }),
  };
  const { data } = await client.call('leaves', {}, { input });
  assert.deepEqual(await left.promise, { done: true, value: 'left' });
  assert.deepEqual(data, [true, true]);
  assert.equal(unwound, true);
});

test('window.abp.call with a signal and input keeps no listener', async () => {
  const exposed = expose({ app: APP, capabilities: CAPABILITIES }, { origins: [] });
  closeAfter(() => exposed.close());
  await exposed.abp.initialize({ agent: APP, protocolVersion: '0.1' });
  const { signal } = new AbortController();
  await exposed.abp.call('list', {}, { input: source(1).values, signal });
  assert.equal(getEventListeners(signal, 'abort').length, 0);
});

test('inputs that are cut off at random leave nothing behind', async () => {
  const pick = random(Number(process.env.SEED ?? 1));
  const { port1, port2 } = new MessageChannel();
  const left = [0, 0];
  const exposed = expose(
    {
      app: APP,
      capabilities: {
        async *any({ read, fails, yields }, { input }) {
          left[0]++;
          try {
            if (!read) return;
            for await (const value of input) {
              if (yields) yield value;
              if (--read === 0) break;
            }
            if (fails) throw new AbpError('OWN', 'fails');
            return 'done';
          } finally {
            left[0]--;
          }
        },
      },
    },
    { port: port1, limits: { streamChunks: 3 } },
  );
  closeAfter(() => exposed.close());
  const client = await connect(port2, { agent: APP, limits: { streamChunks: 2 } });
  closeAfter(() => client.close());
  async function* values(count, fails) {
    left[1]++;
    try {
      for (let i = 0; i < count; i++) yield pick(2) ? i : await Promise.resolve(i);
      if (fails) throw new AbpError('OWN', 'fails');
    } finally {
      left[1]--;
    }
  }
  async function one() {
    const params = { read: pick(12), fails: !pick(4), yields: !pick(2) };
    const controller = new AbortController();
    const input = values(pick(12), !pick(4));
    const stream = client.stream('any', params, { input, signal: controller.signal });
    const reads = pick(3) ? Infinity : pick(5);
    if (!pick(4)) setImmediate(() => controller.abort());
    let read = 0;
    try {
      for await (const chunk of stream) if (chunk >= 0 && ++read >= reads) break;
    } catch (error) {
      assert.ok(['OWN', 'CANCELLED'].includes(error.code), error.message);
    }
    await stream.response;
  }
  for (let i = 0; i < 40; i++) await Promise.all(Array.from({ length: 5 }, one));
  // What was left unwinds, and its last message arrives.
  const counters = () => [client.counters, ...exposed.counters];
  const isBusy = () => counters().some((c) => c.inFlightIn || c.inFlightOut);
  while (left[0] || left[1] || isBusy()) await new Promise(setImmediate);
  for (const { overrun, malformed } of counters()) assert.deepEqual([overrun, malformed], [0, 0]);
});
