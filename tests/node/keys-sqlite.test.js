// Keys in a file: what a store has to do, and whether work is done twice, or told wrongly, when the
// process ends between any two steps, and when two processes share the file.
import assert from 'node:assert/strict';
import { fork, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serialize } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { WebSocket } from 'ws';
import { connect } from '../../parts/main/index.js';
import { webSocketTransport } from '../../parts/transports/index.js';
import { sqliteKeys } from '../../parts/keys/index.js';
import { CONTRACT } from '../contracts/key-store.js';

const has = await import('node:sqlite').then(
  () => true,
  () => false,
);
const script = new URL('../support/keys-app.js', import.meta.url);
const AGENT = { name: 'a', version: '1' };

let folder, closers;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'keys-'));
  closers = [];
});
afterEach(async () => {
  for (const close of closers.reverse()) await close();
  rmSync(folder, { recursive: true });
});
const later = (close) => closers.push(close);

test('where there is no node:sqlite, it says what is needed', { skip: has }, async () => {
  await assert.rejects(sqliteKeys(join(folder, 'keys')).open(), {
    code: 'NOT_SUPPORTED',
    message: 'sqliteKeys needs node:sqlite: Node 22.13 or later',
  });
});

test('what cannot be a store is refused where it is given', () => {
  for (const give of [
    () => sqliteKeys(),
    () => sqliteKeys(''),
    () => sqliteKeys('a', { rememberFor: 'long' }),
  ])
    assert.throws(give, { code: 'INVALID_PARAMS' });
});

describe('a store in a file of SQLite', { skip: !has }, () => {
  for (const [what, keeps] of Object.entries(CONTRACT)) {
    test(what, () => {
      const placeOf = (name) => ({
        store(options) {
          const store = sqliteKeys(join(folder, name), options);
          later(() => store.close());
          return store;
        },
      });
      return keeps(placeOf('one'), placeOf('two'));
    });
  }

  test('refuses a file of a later version, and one that is none', async () => {
    const path = join(folder, 'keys');
    const store = sqliteKeys(path);
    await store.open();
    await store.close();
    const { DatabaseSync } = await import('node:sqlite');
    const database = new DatabaseSync(path);
    database.exec('PRAGMA user_version = 3');
    database.close();
    await assert.rejects(sqliteKeys(path).open(), /it has layout 3, and this version reads 2/);
    writeFileSync(join(folder, 'none'), 'x'.repeat(5000));
    await assert.rejects(sqliteKeys(join(folder, 'none')).open());
    await assert.rejects(sqliteKeys(join(folder, 'not', 'there')).open());
  });

  test('opens a file of the version before, whose keys have no params, and keeps those from now on', async () => {
    const path = join(folder, 'keys');
    const { DatabaseSync } = await import('node:sqlite');
    const database = new DatabaseSync(path);
    database.exec(`
      CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
      CREATE TABLE keys (key TEXT PRIMARY KEY, owner TEXT NOT NULL, at REAL, ended BLOB);
      CREATE INDEX by_end ON keys (at) WHERE at IS NOT NULL;
      INSERT INTO about VALUES ('id', 'an id');
      PRAGMA user_version = 1;
    `);
    const ended = { outcome: 'finished', cancelled: false, value: { paid: 17 } };
    const put = database.prepare('INSERT INTO keys VALUES (?, ?, ?, ?)');
    put.run('ended', 'gone', Date.now(), serialize(ended));
    put.run('again', 'gone', Date.now(), serialize({ ...ended, again: true }));
    put.run('lost', 'gone', null, null);
    database.close();
    const [one, two] = [sqliteKeys(path), sqliteKeys(path)];
    later(() => one.close());
    later(() => two.close());
    assert.equal((await one.open()).id, 'an id');
    assert.deepEqual(await one.begin('ended', 'bob'), { state: 'ended', ended });
    assert.deepEqual(await one.begin('lost', 'bob'), { state: 'lost' });
    assert.equal((await one.begin('again', 'ann')).state, 'begun');
    assert.deepEqual(await two.begin('again', 'bob'), { state: 'reused' });
  });

  test('writes nothing of what became of a call where it cannot write, and all of it later', async () => {
    const store = sqliteKeys(join(folder, 'keys'));
    later(() => store.close());
    await store.begin('k');
    const { DatabaseSync } = await import('node:sqlite');
    const other = new DatabaseSync(join(folder, 'keys'));
    later(() => other.close());
    const ended = { outcome: 'finished', cancelled: false, value: { paid: 17 } };
    other.exec('BEGIN IMMEDIATE');
    const ends = store.end('k', ended);
    other.exec('ROLLBACK');
    await ends.catch(() => store.end('k', ended));
    assert.deepEqual(await store.begin('k'), { state: 'ended', ended });
  });

  test('says of what a process has begun that is gone that it is lost, also if two look at once', async () => {
    const path = join(folder, 'keys');
    const { DatabaseSync } = await import('node:sqlite');
    const store = sqliteKeys(path);
    later(() => store.close());
    await store.open();
    const database = new DatabaseSync(path);
    const many = 100;
    for (let i = 0; i < many; i++) {
      database.exec(`INSERT INTO keys (key, owner) VALUES ('${i}', 'gone${i}')`);
      writeFileSync(`${path}-gone${i}.lock`, '');
    }
    database.close();
    const steps = new Int32Array(new SharedArrayBuffer(4 * many));
    const source = `import { workerData } from 'node:worker_threads';
      import { sqliteKeys } from ${JSON.stringify(new URL('../../parts/keys/index.js', import.meta.url).href)};
      const { path, steps } = workerData;
      const store = sqliteKeys(path);
      for (let i = 0; i < steps.length; i++) {
        if (Atomics.add(steps, i, 1)) Atomics.notify(steps, i);
        else Atomics.wait(steps, i, 1);
        let found;
        // On a slow disk it may have to wait for the other longer than it does.
        do found = await store.begin(String(i)).catch(({ errcode, message }) => errcode !== 5 && { state: message });
        while (!found);
        if (found.state !== 'lost') throw new Error(found.state);
      }
      store.close();`;
    const url = new URL(`data:text/javascript,${encodeURIComponent(source)}`);
    const threads = [1, 2].map(() => new Worker(url, { workerData: { path, steps } }));
    later(() => Promise.all(threads.map((thread) => thread.terminate())));
    await Promise.all(threads.map((thread) => once(thread, 'exit')));
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.includes('gone')),
      [],
    );
  });

  test('leaves no file behind but its own, and those of processes that have ended go', async () => {
    const path = join(folder, 'keys');
    const source = `import { sqliteKeys } from ${JSON.stringify(new URL('../../parts/keys/index.js', import.meta.url).href)};
      await sqliteKeys(${JSON.stringify(path)}).begin('k');
      process.kill(process.pid, 'SIGKILL');`;
    spawnSync(process.execPath, ['--no-warnings', '--input-type=module', '-e', source]);
    const locks = () => readdirSync(folder).filter((name) => name.endsWith('.lock'));
    assert.equal(locks().length, 1);
    const store = sqliteKeys(path);
    assert.deepEqual(await store.begin('k'), { state: 'lost' });
    assert.equal(locks().length, 1);
    await store.close();
    assert.deepEqual(locks(), []);
  });
});

/**
 * Starts an app in a process of its own.
 * @param {string} [point] where it ends itself
 */
async function start(point) {
  const child = fork(script, [join(folder, 'keys'), join(folder, 'log'), point ?? ''], {
    execArgv: ['--no-warnings'],
  });
  const exited = once(child, 'exit');
  later(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const [port] = await once(child, 'message');
  return { child, exited, port };
}

/** @param {{ port: number }} app */
async function dial({ port }) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}`);
  await once(socket, 'open');
  return webSocketTransport(socket);
}
async function clientOf(open, options) {
  const client = await connect(open, { agent: AGENT, owner: 'the same agent', ...options });
  later(() => client.close());
  return client;
}
const done = () => {
  const log = join(folder, 'log');
  return existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
};

describe('an app whose process ends', { skip: !has }, () => {
  for (const [point, effects, told, may = told] of [
    ['before it begins', 1, 'success'],
    ['once it is written that it begins', 0, 'unknown'],
    ['before its effect', 0, 'unknown'],
    ['after its effect', 1, 'unknown'],
    // Its answer may be under way by then.
    ['once its handler has returned', 1, 'unknown', 'success'],
    ['once it is written what became of it', 1, 'success'],
  ]) {
    for (const [how, options] of [
      ['by retry', { retry: { delay: 1, attempts: 2 } }],
      ['by hand', { idempotencyKey: 'pay 17' }],
    ]) {
      test(`${point}: work that is asked for again ${how} is done ${effects} times, and told: ${told}`, async () => {
        const first = await start(point);
        // The next one is at the same address.
        let app = first;
        const client = await clientOf(() => dial(app), { reconnect: { delay: 1 } });
        const { memory } = client;
        void first.exited.then(async () => (app = undefined));
        const next = first.exited.then(() => start());
        const open = async () => dial((app = await next));
        let response;
        if (how === 'by retry') {
          app = first;
          const again = await clientOf(async () => (app === first ? dial(first) : open()), {
            reconnect: { delay: 1 },
          });
          response = await again.call('pay', { order: 17 }, options);
          assert.deepEqual(again.memory, memory);
        } else {
          response = await client.call('pay', { order: 17 }, options);
          client.close();
          if (!response.success) {
            assert.equal(response.metadata.outcome, 'unknown');
            const again = await clientOf(open);
            assert.deepEqual(again.memory, memory);
            response = await again.call('pay', { order: 17 }, options);
          }
        }
        assert.ok([told, may].includes(response.success ? 'success' : response.metadata.outcome));
        if (response.success) assert.deepEqual(response.data, { paid: 17 });
        else assert.equal(response.error.retryable, false);
        assert.equal(done().length, effects);
        // It stays so.
        const last = await clientOf(open);
        const once_more = await last.call('pay', { order: 17 }, { idempotencyKey: 'pay 17' });
        if (how === 'by hand')
          assert.equal(once_more.success ? 'success' : once_more.metadata.outcome, told);
      });
    }
  }
});

describe('two processes that share a file', { skip: !has }, () => {
  test('refuse a key that the other has for other params, also once that is gone', async () => {
    const key = { idempotencyKey: 'k' };
    const apps = [await start(), await start()];
    const [one, two] = [await clientOf(() => dial(apps[0])), await clientOf(() => dial(apps[1]))];
    const refused = async (client, key) => {
      const { success, error, metadata } = await client.call('pay', { order: 2 }, key);
      assert.deepEqual(
        [success, error?.code, error?.retryable, metadata.outcome],
        [false, 'KEY_REUSED', false, 'unstarted'],
      );
    };
    // At once, so that one is first.
    const both = [
      one.call('pay', { order: 3 }, { idempotencyKey: 'b' }),
      two.call('pay', { order: 4 }, { idempotencyKey: 'b' }),
    ];
    const codes = (await Promise.all(both)).map(({ data, error }) => error?.code ?? data.paid);
    assert.deepEqual(codes.filter((code) => code === 'KEY_REUSED').length, 1);
    const first = codes.find((code) => code !== 'KEY_REUSED');
    assert.deepEqual(done(), [`${first}`]);
    const until = join(folder, 'until');
    const pending = one.call('pay', { order: 1, until }, key);
    while (done().length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    await refused(two, key);
    writeFileSync(until, '');
    assert.deepEqual((await pending).data, { paid: 1 });
    await refused(two, key);
    // Once this is answered, it is written what became of the first.
    assert.deepEqual((await two.call('pay', { until, order: 1 }, key)).data, { paid: 1 });
    apps[0].child.kill('SIGKILL');
    await refused(two, key);
    const third = await start();
    await refused(await clientOf(() => dial(third)), key);
    assert.deepEqual(done(), [`${first}`, '1']);
  });

  test('run a call once, and the other waits for it', async () => {
    const [one, two] = [await start(), await start()];
    const until = join(folder, 'until');
    const [first, second] = [await clientOf(() => dial(one)), await clientOf(() => dial(two))];
    assert.deepEqual(first.memory, second.memory);
    const key = { idempotencyKey: 'k' };
    const pending = first.call('pay', { order: 1, until }, key);
    while (!done().length) await new Promise((resolve) => setTimeout(resolve, 5));
    const controller = new AbortController();
    const joined = second.call('pay', { order: 1, until }, key);
    const stopped = second.call('pay', { order: 1, until }, { ...key, signal: controller.signal });
    await second.outcome('until the app has both');
    controller.abort();
    const response = await stopped;
    assert.equal(response.metadata.outcome, 'running');
    writeFileSync(until, '');
    assert.deepEqual((await pending).data, { paid: 1 });
    assert.deepEqual((await joined).data, { paid: 1 });
    assert.equal((await response.settled).outcome, 'finished');
    assert.deepEqual(done(), ['1']);
  });

  test('know when the other has died in it', async () => {
    const [one, two] = [await start(), await start()];
    const [first, second] = [await clientOf(() => dial(one)), await clientOf(() => dial(two))];
    const until = join(folder, 'never');
    const key = { idempotencyKey: 'k' };
    const pending = first.call('pay', { order: 1, until }, key);
    while (!done().length) await new Promise((resolve) => setTimeout(resolve, 5));
    const joined = second.call('pay', { order: 1, until }, key);
    await second.outcome('until the app has it');
    one.child.kill('SIGKILL');
    assert.equal((await pending).metadata.outcome, 'unknown');
    const { metadata, error } = await joined;
    assert.deepEqual([metadata.outcome, error.retryable], ['unknown', false]);
    assert.deepEqual(done(), ['1']);
  });

  test('do not begin what there is no room for, and never run it twice', async () => {
    const log = join(folder, 'log');
    const limited = ['-c', 'ulimit -f 160; exec "$0" "$@"', process.execPath, '--no-warnings'];
    const args = [...limited, fileURLToPath(script), join(folder, 'keys'), log];
    const child = spawn('bash', args, { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    const exited = once(child, 'exit');
    const [port] = await once(child, 'message');
    const client = await clientOf(() => dial({ port }));
    const told = [];
    const pay = (by, i) => by.call('pay', { order: i }, { idempotencyKey: `${i}` });
    do told.push(await pay(client, told.length));
    while (told.at(-1).success && told.length < 1000);
    const { error, metadata } = told.pop();
    assert.deepEqual([error.code, error.retryable], ['KEYS_UNAVAILABLE', true]);
    assert.equal(metadata.outcome, 'unstarted');
    const paid = done().length;
    assert.equal(paid, told.length);
    client.close();
    child.kill('SIGKILL');
    await exited;
    const app = await start();
    const again = await clientOf(() => dial(app));
    for (let i = 0; i < paid; i++) {
      const { success, ...response } = await pay(again, i);
      // What became of the last could not be written, perhaps.
      assert.ok(success || response.metadata.outcome === 'unknown');
    }
    assert.equal(done().length, paid);
    assert.equal((await pay(again, paid)).success, true);
  });

  test('do not begin what cannot be written, and do it when it can', async () => {
    const app = await start();
    const client = await clientOf(() => dial(app));
    const { DatabaseSync } = await import('node:sqlite');
    const database = new DatabaseSync(join(folder, 'keys'));
    database.exec('BEGIN IMMEDIATE');
    const refused = await client.call('pay', { order: 1 }, { idempotencyKey: 'k' });
    const { code, retryable, message } = refused.error;
    assert.deepEqual([code, retryable], ['KEYS_UNAVAILABLE', true]);
    assert.match(message, /cannot write down that the call begins/);
    assert.equal(refused.metadata.outcome, 'unstarted');
    assert.deepEqual(done(), []);
    // What has no key needs no file.
    assert.equal((await client.call('pay', { order: 2 })).success, true);
    database.exec('ROLLBACK');
    database.close();
    assert.equal((await client.call('pay', { order: 1 }, { idempotencyKey: 'k' })).success, true);
    assert.deepEqual(done(), ['2', '1']);
  });
});
