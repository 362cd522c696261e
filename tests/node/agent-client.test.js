// The client by itself: what it refuses, what it copies, whom it tells, and what becomes of the way
// to its app.
import assert from 'node:assert/strict';
import { beforeEach, describe, mock, test } from 'node:test';
import { AbpError, Client, connect, expose } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { AGENT, APP, closeAfter, openPair } from '../support/pair.js';
import { Raw } from '../support/raw.js';

const turn = () => new Promise(setImmediate);
const until = async (holds) => {
  while (!holds()) await turn();
};
/** An app that a test plays by hand, and its agent. */
async function rawPair(options, features = {}) {
  const { port1, port2 } = new MessageChannel();
  const raw = new Raw(port1);
  closeAfter(() => port1.close());
  const connecting = connect(port2, { agent: AGENT, ...options });
  const { id, payload } = await raw.next();
  const capabilities = [{ name: 'known', available: true }];
  raw.send('initialize-result', id, { sessionId: 's', features, capabilities });
  const client = await connecting;
  closeAfter(() => client.close());
  return { raw, client, hello: payload };
}

// These come first: what streams need is loaded with the first stream of a process.
describe('before the code for streams is loaded', () => {
  test('a call is sent as it is, and not copied', async () => {
    const { port1, port2 } = new MessageChannel();
    const exposed = expose(
      { app: APP, capabilities: { echo: (params) => params } },
      { port: port1 },
    );
    closeAfter(() => exposed.close());
    const transport = portTransport(port2);
    const post = mock.method(transport, 'post');
    const client = await connect(transport, { agent: AGENT, upgrade: 'none' });
    closeAfter(() => client.close());
    const params = { of: 'now' };
    assert.deepEqual((await client.call('echo', params)).data, params);
    assert.ok(post.mock.calls.some(({ arguments: [{ payload }] }) => payload.params === params));
  });

  test('a call with an input has the params that it was made with', async () => {
    const collect = async (params, { input }) => {
      const all = [];
      for await (const chunk of input) all.push(chunk);
      return [params.of, ...all];
    };
    const { client } = await openPair({ collect });
    const params = { of: 'then' };
    const input = (async function* () {
      yield 1;
    })();
    const pending = client.call('collect', params, { input });
    params.of = 'now';
    assert.deepEqual((await pending).data, ['then', 1]);
  });
});

describe('connect refuses', () => {
  const page = { postMessage() {} };
  page.window = page;
  for (const [what, target] of Object.entries({
    'a window, which has postMessage, too': page,
    nothing: undefined,
    null: null,
    'a text': 'port',
    'an object that leads nowhere': {},
  }))
    test(what, async () => {
      const message = target === page ? /needs the iframe itself/ : /needs an iframe, a port/;
      await assert.rejects(connect(target, { agent: AGENT }), { code: 'INVALID_PARAMS', message });
    });

  for (const [what, options] of Object.entries({
    'an agent without a name': { agent: { version: '1' } },
    'an agent without a version': { agent: { name: 'a' } },
    'an agent that is not there': {},
    'no options': undefined,
  }))
    test(what, async () => {
      const { port1 } = new MessageChannel();
      await assert.rejects(connect(port1, options), {
        code: 'INVALID_PARAMS',
        message: /connect needs agent/,
      });
      port1.close();
    });

  test('to wait for longer than it may, which may be tried again', async () => {
    const never = () => new Promise(() => {});
    await assert.rejects(connect(never, { agent: AGENT, timeout: 1 }), {
      code: 'TIMEOUT',
      retryable: true,
    });
  });
});

describe('a client', () => {
  test('that has not connected has no session, no features and no counters', async () => {
    const client = new Client(new MessageChannel().port1, { agent: AGENT });
    assert.equal(client.connected, false);
    assert.ok(Object.values(client.features).every((has) => has === false));
    assert.deepEqual(client.counters, {});
    (await client.observe(() => {}))();
  });

  test('may be observed from any moment until any other', async () => {
    const { client } = await openPair({ echo: (params) => params });
    const seen = mock.fn();
    const end = await client.observe(seen);
    await client.call('echo', 1);
    const count = seen.mock.callCount();
    assert.ok(count > 0);
    end();
    await client.call('echo', 2);
    assert.equal(seen.mock.callCount(), count);
  });

  test('says who owns its calls, unless it keeps to what is published', async () => {
    const upgraded = await rawPair({ owner: 'me' });
    assert.equal(upgraded.hello.agentCapabilities.owner, 'me');
    const plain = await rawPair({ owner: 'me', upgrade: 'none' });
    assert.equal(plain.hello.agentCapabilities?.owner, undefined);
    const made = await rawPair();
    assert.match(made.hello.agentCapabilities.owner, /^[\da-f]{1,2}(-[\da-f]{1,2}){15}$/);
  });

  test('knows what its app supports', async () => {
    const { client } = await rawPair();
    assert.deepEqual(await client.supports('known'), { supported: true, available: true });
    assert.equal((await client.supports('unknown')).supported, false);
  });

  test('ends a worker that was made for its session, and no other', async () => {
    const workerTo = () => {
      const { port1, port2 } = new MessageChannel();
      const exposed = expose({ app: APP, capabilities: {} }, { port: port1 });
      closeAfter(() => exposed.close());
      closeAfter(() => port2.close());
      const worker = { terminate: mock.fn() };
      for (const name of ['postMessage', 'addEventListener', 'removeEventListener', 'start'])
        worker[name] = port2[name].bind(port2);
      return worker;
    };
    const [given, made] = [workerTo(), workerTo()];
    for (const target of [given, () => made]) {
      const client = await connect(target, { agent: AGENT });
      client.close();
    }
    await turn();
    assert.deepEqual(
      [given, made].map(({ terminate }) => terminate.mock.callCount()),
      [0, 1],
    );
  });

  test('is told why its session is lost, if that is known', async () => {
    const lost = new Promise((resolve) => {
      void openPair({}, { agent: { onDisconnect: resolve } }).then(({ exposed }) =>
        exposed.close(),
      );
    });
    assert.equal('cause' in (await lost), false);
  });
});

describe('a call', () => {
  test('needs a name', async () => {
    const { client } = await openPair({});
    await assert.rejects(client.call(7), {
      code: 'INVALID_PARAMS',
      message: 'call needs the name of a capability',
    });
  });

  test('that is made again has the params that it was made with', async () => {
    const seen = [];
    const flaky = (params) => {
      seen.push(params.of);
      if (seen.length < 2) throw new AbpError('BUSY', 'later', { retryable: true });
    };
    const { client } = await openPair({ flaky });
    const params = { of: 'then' };
    const pending = client.call('flaky', params, { retry: { delay: 1 } });
    params.of = 'now';
    await pending;
    assert.deepEqual(seen, ['then', 'then']);
  });

  test('that failed has nothing that is still to come', async () => {
    const { client } = await openPair({ fails: () => Promise.reject(new Error('no')) });
    assert.equal('settled' in (await client.call('fails')), false);
  });
});

describe('progress by a token that the caller chose', () => {
  const features = { progress: true, notifications: true };
  const answer = (raw, id) => raw.send('capabilities/call-result', id, { success: true });

  test('is its own until its call has ended, and then that of whoever listens to the rest', async () => {
    const rest = mock.fn();
    const { raw, client } = await rawPair({ onProgress: rest }, features);
    const own = mock.fn();
    const say = async (operationId, barrier) => {
      raw.send('progress', undefined, { operationId, progress: 1 });
      // What comes after it has been read after it.
      const pending = client.call('known', {}, { callId: barrier });
      await raw.next();
      answer(raw, barrier);
      await pending;
    };
    const pending = client.call('known', {}, { callId: 'a', progressToken: 't', onProgress: own });
    await raw.next();
    const silent = client.call('known', {}, { callId: 'b', progressToken: 'u' });
    await raw.next();
    await say('t', 'barrier 1');
    await say('u', 'barrier 2');
    const counts = () => [own, rest].map((each) => each.mock.callCount());
    assert.deepEqual(counts(), [1, 1]);
    answer(raw, 'a');
    await pending;
    await say('t', 'barrier 3');
    assert.deepEqual(counts(), [1, 2]);
    answer(raw, 'b');
    await silent;
  });

  test('goes to the latest call that has it, also when an older one ends', async () => {
    const { raw, client } = await rawPair({}, features);
    const [older, newer] = [mock.fn(), mock.fn()];
    const calls = [older, newer].map((onProgress, i) =>
      client.call('known', {}, { callId: `${i}`, progressToken: 't', onProgress }),
    );
    await raw.next();
    await raw.next();
    answer(raw, '0');
    await calls[0];
    raw.send('progress', undefined, { operationId: 't', progress: 1 });
    answer(raw, '1');
    await calls[1];
    assert.deepEqual(
      [older, newer].map((each) => each.mock.callCount()),
      [0, 1],
    );
  });
});

describe('what no listener takes', () => {
  let reported;
  beforeEach(() => {
    reported = [];
    globalThis.reportError = (error) => reported.push(error);
    closeAfter(() => delete globalThis.reportError);
  });

  test('is no error, and a notification is no change of capabilities unless it says so', async () => {
    const changed = mock.fn();
    const features = { progress: true, notifications: true, dynamicCapabilities: true };
    const { raw, client } = await rawPair({ onCapabilitiesChanged: changed }, features);
    raw.send('progress', undefined, { operationId: 'nobody', progress: 1 });
    raw.send('notification', undefined, { event: 'saved', data: { added: ['x'] } });
    const pending = client.call('known', {}, { callId: 'barrier' });
    await raw.next();
    raw.send('capabilities/call-result', 'barrier', { success: true });
    await pending;
    assert.deepEqual([reported, changed.mock.callCount()], [[], 0]);
  });
});

describe('reconnect', () => {
  for (const [what, given] of Object.entries({
    'a signal': (signal) => signal,
    'options with a signal, as all else takes it': (signal) => ({ signal }),
  }))
    test(`takes ${what}`, async () => {
      const exposed = expose({ app: APP, capabilities: { echo: (params) => params } }, {});
      closeAfter(() => exposed.close());
      let answers = true;
      let opened = 0;
      const open = () => {
        opened++;
        const { port1, port2 } = new MessageChannel();
        closeAfter(() => port1.close());
        if (answers) exposed.accept(portTransport(port1));
        return port2;
      };
      const client = await connect(open, { agent: AGENT, timeout: 0 });
      closeAfter(() => client.close());
      await client.reconnect(given(new AbortController().signal));
      assert.equal((await client.call('echo', 1)).data, 1);
      await assert.rejects(
        client.reconnect(given(AbortSignal.abort('before'))),
        (e) => e === 'before',
      );
      assert.equal(client.connected, true);
      assert.equal(opened, 2);
      answers = false;
      const controller = new AbortController();
      const connecting = client.reconnect(given(controller.signal));
      await until(() => opened === 3);
      controller.abort('not wanted any more');
      await assert.rejects(connecting, (error) => error === 'not wanted any more');
      assert.equal(client.connected, false);
    });
});

describe('a client that reconnects by itself', () => {
  /** Apps that are opened one after the other, as they are given. */
  function opening(...apps) {
    const ports = [];
    const open = () => {
      const { capabilities = {}, ...options } = apps.shift() ?? assert.fail('no more apps');
      const exposed = expose({ app: APP, capabilities }, options);
      const { port1, port2 } = new MessageChannel();
      exposed.accept(portTransport(port1));
      closeAfter(() => exposed.close());
      ports.push(port1);
      return port2;
    };
    return { open, lose: () => ports.at(-1).close() };
  }
  const connected = async (opener, options) => {
    const client = await connect(opener, { agent: AGENT, reconnect: { delay: 1 }, ...options });
    closeAfter(() => client.close());
    return client;
  };

  for (const [what, readOnly, data] of [
    ['with a key is not made again where the next app cannot know that', false, undefined],
    ['that may run twice is made again wherever there is a session', true, 'here'],
  ])
    test(`a call ${what}`, async () => {
      let lose;
      const work = {
        readOnly,
        handler() {
          lose();
          return new Promise(() => {});
        },
      };
      const again = mock.fn(() => 'here');
      const opened = opening(
        { capabilities: { work } },
        { capabilities: { work: { readOnly, handler: again } }, upgrade: 'none' },
      );
      ({ lose } = opened);
      const client = await connected(opened.open);
      const response = await client.call('work', {}, { retry: { delay: 1 } });
      assert.equal(response.data, data);
      assert.equal(again.mock.callCount(), readOnly ? 1 : 0);
      if (!readOnly) assert.equal(response.error.code, 'DISCONNECTED');
    });

  test('has lost a call for good where there will be no other session', async () => {
    let lose;
    const handler = () => (lose(), new Promise(() => {}));
    const opened = opening({ capabilities: { work: { readOnly: true, handler } } });
    ({ lose } = opened);
    const client = await connected(opened.open, { reconnect: false });
    const { error, metadata } = await client.call('work', {}, { retry: { delay: 1 } });
    assert.deepEqual([error.code, metadata.outcome], ['DISCONNECTED', 'unknown']);
  });

  test('has all of its attempts again after it gave up and was connected by hand', async () => {
    const told = [];
    const opened = opening({}, {});
    let failures = 0;
    let broken = false;
    const opener = () => {
      if (!broken) return opened.open();
      failures++;
      throw new Error('no way');
    };
    const client = await connected(opener, {
      reconnect: { attempts: 2, delay: 1 },
      onReconnect: (error) => told.push(error.message),
    });
    for (const times of [1, 2]) {
      broken = true;
      opened.lose();
      await until(() => told.length === times);
      assert.equal(failures, 2 * times);
      broken = false;
      if (times === 1) await client.reconnect();
    }
    assert.deepEqual(told, ['no way', 'no way']);
  });
});
