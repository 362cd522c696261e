// What a call tells whose handler has ended while a call that it made works on.
import assert from 'node:assert/strict';
import { afterEach, describe, mock, test } from 'node:test';
import { AbpError, connect } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { AGENT, closeAfter, openPair, keepAlive } from '../support/pair.js';
import { CONNECTIONS } from '../support/connections.js';

let pair;
keepAlive();
afterEach(() => {
  pair?.close();
  pair = undefined;
  mock.restoreAll();
});

const turn = () => new Promise((resolve) => setImmediate(resolve));
const limits = (grace) => ({ app: { limits: { grace } }, exposeOptions: { limits: { grace } } });
const IMPATIENT = limits(1);
const PATIENT = limits(60_000);

/** A handler that ends when the test says so, whatever its signal says. */
function deaf() {
  const it = {};
  const ended = new Promise((resolve) => (it.end = resolve));
  it.begun = new Promise((resolve) => (it.begin = resolve));
  it.handler = async () => {
    it.begin();
    const value = await ended;
    it.hasEnded = true;
    return value;
  };
  return it;
}

const aborted = (signal) =>
  new Promise((_resolve, reject) => {
    signal.onabort = () => reject(signal.reason);
  });

/** Waits for what it has called, until it is to stop. */
const untilStopped = ({ call, signal }, inner = 'inner') =>
  Promise.race([call(inner), aborted(signal)]);

/** Handlers that do not wait for what they have called, and what these say of themselves. */
const LEAVERS = {
  'throws the reason of its signal': [(context) => untilStopped(context), 'stopped'],
  'throws an AbortError of its own': [
    (context) =>
      untilStopped(context).catch(() => {
        throw new DOMException('enough', 'AbortError');
      }),
    'stopped',
  ],
  'calls what does so': [(context) => untilStopped(context, 'between'), 'stopped'],
  'throws the error of what it called, and not the response': [
    async ({ call }) => {
      const { success, data, error } = await call('inner');
      if (!success) throw AbpError.from(error);
      return data;
    },
    'stopped',
  ],
  'throws another error': [
    (context) =>
      untilStopped(context).catch(() => {
        throw new AbpError('ENOUGH', 'it was stopped');
      }),
    'failed',
  ],
  'returns a value': [(context) => untilStopped(context).catch(() => 'enough'), 'finished'],
  'does not say': [
    (context) =>
      untilStopped(context).catch(() => ({
        success: false,
        cancelled: true,
        error: { code: 'CANCELLED', message: 'enough' },
        metadata: { outcome: 'unknown' },
      })),
    'unknown',
  ],
  'is a generator': [
    async function* (context) {
      yield 'chunk';
      await untilStopped(context);
    },
    'stopped',
  ],
};
/** Where nobody can ask later. */
const NEVER_ASKED = ['window.abp', 'a port with messages'];

const handlersOf = (leave, work) => ({
  inner: work.handler,
  between: (_params, context) => untilStopped(context),
  leaver: (_params, context) => leave(context),
});

for (const [connection, open] of Object.entries(CONNECTIONS)) {
  describe(`over ${connection}, a handler that was stopped`, () => {
    for (const [what, [leave, word]] of Object.entries(LEAVERS)) {
      test(`${what}: its caller is told when the inner call has ended`, async () => {
        mock.method(console, 'error', () => {});
        const work = deaf();
        pair = await open(handlersOf(leave, work), PATIENT);
        const controller = new AbortController();
        let told;
        const telling = pair
          .call('leaver', {}, { signal: controller.signal })
          .then((response) => (told = response));
        await work.begun;
        controller.abort('enough');
        for (let i = 0; i < 10; i++) await turn();
        assert.equal(told, undefined);
        work.end('done');
        const { cancelled, metadata } = await telling;
        assert.deepEqual([work.hasEnded, cancelled, metadata.outcome], [true, true, word]);
      });

      test(`${what}, and the grace period ends: running, and then its own word`, async () => {
        mock.method(console, 'error', () => {});
        mock.method(console, 'warn', () => {});
        const work = deaf();
        pair = await open(handlersOf(leave, work), IMPATIENT);
        const controller = new AbortController();
        const telling = pair.call('leaver', {}, { signal: controller.signal, callId: 'the-call' });
        await work.begun;
        controller.abort('enough');
        const { metadata, settled } = await telling;
        assert.equal(metadata.outcome, 'running');
        if (NEVER_ASKED.includes(connection)) {
          work.end('done');
          return;
        }
        for (let i = 0; i < 10; i++) await turn();
        if (connection !== 'a call of another handler')
          assert.equal((await pair.client.outcome('the-call')).outcome, 'running');
        work.end('done');
        assert.equal((await settled).outcome, word);
      });
    }

    test('by its timeout, too', async () => {
      mock.method(console, 'error', () => {});
      const work = deaf();
      const [leave] = LEAVERS['throws the reason of its signal'];
      work.left = new Promise((resolve) => (work.leave = resolve));
      const leaving = (context) => leave(context).finally(work.leave);
      pair = await open(handlersOf(leaving, work), PATIENT);
      let told;
      const telling = pair.call('leaver', {}, { timeout: 5 }).then((response) => (told = response));
      await work.begun;
      await work.left;
      for (let i = 0; i < 10; i++) await turn();
      assert.equal(told, undefined);
      work.end('done');
      const { success, metadata } = await telling;
      assert.deepEqual([work.hasEnded, success, metadata.outcome], [true, false, 'stopped']);
    });
  });
}

describe('a handler that was stopped and has ended', () => {
  const [leave] = LEAVERS['throws the reason of its signal'];

  test('waits for all that it called', async () => {
    mock.method(console, 'error', () => {});
    const works = [deaf(), deaf(), deaf()];
    const { client } = await openPair(
      {
        ...Object.fromEntries(works.map(({ handler }, i) => [`inner${i}`, handler])),
        leaver: (_params, { call, signal }) =>
          Promise.race([...works.map((_, i) => call(`inner${i}`)), aborted(signal)]),
      },
      PATIENT,
    );
    const controller = new AbortController();
    let told;
    const telling = client
      .call('leaver', {}, { signal: controller.signal })
      .then((response) => (told = response));
    for (const { begun } of works) await begun;
    controller.abort();
    for (const work of [works[1], works[2], works[0]]) {
      for (let i = 0; i < 5; i++) await turn();
      assert.equal(told, undefined);
      work.end('done');
    }
    assert.equal((await telling).metadata.outcome, 'stopped');
  });

  test('is unknown if it is of a part', async () => {
    mock.method(console, 'error', () => {});
    const work = deaf();
    const { client } = await openPair(handlersOf(leave, work), PATIENT);
    const controller = new AbortController();
    const telling = client.call('leaver', {}, { signal: controller.signal });
    await work.begun;
    controller.abort();
    work.end(Promise.reject(Object.assign(new Error('lost'), { outcome: 'unknown' })));
    assert.equal((await telling).metadata.outcome, 'unknown');
  });

  test('is that of a key: a repeat waits, and is told the same', async () => {
    mock.method(console, 'error', () => {});
    mock.method(console, 'warn', () => {});
    const work = deaf();
    const { client } = await openPair(handlersOf(leave, work), IMPATIENT);
    const controller = new AbortController();
    const telling = client.call('leaver', {}, { signal: controller.signal, idempotencyKey: 'k' });
    await work.begun;
    controller.abort();
    assert.equal((await telling).metadata.outcome, 'running');
    let told;
    const repeating = client
      .call('leaver', {}, { idempotencyKey: 'k' })
      .then((response) => (told = response));
    for (let i = 0; i < 10; i++) await turn();
    assert.equal(told, undefined);
    work.end('done');
    const { cancelled, metadata } = await repeating;
    assert.deepEqual([cancelled, metadata.outcome], [true, 'stopped']);
  });

  test('is that of a key whose agent was lost: its value is kept', async () => {
    mock.method(console, 'error', () => {});
    const work = deaf();
    const returning = (context) => untilStopped(context).catch(() => 'enough');
    const app = { limits: { grace: 1 } };
    const agent = { owner: 'the same agent, always' };
    const first = await openPair(handlersOf(returning, work), { app, agent });
    void first.client.call('leaver', {}, { idempotencyKey: 'k' });
    await work.begun;
    first.client.close();
    for (let i = 0; i < 10; i++) await turn();
    const { port1, port2 } = new MessageChannel();
    first.exposed.accept(portTransport(port1));
    const client = await connect(port2, { agent: AGENT, ...agent });
    closeAfter(() => (client.close(), port1.close(), port2.close()));
    let told;
    const repeating = client
      .call('leaver', {}, { idempotencyKey: 'k' })
      .then((response) => (told = response));
    for (let i = 0; i < 10; i++) await turn();
    assert.equal(told, undefined);
    work.end('done');
    assert.equal((await repeating).data, 'enough');
  });

  test('is running when its app closes, and the console does not complain of it', async () => {
    mock.method(console, 'error', () => {});
    const warn = mock.method(console, 'warn', () => {});
    const work = deaf();
    const { client, exposed } = await openPair(handlersOf(leave, work), PATIENT);
    const controller = new AbortController();
    const telling = client.call('leaver', {}, { signal: controller.signal });
    await work.begun;
    controller.abort();
    for (let i = 0; i < 10; i++) await turn();
    exposed.close();
    assert.equal((await telling).metadata.outcome, 'running');
    assert.equal(warn.mock.callCount(), 0);
    work.end('done');
  });

  test('frees its place when the inner call has ended', async () => {
    mock.method(console, 'error', () => {});
    const work = deaf();
    const app = { limits: { grace: 60_000, concurrent: 1 } };
    const { client } = await openPair({ ...handlersOf(leave, work), next: () => 'next' }, { app });
    const controller = new AbortController();
    const telling = client.call('leaver', {}, { signal: controller.signal });
    await work.begun;
    controller.abort();
    const next = client.call('next');
    for (let i = 0; i < 10; i++) await turn();
    work.end('done');
    assert.equal((await telling).metadata.outcome, 'stopped');
    assert.equal((await next).data, 'next');
  });
});

describe('a handler that nobody stopped', () => {
  /** What it is told of at once, and what when the inner call has ended. */
  async function toldOf(leaver) {
    mock.method(console, 'error', () => {});
    mock.method(console, 'warn', () => {});
    const work = deaf();
    const { client } = await openPair({ inner: work.handler, leaver }, IMPATIENT);
    const response = await client.call('leaver');
    const { settled } = response;
    work.end('done');
    return { response, last: (await settled)?.outcome };
  }

  test('throws an AbortError after it has stopped the inner call: that runs', async () => {
    const { response, last } = await toldOf(async (_params, { call }) => {
      const controller = new AbortController();
      void call('inner', {}, { signal: controller.signal });
      controller.abort();
      throw new DOMException('enough', 'AbortError');
    });
    assert.deepEqual([response.metadata.outcome, last], ['running', 'stopped']);
  });

  test('throws an AbortError, which stops the inner call: that runs', async () => {
    const { response, last } = await toldOf(async (_params, { call }) => {
      void call('inner');
      throw new DOMException('enough', 'AbortError');
    });
    assert.deepEqual([response.metadata.outcome, last], ['running', 'stopped']);
  });

  test('throws the error of a call, and not the response, which says that it runs', async () => {
    const { response, last } = await toldOf(async (_params, { call }) => {
      const { error, metadata } = await call('inner', {}, { timeout: 5 });
      assert.equal(metadata.outcome, 'running');
      throw AbpError.from(error);
    });
    assert.equal(response.error.code, 'TIMEOUT');
    assert.deepEqual([response.metadata.outcome, last], ['running', 'failed']);
  });

  test('fails beside a call that still runs: it is told at once', async () => {
    const { response } = await toldOf(async (_params, { call }) => {
      void call('inner');
      throw new AbpError('DISK_FULL', 'no room');
    });
    assert.deepEqual([response.error.code, response.metadata.outcome], ['DISK_FULL', 'failed']);
    assert.notEqual(response.cancelled, true);
  });

  test('succeeds beside a call that still runs: that is a success', async () => {
    const { response } = await toldOf(async (_params, { call }) => {
      void call('inner');
      return 'enough';
    });
    assert.equal(response.data, 'enough');
  });
});
