// Params that flow: what an agent streams reaches the handler chunk by chunk, over every transport,
// and ends with the call.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { describe, test } from 'node:test';
import { AbpError, connect, expose } from '../../parts/main/index.js';
import { TRANSPORTS } from '../contracts/channels.js';
import { random } from '../differential/scripts.js';
import { APP, closeAfter, openPair } from '../support/pair.js';
import { Raw } from '../support/raw.js';

const deferred = () => {
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
};

/** An agent's source that can be watched. */
function source(to, { fail } = {}) {
  const watched = { made: 0, ended: deferred() };
  watched.values = (async function* () {
    try {
      for (; watched.made < to;) yield watched.made++;
      if (fail) throw fail;
      return 'the end';
    } finally {
      watched.ended.resolve();
    }
  })();
  return watched;
}

/** What handlers wait for, and what became of them. */
let gate;
let ended;

const CAPABILITIES = {
  async list(_params, { input }) {
    const values = [];
    for await (const value of input) values.push(value);
    return values;
  },
  async sum(_params, { input }) {
    let sum = 0;
    for (let next; !(next = await input.next()).done;) sum += next.value;
    return sum;
  },
  /** Reads a little, and goes on with something else. */
  async head({ count = 1 }, { input }) {
    const values = [];
    for await (const value of input) if (values.push(value) === count) break;
    await gate.promise;
    return values;
  },
  /** Reads one, and the rest when it may. */
  async slow(_params, { input }) {
    const values = [(await input.next()).value];
    await gate.promise;
    for await (const value of input) values.push(value);
    return values.length;
  },
  /** The same, and says how many bytes may come ahead of it. */
  async marked({ highWaterMark }, { input }) {
    input.highWaterMark = highWaterMark;
    const values = [(await input.next()).value];
    await gate.promise;
    for await (const value of input) values.push(value);
    return values.length;
  },
  async *double(_params, { input }) {
    for await (const value of input) yield value * 2;
    return 'doubled';
  },
  async waits(_params, { input }) {
    try {
      for await (const value of input) ended.seen = value;
      return 'all';
    } catch (error) {
      ended.resolve(error);
      throw error;
    }
  },
  /** Reads one, and tries to read on once it was cancelled. */
  async late({ unread }, { input, signal }) {
    const first = unread ? undefined : (await input.next()).value;
    gate.resolve();
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
    const thrown = [];
    for (let i = 0; i < 3; i++) thrown.push(await input.next().then(String, (error) => error));
    ended.resolve({ first, thrown, reason: signal.reason });
  },
  has: (_params, context) => [context.input === undefined, 'input' in { ...context }],
  plain: () => 42,
};

function pair({ limits = {}, ...way } = {}) {
  gate = deferred();
  ended = deferred();
  return openPair(CAPABILITIES, {
    ...way,
    app: { limits: limits.app },
    agent: { limits: limits.agent },
  });
}

for (const { name, ...way } of [...TRANSPORTS, { name: 'a page that is driven', driven: true }]) {
  describe(`input over ${name}`, () => {
    test('every value arrives in order, and the handler has the end', async () => {
      const { client } = await pair(way);
      const { values } = source(300);
      const { data } = await client.call('list', {}, { input: values });
      assert.deepEqual(data, [...Array(300).keys()]);
      assert.equal((await client.call('sum', {}, { input: source(10).values })).data, 45);
    });

    test('a handler says how many bytes may come ahead of it', async () => {
      const { client } = await pair(way);
      const watched = source(100);
      // Two numbers.
      const call = client.call('marked', { highWaterMark: 16 }, { input: watched.values });
      while (!watched.made) await client.call('plain');
      for (let i = 0; i < 4; i++) await client.call('plain');
      assert.ok(watched.made <= 5, `${watched.made} chunks were made`);
      gate.resolve();
      assert.equal((await call).data, 100);
    });

    test('a handler that stops reading ends the source at once, and itself goes on', async () => {
      const { client } = await pair(way);
      const { values, ended } = source(Infinity);
      const call = client.call('head', { count: 3 }, { input: values });
      await ended.promise;
      gate.resolve();
      assert.deepEqual((await call).data, [0, 1, 2]);
      assert.equal((await client.call('plain')).data, 42);
    });

    test('a source with a handler that does not read is held at the window', async () => {
      const { client } = await pair({ ...way, limits: { app: { streamChunks: 4 } } });
      const watched = source(200);
      const call = client.call('slow', {}, { input: watched.values });
      assert.equal((await client.call('plain')).data, 42);
      assert.equal((await client.call('plain')).data, 42);
      assert.ok(watched.made <= 7, `${watched.made} values were made`);
      gate.resolve();
      assert.equal((await call).data, 200);
    });

    test('a cancel ends the handler’s loop and the source', async () => {
      const { client } = await pair(way);
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
      const error = await ended.promise;
      assert.equal(error.name, 'AbortError');
      assert.equal(ended.seen, 'first');
      done.resolve();
      const { cancelled } = await call;
      assert.equal(cancelled, true);
    });

    test('what has come before a cancel is not read any more', async () => {
      const { client } = await pair(way);
      const watched = source(Infinity);
      const controller = new AbortController();
      const { signal } = controller;
      const call = client.call('late', {}, { input: watched.values, signal });
      await gate.promise;
      // All that the window holds is there, or on its way.
      for (let made = -1; made !== watched.made; await client.call('plain')) made = watched.made;
      controller.abort('enough');
      const { first, thrown, reason } = await ended.promise;
      assert.equal(first, 0);
      assert.equal(reason.name, 'AbortError');
      assert.deepEqual(thrown, [reason, reason, reason]);
      assert.equal((await call).cancelled, true);
    });
  });
}

describe('input', () => {
  test('a highWaterMark that is no number of bytes fails the read, and nothing is taken from the source', async () => {
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

  for (const [what, end] of [
    ['is closed', ({ exposed }) => exposed.close()],
    ['is left by its agent', ({ client }) => client.close()],
  ]) {
    test(`what has come before the session ${what} is not read any more`, async () => {
      const both = await pair();
      const watched = source(Infinity);
      const call = both.client.call('late', {}, { input: watched.values });
      await gate.promise;
      for (let made = -1; made !== watched.made; await both.client.call('plain'))
        made = watched.made;
      end(both);
      const { thrown, reason } = await ended.promise;
      assert.deepEqual(thrown, [reason, reason, reason]);
      assert.equal((await call).success, false);
    });
  }

  test('of which nothing was read before the cancel is not asked for', async () => {
    const { client } = await pair();
    const watched = source(Infinity);
    const controller = new AbortController();
    const { signal } = controller;
    const call = client.call('late', { unread: true }, { input: watched.values, signal });
    await gate.promise;
    controller.abort();
    const { thrown, reason } = await ended.promise;
    assert.deepEqual(thrown, [reason, reason, reason]);
    assert.equal(watched.made, 0);
    await call;
  });

  test('without it a handler has none', async () => {
    const { client } = await pair();
    assert.deepEqual((await client.call('has')).data, [true, true]);
    assert.deepEqual((await client.call('has', {}, { input: source(1).values })).data, [
      false,
      true,
    ]);
  });

  test('both directions flow at once', async () => {
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

  test('a source that fails: its error is thrown in the handler', async () => {
    const { client } = await pair();
    const fail = Object.assign(new Error('half of it'), { code: 'OWN', retryable: true });
    const { error } = await client.call('waits', {}, { input: source(2, { fail }).values });
    assert.deepEqual([error.code, error.message, error.retryable], ['OWN', 'half of it', true]);
    assert.equal(ended.seen, 1);
  });

  test('a value that cannot be sent ends it with an error', async () => {
    for (const way of [{ upgrade: 'frames' }, { upgrade: 'port' }, { driven: true }]) {
      const { client } = await pair(way);
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

  test('what is not read is let go when the call ends, however it ends', async () => {
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

  test('a cancel ends the loop as the signal fires, however long the source takes', async () => {
    const { client } = await pair();
    const waiting = deferred();
    const done = deferred();
    async function* values() {
      yield 'first';
      waiting.resolve();
      await done.promise;
    }
    const controller = new AbortController();
    const call = client.call('waits', {}, { input: values(), signal: controller.signal });
    await waiting.promise;
    let thrown;
    void ended.promise.then((error) => (thrown = error));
    controller.abort();
    await client.call('plain');
    assert.equal(thrown?.name, 'AbortError');
    assert.equal((await call).cancelled, true);
    done.resolve();
  });

  test('a session that is closed, and one that is lost, end the source and the loop', async () => {
    for (const lose of [({ client }) => client.close(), ({ exposed }) => exposed.close()]) {
      const both = await pair({ limits: { app: { streamChunks: 1 } } });
      const watched = source(Infinity);
      const call = both.client.call('slow', {}, { input: watched.values });
      while (watched.made < 2) await both.client.call('plain');
      lose(both);
      gate.resolve();
      assert.equal((await call).success, false);
      await watched.ended.promise;
    }
  });

  test('an app that cancels nothing: the source ends with the call all the same', async () => {
    const { client, raw, id } = await handmade();
    const watched = source(Infinity);
    const call = client.call('any', {}, { input: watched.values });
    const [, key] = await raw.next();
    raw.port.postMessage([2, 9, 'bridge/input', [{ callId: `${id}.${key}` }, 0, false, 1, 8]]);
    assert.deepEqual(await raw.next(), [8, 9, 8, 0]);
    raw.port.postMessage([3, key, 0, 'done']);
    assert.equal((await call).data, 'done');
    await watched.ended.promise;
  });

  test('an app is refused the input of other calls, and a second reading', async () => {
    const { client, raw } = await handmade();
    const watched = source(3);
    const call = client.call('any', {}, { input: watched.values, callId: 'mine' });
    await raw.next();
    const ask = (key, params) =>
      raw.port.postMessage([2, key, 'bridge/input', [params, 0, false, 9, 99]]);
    for (const [i, params] of [{ callId: 'other' }, {}, null, 'mine'].entries()) {
      ask(i + 1, params);
      const [kind, key, , response] = await raw.next();
      assert.deepEqual([kind, key, response.error.code], [4, i + 1, 'INVALID_PARAMS']);
    }
    ask(9, { callId: 'mine' });
    assert.deepEqual((await raw.next()).slice(0, 4), [8, 9, 8, 0]);
    ask(10, { callId: 'mine' });
    const entries = [];
    while (!entries.some(([kind, key]) => kind === 4 && key === 10)) {
      const frame = await raw.next();
      for (let i = 0; i < frame.length; i += 4) entries.push(frame.slice(i, i + 4));
    }
    assert.equal(entries.find(([, key]) => key === 10)[3].error.code, 'INVALID_PARAMS');
    raw.port.postMessage([3, 'mine', 0, 'done']);
    assert.equal((await call).data, 'done');
  });

  test('where it cannot be carried it is refused, and let go', async () => {
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

  test('an agent that announces input and has none: the handler is told', async () => {
    ended = deferred();
    const { port1, port2 } = new MessageChannel();
    const exposed = expose({ app: APP, capabilities: CAPABILITIES }, { port: port1 });
    closeAfter(() => exposed.close());
    const raw = new Raw(port2);
    closeAfter(() => port2.close());
    const features = { 'bridge.frames': true, 'bridge.streams': true };
    await raw.ask('initialize', 'P', { agent: APP, protocolVersion: '0.1', features });
    port2.postMessage([2, 1, 'waits', [{}, 0, false, 0, 0, true]]);
    const [kind, key, name, more] = await raw.next();
    assert.deepEqual([kind, name, more[0]], [2, 'bridge/input', { callId: 'P.1' }]);
    port2.postMessage([4, key, undefined, { success: false, error: { code: 'INVALID_PARAMS' } }]);
    assert.equal((await ended.promise).code, 'INVALID_PARAMS');
  });

  test('an agent that announces input and has not agreed on streams: there is none', async () => {
    const { port1, port2 } = new MessageChannel();
    const capabilities = { has: (_params, { input }) => input !== undefined };
    const exposed = expose({ app: APP, capabilities }, { port: port1 });
    closeAfter(() => exposed.close());
    const raw = new Raw(port2);
    closeAfter(() => port2.close());
    await raw.ask('initialize', 'P', { agent: APP, protocolVersion: '0.1' });
    const options = { input: true };
    const { payload } = await raw.ask('capabilities/call', 'c', { capability: 'has', options });
    assert.equal(payload.data, false);
  });

  test('leaving it does not wait for a chunk that is under way', async () => {
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

  test('what is no source is refused at once', async () => {
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

/** Our client, and an app that a test plays by hand, whose session's calls are `P.n`. */
async function handmade() {
  const { port1, port2 } = new MessageChannel();
  const raw = new Raw(port1);
  const connecting = connect(port2, { agent: APP });
  const { id } = await raw.next();
  raw.send('initialize-result', id, {
    sessionId: 's',
    protocolVersion: '0.1',
    app: APP,
    capabilities: [],
    features: { 'bridge.frames': true, 'bridge.streams': true },
  });
  const client = await connecting;
  closeAfter(() => port1.close());
  closeAfter(() => client.close());
  return { client, raw, id };
}
