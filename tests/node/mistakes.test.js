// What expose and connect are given wrong is told where it is wrong, and to whom it belongs:
// capabilities, schemas, functions that fail, transports.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
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
    assert.deepEqual(consoleCalls, []);
  });
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
  assert.match(consoleCalls[0][0], /this app cannot answer agents/);
});

/** Waits until so many warnings were told: what says them is loaded by the first. */
async function texts(count) {
  while (consoleCalls.length < count) await new Promise(setImmediate);
  assert.equal(consoleCalls.length, count);
  return consoleCalls.map(([text]) => text.replace(' (docs/errors.md#warnings)', ''));
}

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
      const reported = () => new Set(consoleCalls.map(([, error]) => error.message));
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
      assert.match(consoleCalls[0][1].message, /cannot close/);
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
