// What the authors of apps and agents get wrong is told where it is wrong, and to whom it belongs.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { webSocketTransport } from '../../parts/transports/index.js';
import { discover } from '../../parts/discovery/discover.js';
import { createHost } from '../../packages/mcp-apps/src/index.js';
import { lineTransport } from '../../packages/rpc/src/index.js';
import { webmcp } from '../../packages/webmcp/src/index.js';
import { AbpError, connect, expose } from '../../parts/main/index.js';
import { createPeer, portChannel } from '../../packages/rpc/src/index.js';
import { pool } from '../../parts/workers/pool.js';
import { openPair } from '../support/pair.js';

const APP = { id: 'a.b', name: 'A', version: '1' };
const agent = { name: 'a', version: '1' };

let channel, told;
beforeEach(() => {
  channel = new MessageChannel();
  told = [];
  for (const method of ['error', 'warn'])
    mock.method(console, method, (...words) => told.push(words));
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

/** A transport to nobody, and how often it was closed. */
function silent() {
  const close = mock.fn();
  const transport = { post() {}, onMessage() {}, close };
  return { transport, closed: () => close.mock.callCount() };
}

describe('expose says at once what is wrong with', () => {
  const handler = () => 1;
  const zod = { '~standard': { vendor: 'zod', version: 1, validate() {} }, parse() {} };
  class Own {}
  const nested = (levels) => (levels ? { in: nested(levels - 1) } : 1);
  const cyclic = {};
  cyclic.again = cyclic;
  const WRONG = {
    'origins that are one text': [{}, { origins: 'https://a.example' }, /a list of the exact/],
    'an origin that is a pattern': [{}, { origins: ['http://*.a.example'] }, /not an origin/],
    'capabilities that are a list': [[handler], {}, /an object of handlers by name/],
    'a schema of another library': [
      { x: { handler, inputSchema: zod } },
      {},
      /inputSchema of x cannot be described.*zod does not convert it to JSON Schema/,
    ],
    'an outputSchema of another library': [
      { x: { handler, outputSchema: zod } },
      {},
      /outputSchema of x cannot be described/,
    ],
    'a schema of a class': [{ x: { handler, inputSchema: new Own() } }, {}, /must be a JSON Sch/],
    'a schema that is text': [{ x: { handler, inputSchema: 'string' } }, {}, /must be a JSON Sch/],
    'annotations that are no JSON': [
      { x: { handler, annotations: { limits: [1, 2n] } } },
      {},
      /capability x must be JSON, but annotations\.limits\.1 is a bigint/,
    ],
    'a schema that holds a function': [
      { x: { handler, inputSchema: { validate() {} } } },
      {},
      /inputSchema\.validate is a function/,
    ],
    'features that contain themselves': [
      { x: { handler, features: cyclic } },
      {},
      /too deep, or contains a cycle/,
    ],
    'a requirement that is no JSON': [
      { x: { handler, requirements: [{ met: () => true, description: Symbol('no') }] } },
      {},
      /requirements\.0\.description is a symbol/,
    ],
    'a requirement whose met is misspelt': [
      { x: { handler, requirements: [{ type: 'state', description: 'Open', mett: false }] } },
      {},
      /requirements of capability x must be a list of \{ type, description, met \}/,
    ],
    'requirements that are no list': [
      { x: { handler, requirements: { met: true } } },
      {},
      /requirements of capability x must be a list/,
    ],
    'features of more than 56 levels': [
      { x: { handler, features: nested(57) } },
      {},
      /^capability x must be JSON, but features(\.in)+ is too deep/,
    ],
    'an app that is no JSON': [{}, { app: { ...APP, size: 1n } }, /app\.size is a bigint/],
    'a callback that is none': [{}, { onSession: 'log' }, /onSession of expose must be a function/],
  };
  for (const [what, [capabilities, options, message]] of Object.entries(WRONG)) {
    test(what, () => {
      assert.throws(() => exposed(capabilities, options), { code: 'INVALID_PARAMS', message });
    });
  }

  test('and nothing of what JSON has a form of', () => {
    const features = { a: [1, 'two', null, true, { three: undefined }], deep: nested(55) };
    exposed({ x: { handler, features } }).close();
  });
});

describe('a schema that would check nothing, or everything', () => {
  const WRONG = {
    '#/type must be one of': { type: 'objekt' },
    '#/properties/a/type must be one of': { type: 'object', properties: { a: { type: 'str' } } },
    '#/items must be an object': { type: 'array', items: [{ type: 'string' }] },
    '#/required must be a list of names': { type: 'object', required: 'a' },
    '#/properties must be an object of schemas': { type: 'object', properties: ['a'] },
    '#/anyOf/0/pattern must be a regular expression': { anyOf: [{ pattern: '(' }] },
    '#/minimum must be a number': { minimum: '1' },
  };
  for (const [message, inputSchema] of Object.entries(WRONG)) {
    test(`is the app’s error: ${message}`, async () => {
      const client = await pair({ x: { handler: () => 1, inputSchema } });
      const { error } = await client.call('x', {});
      assert.equal(error.code, 'INTERNAL_ERROR');
      assert.ok(error.message.includes(message), error.message);
      assert.ok((await texts(1))[0].includes(message));
    });
  }

  test('is none of those that are right', async () => {
    const inputSchema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $defs: { name: { type: ['string', 'null'], pattern: '^\\p{L}', minLength: 1 } },
      type: 'object',
      properties: { a: { $ref: '#/$defs/name' }, b: true, type: { enum: [1, 'x'] } },
      required: ['a'],
      additionalProperties: false,
      allOf: [{ not: { required: ['c'] } }],
      'x-own': { type: 'anything' },
    };
    const client = await pair({ x: { handler: (params) => params, inputSchema } });
    assert.deepEqual((await client.call('x', { a: 'é' })).data, { a: 'é' });
    assert.equal((await client.call('x', { a: 1 })).error.code, 'INVALID_PARAMS');
    assert.deepEqual(told, []);
  });
});

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
  assert.deepEqual(told, []);
  for (const name of ['wrong', 'responds.wrong']) {
    const { error } = await client.call(name);
    assert.equal(error.code, 'OPERATION_FAILED');
    assert.match(error.message, /outputSchema: data/);
    assert.match(told.pop().join(' '), new RegExp(`${name} failed`));
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
    assert.deepEqual(told, []);
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
  assert.deepEqual(told, []);
  assert.equal((await client.call('bug')).error.code, 'OPERATION_FAILED');
  const [[words, error]] = told;
  assert.match(words, /bug failed/);
  assert.match(error.stack, /mistakes\.test/);
});

test("the agents of an app that cannot begin are told at once, and the app's author", async (t) => {
  const window = {
    get abp() {
      throw new Error('no name');
    },
  };
  Object.assign(globalThis, { window });
  t.after(() => delete globalThis.window);
  const broken = { app: APP, initialize() {}, call() {} };
  const { ready } = expose(broken, { port: channel.port1 });
  await assert.rejects(connect(channel.port2, { agent, timeout: 0 }), { code: 'DISCONNECTED' });
  await assert.rejects(ready, /no name/);
  assert.match(told[0][0], /this app cannot answer agents/);
});

/** Waits until so many warnings were told: what says them is loaded by the first. */
async function texts(count) {
  while (told.length < count) await new Promise(setImmediate);
  assert.equal(told.length, count);
  return told.map(([text]) => text.replace(' (docs/errors.md#warnings)', ''));
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

describe('a call that breaks a rule is refused, and does not run:', () => {
  const stream = () => new ReadableStream();
  /** In the order of the rules: a call that breaks that one alone, and what is said of it. */
  const RULES = [
    [[7], /^call needs the name of a capability$/],
    [['x', 1, {}, 2], /^a call takes nothing after its options: /],
    [['x', 1, { input: {} }], /^input of a call must be an async iterable or a ReadableStream$/],
    [
      ['x', 1, { input: stream(), highWaterMark: 1.5 }],
      /^highWaterMark of a stream must be a whole number of bytes, at least 1$/,
    ],
    [['x', 1, { onProgress: 'on' }], /^onProgress of a call must be a function$/],
    [['x', 1, { idempotencyKey: '' }], /^idempotencyKey of a call must be a string of 1 to 256 /],
    [
      ['x', 1, { input: stream(), idempotencyKey: 'k' }],
      /^a stream cannot have an idempotencyKey: /,
    ],
    [['x', 1, { transfer: [], retry: true }], /input or transfer cannot be retried: /],
    [['x', 1, { idempotencyKey: 'k' }], /^The app does not support idempotencyKey /],
  ];
  const source = readFileSync(new URL('../../js/agent/client.js', import.meta.url), 'utf8');
  const [, list] = source.match(/\n    const mistakes = \[\n([^]*?)\n    \];\n/);

  test('there is no other rule', () => {
    assert.equal(list.split('\n').length, RULES.length);
  });

  for (const [i, [args, words]] of RULES.entries())
    test(`${words}`, async () => {
      const ran = mock.fn();
      const client = await pair({ x: ran }, { upgrade: 'none' });
      const calling = client.call(...args);
      if (i < RULES.length - 1)
        await assert.rejects(calling, {
          code: 'INVALID_PARAMS',
          message: words,
          outcome: 'unstarted',
        });
      else {
        // What another app would do is no mistake of the program.
        const { error, metadata } = await calling;
        assert.match(error.message, words);
        assert.deepEqual([error.code, metadata.outcome], ['NOT_SUPPORTED', 'unstarted']);
      }
      assert.equal(ran.mock.callCount(), 0);
    });
});

describe('several params in a row are refused, with the form that was meant:', () => {
  const hint =
    'where params is one value, such as [1, 2] or { a: 1, b: 2 } (docs/errors.md#several-params)';
  const WRONG = {
    'in the place of options': [[1, 2], /^options of (.*) must be an object: write /],
    'a list there': [[1, [2]], /^options of (.*) must be an object: write /],
    'behind options': [[1, {}, 2], /^(.*) takes nothing after its options: write /],
    'behind no options': [[1, undefined, 2], /^(.*) takes nothing after its options: write /],
  };
  const FORM = 'call(name, params, { signal })';
  const ran = mock.fn(() => 'ran');
  const PEER = '(method, params, { signal })';
  const rpc = (act) => async (args) => {
    const peer = createPeer(portChannel(channel.port1), { dialect: 'lsp' });
    createPeer(portChannel(channel.port2), { dialect: 'lsp' }).handle('sum', ran);
    await Promise.resolve(act(peer, args)).finally(() => peer.close());
  };
  /** By what takes them. */
  const TAKES = {
    call: [FORM, async (args) => (await pair({ sum: ran })).call('sum', ...args)],
    invoke: [FORM, async (args) => (await pair({ sum: ran })).invoke('sum', ...args)],
    'the response of a stream': [
      'stream(name, params, { signal })',
      async (args) => (await pair({ sum: ran })).stream('sum', ...args).response,
    ],
    'a stream': [
      'stream(name, params, { signal })',
      async (args) => (await pair({ sum: ran })).stream('sum', ...args).next(),
    ],
    'the call of a handler': [
      FORM,
      async (args) => {
        const handler = (_params, { call }) => call('sum', ...args);
        throw AbpError.from((await (await pair({ sum: ran, handler })).call('handler')).error);
      },
    ],
    'window.abp': [
      FORM,
      (args) => expose({ app: APP, capabilities: { sum: ran } }).abp.call('sum', ...args),
    ],
    'a request': [`request${PEER}`, rpc((peer, args) => peer.request('sum', ...args))],
    'a stream of a peer': [
      `stream${PEER}`,
      rpc(async (peer, args) => void (await peer.stream('sum', ...args).next())),
    ],
    'the task of a pool': [
      'run(name)(params, { signal })',
      (args) =>
        pool(() => {
          throw ran();
        }).run('sum')(...args),
    ],
  };
  for (const [what, [form, act]] of Object.entries(TAKES))
    for (const [where, [args, why]] of Object.entries(WRONG))
      test(`${what}, ${where}`, async () => {
        ran.mock.resetCalls();
        await assert.rejects(act(args), ({ code, message }) => {
          assert.equal(code, 'INVALID_PARAMS');
          assert.match(message, why);
          assert.ok(message.endsWith(`write ${form}, ${hint}`), message);
          return true;
        });
        assert.equal(ran.mock.callCount(), 0);
      });

  test('and what stands there, but is undefined, is nothing', async () => {
    const client = await pair({
      sum: ran,
      outer: (_params, { call }) => call('sum', 1, {}, undefined),
    });
    for (const name of ['sum', 'outer'])
      assert.equal((await client.call(name, 1, undefined, undefined)).data, 'ran');
  });
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
  assert.deepEqual(told, []);
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

test('each documented limit is known', async () => {
  const source = readFileSync(new URL('../../js/driver/abp-core.js', import.meta.url), 'utf8');
  const names = [...source.matchAll(/@property \{number\} \[(\w+)\]/g)].map(([, name]) => name);
  assert.ok(names.length > 8);
  const limits = Object.fromEntries([...names, 'marker'].map((name) => [name, 1000]));
  exposed({}, { limits }).close();
  assert.match((await texts(1))[0], /limits has no option marker/);
});

describe('a function that is given and fails is reported, and ends nothing:', () => {
  const AGENTS = [
    'onNotification',
    'onProgress',
    'onCapabilitiesChanged',
    'onDisconnect',
    'onReconnect',
  ];
  const APPS = ['onSession', 'onSessionEnd'];
  const HOW = {
    throws: (name) => () => {
      throw new Error(name);
    },
    rejects: (name) => async () => {
      throw new Error(name);
    },
  };
  for (const [how, fail] of Object.entries(HOW)) {
    test(`one that ${how}`, async () => {
      const failing = (names) => Object.fromEntries(names.map((name) => [name, fail(name)]));
      const app = exposed(
        {
          echo: (params) => params,
          steps: (_params, { progress }) => progress({ progress: 1 }),
        },
        failing([...APPS, 'trace']),
      );
      const client = await connect(channel.port2, {
        agent,
        reconnect: true, // a port is gone for good: onReconnect is told so
        ...failing([...AGENTS, 'trace']),
      });
      app.set('added', () => 1);
      app.sessions[0].notifyProgress({ progress: 1 });
      const onProgress = fail('onProgress of a call');
      assert.equal((await client.call('steps', 1, { onProgress })).success, true);
      assert.equal((await client.call('echo', 1)).data, 1);
      app.close();
      const reported = () => new Set(told.map(([, error]) => error.message));
      const expected = [...AGENTS, ...APPS, 'onProgress of a call', 'trace'];
      while (reported().size < expected.length) await new Promise(setImmediate);
      assert.deepEqual([...reported()].sort(), expected.sort());
    });
  }

  test('each function that connect and expose may be given is among them', () => {
    // What a question is answered with is no report: it fails its question
    // (session-questions.test.js).
    const known = [...AGENTS, ...APPS, 'onElicitation'];
    const documented = ['agent/client.js', 'app/expose.js'].flatMap((file) => {
      const source = readFileSync(new URL(`../../js/${file}`, import.meta.url), 'utf8');
      return [...source.matchAll(/@property [^@]*?\[(on[A-Z]\w+)\]/g)].map(([, name]) => name);
    });
    assert.deepEqual(documented.sort(), known.sort());
  });
});

test('an app that describes itself in no JSON any more leaves nothing behind for each agent that asks', async () => {
  const annotations = {};
  const app = expose({ app: APP, capabilities: { x: { handler: () => 1, annotations } } });
  annotations.later = 1n;
  await app.ready;
  const { transport, closed } = silent();
  assert.throws(() => app.accept(transport), TypeError);
  assert.deepEqual([closed(), app.counters], [1, []]);
});

test('a description that is no JSON ends what connect has opened', async () => {
  const { transport, closed } = silent();
  const wrong = { agent: { ...agent, size: 1n } };
  await assert.rejects(
    connect(() => transport, wrong),
    TypeError,
  );
  assert.equal(closed(), 1);
});

describe('a transport whose close throws', () => {
  for (const connected of [true, false]) {
    test(`${connected ? 'loses' : 'keeps'} nobody's news of the end`, async () => {
      const mine = {
        post: (message) => setImmediate(() => theirs.onMessage(structuredClone(message), [])),
        onMessage() {},
        close() {
          throw new Error('cannot close');
        },
      };
      const theirs = {
        post: (message) => setImmediate(() => connected && mine.onMessage(message, [])),
        onMessage() {},
        close() {},
      };
      const app = expose({ app: APP, capabilities: {} });
      app.accept(theirs);
      await app.ready;
      const disconnected = new Promise((resolve) => {
        const connecting = connect(mine, { agent, onDisconnect: resolve });
        if (!connected) connecting.catch(resolve);
        else void connecting.then(() => mine.onClose(new Error('gone')));
      });
      if (!connected) {
        while (!mine.onClose) await new Promise(setImmediate);
        await new Promise(setImmediate);
        mine.onClose(new Error('gone'));
      }
      assert.equal((await disconnected).code, 'DISCONNECTED');
      assert.match(told[0][1].message, /cannot close/);
      app.close();
    });
  }
});

describe('an agent is told of', () => {
  test('a timeout that is no number', async () => {
    const client = await pair({
      x: () => 1,
      asks: (_params, { elicit }) => elicit({ method: 'm', timeout: '5s' }),
      calls: (_params, { call }) => call('x', {}, { timeout: '5s' }),
    });
    assert.match((await client.call('asks')).error.message, /timeout of elicit must be a number/);
    assert.match((await client.call('calls')).error.message, /timeout of call must be a number/);
    await assert.rejects(
      client.call('x', {}, { timeout: '5s' }),
      /timeout of a call must be a number/,
    );
    await assert.rejects(connect(channel.port2, { agent, timeout: '5s' }), {
      code: 'INVALID_PARAMS',
    });
  });

  for (const [reconnect, why] of [
    [{ delay: '1s' }, 'delay of reconnect must be a number'],
    [{ reload: 1 }, 'reload of reconnect must be a boolean or a function'],
    [{ reload: true }, 'reload of reconnect needs an iframe'],
    ['always', 'reconnect of connect must be a boolean or an object'],
  ]) {
    test(`how to reconnect: ${why}`, async () => {
      await assert.rejects(connect(channel.port2, { agent, reconnect }), {
        code: 'INVALID_PARAMS',
        message: why,
      });
    });
  }

  test('what reconnect is given in place of a signal', async () => {
    const client = await pair({ echo: (params) => params });
    for (const [given, why] of [
      ['now', 'options of reconnect() must be an object: pass { signal }'],
      [{ signal: 'stop' }, 'signal of reconnect() must be an AbortSignal'],
    ])
      await assert.rejects(client.reconnect(given), { code: 'INVALID_PARAMS', message: why });
    // The session that there is was not touched.
    assert.equal((await client.call('echo', 1)).data, 1);
  });

  for (const name of ['onDisconnect', 'onElicitation', 'onNotification']) {
    test(`${name} that is no function`, async () => {
      await assert.rejects(connect(channel.port2, { agent, [name]: true }), {
        code: 'INVALID_PARAMS',
        message: new RegExp(name),
      });
    });
  }
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
