/** The backend on NATS, with a real server. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import * as jetstream from '@nats-io/jetstream';
import { natsBackend } from '../../src/backends/nats.js';
import { testBackend } from '../contracts/backend.js';
import { NatsServer, startCluster } from './nats-server.js';

const server = await new NatsServer().start();
after(() => server.close());

/** @param {object} [options] @param {NatsServer} [on] */
async function open(options, on = server) {
  const connection = await on.connect();
  return natsBackend({ connection, jetstream, ...options });
}

testBackend('NATS', { open: () => open(), shared: true });

test('NATS: namespaces are apart', async () => {
  const one = await open({ namespace: 'one' });
  const two = await open({ namespace: 'two' });
  await one.append('task', 'a', 0);
  await one.renew('process');
  await one.note('task', { tenant: '', context: '', time: 1, data: '' }, 1);
  assert.deepEqual(await two.read('task', 0), []);
  assert.equal(await two.lease('process'), 0);
  assert.deepEqual((await two.list({ tenant: '' })).tasks, []);
  for (const namespace of ['', 'a.b', '*', 'x'.repeat(65)])
    await assert.rejects(open({ namespace }), { code: 'INVALID_PARAMS' });
});

test('NATS: a long log, and many tasks', async () => {
  const backend = await open();
  const task = randomUUID();
  let last = 0;
  for (let i = 0; i < 300; i++) last = await backend.append(task, String(i), last);
  const all = await backend.read(task, 0);
  assert.deepEqual(
    all.map(({ data }) => data),
    Array.from({ length: 300 }, (_, i) => String(i)),
  );
  assert.equal((await backend.read(task, all[9].seq, 100)).at(-1)?.data, '109');
});

test('NATS: without a server nothing is promised, and nothing is sent late', async () => {
  const own = await new NatsServer().start();
  try {
    const backend = await open({}, own);
    const task = randomUUID();
    const first = await backend.append(task, 'before', 0);
    /** @type {string[]} */
    const seen = [];
    /** @type {(value?: unknown) => void} */
    let wake = () => {};
    backend.watch(task, 0, ({ data }) => {
      seen.push(data);
      wake();
    });
    const until = async (/** @type {number} */ count) => {
      while (seen.length < count) await new Promise((resolve) => (wake = resolve));
    };
    await until(1);
    const [connection] = own.connections;
    const statuses = connection.status()[Symbol.asyncIterator]();
    /** @param {string} type */
    const comes = async (type) => {
      for (;;) if ((await statuses.next()).value?.type === type) return;
    };
    await Promise.all([own.stop(), comes('disconnect')]);
    await assert.rejects(backend.append(task, 'lost', first), {
      code: 'UNAVAILABLE',
      retryable: true,
    });
    await assert.rejects(backend.renew('process'), { code: 'UNAVAILABLE' });
    await assert.rejects(backend.read(task, 0), { code: 'UNAVAILABLE' });
    await Promise.all([own.start(), comes('reconnect')]);
    const second = await open({}, own);
    await second.append(task, 'after', first);
    await until(2);
    assert.deepEqual(seen, ['before', 'after']);
    assert.equal(await backend.lease('process'), 0);
    assert.equal((await backend.read(task, 0)).length, 2);
  } finally {
    await own.close();
  }
});

test('NATS: silence is no answer, and the log says what was stored', async () => {
  const own = await new NatsServer().start();
  try {
    const backend = await open({ timeout: 500 }, own);
    const task = randomUUID();
    await own.pause();
    const writes = backend.append(task, 'a', 0);
    await assert.rejects(writes, { code: 'UNACKNOWLEDGED' });
    own.resume();
    // It was under way, and arrives: whoever tries again is told so.
    /** @type {any} */
    let records = [];
    while (records.length === 0) records = await backend.read(task, 0).catch(() => []);
    assert.equal(records[0].data, 'a');
    await assert.rejects(backend.append(task, 'a', 0), { code: 'CONFLICT' });
  } finally {
    own.resume();
    await own.close();
  }
});

test('NATS: a cluster of three loses one, and no record is lost or twice', async () => {
  const cluster = await startCluster();
  const [writer, reader, victim] = cluster;
  try {
    /** @param {NatsServer} own @param {NatsServer} other */
    const join = async (own, other) => {
      const connection = await own.connect([other]);
      // Three servers need a while until one leads.
      for (;;) {
        const options = { connection, jetstream, replicas: 3, timeout: 1000 };
        const backend = await natsBackend(options).catch(() => undefined);
        if (backend) return backend;
      }
    };
    const backend = await join(writer, reader);
    const second = await join(reader, writer);
    const task = randomUUID();
    // More than are asked for one by one.
    const expected = Array.from({ length: 80 }, (_, i) => String(i));
    /** @type {string[]} */
    const seen = [];
    const all = new Promise((resolve) => {
      second.watch(task, 0, ({ data }) => {
        seen.push(data);
        if (data === expected.at(-1)) resolve(undefined);
      });
    });
    let last = 0;
    let killed;
    for (const data of expected) {
      if (data === '20') killed = victim.stop('SIGKILL');
      for (let stored = false; !stored;) {
        try {
          last = await backend.append(task, data, last);
          stored = true;
        } catch {
          // Whatever it was, the log knows.
          const latest = (await backend.read(task, last).catch(() => []))[0];
          stored = latest?.data === data;
          if (stored) last = latest.seq;
        }
      }
    }
    await Promise.all([all, killed]);
    assert.deepEqual(seen, expected);
    /** @type {import('../../src/backends/backend.js').LogRecord[]} */
    let records = [];
    while (records.length === 0) records = await second.read(task, 0).catch(() => []);
    assert.deepEqual(
      records.map(({ data }) => data),
      expected,
    );
    // Now and then the cluster makes a consumer on the server that is gone.
    for (let i = 0; i < 10; i++) assert.equal((await backend.read(task, 0)).length, 80);
    await Promise.all([backend.close(), second.close()]);
  } finally {
    await Promise.all(cluster.map((one) => one.close()));
  }
});

test('NATS: streams that read from whichever server are refused', async () => {
  const connection = await server.connect();
  const jsm = await jetstream.jetstreamManager(connection);
  await jsm.streams.add({ name: 'direct_log', subjects: ['direct.log.>'], allow_direct: true });
  await assert.rejects(open({ namespace: 'direct' }), {
    code: 'UNAVAILABLE',
    message: /allow_direct/,
  });
});

test('NATS: an object that has lost a part is not there', async () => {
  const backend = await open({ namespace: 'parts' });
  await backend.put('object', new Uint8Array(600_000).fill(7));
  assert.equal((await backend.get('object')).length, 600_000);
  const jsm = await jetstream.jetstreamManager(server.connections[0]);
  await jsm.streams.purge('parts_state', { filter: 'parts.chunk.*.*.1' });
  await assert.rejects(backend.get('object'), { code: 'OBJECT_NOT_FOUND' });
});

test('NATS: without JetStream the error says so', async () => {
  const connection = await server.connect();
  await connection.close();
  await assert.rejects(natsBackend({ connection, jetstream }), { code: 'UNAVAILABLE' });
});
