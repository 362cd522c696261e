// An app in a page: which window messages it answers, what it tells its author, and what it leaves
// when it is closed.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { expose } from '../../parts/main/index.js';
import { AGENT, APP } from '../support/pair.js';

const ORIGIN = 'https://agent.example';
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));
/**
 * Long enough for what is loaded on demand.
 * @param {() => unknown} holds
 */
async function until(holds) {
  while (!holds()) await nextTurn();
}

let own, listeners, told, apps;
beforeEach(() => {
  listeners = [];
  told = [];
  apps = [];
  own = {};
  for (const name of ['addEventListener', 'removeEventListener']) own[name] = globalThis[name];
  globalThis.addEventListener = (type, listener) => listeners.push({ type, listener });
  globalThis.removeEventListener = (type, listener) => {
    listeners = listeners.filter((each) => each.type !== type || each.listener !== listener);
  };
  for (const method of ['warn', 'error'])
    mock.method(console, method, (...words) => told.push(words.join(' ')));
});
afterEach(() => {
  for (const app of apps) app.close();
  Object.assign(globalThis, own);
  mock.restoreAll();
});

/** An app for agents of this origin. */
function serve(capabilities = {}, options = {}) {
  const app = expose({ app: APP, capabilities }, { origins: [ORIGIN], ...options });
  apps.push(app);
  return app;
}

const fire = (type, event) => {
  for (const each of [...listeners]) if (each.type === type) each.listener(event);
};

/** A window of an agent. `said` has what the app posts to it. */
function windowOf(origin = ORIGIN) {
  const said = [];
  const source = { postMessage: (message, options) => said.push({ ...message, options }) };
  const say = (data, ports = []) =>
    fire('message', { isTrusted: true, origin, source, data, ports });
  const hello = (id) =>
    say({
      type: 'initialize',
      id,
      payload: { agent: AGENT, protocolVersion: '0.1', features: {} },
    });
  const call = (id, capability) =>
    say({ type: 'capabilities/call', id, payload: { capability, params: {} } });
  return { said, say, hello, call };
}

describe('an agent’s window', () => {
  test('is answered at its very origin', async () => {
    const ended = mock.fn();
    const app = serve({ echo: () => 'said' }, { onSessionEnd: ended });
    await app.ready;
    const agent = windowOf();
    agent.hello('h');
    agent.call('c', 'echo');
    await until(() => agent.said.length === 2);
    const [hello, response] = agent.said;
    assert.deepEqual([hello.type, hello.id], ['initialize-result', 'h']);
    assert.equal(hello.options.targetOrigin, ORIGIN);
    assert.deepEqual([response.id, response.payload.data], ['c', 'said']);
    assert.equal(app.sessions.length, 1);
    agent.say({ type: 'shutdown', id: 's', payload: {} });
    assert.equal(app.sessions.length, 0);
    assert.equal(ended.mock.callCount(), 1);
  });

  test('is answered when the app is ready, in order', async () => {
    const app = serve({ echo: () => 'said' });
    const agent = windowOf();
    agent.hello('h');
    agent.call('c', 'echo');
    assert.deepEqual(app.counters, []);
    await until(() => agent.said.length === 2);
    assert.deepEqual(
      agent.said.map(({ id }) => id),
      ['h', 'c'],
    );
  });

  test('has a session of its own, though another has its origin', async () => {
    const app = serve();
    await app.ready;
    for (const agent of [windowOf(), windowOf()]) agent.hello('h');
    assert.equal(app.sessions.length, 2);
  });

  test('that says what is not ours is not answered, and costs nothing', async () => {
    const app = serve();
    await app.ready;
    const agent = windowOf();
    for (const data of ['text', null, { type: 7 }, { type: 'of others' }, { type: 'shutdown' }])
      agent.say(data);
    assert.deepEqual([agent.said, app.counters], [[], []]);
    agent.call('c', 'echo');
    await until(() => agent.said.length === 1);
    assert.equal(agent.said[0].payload.success, false);
  });

  test('that sends ports may send them to others: an agent in this page, another library', async () => {
    await serve().ready;
    const port = { close: mock.fn() };
    for (const data of ['text', { type: 'of others' }, { type: 'initialize-result' }])
      windowOf().say(data, [port]);
    assert.equal(port.close.mock.callCount(), 0);
  });

  test('of another origin is not answered, and the author is told of it once', async () => {
    await serve().ready;
    const stranger = windowOf('https://other.example');
    stranger.say({ type: 'capabilities/call' });
    stranger.hello('h');
    stranger.hello('i');
    await until(() => told.length);
    await nextTurn();
    assert.equal(told.length, 1);
    assert.match(told[0], /an agent from https:\/\/other\.example was refused/);
    assert.ok(told[0].includes(`origins: ["${ORIGIN}","https://other.example"]`));
    assert.deepEqual(stranger.said, []);
  });

  test('of ever another origin is told of 16 times', async () => {
    await serve().ready;
    for (let i = 0; i < 20; i++) windowOf(`https://${i}.example`).hello('h');
    await until(() => told.length >= 16);
    await nextTurn();
    assert.equal(told.length, 16);
  });
});

describe('a second agent in a window that has a session', () => {
  test('is refused, and the author is told of it once', async () => {
    const app = serve();
    await app.ready;
    const agent = windowOf();
    agent.hello('h');
    agent.hello('h');
    agent.hello('i');
    agent.hello('j');
    await until(() => told.length);
    await nextTurn();
    assert.equal(told.length, 1);
    assert.match(told[0], /another agent in the same window has a session/);
    assert.deepEqual(
      agent.said.map(({ id, payload }) => [id, payload.error?.code]),
      [
        ['h', undefined],
        ['h', undefined],
        ['i', 'ALREADY_INITIALIZED'],
        ['j', 'ALREADY_INITIALIZED'],
      ],
    );
  });

  test('is told of again in the next session', async () => {
    await serve().ready;
    const agent = windowOf();
    for (let i = 1; i <= 2; i++) {
      agent.hello(`h${i}`);
      agent.hello(`i${i}`);
      await until(() => told.length === i);
      agent.say({ type: 'shutdown', payload: {} });
    }
  });

  test('takes its place where the app restarts sessions', async () => {
    const app = serve({}, { restart: true });
    await app.ready;
    const agent = windowOf();
    agent.hello('h');
    agent.hello('i');
    await nextTurn();
    assert.deepEqual(told, []);
    assert.deepEqual(
      agent.said.filter(({ type }) => type === 'initialize-result').map(({ id }) => id),
      ['h', 'i'],
    );
    assert.equal(app.sessions.length, 1);
  });
});

describe('an app that was closed', () => {
  test('answers calls only, which never run, until another serves its origin', async () => {
    const first = serve();
    await first.ready;
    first.close();
    const agent = windowOf();
    agent.hello('h');
    agent.say({ type: 'shutdown', payload: {} });
    agent.call('c', 'echo');
    assert.deepEqual(
      agent.said.map(({ id }) => id),
      ['c'],
    );
    assert.equal(agent.said[0].payload.metadata.outcome, 'unstarted');
    assert.deepEqual(first.counters, []);
    await serve().ready;
    agent.call('d', 'echo');
    assert.deepEqual(
      agent.said.map(({ id }) => id),
      ['c', 'd'],
    );
  });

  test('leaves its origins to the next, also when it is closed again', async () => {
    const first = serve();
    first.close();
    serve();
    first.close();
    assert.throws(() => serve(), { code: 'ALREADY_INITIALIZED' });
  });

  test('tells of nobody whom it would not have served', async () => {
    const app = serve();
    await app.ready;
    app.close();
    windowOf('https://other.example').hello('h');
    const [open, stranger] = ['https://a.example', 'https://b.example'];
    await serve({}, { origins: [open] }).ready;
    windowOf(stranger).hello('h');
    await until(() => told.length);
    await nextTurn();
    assert.equal(told.length, 1);
    assert.ok(told[0].includes(stranger));
  });

  test('leaves nothing that hears, but what tells that', async () => {
    const app = serve();
    await app.ready;
    assert.deepEqual(listeners.map(({ type }) => type).sort(), ['message', 'pagehide']);
    app.close();
    assert.deepEqual(
      listeners.map(({ type }) => type),
      ['message'],
    );
  });

  test('ends its sessions, and says so', async () => {
    let signal;
    const hang = (_params, context) => {
      ({ signal } = context);
      return new Promise(() => {});
    };
    const app = serve({ hang });
    await app.ready;
    const agent = windowOf();
    agent.hello('h');
    agent.call('c', 'hang');
    app.close();
    assert.equal(signal.reason.message, 'The app was closed');
    assert.deepEqual([app.sessions, app.counters], [[], []]);
  });

  test('takes no transport, before it is ready or after', async () => {
    const app = serve();
    const transport = () => ({ post() {}, close: mock.fn() });
    const [early, gone, late] = [transport(), transport(), transport()];
    app.accept(early);
    app.accept(gone);
    gone.onClose();
    app.close();
    await app.ready;
    app.accept(late);
    for (const { close } of [early, gone, late]) assert.equal(close.mock.callCount(), 1);
    assert.deepEqual(app.counters, []);
  });
});

test('a page that goes leaves its sessions, and keeps them if it may come back', async () => {
  const app = serve();
  await app.ready;
  const agent = windowOf();
  agent.hello('h');
  fire('pagehide', { persisted: true });
  assert.equal(app.sessions.length, 1);
  fire('pagehide', { persisted: false });
  assert.equal(app.sessions.length, 0);
});

test('a transport that is gone before the app is ready has no connection', async () => {
  const app = serve();
  const transport = { post() {}, close: mock.fn() };
  app.accept(transport);
  transport.onClose();
  await app.ready;
  assert.equal(transport.close.mock.callCount(), 1);
  assert.deepEqual(app.counters, []);
});

test('agents are told what has changed, with descriptions', async () => {
  const app = serve({ kept: () => 1 });
  await app.ready;
  const agent = windowOf();
  const features = { notifications: true };
  const payload = { agent: AGENT, protocolVersion: '0.1', features };
  agent.say({ type: 'initialize', id: 'h', payload });
  agent.said.splice(0);
  app.set('more', { handler: () => 1, description: 'new' });
  app.set('kept', () => 2);
  app.delete('more');
  app.delete('more');
  assert.deepEqual(
    agent.said.map(({ payload: { data } }) => [
      data.added,
      data.removed,
      data.changed,
      data.capabilities.map(({ name, description }) => [name, description]),
    ]),
    [
      [['more'], [], [], [['more', 'new']]],
      [[], [], ['kept'], [['kept', undefined]]],
      [[], ['more'], [], []],
    ],
  );
  assert.deepEqual(
    app.capabilities.map(({ name }) => name),
    ['kept'],
  );
});

test('two apps of a page cannot serve one origin', () => {
  serve();
  assert.throws(() => serve(), { code: 'ALREADY_INITIALIZED' });
  serve({}, { origins: ['https://other.example'] });
});
