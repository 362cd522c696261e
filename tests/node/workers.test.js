// An app in a worker thread, and its agent outside: what is pending settles when the thread ends,
// however it ends.
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { describe, mock, test } from 'node:test';
import { MessageChannel, Worker } from 'node:worker_threads';
import { connect, expose } from '../../parts/main/index.js';
import { Token } from '../../parts/workers/pool.js';
import { usePage } from '../support/page.js';

// A worker has as much time to start as the machine needs.
const options = { agent: { name: 'test', version: '1' }, timeout: 0 };
let serial = 0;

/** An app in a worker, which a test tells what to do by the channel of the same name. */
const start = (data = {}) =>
  new Worker(new URL('../support/workers/app.js', import.meta.url), {
    workerData: { control: 'idle', ...data },
  });

/** A channel to an app, past the bridge. */
const controlled = () => new BroadcastChannel(`${process.pid}-${++serial}`);

/** Resolves when the app has said so. */
const lineComes = (control, line) =>
  new Promise((resolve) => {
    control.onmessage = ({ data }) => data.log === line && resolve();
  });

describe('a worker that is given', () => {
  test('is left alone by the session that ends, and begins the next one', async () => {
    const worker = start();
    const client = await connect(worker, options);
    assert.equal((await client.call('echo', 1)).data, 1);
    client.close();
    await client.reconnect();
    assert.equal((await client.call('echo', 2)).data, 2);
    await worker.terminate();
  });

  test('moves BinaryData both ways', async () => {
    const worker = start();
    const client = await connect(worker, options);
    const content = new ArrayBuffer(1 << 20);
    const params = { content, mimeType: 'a/b' };
    assert.equal((await client.call('size', params, { transfer: [content] })).data, 1 << 20);
    assert.equal(content.byteLength, 0);
    assert.equal((await client.call('bytes', { size: 1000 })).data.content.byteLength, 1000);
    await worker.terminate();
  });

  test('that computes is stopped by a token that its agent sent along, and says itself that it was cancelled', async () => {
    const worker = start();
    const client = await connect(worker, options);
    const token = new Token();
    const controller = new AbortController();
    controller.signal.addEventListener('abort', () => token.cancel());
    const { success, cancelled } = await client.call(
      'asks',
      { word: token.word },
      { signal: controller.signal, onProgress: () => controller.abort() },
    );
    assert.deepEqual([success, cancelled], [false, true]);
    assert.equal((await client.call('echo', 1)).data, 1);
    await worker.terminate();
  });

  for (const [how, end] of [
    ['is terminated', ({ worker }) => worker.terminate()],
    ['exits', ({ client }) => client.call('exit')],
    ['throws where nobody catches it', ({ client }) => client.call('throwLater')],
  ]) {
    test(`${how}: what is pending settles with DISCONNECTED`, async () => {
      const control = controlled();
      const worker = start({ control: control.name });
      const client = await connect(worker, options);
      const lost = new Promise((resolve) => (client.onDisconnect = resolve));
      const hangs = lineComes(control, 'app: hangs');
      const pending = client.call('hang');
      await hangs;
      control.close();
      void end({ worker, client });
      assert.equal((await pending).error.code, 'DISCONNECTED');
      assert.equal((await lost).code, 'DISCONNECTED');
      assert.equal((await client.call('echo')).error.code, 'DISCONNECTED');
    });

    test(`${how}: who reconnects by itself gives up with words, and no call waits for ever`, async () => {
      const control = controlled();
      const worker = start({ control: control.name });
      let told;
      const gaveUp = new Promise((resolve) => (told = resolve));
      const reconnect = { delay: 1 };
      const client = await connect(worker, { ...options, reconnect, onReconnect: told });
      const hangs = lineComes(control, 'app: hangs');
      const pending = client.call('hang', {}, { retry: true });
      await hangs;
      control.close();
      void end({ worker, client });
      const { error, metadata } = await pending;
      assert.deepEqual([error.code, metadata.outcome], ['DISCONNECTED', 'unknown']);
      const why = await gaveUp;
      assert.deepEqual([why?.code, why?.retryable], ['DISCONNECTED', false]);
      assert.match(why.message, /the worker has ended/i);
    });
  }

  test('that does not run any more is noticed when a session is begun', async () => {
    const worker = start({ throws: true });
    await assert.rejects(connect(worker, options), ({ code, cause }) => {
      assert.deepEqual([code, cause.message], ['DISCONNECTED', 'broken at the start']);
      return true;
    });
  });
});

test('a page’s worker that fails at once is heard, even while the core loads', async () => {
  const worker = Object.assign(new EventTarget(), { postMessage() {}, terminate() {} });
  const connecting = connect(/** @type {any} */ (worker), { ...options, timeout: 50 });
  worker.dispatchEvent(new Event('error'));
  await assert.rejects(connecting, { code: 'DISCONNECTED', message: /script did not load/ });
});

describe('a function that makes a worker', () => {
  test('is called for each session, and its worker ends with the session', async () => {
    const made = [];
    const client = await connect(() => (made.push(start()), made.at(-1)), options);
    const pending = client.call('hang');
    const [first] = made;
    const exit = once(first, 'exit');
    client.close();
    await exit;
    assert.equal((await pending).cancelled, true);
    await client.reconnect();
    assert.equal(made.length, 2);
    const ended = once(made[1], 'exit');
    await made[1].terminate();
    await ended;
    await client.reconnect();
    assert.equal((await client.call('echo', 3)).data, 3);
    client.close();
    await once(made[2], 'exit');
  });

  test('a script that is missing, and one that throws, are noticed at once', async () => {
    const missing = new URL('../support/workers/missing.js', import.meta.url);
    for (const make of [() => new Worker(missing), () => start({ throws: true })]) {
      await assert.rejects(connect(make, options), { code: 'DISCONNECTED' });
    }
  });

  test('that throws makes connect reject with its error', async () => {
    const error = new RangeError('no');
    const make = () => {
      throw error;
    };
    await assert.rejects(connect(make, options), error);
  });
});

test('a worker that was made for a session may throw to its last: nobody is told', async () => {
  const { port1, port2 } = new MessageChannel();
  const app = expose(
    { app: { id: 'a', name: 'A', version: '1' }, capabilities: {} },
    { port: port2 },
  );
  const worker = Object.assign(new EventEmitter(), {
    postMessage: (message) => port1.postMessage(message),
    terminate: () => {},
  });
  port1.on('message', (message) => worker.emit('message', message));
  const client = await connect(() => worker, options);
  client.close();
  // Without a listener, this throws.
  worker.emit('error', new Error('late'));
  app.close();
  port1.close();
});

test('an app in a worker of a page hears its owner until it is closed', async (t) => {
  const page = usePage(t, { DedicatedWorkerGlobalScope: class {}, postMessage: mock.fn() });
  const open = () => expose({ app: { id: 'a', name: 'A', version: '1' }, capabilities: {} });
  open().close();
  assert.deepEqual(page.types(), []);
  const app = open();
  await app.ready;
  assert.ok(page.types().includes('message'));
  const { agent } = options;
  for (const id of ['first', 'second']) {
    const payload = { agent, protocolVersion: '0.1', features: {} };
    page.say('message', { data: { type: 'initialize', id, payload } });
    page.say('message', { data: { type: 'shutdown', payload: {} } });
  }
  assert.deepEqual(
    globalThis.postMessage.mock.calls
      .map(({ arguments: [message] }) => message)
      .filter(({ type }) => type === 'initialize-result')
      .map(({ id, payload }) => [id, payload.success ?? true]),
    [
      ['first', true],
      ['second', true],
    ],
  );
  app.close();
  assert.deepEqual(page.types(), []);
});

test('a port of a worker thread, and one to it, serve as well', async () => {
  const { port1, port2 } = new MessageChannel();
  const app = expose(
    { app: { id: 'a', name: 'A', version: '1' }, capabilities: { echo: (params) => params } },
    { port: port1 },
  );
  const client = await connect(port2, options);
  assert.equal((await client.call('echo', 1)).data, 1);
  const pending = client.call('echo', 2);
  app.close();
  assert.equal((await pending).error?.code, 'DISCONNECTED');
});
