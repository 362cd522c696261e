// An option that nothing reads, or of a wrong type, is named to its author, with the one that was
// probably meant.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { webSocketTransport } from '../../parts/transports/index.js';
import { discover } from '../../parts/discovery/discover.js';
import { createHost } from '../../packages/mcp-apps/src/index.js';
import { lineTransport } from '../../packages/rpc/src/index.js';
import { webmcp } from '../../packages/webmcp/src/index.js';
import { connect, expose } from '../../parts/main/index.js';
import { createPeer, portChannel } from '../../packages/rpc/src/index.js';
import { pool } from '../../parts/workers/pool.js';
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

/** A host of MCP Apps, whose view has begun its session. */
async function hostOf() {
  const view = createPeer(portChannel(channel.port2), { dialect: 'mcp' });
  const hosting = createHost(portChannel(channel.port1), { host: { name: 'H', version: '1' } });
  await view.request('ui/initialize', { appInfo: { name: 'V', version: '1' } });
  view.notify('ui/notifications/initialized', {});
  return hosting;
}

/** Waits until so many warnings were told: what says them is loaded by the first. */
async function texts(count) {
  while (consoleCalls.length < count) await new Promise(setImmediate);
  assert.equal(consoleCalls.length, count);
  return consoleCalls.map(([text]) => text.replace(' (docs/errors.md#warnings)', ''));
}

describe('an option that nothing reads is named once, with the one that was probably meant:', () => {
  test('of a call', async () => {
    const client = await pair({ echo: (params) => params });
    const controller = new AbortController();
    // A controller is fine: what it inherits is no option that somebody wrote.
    for (const options of [{ singal: controller.signal }, { singal: 1, zap: 2 }, controller]) {
      assert.equal((await client.call('echo', 1, options)).data, 1);
    }
    assert.deepEqual(await texts(2), [
      'abp-bridge: a call has no option singal: did you mean signal?',
      'abp-bridge: a call has no option zap: it has callId, highWaterMark, idempotencyKey, input, onProgress, progressToken, retry, signal, timeout, transfer',
    ]);
  });

  test('of expose, of connect, and of their limits', async () => {
    const app = exposed({}, { onSesion: () => {}, limits: { graze: 5, grace: 5 } });
    const client = await connect(channel.port2, {
      agent,
      onDisconect() {},
      limits: { hartbeat: 1 },
    });
    assert.deepEqual((await texts(4)).sort(), [
      'abp-bridge: connect has no option onDisconect: did you mean onDisconnect?',
      'abp-bridge: expose has no option onSesion: did you mean onSession?',
      'abp-bridge: limits has no option graze: did you mean grace?',
      'abp-bridge: limits has no option hartbeat: did you mean heartbeat?',
    ]);
    client.close();
    app.close();
  });

  test('of a capability, and of the definition', async () => {
    const handler = () => 1;
    const app = exposed({
      read: { handler, inputSchmea: {}, description: 'Reads' },
      fine: handler,
    });
    app.set('late', { handler, readonly: true });
    expose({ app: APP, capabilites: { handler } }).close();
    assert.deepEqual((await texts(3)).sort(), [
      'abp-bridge: capability late has no member readonly: did you mean readOnly?',
      'abp-bridge: capability read has no member inputSchmea: did you mean inputSchema?',
      'abp-bridge: the definition has no member capabilites: did you mean capabilities?',
    ]);
    app.close();
  });

  test('of packages', async () => {
    const peer = createPeer(portChannel(channel.port1), { dialect: 'lsp', onRequst: () => 1 });
    pool(() => {}, { maxWaitng: 1 });
    assert.deepEqual((await texts(2)).sort(), [
      'abp-bridge: createPeer has no option onRequst: did you mean onRequest?',
      'abp-bridge: pool has no option maxWaitng: did you mean maxWaiting?',
    ]);
    peer.close();
  });

  const streams = () => ({ readable: new ReadableStream(), writable: new WritableStream() });
  const socket = () => ({ readyState: 0, bufferedAmount: 0, addEventListener() {}, close() {} });
  const peerOf = () => createPeer(portChannel(channel.port1), { dialect: 'mcp' });
  const own = (peer, act) => Promise.resolve(act(peer)).finally(() => peer.close());
  const PACKAGES = {
    webSocketTransport: ['maxLenght', 'maxLength', (o) => webSocketTransport(socket(), o).close()],
    'a stream of bytes': ['maxMesage', 'maxMessage', (o) => lineTransport(streams(), o).close()],
    request: [
      'timeot',
      'timeout',
      (o) => own(peerOf(), (peer) => void peer.request('a', {}, o).catch(() => {})),
    ],
    webmcp: ['orgins', 'origins', (o) => void webmcp(o)],
    discover: ['alowPrivate', 'allowPrivate', (o) => discover('https://127.0.0.1/', o)],
    callTool: [
      'onProgres',
      'onProgress',
      async (o) => (await hostOf()).callTool('a', {}, o).catch(() => {}),
    ],
  };
  for (const [who, [given, meant, act]] of Object.entries(PACKAGES))
    test(`of ${who}`, async () => {
      await act({ [given]: 1 });
      assert.deepEqual(await texts(1), [
        `abp-bridge: ${who} has no option ${given}: did you mean ${meant}?`,
      ]);
    });
});

describe('an option of a wrong type is refused:', () => {
  const WRONG = [
    { upgrade: 'frame' },
    { upgrade: 'or' }, // of which the words for a type are made
    { limits: { grace: '3s' } },
    { limits: { maxCalls: -1 } },
    { limits: 5 },
    { debug: 'yes' },
    { trace: true },
  ];
  for (const options of WRONG) {
    const name = Object.keys(options)[0];
    const wrong = { code: 'INVALID_PARAMS', message: new RegExp(`^(${name}|grace|maxCalls) of `) };
    test(JSON.stringify(options), async () => {
      assert.throws(() => exposed({}, options), wrong);
      await assert.rejects(connect(channel.port2, { agent, ...options }), wrong);
    });
  }

  for (const options of [
    { timeout: '5s' },
    { timeout: -1 },
    { signal: new AbortController() },
    { onProgress: {} },
    { transfer: 'all' },
    { retry: 3 },
  ]) {
    test(`${Object.keys(options)} of a call`, async () => {
      const client = await pair({ echo: (params) => params });
      await assert.rejects(client.call('echo', 1, options), {
        code: 'INVALID_PARAMS',
        message: new RegExp(`^${Object.keys(options)} of a call must be `),
      });
      assert.equal((await client.call('echo', 1)).data, 1);
    });
  }
});

test('an option that is null, or false, is as if it were not there', async () => {
  const none = { trace: null, limits: null, debug: false, onProgress: null, onNotification: null };
  const client = await connect(
    channel.port2,
    (exposed({ echo: (params) => params }, { trace: null, limits: null, onSession: undefined }),
    { agent, ...none }),
  );
  const options = { signal: null, timeout: 0, onProgress: null, retry: false };
  assert.equal((await client.call('echo', 1, options)).data, 1);
  assert.deepEqual(consoleCalls, []);
  client.close();
});

describe('an option of a package that is of a wrong type is refused:', () => {
  const streams = () => ({ readable: new ReadableStream(), writable: new WritableStream() });
  const peerOf = () => createPeer(portChannel(channel.port1), { dialect: 'mcp' });
  const WRONG = {
    'maxLength of webSocketTransport': (o) => webSocketTransport({ addEventListener() {} }, o),
    'maxMessage of a stream of bytes': (o) => lineTransport(streams(), o),
    'timeout of request': (o) => peerOf().request('a', {}, o),
    'lookup of discover': (o) => discover('https://127.0.0.1/', o),
    'onProgress of callTool': async (o) => (await hostOf()).callTool('a', {}, o),
  };
  for (const [what, act] of Object.entries(WRONG))
    test(what, async () => {
      const refused = { code: 'INVALID_PARAMS', message: new RegExp(`^${what} must be `) };
      await assert.rejects(async () => act({ [what.split(' ')[0]]: [] }), refused);
    });
});

test('each documented limit is known', async () => {
  const source = readFileSync(new URL('../../js/driver/abp-core.js', import.meta.url), 'utf8');
  const names = [...source.matchAll(/@property \{number\} \[(\w+)\]/g)].map(([, name]) => name);
  assert.ok(names.length > 8);
  const limits = Object.fromEntries([...names, 'marker'].map((name) => [name, 1000]));
  exposed({}, { limits }).close();
  assert.match((await texts(1))[0], /limits has no option marker/);
});
