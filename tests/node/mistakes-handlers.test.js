// What a handler gets wrong is told in the console of its app: results, progress, errors, and
// cancels that it does not read.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { AbpError, connect, expose } from '../../parts/main/index.js';
import { createPeer, portChannel } from '../../packages/rpc/src/index.js';
import { openPair } from '../support/pair.js';

const APP = { id: 'a.b', name: 'A', version: '1' };

const agent = { name: 'a', version: '1' };

let channel, consoleCalls;

beforeEach(() => {
  channel = new MessageChannel();
  consoleCalls = [];
  for (const method of ['error', 'warn'])
    mock.method(console, method, (...words) => consoleCalls.push(words));
});

afterEach(() => {
  channel.port1.close();
  channel.port2.close();
  mock.restoreAll();
});

const exposed = (capabilities, { app = APP, ...options } = {}) =>
  expose({ app, capabilities }, { port: channel.port1, ...options });

const pair = async (capabilities, options) =>
  (await openPair(capabilities, { agent: options })).client;

test('a result that breaks the outputSchema is the app’s error, in its console and not the caller’s', async () => {
  const outputSchema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
  const client = await pair({
    right: { handler: () => ({ n: 1 }), outputSchema },
    responds: { handler: () => ({ success: true, data: { n: 1 } }), outputSchema },
    fails: { handler: () => ({ success: false, error: 'no' }), outputSchema },
    wrong: { handler: () => ({ n: 'one' }), outputSchema },
    'responds.wrong': { handler: () => ({ success: true, data: {} }), outputSchema },
  });
  assert.equal((await client.call('right')).data.n, 1);
  assert.equal((await client.call('responds')).data.n, 1);
  assert.equal((await client.call('fails')).error.message, 'no');
  assert.deepEqual(consoleCalls, []);
  for (const name of ['wrong', 'responds.wrong']) {
    const { error } = await client.call(name);
    assert.equal(error.code, 'OPERATION_FAILED');
    assert.match(error.message, /outputSchema: data/);
    assert.match(consoleCalls.pop().join(' '), new RegExp(`${name} failed`));
  }
});

test('bytes are what a schema says of them, whether that is base64 or nothing', async () => {
  const schema = {
    type: 'object',
    properties: { content: { type: 'string' }, mimeType: { type: 'string' } },
    required: ['content', 'mimeType'],
  };
  const handler = (params) => ({ file: params });
  const outputSchema = { type: 'object', properties: { file: schema } };
  const client = await pair({ x: { handler, inputSchema: schema, outputSchema } });
  const file = { content: new ArrayBuffer(8), mimeType: 'x/y' };
  assert.equal((await client.call('x', file)).data.file.content.byteLength, 8);
  assert.equal((await client.call('x', { content: 'aGk=', mimeType: 'x/y' })).success, true);
  assert.equal((await client.call('x', { ...file, mimeType: 1 })).error.code, 'INVALID_PARAMS');
});

describe('progress that does not say how far a call is', () => {
  const WRONG = {
    'a number': [50, 'number'],
    'a text': ['half', 'string'],
    nothing: [undefined, 'undefined'],
    'other names': [{ value: 1, max: 2 }, '{ value, max }'],
    'a text as progress': [{ progress: 'half' }, '{ progress }'],
    'no number': [{ progress: 0 / 0, total: 0 }, '{ progress, total }'],
    'a text as total': [{ progress: 1, total: '2' }, '{ progress, total }'],
  };
  for (const [what, [info, shown]] of Object.entries(WRONG))
    test(`${what}: is told once, and not sent, and its call succeeds`, async () => {
      const got = [];
      const name = `reports ${what}`;
      const client = await pair({
        [name]: (_params, { progress }) => {
          progress(info);
          progress({ progress: 1, total: 4 });
          progress(info);
          return 'done';
        },
      });
      const onProgress = ({ progress, total }) => got.push([progress, total]);
      const response = await client.call(name, {}, { onProgress });
      assert.equal(response.data, 'done');
      assert.deepEqual(
        got.filter(([progress]) => progress !== 1),
        [],
      );
      assert.deepEqual(await texts(1), [
        `abp-bridge: ${name} reported progress as ${shown}, which was not sent: write progress({ progress: 3, total: 10 }), in numbers (docs/apps.md#progress)`,
      ]);
    });

  test('what says only the stage is as far as the report before', async () => {
    const got = [];
    const client = await pair({
      x: (_params, { progress }) => {
        progress({ progress: 5, total: 10 });
        progress({ stage: 'writing' });
      },
    });
    await client.call(
      'x',
      {},
      { onProgress: ({ progress, stage }) => got.push([progress, stage]) },
    );
    assert.deepEqual(got, [
      [5, undefined],
      [5, 'writing'],
    ]);
    assert.deepEqual(consoleCalls, []);
  });

  test('of no call: that of a page of others’ making says a percentage', async () => {
    const got = [];
    const app = exposed({});
    const client = await connect(channel.port2, { agent, onProgress: (info) => got.push(info) });
    app.sessions[0].notifyProgress({ operationId: 'a', percentage: 40 });
    app.sessions[0].notifyProgress({ operationId: 'a', value: 1 });
    await texts(1);
    assert.deepEqual(got, [{ operationId: 'a', progress: 40, percentage: 40 }]);
    client.close();
    app.close();
  });

  test('in MCP', async () => {
    const server = createPeer(portChannel(channel.port1), { dialect: 'mcp' });
    const caller = createPeer(portChannel(channel.port2), { dialect: 'mcp' });
    const got = [];
    server.handle('works', (_params, { progress }) => {
      for (const info of [1, { value: 2 }, { progress: 3, total: '4' }, { progress: 5, total: 5 }])
        progress(info);
      return {};
    });
    await caller.request('works', {}, { onProgress: ({ progress }) => got.push(progress) });
    assert.deepEqual(got, [1, 5]);
    assert.match((await texts(1))[0], /works reported progress as \{ value \}, which was not sent/);
    server.close();
    caller.close();
  });
});

test('a handler that throws is seen in the app’s console, unless it means to or was cancelled', async () => {
  const controller = new AbortController();
  const client = await pair({
    bug: () => undefined.member,
    means: () => {
      throw Object.assign(new Error('no'), { code: 'OWN', retryable: true });
    },
    stops: (_params, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('fetch failed')));
        controller.abort();
      }),
  });
  await client.call('means');
  await client.call('stops', {}, { signal: controller.signal });
  assert.deepEqual(consoleCalls, []);
  assert.equal((await client.call('bug')).error.code, 'OPERATION_FAILED');
  const [[words, error]] = consoleCalls;
  assert.match(words, /bug failed/);
  assert.match(error.stack, /mistakes-handlers\.test/);
});

/** Waits until so many warnings were told: what says them is loaded by the first. */
async function texts(count) {
  while (consoleCalls.length < count) await new Promise(setImmediate);
  assert.equal(consoleCalls.length, count);
  return consoleCalls.map(([text]) => text.replace(' (docs/errors.md#warnings)', ''));
}

test('a handler that runs on after its cancel is named in the app’s console, once', async () => {
  const ends = [];
  const app = exposed(
    {
      'export.deaf': () => new Promise((resolve) => ends.push(resolve)),
      'export.fine': (_params, { signal }) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason)),
        ),
    },
    { limits: { grace: 5 } },
  );
  const client = await connect(channel.port2, { agent });
  const stopped = async (name) => {
    const controller = new AbortController();
    const result = client.call(name, {}, { signal: controller.signal });
    controller.abort();
    assert.equal((await result).cancelled, true);
  };
  await stopped('export.fine');
  await stopped('export.deaf');
  await stopped('export.deaf');
  const [text] = await texts(1);
  assert.match(text, /^abp-bridge: export\.deaf still ran .*give its signal to fetch.*breathe/);
  for (const end of ends) end();
  client.close();
  app.close();
});

test('breathe() without await is told, once, and its call ends as it would', async () => {
  const rejected = mock.fn();
  process.on('unhandledRejection', rejected);
  const isDue = (breathe) => {
    for (;;) if (breathe()) return;
  };
  const app = exposed({
    'export.hasty': async (_params, { breathe }) => {
      isDue(breathe);
      isDue(breathe);
      await new Promise(setImmediate);
      return 'done';
    },
    // Each of these hears of a cancel.
    'export.fine': async (_params, { breathe }) => {
      await breathe();
      const both = await Promise.all([1, 2].map(async (n) => (await breathe(), n)));
      await Promise.race([breathe(), undefined]);
      await breathe()?.then(() => {});
      const later = breathe();
      await later;
      return both;
    },
  });
  const client = await connect(channel.port2, { agent });
  for (let i = 0; i < 3; i++) assert.deepEqual((await client.call('export.fine')).data, [1, 2]);
  for (let i = 0; i < 2; i++) assert.equal((await client.call('export.hasty')).data, 'done');
  const controller = new AbortController();
  const stopped = client.call('export.hasty', {}, { signal: controller.signal });
  controller.abort();
  await stopped;
  const [text] = await texts(1);
  assert.match(
    text,
    /^abp-bridge: export\.hasty calls breathe\(\) without await.*await breathe\(\)/,
  );
  await new Promise(setImmediate);
  assert.equal(rejected.mock.callCount(), 0);
  process.off('unhandledRejection', rejected);
  client.close();
  app.close();
});

const ENDS = {
  'its app is closed': (app) => app.close(),
  'its agent closes': (_app, client) => client.close(),
};

for (const [when, end] of Object.entries(ENDS))
  test(`a handler that still runs when ${when} is not called deaf`, async () => {
    let finish;
    const app = exposed({ slow: () => new Promise((resolve) => (finish = resolve)) });
    const client = await connect(channel.port2, { agent });
    const pending = client.call('slow');
    while (!finish) await new Promise(setImmediate);
    end(app, client);
    assert.match((await pending).metadata.outcome, /^(running|unknown)$/);
    while (app.sessions.length) await new Promise(setImmediate);
    finish();
    // Each name is told of once.
    expose({ app: APP, capabilities: {} }, { origins: [], [when]: 1 }).close();
    assert.match((await texts(1))[0], new RegExp(`has no option ${when}`));
  });

describe('a cancel that is read only when its call has ended', () => {
  // Each call is cancelled when its handler says so, which then goes on: by its signal, or by its
  // id.
  const AGENT_IN_A_THREAD = `
    const { workerData, parentPort } = require('node:worker_threads');
    const { entry, port, cell, names, upgrade, byId } = workerData;
    import(entry).then(async ({ connect }) => {
      const client = await connect(port, { agent: { name: 'a', version: '1' }, upgrade });
      for (const [callId, name] of names.entries()) {
        const controller = new AbortController();
        const options = byId ? { callId: String(callId) } : { signal: controller.signal };
        const pending = client.call(name, {}, options);
        if (name.endsWith('interrupted')) client.call('interrupt');
        await new Promise(setImmediate);
        Atomics.wait(cell, 0, 0);
        if (byId) client.cancel(options.callId);
        else controller.abort();
        Atomics.store(cell, 1, 1);
        Atomics.notify(cell, 1);
        const { success, cancelled } = await pending;
        parentPort.postMessage([name, success, cancelled]);
        Atomics.store(cell, 0, 0);
        Atomics.store(cell, 1, 0);
      }
      client.close();
      parentPort.close();
    });`;
  // It never goes back: so these are the last tests of this file.
  let now = performance.now();
  const WAYS = {
    'in frames': {},
    'in messages': { upgrade: 'none' },
    'by its id': { byId: true },
    'by its id, in messages': { byId: true, upgrade: 'none' },
  };
  for (const [way, how] of Object.entries(WAYS))
    test(`${way}: is told of the handler that let nothing in for long, and of no other`, async (t) => {
      const cell = new Int32Array(new SharedArrayBuffer(8));
      t.mock.method(performance, 'now', () => now);
      /** Has the agent cancel the call, and computes for so many ms. No turn passes. */
      const compute = (ms) => {
        Atomics.store(cell, 0, 1);
        Atomics.notify(cell, 0);
        Atomics.wait(cell, 1, 0);
        now += ms;
      };
      let resume;
      const handlers = {
        short: () => compute(100),
        long: () => compute(10_000),
        failing: () => {
          compute(10_000);
          throw new AbpError('OPERATION_FAILED', 'It failed', {});
        },
        'of promises': async () => {
          compute(10_000);
          for (let i = 0; i < 100; i++) await undefined;
        },
        late: async () => {
          await new Promise(setImmediate);
          compute(10_000);
        },
        breathing: async (_params, { breathe }) => {
          now += 10_000;
          await breathe();
          compute(100);
        },
        stopped: async (_params, { breathe }) => {
          compute(10_000);
          for (;;) await breathe();
        },
        interrupted: () => {
          now += 10_000;
          return new Promise((resolve) => (resume = resolve));
        },
      };
      const named = Object.entries(handlers).map(([name, run]) => [`${way}, ${name}`, run]);
      const interrupt = () => {
        compute(100);
        resume();
      };
      const app = exposed({ ...Object.fromEntries(named), interrupt });
      const names = [...named.map(([name]) => name), `${way}, long`];
      const entry = new URL('../../parts/main/index.js', import.meta.url).href;
      const workerData = { entry, cell, names, port: channel.port2, ...how };
      const options = { eval: true, workerData, transferList: [channel.port2] };
      const results = [];
      const worker = new Worker(AGENT_IN_A_THREAD, options).on('message', (each) =>
        results.push(each),
      );
      await once(worker, 'exit');
      const failed = { failing: [false, undefined], stopped: [false, true] };
      assert.deepEqual(
        results,
        names.map((name) => [name, ...(failed[name.slice(way.length + 2)] ?? [true, undefined])]),
      );
      app.close();
      const told = ['long', 'failing', 'of promises', 'late'];
      assert.deepEqual(
        await texts(told.length),
        told.map(
          (name) =>
            `abp-bridge: ${way}, ${name} ended before a cancel was read that was there: no message was read meanwhile: await breathe() in its loop, or give its work to a worker (docs/errors.md#a-cancel-comes-too-late)`,
        ),
      );
    });
});
