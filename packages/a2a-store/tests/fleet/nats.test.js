/** The backend on NATS, with a real server. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import * as jetstream from '@nats-io/jetstream';
import { natsBackend } from '../../src/nats.js';
import { taskStore } from '../../src/index.js';
import { testBackend } from '../contracts/backend.js';
import { VERSIONS, ask, serve } from '../../../a2a/tests/support/a2a.js';
import { NATS_SERVER, NatsServer, startCluster } from './nats-server.js';

const server = await new NatsServer().start();
after(() => server.close());

/**
 * @param {object} [options]
 * @param {NatsServer} [on]
 */
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

test('NATS: what a process has left that ended in the midst of an object is swept', async () => {
  const own = await new NatsServer().start();
  try {
    const backend = await open({}, own);
    const module = (/** @type {string} */ name) => JSON.stringify(import.meta.resolve(name));
    const script = `
      const { connect } = await import(${module('@nats-io/transport-node')});
      const jetstream = await import(${module('@nats-io/jetstream')});
      const { natsBackend } = await import(${module('../../src/nats.js')});
      const connection = await connect({ servers: process.argv[1] });
      let chunks = 0;
      const killed = {
        ...jetstream,
        jetstream(...given) {
          const js = jetstream.jetstream(...given);
          const publish = js.publish.bind(js);
          js.publish = async (subject, ...more) => {
            if (subject.includes('.chunk.') && chunks++ === 2) process.kill(process.pid, 'SIGKILL');
            return publish(subject, ...more);
          };
          return js;
        },
      };
      const backend = await natsBackend({ connection, jetstream: killed });
      await backend.put('task/1/broken', new Uint8Array(1_000_000));`;
    const { signal, stderr } = spawnSync(process.execPath, [
      '--input-type=module',
      '-e',
      script,
      `127.0.0.1:${own.port}`,
    ]);
    assert.equal(signal, 'SIGKILL', String(stderr));
    await backend.put('task/1/whole', new Uint8Array(1_000_000));
    await backend.renew('somebody');
    const jsm = await jetstream.jetstreamManager(await own.connect());
    const chunks = async () => {
      const { state } = await jsm.streams.info('a2a_state', { subjects_filter: 'a2a.chunk.>' });
      return Object.keys(state.subjects ?? {}).length;
    };
    assert.equal(await chunks(), 6);
    const sweep = (/** @type {number} */ age) =>
      backend.sweep?.({ age, limit: 100, keeps: async () => true });
    await sweep(3_600_000);
    assert.equal(await chunks(), 6);
    await sweep(0);
    assert.equal(await chunks(), 4);
    assert.equal((await backend.get('task/1/whole')).length, 1_000_000);
    await backend.close();
  } finally {
    await own.close();
  }
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

/**
 * A backend on a server of a cluster.
 * @param {NatsServer} own
 * @param {NatsServer} other
 */
async function joinCluster(own, other) {
  const connection = await own.connect([other]);
  // Three servers need a while until one leads.
  for (;;) {
    const options = { connection, jetstream, replicas: 3, timeout: 1000 };
    const backend = await natsBackend(options).catch(() => undefined);
    if (backend) return backend;
  }
}

test('NATS: of those who write to a log of a cluster at once, one is heard', async () => {
  const cluster = await startCluster();
  try {
    const [one, two, three] = cluster;
    const backends = await Promise.all([
      joinCluster(one, two),
      joinCluster(two, three),
      joinCluster(three, one),
    ]);
    /** Each of them stores a record after the same one; resolves with those that were told so. */
    const together = async (task, round, last) => {
      const written = backends.map((backend, i) => backend.append(task, `${round}.${i}`, last));
      const outcomes = await Promise.allSettled(written);
      for (const { reason } of /** @type {any[]} */ (outcomes))
        if (reason) assert.match(reason.code, /^(CONFLICT|UNACKNOWLEDGED)$/);
      return outcomes.flatMap(({ status }, i) => (status === 'fulfilled' ? [`${round}.${i}`] : []));
    };
    const tasks = Array.from({ length: 20 }, (_, i) => `t${i}`);
    await Promise.all(
      tasks.map(async (task, i) => {
        /** @type {string[]} */
        const seen = [];
        let last = 0;
        const heard = [];
        for (let round = 0; round < 20; round++) {
          // One begins before there is anything to see, others later.
          if (round === i) backends[i % 3].watch(task, last, ({ data }) => seen.push(data));
          const stored = await together(task, round, last);
          const records = await backends[round % 3].read(task, last);
          const [record] = records;
          assert.equal(records.length, 1, `${task} ${round}`);
          // Whoever was told that it is stored wrote it.
          if (stored.length > 0) assert.deepEqual(stored, [record.data]);
          heard.push(record.data);
          last = record.seq;
        }
        for (const backend of backends)
          assert.deepEqual(
            (await backend.read(task, 0)).map(({ data }) => data),
            heard,
          );
        while (seen.length < heard.length - i) await new Promise(setImmediate);
        assert.deepEqual(seen, heard.slice(i));
      }),
    );
    await Promise.all(backends.map((backend) => backend.close()));
  } finally {
    await Promise.all(cluster.map((server) => server.close()));
  }
});

test('NATS: a cluster of three loses one, and no record is lost or twice', async () => {
  const cluster = await startCluster();
  const [writer, reader, victim] = cluster;
  try {
    const backend = await joinCluster(writer, reader);
    const second = await joinCluster(reader, writer);
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
    /** @type {import('../../../a2a/src/store/backends/backend.js').LogRecord[]} */
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

test('NATS: a log that grows as fast as it is read is read as far as it was', async () => {
  const writer = await open({ namespace: 'busy' });
  let last = 0;
  const write = async () => (last = await writer.append('task', 'x', last));
  for (let i = 0; i < 100; i++) await write();
  let written = 0;
  const reader = await natsBackend({
    connection: server.connections[0],
    namespace: 'busy',
    jetstream: {
      ...jetstream,
      async jetstreamManager(connection, options) {
        const jsm = await jetstream.jetstreamManager(connection, options);
        const { getMessage } = jsm.streams;
        // Whatever is asked for, there is more by the time of the answer.
        jsm.streams.getMessage = async (...query) => {
          if (++written < 500) await write();
          return getMessage.apply(jsm.streams, query);
        };
        jsm.consumers.add = () => Promise.reject(new Error('none can be made'));
        return jsm;
      },
    },
  });
  const { length } = await reader.read('task', 0);
  assert.ok(length >= 100 && length < 200, `${length} records`);
  await Promise.all([reader.close(), writer.close()]);
});

test('NATS: what a consumer leaves out is asked for, and given in order', async () => {
  const writer = await open({ namespace: 'gaps' });
  const reader = await natsBackend({
    connection: server.connections[0],
    namespace: 'gaps',
    jetstream: {
      ...jetstream,
      jetstream(connection, options) {
        const js = jetstream.jetstream(connection, options);
        const { get } = js.consumers;
        js.consumers.get = async (...query) => {
          const consumer = await get.apply(js.consumers, query);
          const { consume } = consumer;
          consumer.consume = ({ callback, ...rest }) =>
            consume.call(consumer, { ...rest, callback: (m) => m.seq % 3 && callback(m) });
          return consumer;
        };
        return js;
      },
    },
  });
  let last = 0;
  const write = async (data) => (last = await writer.append('task', data, last));
  await write('0');
  const seen = [];
  let written = Promise.resolve();
  const writeAll = async () => {
    for (let i = 1; i < 40; i++) await write(`${i}`);
  };
  await new Promise((resolve) => {
    reader.watch('task', 0, ({ data }) => {
      seen.push(data);
      // The consumer is there, and what was before was read.
      if (data === '0') written = writeAll();
      if (data === '39') resolve(undefined);
    });
  });
  await written;
  assert.equal(last % 3, 1);
  assert.deepEqual(
    seen,
    Array.from({ length: 40 }, (_, i) => `${i}`),
  );
  await Promise.all([reader.close(), writer.close()]);
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

test('NATS: what others have put among the entries costs nobody else anything', async () => {
  const backend = await open({ namespace: 'strange' });
  await backend.note('task', { tenant: '', context: '', time: 1, state: 'x', data: '' }, 1);
  const js = jetstream.jetstream(server.connections[0]);
  const odd = '{"task":"a","tenant":{"toString":0},"context":"","data":""}';
  for (const text of ['junk', 'null', '{}', '7', odd]) {
    await js.publish('strange.index.-.-.AAAA', text);
    const { tasks } = await backend.list({ tenant: '' });
    assert.deepEqual(
      tasks.map(({ task }) => task),
      ['task'],
    );
    assert.equal(await backend.count?.({ tenant: '' }), 1);
  }
  // In a list of which a copy is kept, too.
  for (let i = 0; i < 300; i++)
    await backend.note(`${i}`, { tenant: '', context: '', time: 1, state: 'x', data: '' }, 1);
  for (let i = 0; i < 2; i++) assert.equal(await backend.count?.({ tenant: '' }), 301);
});

/**
 * A server with a configuration of its own.
 * @param {import('node:test').TestContext} t
 * @param {string} text
 */
async function configured(t, text) {
  const folder = mkdtempSync(join(tmpdir(), 'abp-conf-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'nats.conf');
  writeFileSync(path, text);
  const own = await new NatsServer().start(['-c', path]);
  t.after(() => own.close());
  return own;
}

const V1 = VERSIONS['1.0'];

/**
 * @param {string} url
 * @param {string} method
 * @param {object} params
 */
const ask1 = (url, method, params) => ask(url, method, params, V1.headers);

/**
 * @param {string} url
 * @param {string} text
 * @param {object} [configuration]
 */
const send = (url, text, configuration) =>
  ask1(url, V1.send, { message: V1.message(text), configuration });

/**
 * The lengths of the artifacts of a task.
 * @param {any} answer
 */
const lengths = ({ result: { task } }) =>
  task.artifacts.map(({ parts: [{ text }] }) => text.length);

test('NATS: what is longer than the server and its streams take is divided, whatever they take', async (t) => {
  const own = await configured(t, 'max_payload: 65536');
  const jsm = await jetstream.jetstreamManager(await own.connect());
  const state = ['lease', 'index', 'object', 'chunk'].map((kind) => `a2a.${kind}.>`);
  const one = { max_msgs_per_subject: 1, max_msg_size: 20_000 };
  await jsm.streams.add({ name: 'a2a_state', subjects: state, ...one });
  const backend = await open({}, own);
  const agent = await serve(
    async (ctx) => {
      if (ctx.message.parts[0].text === 'wait')
        await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve));
      else
        for (let i = 0; i < 2; i++)
          ctx.emitArtifact({ parts: [{ text: 'x'.repeat(ctx.message.parts[0].text.length) }] });
    },
    { store: taskStore({ backend }) },
  );
  t.after(() => agent.close());
  const sizes = [19_000, 60_000, 300_000];
  for (const size of sizes)
    assert.deepEqual(lengths(await send(agent.url, 'y'.repeat(size))), [size, size]);
  // What was stored in pieces of one size is read by those who store in pieces of another.
  await jsm.streams.update('a2a_state', { max_msg_size: 60_000 });
  const other = await open({}, own);
  const { tasks } = (await ask1(agent.url, V1.list, { includeArtifacts: true })).result;
  assert.equal(tasks.length, sizes.length);
  for (const name of await backend.objects(''))
    assert.deepEqual(await other.get(name), await backend.get(name));
  // They may take less than they did: nobody who was told that a task works is left alone with
  // that.
  const { id } = (await send(agent.url, 'wait', { returnImmediately: true })).result.task;
  await jsm.streams.update('a2a_log', { max_msg_size: 20_000 });
  await jsm.streams.update('a2a_state', { max_msg_size: 20_000 });
  const asked = 'z'.repeat(15_000);
  assert.deepEqual(lengths(await send(agent.url, asked)), [asked.length, asked.length]);
  const canceled = (await ask1(agent.url, V1.cancel, { id })).result;
  assert.equal(canceled.status.state, 'TASK_STATE_CANCELED');
  await backend.close();
  await jsm.streams.update('a2a_log', { max_msg_size: 1000 });
  await assert.rejects(open({}, own), { code: 'UNAVAILABLE', message: /max_msg_size/ });
});

test('NATS: what its user may not publish is refused at once, with the reason', async (t) => {
  const denied = 'permissions: { publish: { deny: ["a2a.log.>"] } }';
  const own = await configured(
    t,
    `accounts { A { jetstream: enabled, users: [{ user: u, password: p, ${denied} }] } }`,
  );
  const connection = await own.connect([], { user: 'u', pass: 'p' });
  const backend = await natsBackend({ connection, jetstream });
  const agent = await serve(() => {}, { store: taskStore({ backend }) });
  t.after(() => agent.close());
  const { error } = await send(agent.url, 'x');
  assert.match(error.message, /NATS refused it: Permissions Violation for Publish to "a2a\.log\./);
  assert.equal(error.data[0].reason, 'UNAVAILABLE');
  await backend.close();
});

test('NATS: a server that hangs holds up neither a process that begins nor one that ends', async () => {
  const own = await new NatsServer().start();
  try {
    const backend = await open({ timeout: 500 }, own);
    const stop = await backend.serve('process', () => '');
    await own.pause();
    await assert.rejects(
      backend.serve('other', () => ''),
      { code: 'UNAVAILABLE' },
    );
    await stop();
  } finally {
    own.resume();
    await own.close();
  }
});

test('NATS: a list that is being read when its server goes away is not waited for', async () => {
  const own = await new NatsServer().start();
  try {
    let goes = false;
    const going = {
      ...jetstream,
      /**
       * @param {any} connection
       * @param {any} options
       */
      async jetstreamManager(connection, options) {
        const jsm = await jetstream.jetstreamManager(connection, options);
        const add = jsm.consumers.add.bind(jsm.consumers);
        jsm.consumers.add = async (...given) => {
          const info = await add(...given);
          if (!goes) return info;
          // It takes the question, and then it is gone.
          await own.pause();
          setImmediate(() => void own.stop('SIGKILL'));
          return info;
        };
        return jsm;
      },
    };
    const backend = await open({ jetstream: going, timeout: 500 }, own);
    await backend.note('task', { tenant: '', context: '', time: 1, data: '' }, 1);
    goes = true;
    await assert.rejects(backend.list({ tenant: '' }), { code: 'UNAVAILABLE' });
  } finally {
    await own.close();
  }
});

/** The configuration in the documents. */
const CONFIG = /```conf\n([^]*?)```/.exec(
  readFileSync(new URL('../../../a2a-store/docs/a2a-fleet.md', import.meta.url), 'utf8'),
)?.[1];

test('NATS: the server takes the configuration that is documented, and its permissions are enough', async (t) => {
  assert.ok(CONFIG);
  const folder = mkdtempSync(join(tmpdir(), 'abp-conf-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'nats.conf');
  writeFileSync(path, CONFIG);
  const env = { NAME: 'nats-1', COUNTER_PASSWORD: 'mine', OPERATOR_PASSWORD: 'theirs' };
  const checked = spawnSync(NATS_SERVER, ['-t', '-c', path], {
    env: { ...process.env, ...env },
    encoding: 'utf8',
  });
  assert.equal(checked.status, 0, checked.stderr);
  // One server alone, with a folder of the test's: a cluster would wait for the others.
  const alone = CONFIG.replace(/cluster \{[^]*?\n\}\n/, '').replace(/ *store_dir.*\n/, '');
  writeFileSync(path, alone);
  const own = await new NatsServer().start(['-c', path], env);
  t.after(() => own.close());
  const connection = await own.connect([], { user: 'counter', pass: 'mine' });
  /** @type {string[]} */
  const denied = [];
  void (async () => {
    for await (const status of connection.status())
      if (status.type === 'error') denied.push(String(status.error));
  })();
  const backend = await natsBackend({ connection, jetstream, namespace: 'counter' });
  const first = await backend.append('task', 'a', 0);
  const seen = new Promise((resolve) => {
    backend.watch('task', first, ({ data }) => resolve(data));
  });
  let last = first;
  for (let i = 0; i < 100; i++) last = await backend.append('task', `${i}`, last);
  assert.equal(await seen, '0');
  assert.equal((await backend.read('task', 0)).length, 101);
  await backend.note('task', { tenant: '', context: '', time: 1, data: '' }, last);
  assert.equal((await backend.list({ tenant: '' })).tasks.length, 1);
  await backend.renew('process');
  await backend.serve('process', (text) => `${text}!`);
  assert.equal(await backend.ask('process', 'x'), 'x!');
  await backend.put('object', new Uint8Array(300_000));
  assert.equal((await backend.get('object')).length, 300_000);
  await backend.remove('object');
  await backend.forget('task');
  assert.deepEqual(denied, []);
  await backend.close();
  // Others' subjects are not its own.
  connection.publish('other.log.x', 'x');
  await connection.flush();
  while (denied.length === 0) await new Promise(setImmediate);
  assert.match(denied[0], /ermission/);
  const wrong = own.connect([], { user: 'counter', pass: 'theirs' });
  await assert.rejects(wrong, /uthorization/);
});

test('NATS: without JetStream the error says so', async () => {
  const connection = await server.connect();
  await connection.close();
  await assert.rejects(natsBackend({ connection, jetstream }), { code: 'UNAVAILABLE' });
});
