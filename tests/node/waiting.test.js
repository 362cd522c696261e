// A task that waits for a worker has not begun: whatever ends its call meanwhile, no line of it
// ran, and its caller is told that.
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { peerPair } from '../../packages/rpc/tests/support/rpc.js';
import { AGENT, APP, closeAfter, openPair } from '../support/pair.js';
import { CONNECTIONS } from '../support/connections.js';
import { connect, expose } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { pool } from '../../parts/workers/pool.js';

const script = new URL('../support/workers/pool.js', import.meta.url);

/** What tasks did, which their workers write into it. @type {Int32Array<SharedArrayBuffer>} */
let marks;
/** @type {import('../../parts/workers/pool.js').Pool} */
let workers;
/** @type {any} */
let pair;

/** A pool of one worker. */
function open(options, workerData) {
  marks = new Int32Array(new SharedArrayBuffer(4));
  const start = () => new Worker(script, { workerData: { marks: marks.buffer, ...workerData } });
  workers = pool(start, { size: 1, ...options });
  return workers;
}

afterEach(async () => {
  pair?.close?.();
  pair = undefined;
  await workers.close();
});

/** Gives the one worker a task that runs until `free` is called. */
async function occupy() {
  const controller = new AbortController();
  const { signal } = controller;
  let ended;
  await new Promise((resolve, reject) => {
    ended = workers.run('marks')({}, { signal, progress: () => resolve(undefined) });
    ended.catch(reject);
  });
  assert.equal(marks[0], 1);
  return async function free() {
    controller.abort();
    await ended.catch(() => {});
  };
}

/**
 * Resolves when so many tasks wait.
 * @param {number} count
 */
async function waiting(count) {
  while (workers.counters.waiting < count) await new Promise((resolve) => setImmediate(resolve));
}

/** The worker has taken and ended what waited for it. */
const idle = () => workers.run('echo')('', { signal: new AbortController().signal });

/** What waits: plain, with params that are checked, and a stream. */
const CAPABILITIES = () => ({
  plain: workers.run('marks'),
  checked: { handler: workers.run('marks'), inputSchema: { type: 'object' } },
  streams: workers.run('streams'),
  missing: workers.run('missing'),
});

const failureOf = ({ error, metadata }) => [error.code, metadata.outcome];

for (const [connection, openConnection] of Object.entries(CONNECTIONS)) {
  const isNested = connection === 'a call of another handler';
  /** Who waits for a worker is the app's affair: all is tried over one, and in its own page. */
  const isWhole = /frames|window/.test(connection);
  describe(`over ${connection}, a task that waits for a worker`, () => {
    for (const name of isWhole ? ['plain', 'checked', 'streams'] : ['plain']) {
      test(`is cancelled: unstarted (${name})`, async () => {
        open();
        pair = await openConnection(CAPABILITIES());
        const free = await occupy();
        const controller = new AbortController();
        const pending = pair.call(name, {}, { signal: controller.signal });
        await waiting(1);
        controller.abort('enough');
        assert.deepEqual(failureOf(await pending), ['CANCELLED', 'unstarted']);
        assert.equal(workers.counters.waiting, 0);
        await free();
        await idle();
        assert.equal(marks[0], 1);
      });
    }

    if (!isNested)
      test('is in an app that closes: unstarted', async () => {
        open();
        pair = await openConnection(CAPABILITIES());
        const free = await occupy();
        // Plain messages have no keys.
        const key = connection === 'a port with messages' ? undefined : { idempotencyKey: 'k' };
        const calls = [pair.call('plain', {}, key)];
        await waiting(1);
        if (key) calls.push(pair.call('plain', {}, key));
        await pair.call('nothing, until the repeat has come');
        pair.exposed.close();
        for (const { metadata } of await Promise.all(calls))
          assert.equal(metadata.outcome, 'unstarted');
        await free();
        await idle();
        assert.equal(marks[0], 1);
      });

    test('has begun when a worker has it: stopped', async () => {
      open();
      pair = await openConnection(CAPABILITIES());
      const controller = new AbortController();
      const pending = pair.call('plain', {}, { signal: controller.signal });
      while (!marks[0]) await new Promise((resolve) => setImmediate(resolve));
      controller.abort('enough');
      assert.deepEqual(failureOf(await pending), ['CANCELLED', 'stopped']);
    });

    if (!isWhole) return;

    test('takes longer than its time: unstarted', async () => {
      open();
      pair = await openConnection(CAPABILITIES());
      await occupy();
      assert.deepEqual(failureOf(await pair.call('plain', {}, { timeout: 20 })), [
        'TIMEOUT',
        'unstarted',
      ]);
      assert.equal(marks[0], 1);
    });

    test('is in a pool that is closed: unstarted', async () => {
      open();
      pair = await openConnection(CAPABILITIES());
      await occupy();
      const pending = pair.call('plain');
      await waiting(1);
      await workers.close();
      assert.deepEqual(failureOf(await pending), ['CANCELLED', 'unstarted']);
      assert.deepEqual(failureOf(await pair.call('plain')), [
        'CAPABILITY_UNAVAILABLE',
        'unstarted',
      ]);
      assert.equal(marks[0], 1);
    });

    test('is one too many: unstarted', async () => {
      open({ maxWaiting: 1 });
      pair = await openConnection(CAPABILITIES());
      await occupy();
      void pair.call('plain');
      await waiting(1);
      const refused = await pair.call('plain');
      assert.deepEqual(failureOf(refused), ['RATE_LIMITED', 'unstarted']);
      assert.equal(refused.error.retryable, true);
      assert.equal(marks[0], 1);
    });

    test('waits for one that never starts: unstarted', async () => {
      open({}, { throws: true });
      pair = await openConnection(CAPABILITIES());
      const failed = await pair.call('plain');
      assert.deepEqual(failureOf(failed), ['CAPABILITY_UNAVAILABLE', 'unstarted']);
      assert.equal(marks[0], 0);
    });

    test('is one that no worker serves: unstarted', async () => {
      open();
      pair = await openConnection(CAPABILITIES());
      assert.deepEqual(failureOf(await pair.call('missing')), ['INTERNAL_ERROR', 'unstarted']);
    });
  });
}

test('params that cannot be sent to a worker: unstarted', async () => {
  open();
  const within = (_params, { call }) => call('echo', { act() {} });
  const { client } = await openPair({ within, echo: workers.run('echo') });
  assert.deepEqual(failureOf(await client.call('within')), ['INVALID_PARAMS', 'unstarted']);
});

test('a handler that has done something before it gave a task to the pool: stopped', async () => {
  open();
  let effects = 0;
  const work = (params, context) => (effects++, workers.run('marks')(params, context));
  const { client } = await openPair({ work });
  await occupy();
  const controller = new AbortController();
  const pending = client.call('work', {}, { signal: controller.signal });
  await waiting(1);
  controller.abort('enough');
  assert.deepEqual(failureOf(await pending), ['CANCELLED', 'stopped']);
  assert.equal(effects, 1);
});

test('its line is lost: who asks later is told unstarted, and a repeat with its key runs', async () => {
  open();
  const capabilities = { work: workers.run('echo') };
  const exposed = expose({ app: APP, capabilities }, { origins: [] });
  closeAfter(() => exposed.close());
  /** @type {MessagePort} */
  let appEnd;
  const reach = () => {
    const { port1, port2 } = new MessageChannel();
    appEnd = port1;
    closeAfter(() => port1.close());
    exposed.accept(portTransport(port1));
    return port2;
  };
  const client = await connect(reach, { agent: AGENT, reconnect: true });
  closeAfter(() => client.close());
  const free = await occupy();
  const options = { idempotencyKey: 'order-1' };
  const pending = client.call('work', 1, options);
  await waiting(1);
  appEnd.close();
  const lost = await pending;
  assert.equal(lost.error.code, 'DISCONNECTED');
  assert.equal((await lost.settled).outcome, 'unstarted');
  assert.equal(workers.counters.waiting, 0);
  const again = client.call('work', 2, options);
  await waiting(1);
  await free();
  assert.equal((await again).data, 2);
});

for (const dialect of /** @type {const} */ (['acp', 'lsp'])) {
  test(`${dialect}: a request that waits for a worker is cancelled, or refused: unstarted`, async () => {
    open({ maxWaiting: 1 });
    const { a, b } = peerPair(dialect);
    b.handle('work', workers.run('marks'));
    const free = await occupy();
    const controller = new AbortController();
    const pending = a.request('work', {}, { signal: controller.signal });
    await waiting(1);
    await assert.rejects(a.request('work', {}), ({ data }) => data.outcome === 'unstarted');
    controller.abort();
    const error = await pending.catch((thrown) => thrown);
    assert.equal((error.cause ?? error).data.outcome, 'unstarted');
    await free();
    await idle();
    assert.equal(marks[0], 1);
    a.close();
    b.close();
  });
}
