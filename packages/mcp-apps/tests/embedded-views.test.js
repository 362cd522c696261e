// Views in a page: whom they post to, whom they believe, and how they find no host.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, expose } from 'abp-bridge';
import { createView, toolsOf } from '../src/index.js';
import { AGENT, turn } from './support/hosts-and-views.js';

/** What a page has that is embedded, and a view in it. */
function embedded(t, { origin, ancestorOrigins }, options = {}) {
  const posted = [];
  const embedder = {
    postMessage: (message, { targetOrigin }) => posted.push([message, targetOrigin]),
  };
  Object.defineProperty(embedder, 'origin', {
    get() {
      if (origin) return origin;
      throw new DOMException('Blocked', 'SecurityError');
    },
  });
  const listeners = new Set();
  const globals = {
    window: {},
    parent: embedder,
    location: { ancestorOrigins },
    addEventListener: (type, listener) => type === 'message' && listeners.add(listener),
    removeEventListener: (_type, listener) => listeners.delete(listener),
  };
  for (const [name, value] of Object.entries(globals)) {
    // Node has none of these.
    Object.defineProperty(globalThis, name, { value, configurable: true });
    t.after(() => delete globalThis[name]);
  }
  const heard = [];
  const creating = createView({
    app: { name: 'X', version: '1' },
    upgrade: 'none',
    onNotification: (method) => heard.push(method),
    ...options,
  });
  const hear = (data, from = {}) => {
    const event = {
      data,
      ports: [],
      source: embedder,
      isTrusted: true,
      origin: 'https://a.example',
    };
    for (const listener of listeners) listener({ ...event, ...from });
  };
  return {
    creating,
    heard,
    hear,
    listeners,
    /** What it said by method, and to which origin. */
    said: () => posted.flatMap(([{ method }, target]) => (method ? [[method, target]] : [])),
    /** Resolves when it has greeted. */
    async greeted() {
      while (!posted.some(([{ method }]) => method)) await turn();
    },
    /** Answers its greeting. */
    answer: (from, word = 'x') => {
      const [{ id }] = posted.map(([message]) => message).filter(({ method }) => method);
      hear({ jsonrpc: '2.0', id, result: { hostInfo: { name: word, version: '1' } } }, from);
    },
    tell: (method, from) => hear({ jsonrpc: '2.0', method }, from),
  };
}

const GREETING = 'ui/initialize';

const BEGUN = 'ui/notifications/initialized';

test('a view posts to the exact origin of the page that embeds it, as soon as it is known', async (t) => {
  for (const place of [
    { origin: 'https://a.example' },
    { ancestorOrigins: ['https://a.example', 'https://other.example'] },
  ]) {
    const { creating, said, greeted, answer } = embedded(t, place);
    await greeted();
    assert.deepEqual(said(), [[GREETING, 'https://a.example']]);
    answer();
    (await creating).close();
  }
  const { creating, said, greeted, answer, tell, heard, listeners } = embedded(t, {});
  await greeted();
  for (const forged of [{ source: {} }, { source: null }, { isTrusted: false }])
    answer(forged, 'forged');
  answer();
  const view = await creating;
  assert.equal(view.hostInfo.name, 'x');
  tell('forged', { origin: 'https://b.example' });
  tell('honest');
  view.notify('secret');
  await turn();
  assert.deepEqual(said(), [
    [GREETING, '*'],
    [BEGUN, 'https://a.example'],
    ['secret', 'https://a.example'],
  ]);
  view.close();
  assert.deepEqual([heard, listeners.size], [['honest'], 0]);
});

test('a view in a page of an opaque origin posts to *', async (t) => {
  const { creating, said, greeted, ...host } = embedded(t, { ancestorOrigins: ['null'] });
  const { answer, tell, heard } = host;
  await greeted();
  answer({ origin: 'null' });
  const view = await creating;
  tell('forged');
  tell('honest', { origin: 'null' });
  await turn();
  assert.deepEqual(said(), [
    [GREETING, '*'],
    [BEGUN, '*'],
  ]);
  assert.deepEqual(heard, ['honest']);
  view.close();
});

test('a view without a host rejects with TIMEOUT, and its app serves others', async (t) => {
  const { port1, port2 } = new MessageChannel();
  const capabilities = { echo: (params) => params };
  const app = expose(
    { app: { id: 'x.y', name: 'X', version: '1' }, capabilities },
    { port: port2 },
  );
  const options = { tools: toolsOf(app), timeout: 50 };
  const { creating, hear, said } = embedded(t, {}, options);
  // What other pages say is no answer.
  hear({ type: 'initialize', id: 1, payload: {} });
  await assert.rejects(creating, {
    code: 'TIMEOUT',
    retryable: true,
    message: 'No MCP Apps host answered within 50 ms: the embedding page may not be one',
  });
  assert.equal(said()[0]?.[0], GREETING);
  const client = await connect(port1, { agent: AGENT });
  assert.deepEqual((await client.call('echo', { a: 1 })).data, { a: 1 });
  client.close();
  app.close();
});
