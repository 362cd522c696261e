// What is refused at the door, and what is let go at the end. Each of these held by a line that no
// test missed.
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { connect, expose } from '../../parts/main/index.js';
import { FramedApp, ORIGIN, usePage, windowOf } from '../support/page.js';
import { Raw } from '../support/raw.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
const APP = { id: 'a.b', name: 'A', version: '1' };
const AGENT = { agent: { name: 'a', version: '1' } };
const turn = () => new Promise((resolve) => setImmediate(resolve));

/**
 * Collects until none of these is left. A reference that is kept hangs the test, which the runner
 * ends.
 */
async function gone(references) {
  while (references.some((reference) => reference.deref())) {
    await turn();
    collect();
  }
}

describe('a session in this process', () => {
  let app, client, seen, release;
  beforeEach(async () => {
    const { port1, port2 } = new MessageChannel();
    seen = [];
    const keep = (params, context) => {
      seen.push(new WeakRef(params), new WeakRef(context));
      return { echoed: params };
    };
    const capabilities = {
      keep,
      fail: (...args) => {
        keep(...args);
        throw new Error('no');
      },
      hang: (params, context) => {
        keep(params, context);
        const { signal } = context;
        return new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason)),
        );
      },
      deaf: (params, context) => {
        keep(params, context);
        return new Promise((resolve) => (release = resolve));
      },
      ask: async (params, context) => {
        keep(params, context);
        return context.elicit({ method: 'elicitation/input', params: {} });
      },
    };
    const limits = { grace: 1 };
    app = expose({ app: APP, capabilities }, { port: port1, limits });
    client = await connect(port2, { ...AGENT, onElicitation: () => ({ success: true }) });
  });
  afterEach(() => {
    client.close();
    app.close();
  });

  for (const name of ['keep', 'fail', 'hang', 'deaf', 'ask', 'unknown', 'unsendable']) {
    test(`keeps nothing of a call that has ended (${name})`, async () => {
      const references = [];
      const call = async () => {
        const params = name === 'unsendable' ? { name() {} } : { name };
        const controller = new AbortController();
        const onProgress = () => {};
        for (const each of [params, onProgress, controller.signal])
          references.push(new WeakRef(each));
        const { signal } = controller;
        const pending = client.call(name === 'unsendable' ? 'keep' : name, params, {
          signal,
          onProgress,
        });
        if (name === 'hang' || name === 'deaf') {
          while (!seen.length) await turn();
          controller.abort();
        }
        references.push(new WeakRef(await pending));
      };
      await call();
      release?.('after its call was answered');
      // Another call would take its place in the table, and hide what was kept there.
      await gone([...references, ...seen]);
      assert.equal(client.connected, true);
    });
  }
});

describe('a signal that was given to connect', () => {
  const outcomes = {
    'and has connected': (port, signal) => connect(port, { ...AGENT, signal }),
    'to a way that does not open': (_port, signal) =>
      connect(() => Promise.reject(new Error('no way')), { ...AGENT, signal }),
    'and was not answered': (_port, signal) =>
      connect(new MessageChannel().port1, { ...AGENT, signal, timeout: 1 }),
  };
  for (const [what, open] of Object.entries(outcomes)) {
    test(`${what} keeps no listener of it`, async () => {
      const { port1, port2 } = new MessageChannel();
      const app = expose({ app: APP, capabilities: {} }, { port: port1 });
      const { signal } = new AbortController();
      const client = await open(port2, signal).catch(() => undefined);
      assert.deepEqual(getEventListeners(signal, 'abort'), []);
      client?.close();
      app.close();
      port1.close();
    });
  }
});

describe('the number of a call in a frame', () => {
  const FEATURES = { 'bridge.frames': true };
  // What a 32-bit number cannot hold comes out of it as another: 2^32 + 1 would be 1.
  const BEYOND = [2 ** 32, 2 ** 32 + 1, 2 ** 33 + 1, -(2 ** 32) + 1, 2 ** 53 - 1];
  let channel, raw;
  beforeEach(() => (channel = new MessageChannel()));
  afterEach(() => channel.port1.close());

  test('that is no number of 32 bits names no call of ours', async () => {
    const connecting = connect(channel.port1, AGENT);
    raw = new Raw(channel.port2);
    const session = { sessionId: 's', protocolVersion: '0.1', app: APP, capabilities: [] };
    raw.send('initialize-result', (await raw.next()).id, { ...session, features: FEATURES });
    const client = await connecting;
    const pending = client.call('echo');
    const [, key] = await raw.next();
    for (const beyond of [...BEYOND, 2 ** 32 + key]) {
      raw.port.postMessage([3, beyond, 0, 'forged']);
      raw.port.postMessage([4, beyond, 0, { success: true, data: 'forged' }]);
    }
    raw.port.postMessage([3, key, 0, 'honest']);
    assert.equal((await pending).data, 'honest');
    client.close();
  });

  test('that is no number of 32 bits starts no call, and cancels none', async () => {
    const ran = [];
    const hang = (params, { signal }) => {
      ran.push(params);
      return new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      );
    };
    const app = expose({ app: APP, capabilities: { hang } }, { port: channel.port1 });
    raw = new Raw(channel.port2);
    await raw.ask('initialize', 'p', { ...AGENT, protocolVersion: '0.1', features: FEATURES });
    raw.port.postMessage([1, 1, 'hang', 'first']);
    for (const beyond of BEYOND) {
      raw.port.postMessage([1, beyond, 'hang', 'forged']);
      raw.port.postMessage([7, beyond, 'forged', 0]);
    }
    raw.port.postMessage([1, 2, 'hang', 'last']);
    while (!ran.includes('last')) await turn();
    assert.deepEqual(ran, ['first', 'last']);
    assert.equal(app.counters[0].inFlightIn, 2);
    app.close();
  });
});

describe('a callId that holds half a surrogate', () => {
  test('is refused, since mended it could be another’s', async () => {
    const { port1, port2 } = new MessageChannel();
    const capabilities = {
      hang: (_params, { signal }) => new Promise((_r, no) => signal.addEventListener('abort', no)),
    };
    const app = expose({ app: APP, capabilities }, { port: port1 });
    const client = await connect(port2, AGENT);
    const pending = client.call('hang', {}, { callId: 'a\ufffd' });
    const refused = await client.call('hang', {}, { callId: 'a\ud800' });
    assert.equal(refused.error.code, 'INVALID_PARAMS');
    const { cancelled } = await client.cancel('a\ud800');
    assert.equal(cancelled, false);
    assert.equal(await Promise.race([pending, Promise.resolve('runs')]), 'runs');
    client.close();
    app.close();
  });
});

describe('window messages', () => {
  const strangers = {
    'another origin': { origin: 'https://evil.example' },
    'an origin that begins with it': { origin: `${ORIGIN}.evil.example` },
    'an opaque origin': { origin: 'null' },
    'a script, and not the browser': { isTrusted: false },
    nobody: { source: null },
  };

  for (const [what, more] of Object.entries({ ...strangers, 'another window': { source: {} } })) {
    test(`of ${what} are not the app's`, async (t) => {
      const app = new FramedApp(t);
      const connecting = app.connect();
      const { id } = await app.next();
      const answer = (sessionId, said) => {
        const payload = { sessionId, features: {}, capabilities: [] };
        app.say({ type: 'initialize-result', id, payload }, said);
      };
      answer('forged', more);
      answer('honest');
      const client = await connecting;
      assert.equal(client.sessionId, 'honest');
      client.close();
      assert.deepEqual(app.page.types(), []);
    });
  }

  for (const [what, more] of Object.entries(strangers)) {
    test(`of ${what} are not an agent's`, async (t) => {
      const page = usePage(t);
      const began = [];
      const onSession = ({ agent }) => began.push(agent.name);
      const app = expose({ app: APP, capabilities: {} }, { origins: [ORIGIN], onSession });
      await app.ready;
      const source = windowOf();
      const hello = (name, said) => {
        const payload = { agent: { name, version: '1' }, protocolVersion: '0.1', features: {} };
        page.post(
          source,
          ORIGIN,
          { type: 'initialize', id: name, payload },
          { ports: [], ...said },
        );
      };
      hello('forged', more);
      hello('honest');
      while (!source.posted.length) await turn();
      const [[answer]] = source.posted;
      assert.deepEqual([answer.id, began, app.sessions.length], ['honest', ['honest'], 1]);
      app.close();
    });
  }

  test('an app that is closed twice leaves its origin to the one that came after it', (t) => {
    const page = usePage(t);
    const options = { origins: ['https://twice.example'] };
    const open = () => expose({ app: APP, capabilities: {} }, options);
    const before = open();
    before.close();
    const after = open();
    before.close();
    assert.throws(open, { code: 'ALREADY_INITIALIZED' });
    after.close();
    after.close();
    assert.deepEqual(page.types(), ['message'], 'what tells agents that it was closed');
  });
});
