// The errors of the first hour: each says what happened, why and what to do, and where
// docs/errors.md explains it.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { connect, expose } from '../../parts/main/index.js';
import { MAIN, PACKAGES } from '../../scripts/entries.js';
import { openPair } from '../support/pair.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const document = readFileSync(join(root, 'docs/errors.md'), 'utf8');
/** The anchors of the document's headings, as Markdown makes them. */
const anchors = new Set(
  [...document.matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  ),
);

const APP = { id: 'a.b', name: 'A', version: '1' };
const agent = { name: 'a', version: '1' };

let channel, told;
beforeEach(() => {
  channel = new MessageChannel();
  told = [];
  for (const method of ['error', 'warn', 'log', 'info'])
    mock.method(console, method, (...words) => told.push(words.join(' ')));
});
afterEach(() => {
  channel.port1.close();
  channel.port2.close();
  mock.restoreAll();
});

/** A transport to an app that answers each message at once. */
const answering = (answer) => ({
  post(message) {
    queueMicrotask(() => this.onMessage(answer(message), []));
  },
  onMessage() {},
  close() {},
});

const pair = async (capabilities) => (await openPair(capabilities)).client;

/** Asserts what an error says, and that the document explains it. */
function assertExplains({ code, message }, expected) {
  assert.equal(code, expected.code);
  assert.match(message, expected.message);
  const anchor = /\(docs\/errors\.md#([^)]+)\)/.exec(message)?.[1] ?? code.toLowerCase();
  assert.equal(anchor, expected.anchor ?? code.toLowerCase());
  assert.ok(anchors.has(anchor), `docs/errors.md has no ${anchor}`);
}

describe('docs/errors.md has', () => {
  const sources = (folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .filter((name) => /\.[cj]s?$/.test(name))
      .map((name) => readFileSync(join(root, folder, name), 'utf8'))
      .join('\n');
  const rooms = PACKAGES.map((each) => (each === MAIN ? 'parts' : `${each.folder}/src`));
  const shim = ['js', ...rooms].map(sources).join('\n');
  const code = shim + sources('src');

  test('a section for each anchor that a message or the document itself names', () => {
    const named = [...code.matchAll(/docs\/errors\.md#([\w-]+)/g)];
    assert.ok(named.length > 10);
    const links = [...document.matchAll(/\]\(#([\w-]+)\)/g)];
    for (const [, anchor] of [...named, ...links]) assert.ok(anchors.has(anchor), anchor);
  });

  test('a section or a mention for each code', () => {
    const inShim = [...(sources('js') + sources('parts')).matchAll(/new AbpError\(\s*'(\w+)'/g)];
    const inCore = [...sources('src').matchAll(/^\s+"([A-Z_]+)\\0[A-Z]/gm)];
    assert.ok(inShim.length > 20 && inCore.length > 10, 'they are found');
    for (const [, name] of [...inShim, ...inCore])
      assert.ok(document.includes(`\`${name}\``), name);
  });

  test('no section that nothing leads to', () => {
    const said = new Set(
      [...(code + document).matchAll(/errors\.md#([\w-]+)|\]\(#([\w-]+)\)/g)].map(
        ([, a, b]) => a ?? b,
      ),
    );
    const titles = [
      'errors',
      'the-connection',
      'calls',
      'codes',
      'others',
      'what-a-handler-returns',
    ];
    for (const anchor of anchors) {
      const isCode = document.includes(`\n### \`${anchor.toUpperCase()}\``);
      assert.ok(isCode || titles.includes(anchor) || said.has(anchor), anchor);
    }
  });
});

describe('connect says', () => {
  for (const [what, origin, hint] of [
    ['nothing', undefined, 'https://app.example'],
    ['*', '*', 'https://app.example'],
    ['a pattern', 'https://*.example', 'https://app.example'],
    ['a path', 'https://app.example:8443/editor', 'https://app.example:8443'],
    ['no scheme', 'app.example', 'https://app.example'],
    ['a number', 1, 'https://app.example'],
  ]) {
    test(`what an origin is, when it is given ${what}`, async () => {
      const iframe = { contentWindow: {}, src: 'https://app.example/writer?x' };
      await assert.rejects(connect(iframe, { origin, agent }), (error) => {
        assertExplains(error, {
          code: 'INVALID_PARAMS',
          message: new RegExp(`is not an origin, such as "${hint}"`),
          anchor: 'not-an-origin',
        });
        return true;
      });
    });
  }

  test('nothing of a slash at the end', async () => {
    const iframe = { contentWindow: null, src: 'https://app.example/writer' };
    await assert.rejects(connect(iframe, { origin: 'https://app.example/', agent }), {
      message: /^The iframe is not in a document/,
    });
  });

  test('that nobody answered, when nobody calls expose', async () => {
    await assert.rejects(connect(channel.port2, { agent, timeout: 50 }), (error) => {
      assertExplains(error, {
        code: 'TIMEOUT',
        message: /within 50 ms: nothing at the other end calls expose/,
        anchor: 'no-answer',
      });
      assert.equal(error.retryable, true);
      return true;
    });
  });

  test('that the other end speaks JSON-RPC', async () => {
    const app = answering(() => ({ jsonrpc: '2.0', id: 1, method: 'ui/initialize' }));
    await assert.rejects(connect(app, { agent, timeout: 1000 }), (error) => {
      assertExplains(error, {
        code: 'TIMEOUT',
        message: /it speaks JSON-RPC/,
        anchor: 'json-rpc',
      });
      return true;
    });
  });

  test('the last word of an app that refused until time ran out', async () => {
    const refusal = { code: 'ALREADY_INITIALIZED', message: 'Ann is here', retryable: false };
    const payload = { success: false, error: refusal };
    const app = answering(({ id }) => ({ type: 'initialize-result', id, payload }));
    await assert.rejects(connect(app, { agent, timeout: 1000 }), (error) => {
      assertExplains(error, {
        code: 'TIMEOUT',
        message: /it refused, with ALREADY_INITIALIZED: Ann is here\. close\(\)/,
        anchor: 'already-connected',
      });
      assert.deepEqual([error.cause.code, error.cause.message], [refusal.code, refusal.message]);
      return true;
    });
  });

  test('what a refusal that is final says, at once', async () => {
    const error = { code: 'PERMISSION_DENIED', message: 'not you', retryable: false };
    const payload = { success: false, error };
    const app = answering(({ id }) => ({ type: 'initialize-result', id, payload }));
    await assert.rejects(connect(app, { agent, timeout: 0 }), (rejected) => {
      assertExplains(rejected, { code: 'PERMISSION_DENIED', message: /^not you$/ });
      return true;
    });
  });

  test('that its own function has opened nothing', async () => {
    await assert.rejects(
      connect(() => new Promise(() => {}), { agent, timeout: 50 }),
      (error) => {
        assertExplains(error, {
          code: 'TIMEOUT',
          message: /The function given to connect did not return a transport within 50 ms/,
          anchor: 'no-answer',
        });
        return true;
      },
    );
  });
});

describe('a capability that does not exist', () => {
  const capabilities = { 'export.pdf': () => 1, 'export.png': () => 1, 'text.summarise': () => 1 };
  for (const [said, meant] of [
    ['export.pfd', 'export.pdf'],
    ['Export.PDF', 'export.pdf'],
    ['exportPng', 'export.png'],
    ['summarise', 'text.summarise'],
    ['text.summarize', 'text.summarise'],
  ]) {
    test(`${said} is answered with the nearest name, ${meant}`, async () => {
      const client = await pair(capabilities);
      const { error } = await client.call(said);
      const message = new RegExp(`no such capability: ${said}\\. Did you mean ${meant}\\?`);
      assertExplains(error, { code: 'UNKNOWN_CAPABILITY', message });
      assert.deepEqual(error.alternatives, [meant]);
    });
  }

  /** Names, what is said, and which of the names was probably meant. */
  const NEAR = [
    [['list'], 'LIST', 'list'],
    [['list'], 'lis', 'list'],
    [['list'], 'llist', 'list'],
    [['list'], 'lost', 'list'],
    [['list'], 'listes', 'list'],
    [['describe'], 'desrcibe', 'describe'],
    [['describe'], 'descri', 'describe'],
    [['abcd', 'acbd'], 'abdc', 'abcd'],
    // A letter too many, one missing, another one; then the last part of a name; then two such
    // edits.
    [['sv', 'file.save', 'saved'], 'save', 'saved'],
    [['x.caart', 'cart'], 'caart', 'cart'],
    [['sv', 'file.save'], 'save', 'file.save'],
    [['a.list.all'], 'ALL', 'a.list.all'],
    [['ct!!', 'Cats'], 'cat', 'Cats'],
    [['x'.repeat(64)], 'X'.repeat(64), 'x'.repeat(64)],
  ];
  for (const [names, said, meant] of NEAR) {
    test(`${said.slice(0, 10)} among ${names.join(', ').slice(0, 40)} is ${meant.slice(0, 10)}`, async () => {
      const client = await pair(Object.fromEntries(names.map((name) => [name, () => 1])));
      assert.deepEqual((await client.call(said)).error.alternatives, [meant]);
    });
  }

  test('that resembles none is answered without a guess', async () => {
    const client = await pair({ ...capabilities, ['x'.repeat(65)]: () => 1 });
    const far = [
      'image.blur',
      '',
      'x'.repeat(100_000),
      'X'.repeat(65),
      'export',
      'df',
      'txt.smarise',
    ];
    for (const said of far) {
      const { error } = await client.call(said);
      assertExplains(error, { code: 'UNKNOWN_CAPABILITY', message: /no such capability: / });
      assert.ok(!error.message.includes('Did you mean'), error.message);
      assert.equal(error.alternatives, undefined);
    }
  });
});

/**
 * @param {number} levels
 * @param {unknown} inner
 */
const nested = (levels, inner) => (levels ? { value: nested(levels - 1, inner) } : inner);

describe('what cannot be sent is named with its path', () => {
  const anchor = 'what-cannot-be-sent';
  class Editor {
    run = () => {};
  }
  const PARTS = [
    [{ rows: [{}, { onClick() {} }] }, 'rows[1].onClick (function)'],
    [{ editor: new Editor() }, 'editor.run (function)'],
    [{ list: [Symbol('x')] }, 'list[0] (symbol)'],
    [{ state: new Proxy(new Map(), {}) }, 'state (Map)'],
    [{ waits: Promise.resolve() }, 'waits (Promise)'],
    [{ constructor: { name: { toString: null } }, f() {} }, 'f (function)'],
    [Object.assign(Object.create(null), { map: new WeakMap() }), 'map (WeakMap)'],
    // Sixteen levels are searched.
    [nested(16, () => {}), `value${'.value'.repeat(15)} (function)`],
    [nested(17, () => {}), `value${'.value'.repeat(15)} (Object)`],
  ];
  for (const [value, part] of PARTS) {
    test(`in params and in results: ${part}`, async () => {
      const client = await pair({ echo: (params) => params, gives: () => value });
      for (const [call, prefix, code] of [
        [
          () => client.call('echo', value),
          'The parameters cannot be sent: params.',
          'INVALID_PARAMS',
        ],
        [() => client.call('gives'), 'The result cannot be sent: data.', 'OPERATION_FAILED'],
      ]) {
        const { error, metadata } = await call();
        // What a handler has done stands.
        assert.equal(metadata.outcome, code === 'INVALID_PARAMS' ? 'unstarted' : 'finished');
        assertExplains(error, { code, message: /cloned/, anchor });
        assert.ok(error.message.startsWith(`${prefix}${part}: `), error.message);
      }
      assert.equal((await client.call('echo', 'still there')).data, 'still there');
    });
  }

  test('where it is all of the value', async () => {
    const client = await pair({ gives: () => () => {} });
    const { error } = await client.call('gives');
    const message = /^The result cannot be sent: data \(function\): /;
    assertExplains(error, { code: 'OPERATION_FAILED', message, anchor });
  });

  test('in what a failure says of itself, also once its code is known', async () => {
    const client = await pair({
      waits: (_params, { signal }) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason)),
        ),
      says: () => ({
        success: false,
        error: { code: 'CANCELLED', message: 'enough', retryable: false },
        metadata: { run() {} },
      }),
    });
    const stopped = await client.call('waits', {}, { signal: AbortSignal.timeout(1) });
    assert.equal(stopped.cancelled, true);
    const each = await Promise.all([client.call('says'), client.call('says')]);
    for (const { error } of each) {
      assert.equal(error.code, 'OPERATION_FAILED');
      assert.match(error.message, /^The result cannot be sent: .*cloned/);
    }
  });

  for (const upgrade of ['none', 'frames']) {
    test(`in an event or progress, which is not sent, as the app’s console says (${upgrade})`, async () => {
      const heard = [];
      const exposed = expose(
        {
          app: APP,
          capabilities: { x: (_params, { progress }) => progress({ progress: 1, f() {} }) },
        },
        { port: channel.port1 },
      );
      const onNotification = (...event) => heard.push(event);
      const client = await connect(channel.port2, { agent, upgrade, onNotification });
      exposed.notify('saved', { pages: [{ draw() {} }] });
      exposed.notify('saved', { pages: 1 });
      assert.equal((await client.call('x', {}, { onProgress() {} })).success, true);
      assert.deepEqual(heard, [['saved', { pages: 1 }]]);
      assert.equal(told.length, 2);
      assert.match(
        told[0],
        /payload\.data\.pages\[0\]\.draw \(function\) \(docs\/errors\.md#what-cannot-be-sent\)/,
      );
      assert.match(told[1], /payload\.f \(function\)/);
    });
  }

  test('and nothing is found in what is only too deep', async () => {
    let deep = {};
    for (let i = 0; i < 100_000; i++) deep = { deep };
    const client = await pair({ echo: (params) => params });
    const { success, error } = await client.call('echo', deep);
    if (!success) assert.doesNotMatch(error.message, /params\./);
  });
});

test('a handler that returns nothing succeeds, and its data is undefined', async () => {
  const client = await pair({ nothing() {} });
  const { success, data } = await client.call('nothing');
  assert.deepEqual([success, data], [true, undefined]);
  assert.deepEqual(told, []);
});

test('params that break the schema are named with their path and what was expected', async () => {
  const inputSchema = {
    type: 'object',
    properties: { pages: { type: 'array', items: { type: 'number' } } },
    required: ['pages'],
  };
  const client = await pair({ print: { handler: () => 1, inputSchema } });
  const wrong = await client.call('print', { pages: [1, 'two'] });
  assertExplains(wrong.error, {
    code: 'INVALID_PARAMS',
    message: /^params\/pages\/1: .*string.*Expected "number"/,
  });
  const missing = await client.call('print', {});
  assertExplains(missing.error, { code: 'INVALID_PARAMS', message: /^params: .*"pages"/ });
});

test('normal use writes nothing to the console', async () => {
  const inputSchema = { type: 'object', properties: { n: { type: 'number' } } };
  const client = await pair({
    count: {
      inputSchema,
      handler: async ({ n }, { breathe, progress }) => {
        for (let i = 1; i <= n; i++) {
          await breathe();
          progress({ progress: i, total: n });
        }
        return n;
      },
    },
    waits: (_params, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
  });
  assert.equal((await client.call('count', { n: 3 }, { onProgress() {} })).data, 3);
  const controller = new AbortController();
  const waiting = client.call('waits', {}, { signal: controller.signal });
  setImmediate(() => controller.abort('enough'));
  assert.equal((await waiting).cancelled, true);
  assert.equal((await client.call('waits', {}, { timeout: 20 })).error.code, 'TIMEOUT');
  client.close();
  await client.reconnect().catch(() => {});
  assert.deepEqual(told, []);
});
