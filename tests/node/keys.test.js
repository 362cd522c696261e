// A call that has a key runs once, for its own agent, as long as the app remembers the key.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { useClock } from '../support/clock.js';
import { AGENT, APP, closeAfter, openPair } from '../support/pair.js';
import { held, siteOf } from '../support/site.js';

/** The error code, the outcome and whether the error is retryable, or `success`. */
const failureOf = ({ success, error, metadata }) =>
  success ? 'success' : [error.code, metadata.outcome, error.retryable];

/** An app, and a function that opens connections to it; `cut` breaks the last one. */
function serve(capabilities, options) {
  const exposed = expose({ app: APP, capabilities }, { origins: [], ...options });
  let last;
  closeAfter(() => exposed.close());
  const open = () => {
    const { port1, port2 } = new MessageChannel();
    last = port1;
    closeAfter(() => port1.close());
    exposed.accept(portTransport(port1));
    return port2;
  };
  return { exposed, open, cut: () => last.close() };
}

/** A client, closed after the test. */
async function clientOf(open, options) {
  const client = await connect(open, { agent: AGENT, ...options });
  closeAfter(() => client.close());
  return client;
}

describe('a call that has a key', () => {
  test('runs once, and its repeat gets the same data', async () => {
    let runs = 0;
    const { client } = await openPair({ add: () => ({ runs: ++runs }) });
    const first = await client.call('add', {}, { idempotencyKey: 'k' });
    const second = await client.call('add', {}, { idempotencyKey: 'k' });
    assert.deepEqual([first.data, second.data], [{ runs: 1 }, { runs: 1 }]);
    const third = await client.call('add', {}, { idempotencyKey: 'other' });
    assert.deepEqual(third.data, { runs: 2 });
  });

  test('is joined while it runs', async () => {
    const work = held();
    const { client } = await openPair({ work: work.handler });
    const begun = work.next();
    const calls = [1, 2].map(() => client.call('work', {}, { idempotencyKey: 'k' }));
    const call = await begun;
    call.end.resolve(() => 'once');
    assert.deepEqual(
      (await Promise.all(calls)).map(({ data }) => data),
      ['once', 'once'],
    );
    assert.equal(work.calls.length, 1);
  });

  test('that another client of the agent tries again has a key of its own', async () => {
    let runs = 0;
    const app = serve({ add: () => ++runs });
    for (const made of [1, 2]) {
      const client = await clientOf(app.open, { owner: 'kept over a reload' });
      assert.equal((await client.call('add', {}, { retry: true })).data, made);
    }
  });

  test('is not made again after it was stopped: its repeat is told what became of it', async () => {
    const work = held();
    const { client } = await openPair({ work: work.handler });
    const begun = work.next();
    const controller = new AbortController();
    const options = { idempotencyKey: 'k', signal: controller.signal };
    const pending = client.call('work', {}, options);
    const call = await begun;
    call.context.report({ applied: 5 });
    const { signal } = call.context;
    const stopped = new Promise((resolve) => signal.addEventListener('abort', resolve));
    controller.abort();
    await stopped;
    call.end.resolve(() => 'all of it');
    assert.equal((await pending).metadata.outcome, 'finished');
    const again = await client.call('work', {}, { idempotencyKey: 'k' });
    assert.equal(again.error.code, 'CANCELLED');
    assert.equal(again.data, undefined);
    assert.equal(again.metadata.outcome, 'finished');
    assert.deepEqual(again.metadata.report, { applied: 5 });
    assert.equal(work.calls.length, 1);
  });

  test('that failed is not made again, unless its error says that it may', async () => {
    let runs = 0;
    const { client } = await openPair({
      bad: () => Promise.reject(new Error(`run ${++runs}`)),
      busy: () => {
        const error = { code: 'BUSY', message: `run ${++runs}`, retryable: true };
        return { success: false, error };
      },
    });
    const messages = [];
    for (const name of ['bad', 'bad', 'busy', 'busy']) {
      messages.push((await client.call(name, {}, { idempotencyKey: 'k' })).error.message);
    }
    assert.deepEqual(messages, ['run 1', 'run 1', 'run 2', 'run 3']);
  });

  test('that failed tells its repeat what its handler had reported', async () => {
    const { client } = await openPair({
      bad(_params, { report }) {
        report({ applied: 2 });
        throw new Error('disk full');
      },
    });
    const responses = [];
    for (let i = 0; i < 2; i++) {
      const { error, metadata } = await client.call('bad', {}, { idempotencyKey: 'k' });
      responses.push([error.message, metadata.outcome, metadata.report]);
    }
    assert.deepEqual(responses[1], responses[0]);
    assert.deepEqual(responses[0], ['disk full', 'failed', { applied: 2 }]);
  });

  test('that is cancelled before its handler could begin never ran', async () => {
    let runs = 0;
    const { client } = await openPair({ add: () => ++runs });
    const controller = new AbortController();
    const { signal } = controller;
    const pending = client.call('add', {}, { idempotencyKey: 'k', signal });
    controller.abort();
    const { cancelled, data, metadata } = await pending;
    // What remembers keys may be there already.
    if (cancelled) assert.deepEqual([metadata.outcome, runs], ['unstarted', 0]);
    else assert.deepEqual([data, runs], [1, 1]);
  });

  test('that never ran may run', async () => {
    const work = held();
    const { client } = await openPair(
      { work: work.handler },
      { app: { limits: { maxConcurrent: 1 } } },
    );
    const begun = work.next();
    const blocking = client.call('work');
    const first = await begun;
    const controller = new AbortController();
    const waiting = client.call('work', {}, { idempotencyKey: 'k', signal: controller.signal });
    controller.abort();
    assert.equal((await waiting).metadata.outcome, 'unstarted');
    const next = work.next();
    first.end.resolve(() => 1);
    await blocking;
    const again = client.call('work', {}, { idempotencyKey: 'k' });
    (await next).end.resolve(() => 2);
    assert.equal((await again).data, 2);
  });

  for (const [way, open] of [
    ['a driven page', async (app) => (await openPair(app, { driven: true })).client],
    ['window.abp', async (app) => (await openPair(app)).exposed.abp],
  ]) {
    test(`runs once by ${way}, too`, async () => {
      let runs = 0;
      const agent = await open({ add: () => ++runs });
      await agent.initialize?.({ agent: AGENT, protocolVersion: '0.1' });
      for (let i = 0; i < 2; i++)
        assert.equal((await agent.call('add', {}, { idempotencyKey: 'k' })).data, 1);
    });
  }

  test('is its own agent’s alone', async () => {
    let runs = 0;
    const app = serve({ add: () => ++runs });
    const [one, two] = [await clientOf(app.open), await clientOf(app.open)];
    for (const client of [one, two, one]) await client.call('add', {}, { idempotencyKey: 'k' });
    assert.equal(runs, 2);
  });

  test('is known for as long as the app remembers, and no longer', async (t) => {
    const rememberFor = 3_600_000;
    let runs = 0;
    const { client } = await openPair(
      { add: () => ++runs },
      { app: { limits: { rememberFor, heartbeat: 0 } }, agent: { limits: { heartbeat: 0 } } },
    );
    const clock = useClock(t);
    for (const [ms, expected] of [
      [0, 1],
      [rememberFor, 1],
      [1, 2],
    ]) {
      clock.advance(ms);
      assert.equal(await client.invoke('add', {}, { idempotencyKey: 'k' }), expected);
    }
  });

  test('has its data kept with 4 MiB of others, and no more', async () => {
    const { client } = await openPair({ make: ({ length }) => 'x'.repeat(length) });
    const make = (key, length) => client.call('make', { length }, { idempotencyKey: key });
    for (const key of ['one', 'two', 'one', 'two'])
      assert.equal((await make(key, 2 ** 21)).data.length, 2 ** 21);
    await make('three', 1);
    const { success, metadata } = await make('one', 2 ** 21);
    assert.deepEqual([success, metadata.outcome], [false, 'finished']);
    assert.equal((await make('two', 2 ** 21)).data.length, 2 ** 21);
  });

  test('whose data are too much, or a stream, says that it has run', async () => {
    const { client } = await openPair({
      big: () => 'x'.repeat(5_000_000),
      streamed: async function* streamed() {
        yield 1;
      },
    });
    for (const name of ['big', 'streamed']) {
      const first = await client.call(name, {}, { idempotencyKey: 'k' });
      assert.equal(first.success, true, name);
      const second = await client.call(name, {}, { idempotencyKey: 'k' });
      assert.deepEqual([second.success, second.metadata.outcome], [false, 'finished'], name);
    }
  });

  test('what is no key, or cannot have one, is refused', async () => {
    const { client } = await openPair({ add: () => 1 });
    const long = await client.call('add', {}, { idempotencyKey: 'k'.repeat(257) });
    assert.deepEqual([long.error.code, long.metadata.outcome], ['INVALID_PARAMS', 'unstarted']);
    await assert.rejects(client.call('add', {}, { idempotencyKey: 7 }), { code: 'INVALID_PARAMS' });
    const stream = client.stream('add', {}, { idempotencyKey: 'k' });
    await assert.rejects(async () => {
      for await (const chunk of stream) assert.fail(chunk);
    });
  });

  test('whose data are moved gives them to each repeat', async () => {
    const site = siteOf({
      capabilities: {
        draw: () => ({ content: new Uint8Array([1, 2, 3]).buffer, mimeType: 'a/b' }),
      },
    });
    const client = await site.client();
    for (let i = 0; i < 3; i++) {
      const { data } = await client.call('draw', {}, { idempotencyKey: 'k' });
      assert.deepEqual([...new Uint8Array(data.content)], [1, 2, 3]);
    }
  });
});

test('one agent may use half of the 16,384 keys that are left: what is known stays known, a new one is refused, and others go on', async () => {
  let runs = 0;
  const site = siteOf({ capabilities: { add: () => ++runs } });
  const client = await site.client();
  const call = (key, by = client) => by.call('add', {}, { idempotencyKey: `${key}` });
  const fill = async (keys, by) => {
    for (let i = 0; i < keys; i += 1024)
      await Promise.all(Array.from({ length: 1024 }, (_, j) => call(i + j, by)));
  };
  await fill(8192);
  const refused = await call('one more');
  assert.deepEqual(failureOf(refused), ['RATE_LIMITED', 'unstarted', true]);
  assert.ok(refused.error.retryAfter > 0);
  assert.equal((await call(0)).data, 1);
  assert.equal(runs, 8192);
  assert.equal((await client.call('add')).data, 8193);
  // The next one has half of what is left, however many sessions somebody begins.
  const other = await site.client();
  await fill(4096, other);
  assert.deepEqual(failureOf(await call('one more', other)), ['RATE_LIMITED', 'unstarted', true]);
  assert.equal(typeof (await call(0, other)).data, 'number');
  assert.equal((await call('its first', await site.client())).success, true);
  assert.equal((await call(1)).data, 2);
});

test('a store of keys that cannot be opened is warned of, and calls without a key are answered', async (t) => {
  const warned = t.mock.method(console, 'warn', () => {});
  const site = siteOf({ options: { keys: {} }, capabilities: { work: () => 'done' } });
  const client = await site.client();
  assert.equal((await client.call('work')).data, 'done');
  const refused = await client.call('work', {}, { idempotencyKey: 'k' });
  assert.deepEqual(
    [refused.error.code, refused.metadata.outcome],
    ['KEYS_UNAVAILABLE', 'unstarted'],
  );
  while (!warned.mock.callCount()) await new Promise(setImmediate);
  assert.match(warned.mock.calls[0].arguments[0], /the store of keys cannot be used/);
});
