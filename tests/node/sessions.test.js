// How sessions begin and end, who is told, and what is said of them.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { useClock } from '../support/clock.js';
import { Raw } from '../support/raw.js';
import { entriesOf } from '../support/frames.js';

const APP = { id: 'a.b', name: 'A', version: '1' };
const AGENT = { name: 'the agent', version: '7' };
const hang = (_params, { signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

let channel;
beforeEach(() => (channel = new MessageChannel()));
afterEach(() => {
  channel.port1.close();
  channel.port2.close();
});

describe('the app', () => {
  for (const upgrade of ['frames', 'none']) {
    test(`that closes while a call runs tells the caller why, and that it is gone (${upgrade})`, async () => {
      const exposed = expose(
        { app: APP, capabilities: { hang } },
        { port: channel.port1, upgrade },
      );
      const lost = Promise.withResolvers?.() ?? {};
      lost.promise ??= new Promise((resolve) => (lost.resolve = resolve));
      const onDisconnect = lost.resolve;
      const client = await connect(channel.port2, { agent: AGENT, upgrade, onDisconnect });
      const pending = client.call('hang');
      await client.call('nothing');
      exposed.close();
      const { cancelled, error } = await pending;
      assert.deepEqual([cancelled, error.message], [true, 'The app was closed']);
      assert.equal((await lost.promise).code, 'DISCONNECTED');
      assert.equal(client.connected, false);
      assert.equal((await client.call('hang')).error.code, 'DISCONNECTED');
    });
  }

  test('learns who its agent is, what it asked for, and when its session has ended', async () => {
    const events = [];
    const exposed = expose(
      { app: APP, capabilities: {} },
      {
        port: channel.port1,
        onSession: (session) => events.push(['begins', session]),
        onSessionEnd: (session) => events.push(['ends', session]),
      },
    );
    const client = await connect(channel.port2, {
      agent: AGENT,
      requestedCapabilities: ['x'],
      allowedRequests: ['elicitation/confirm'],
      onElicitation: () => true,
    });
    client.close();
    while (events.length < 2) await new Promise(setImmediate);
    const session = {
      agent: AGENT,
      origin: undefined,
      requestedCapabilities: ['x'],
      allowedRequests: ['elicitation/confirm'],
      features: { notifications: true, progress: true, elicitation: true },
    };
    assert.deepEqual(events, [
      ['begins', session],
      ['ends', session],
    ]);
    assert.equal(events[0][1], events[1][1]);
    exposed.close();
    assert.equal(events.length, 2);
  });

  test('hears of an agent that says odd things of itself as of one that says nothing', async () => {
    const begun = new Promise((resolve) => {
      expose({ app: APP, capabilities: {} }, { port: channel.port1, onSession: resolve });
    });
    const raw = new Raw(channel.port2);
    raw.send('initialize', 'h', {
      agent: { name: { toString: 1 }, version: 1n },
      requestedCapabilities: Object.assign([], { length: 2 ** 32 - 1, 0: 'x', 1: 7 }),
      agentCapabilities: { allowedRequests: 'all' },
    });
    // A BigInt and that many places are no control message; what follows is one.
    raw.send('initialize', 'h', {
      agent: { name: { toString: 1 }, version: 1 },
      requestedCapabilities: ['x', 7],
      agentCapabilities: { allowedRequests: 'all' },
    });
    const { agent, requestedCapabilities, allowedRequests } = await begun;
    assert.deepEqual(agent, { name: undefined, version: undefined });
    assert.deepEqual([requestedCapabilities, allowedRequests], [['x'], undefined]);
  });

  test('asks an agent only what it takes', async () => {
    const asked = [];
    const ask = (method, { elicit }) => elicit({ method });
    expose({ app: APP, capabilities: { ask } }, { port: channel.port1 });
    const raw = new Raw(channel.port2);
    await raw.ask('initialize', 'h', {
      features: { elicitation: true },
      agentCapabilities: { allowedRequests: ['elicitation/input'] },
    });
    const call = { capability: 'ask', params: 'elicitation/confirm' };
    const { type, payload } = await raw.ask('capabilities/call', 'c', call);
    assert.equal(type, 'capabilities/call-result');
    assert.equal(payload.error.code, 'NOT_SUPPORTED');
    for (const params of ['elicitation/input', 'elicitation/text']) {
      asked.push((await raw.ask('capabilities/call', params, { ...call, params })).type);
    }
    assert.deepEqual(asked, ['elicitation/request', 'elicitation/request']);
  });
});

describe('the agent', () => {
  test('that was closed is told so, and that it can connect again', async () => {
    expose({ app: APP, capabilities: { hang } }, { port: channel.port1 });
    const client = await connect(channel.port2, { agent: AGENT });
    client.close();
    const { error } = await client.call('hang');
    assert.deepEqual([error.code, error.retryable], ['DISCONNECTED', false]);
    assert.match(error.message, /closed: reconnect/);
    const answer = await client.cancel('x');
    assert.deepEqual([answer.cancelled, answer.error.code], [false, 'DISCONNECTED']);
  });

  test('that was closed is told so until the next session begins', async () => {
    const next = new MessageChannel();
    for (const port of [channel.port1, next.port1])
      expose({ app: APP, capabilities: { one: () => 1 } }, { port });
    let open;
    const opening = new Promise((resolve) => (open = resolve));
    const ways = [channel.port2];
    const client = await connect(() => ways.shift() ?? opening, { agent: AGENT });
    client.close();
    const reconnecting = client.reconnect();
    await new Promise(setImmediate);
    const { error } = await client.call('one');
    const answer = await client.cancel('x');
    for (const { code, message, retryable } of [error, answer.error]) {
      assert.deepEqual([code, retryable], ['DISCONNECTED', false]);
      assert.equal(message, 'The client was closed: reconnect() begins a new session');
    }
    open(next.port2);
    await reconnecting;
    assert.equal((await client.call('one')).data, 1);
    client.close();
    next.port1.close();
  });

  test('whose app says more of itself than it reads learns why there is no session', async () => {
    const description = 'x'.repeat(5000);
    const capabilities = { hang: { description, handler: hang } };
    let error;
    // However slow the answer is, some limit lets it arrive.
    for (let timeout = 100; !error?.details; timeout *= 2) {
      const { port1, port2 } = new MessageChannel();
      const app = expose({ app: APP, capabilities }, { port: port1 });
      const options = { agent: AGENT, timeout, limits: { maxControlLength: 4000 } };
      error = await connect(port2, options).catch((reason) => reason);
      assert.equal(error.code, 'TIMEOUT');
      app.close();
    }
    assert.ok(error.details.unread >= 1);
    assert.match(error.message, /could not be read: they are malformed, or longer than limits/);
  });

  test('waits for an answer as long as its signal allows, where the timeout is 0', async (t) => {
    const clock = useClock(t);
    let greeted;
    const greeting = new Promise((resolve) => (greeted = resolve));
    const transport = { post: greeted, onMessage() {}, close() {} };
    const controller = new AbortController();
    const options = { agent: AGENT, timeout: 0, signal: controller.signal };
    const connecting = connect(transport, options).catch((error) => error);
    await greeting;
    clock.advance(24 * 3600_000);
    await new Promise(setImmediate);
    controller.abort(new Error('no more'));
    assert.match(`${await connecting}`, /no more/);
  });

  describe('whose way to the app never opens', () => {
    const never = () => new Promise(() => {});

    test('gives up when its time is over', async () => {
      await assert.rejects(connect(never, { agent: AGENT, timeout: 20 }), { code: 'TIMEOUT' });
    });

    test('gives up when its signal says so, with the reason of that', async () => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(new Error('no more')), 20);
      const { signal } = controller;
      await assert.rejects(connect(never, { agent: AGENT, timeout: 0, signal }), /no more/);
    });

    test('closes what opens after that', async () => {
      let open;
      const opener = () => new Promise((resolve) => (open = resolve));
      await assert.rejects(connect(opener, { agent: AGENT, timeout: 20 }));
      await new Promise((close) => open({ post() {}, close }));
    });

    test('closes what has opened while something else still loads', async () => {
      const controller = new AbortController();
      const options = { agent: AGENT, timeout: 0, signal: controller.signal, trace: () => {} };
      let close;
      const closed = new Promise((resolve) => (close = resolve));
      // Later than it opens and sooner than the code of traces is loaded. At other moments it ends
      // in the same way.
      const abort = async () => {
        for (let i = 0; i < 40; i++) await undefined;
        controller.abort(new Error('no more'));
      };
      const opener = () => (void abort(), { post() {}, close });
      await assert.rejects(connect(opener, options), /no more/);
      await closed;
    });

    test('can be closed', async () => {
      expose({ app: APP, capabilities: { hang } }, { port: channel.port1 });
      const ways = [channel.port2];
      const client = await connect(() => ways.shift() ?? never(), { agent: AGENT });
      const reconnecting = client.reconnect();
      await assert.rejects(
        Promise.all([reconnecting, new Promise(setImmediate).then(() => client.close())]),
        { code: 'CANCELLED' },
      );
    });
  });

  test('is told of a window that is given for its iframe, of whatever origin it is', async () => {
    const window = new Proxy({}, { get: (own, key) => (key === 'window' ? proxy : own[key]) });
    const proxy = window;
    await assert.rejects(connect(window, { agent: AGENT }), {
      code: 'INVALID_PARAMS',
      message: /the iframe itself/,
    });
  });

  for (const code of ['SESSION_EXPIRED', 'SESSION_INVALID', 'NOT_INITIALIZED']) {
    test(`whose app says ${code} has lost its session`, async () => {
      const raw = new Raw(channel.port1);
      const lost = new Promise((onDisconnect) => {
        void connect(channel.port2, { agent: AGENT, onDisconnect }).then(async (client) => {
          const [expired, other] = ['a', 'b'].map((callId) => client.call('x', {}, { callId }));
          await raw.next();
          await raw.next();
          const error = { code, message: 'again', retryable: true };
          raw.send('capabilities/call-result', 'a', { success: false, error });
          const metadata = { outcome: 'failed' };
          assert.deepEqual(await expired, { success: false, error, metadata });
          assert.equal(client.connected, false);
          assert.equal((await other).error.code, 'DISCONNECTED');
        });
      });
      const { id } = await raw.next();
      raw.send('initialize-result', id, { sessionId: 's', features: {}, capabilities: [] });
      const error = await lost;
      assert.deepEqual([error.code, error.cause.code], ['DISCONNECTED', code]);
      assert.equal((await raw.next()).type, 'shutdown');
    });
  }
});

test('an agent that closes with something to say in the same turn still says that it closes', async () => {
  const said = [];
  const { port1, port2 } = channel;
  const exposed = expose({ app: APP, capabilities: { hang } }, { port: port1 });
  let closed = false;
  const transport = {
    post(message) {
      if (!closed) said.push(message);
      port2.postMessage(message);
    },
    onMessage() {},
    close: () => (closed = true),
  };
  port2.on('message', (message) => transport.onMessage(message, []));
  const client = await connect(transport, { agent: AGENT });
  void client.call('hang');
  void client.call('hang');
  client.close();
  const entries = said.flatMap((frame) => (typeof frame === 'string' ? entriesOf(frame) : [frame]));
  assert.ok(entries.flat().some((entry) => entry?.type === 'shutdown'));
  exposed.close();
});

test("a page's answer to a question of an app that has closed meanwhile goes nowhere", async () => {
  const exposed = expose({
    app: APP,
    capabilities: {
      ask: (_params, { elicit }) => elicit({ method: 'elicitation/input', params: {} }),
    },
  });
  const { abp } = exposed;
  let answer;
  const asked = new Promise((resolve) => {
    abp.onElicitation = () => {
      resolve();
      return new Promise((give) => (answer = give));
    };
  });
  await abp.initialize({ agent: AGENT, features: { elicitation: true } });
  const pending = abp.call('ask');
  await asked;
  exposed.close();
  assert.equal((await pending).cancelled, true);
  answer({ value: 'late' });
  // The runner fails a test file for a rejection that nobody handles.
  await new Promise(setImmediate);
});
