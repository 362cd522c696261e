// An agent whose app is the test, and whose messages are read as they are given: the frames
// that it takes, and what becomes of its calls and cancels.
import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import { connect } from '../../parts/main/index.js';
import { AGENT, closeAfter, openPair } from '../support/pair.js';

const turn = () => new Promise((resolve) => setImmediate(resolve));
const until = async (holds) => {
  while (!holds()) await turn();
};
const FEATURES = {
  notifications: true,
  elicitation: true,
  progress: true,
  'bridge.frames': true,
  'bridge.liveness': true,
};

/** `say` is what the app says, `sent` what the agent does, and `events` what its program hears. */
async function begun({ features = FEATURES, ...options } = {}) {
  const it = { sent: [], events: [], close: mock.fn() };
  const transport = {
    post(message, _moved, kind) {
      // Until it is answered it greets again and again.
      if (kind !== 'greeting' || !it.hello) it.sent.push(message);
      if (kind === 'greeting') it.hello ??= message;
    },
    close: it.close,
  };
  const connecting = connect(transport, {
    agent: AGENT,
    limits: { heartbeat: 0 },
    onNotification: (event) => it.events.push(event),
    onElicitation: ({ method }) => (it.events.push(method), `${method}!`),
    ...options,
  });
  await until(() => it.sent.length);
  const [hello] = it.sent.splice(0);
  assert.deepEqual([hello.type, it.hello], ['initialize', hello]);
  it.say = (message) => transport.onMessage(message, []);
  it.lose = (cause) => transport.onClose(cause);
  const payload = { sessionId: 's', protocolVersion: '0.1', capabilities: [], features };
  it.say({ type: 'initialize-result', id: hello.id, payload });
  it.client = await connecting;
  closeAfter(() => it.client.close());
  /** What was sent, when that was something: messages, and entries of frames. */
  it.next = async () => {
    await until(() => it.sent.length);
    return it.sent.shift();
  };
  return it;
}
const notification = (event) => ({ type: 'notification', payload: { event } });
const entry = (message) => [6, 0, undefined, message];
const entries = (count) => Array.from({ length: count }, () => entry(notification('n'))).flat();

describe('a frame', () => {
  test('has at most 4,096 entries, all of them whole: of another nothing is read', async () => {
    const { client, say, events } = await begun();
    say(entries(4096));
    assert.equal(events.length, 4096);
    say(entries(4097));
    assert.deepEqual([events.length, client.connected], [4096, false]);
    const other = await begun();
    other.say([...entries(2), 6]);
    assert.deepEqual([other.events.length, other.client.connected], [0, false]);
  });

  test('is malformed where frames were not agreed on', async () => {
    const { client, say, events } = await begun({ upgrade: 'none' });
    say(entries(1));
    say(notification('message'));
    assert.deepEqual([events, client.counters.malformed], [['message'], 1]);
  });
});

describe('what comes in', () => {
  test('and cannot be read is reported and counted, and costs nothing else', async (t) => {
    const reported = t.mock.method(console, 'error', () => {});
    const { client, say, events } = await begun();
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    const unreadable = {
      get type() {
        throw new Error('unreadable');
      },
    };
    for (const broken of [unreadable, revoked.proxy]) say(broken);
    say(notification('after'));
    const { malformed } = client.counters;
    assert.ok(malformed > 0);
    assert.deepEqual([events, reported.mock.callCount()], [['after'], malformed]);
  });

  test('after what ended the session is not read, in its frame or later', async () => {
    const told = [];
    const it = await begun({ onNotification: (event) => (told.push(event), it.client.close()) });
    it.say(['last', 'late'].flatMap((event) => entry(notification(event))));
    it.say(notification('later'));
    assert.deepEqual(told, ['last']);
  });

  test('may be progress of a call, by its id or by its number, or of none', async () => {
    const rest = mock.fn();
    const own = mock.fn();
    const { client, say, next } = await begun({ onProgress: rest });
    void client.call('x', {}, { onProgress: own });
    const [, key] = await next();
    say([5, key, undefined, { progress: 1 }]);
    const [{ operationId }] = own.mock.calls[0].arguments;
    for (const id of [operationId, 'other', undefined])
      say({ type: 'progress', payload: { operationId: id, progress: 2 } });
    const progressOf = ({ mock: { calls } }) => calls.map(({ arguments: [info] }) => info.progress);
    assert.deepEqual(
      [progressOf(own), progressOf(rest)],
      [
        [1, 2],
        [2, 2],
      ],
    );
  });
});

describe('a question', () => {
  test('is told by its standard name, with its timeout if it has one', async () => {
    const told = [];
    const { say, next } = await begun({ onElicitation: (request) => void told.push(request) });
    const params = { prompt: '?' };
    for (const [id, timeout] of [
      ['p', 50_000],
      ['q', 0],
    ]) {
      const payload = { method: 'elicitation/text', params, timeout };
      say({ type: 'elicitation/request', id, payload });
      await next();
    }
    const method = 'elicitation/input';
    assert.deepEqual(told, [
      { method, params, timeout: 50_000 },
      { method, params },
    ]);
  });

  for (const [what, options, method, code] of [
    ['it takes none', { onElicitation: undefined }, 'elicitation/confirm', 'NOT_SUPPORTED'],
    ['it allows none', { allowedRequests: [] }, 'elicitation/confirm', 'NOT_SUPPORTED'],
    ['it allows this one', { allowedRequests: ['elicitation/confirm'] }, 'elicitation/confirm'],
    [
      'it allows it by another name',
      { allowedRequests: ['elicitation/input'] },
      'elicitation/text',
    ],
  ])
    test(`is ${code ? 'refused' : 'asked'} where ${what}`, async () => {
      const features = { ...FEATURES, 'bridge.frames': false };
      const { say, next } = await begun({ features, ...options });
      say({ type: 'elicitation/request', id: 'q', payload: { method, params: {} } });
      const { success, error } = (await next()).payload;
      assert.deepEqual([success, error?.code], [!code, code]);
    });
});

describe('a stream', () => {
  for (const [what, data, collected, read, returned] of [
    ['that its app has collected has its chunks', [1, 2], true, [1, 2], undefined],
    ['that its app has collected, of none', [], true, [], undefined],
    ['of what is no list returns it', 'no list', true, [], 'no list'],
    ['of what is not said to be collected returns it', [1], 'yes', [], [1]],
  ])
    test(`${what}`, async () => {
      const { client, say, next } = await begun({ upgrade: 'none' });
      const stream = client.stream('x');
      const { id } = await next();
      const payload = { success: true, data, metadata: { collected } };
      say({ type: 'capabilities/call-result', id, payload });
      const chunks = [];
      let step;
      while (!(step = await stream.next()).done) chunks.push(step.value);
      assert.deepEqual([chunks, step.value], [read, returned]);
      assert.deepEqual((await stream.response).data, data);
    });

  test('that is left does not end a call that has ended', async () => {
    const { client, say, next, sent } = await begun({ upgrade: 'none' });
    const stream = client.stream('x', 7, null);
    const { id } = await next();
    say({ type: 'capabilities/call-result', id, payload: { success: true, data: 'end' } });
    assert.equal((await stream.response).data, 'end');
    assert.deepEqual(await stream.return('left'), { done: true, value: 'left' });
    await turn();
    assert.deepEqual(sent, []);
  });

  test('that was cancelled throws so, with the reason of its signal', async () => {
    const { client, say, next } = await begun({ upgrade: 'none' });
    const controller = new AbortController();
    const stream = client.stream('x', {}, { signal: controller.signal });
    const { id } = await next();
    const reading = assert.rejects(stream.next(), {
      name: 'AbortError',
      code: 'CANCELLED',
      message: 'why',
      cause: 'why',
    });
    controller.abort('why');
    say({ type: 'capabilities/call-result', id, payload: { success: false, cancelled: true } });
    await reading;
  });

  test('that is an input, and cannot be ended, is reported; one that needs no end is not', async (t) => {
    const reported = t.mock.method(console, 'error', () => {});
    const { client } = await openPair({ ignores: () => 'done' });
    const cause = new Error('stuck');
    for (const more of [{}, { return: () => Promise.reject(cause) }]) {
      const source = { next: () => new Promise(() => {}), ...more };
      source[Symbol.asyncIterator] = () => source;
      assert.equal(await client.invoke('ignores', {}, { input: source }), 'done');
    }
    await until(() => reported.mock.callCount());
    assert.deepEqual(
      reported.mock.calls.map(({ arguments: given }) => given),
      [["abp-bridge: an input's cleanup failed:", cause]],
    );
  });
});

test('what became of a call is asked by an id, and with options of their types', async () => {
  const { client } = await openPair({});
  await assert.rejects(client.outcome(7), {
    code: 'INVALID_PARAMS',
    message: 'outcome needs the callId of a call, a string',
  });
  for (const options of [{ settled: 'yes' }, { signal: 7 }, { timeout: 'soon' }]) {
    const [name] = Object.keys(options);
    const message = new RegExp(`^${name} of outcome must be`);
    await assert.rejects(client.outcome('c', options), { code: 'INVALID_PARAMS', message });
  }
});

test('a session that is lost says why, once: to what was called, and to what is called then', async () => {
  const onDisconnect = mock.fn();
  const { client, lose, close } = await begun({ onDisconnect });
  const pending = client.call('x');
  const cause = new Error('the cable');
  lose(cause);
  for (const response of [await pending, await client.call('x')]) {
    const { code, message } = response.error;
    assert.deepEqual([code, message, response.cancelled], ['DISCONNECTED', 'the cable', undefined]);
  }
  assert.equal((await client.call('x', {}, { callId: '' })).error.code, 'INVALID_PARAMS');
  client.close();
  assert.deepEqual(
    onDisconnect.mock.calls.map(({ arguments: [error] }) => error.cause),
    [cause],
  );
  assert.equal(close.mock.callCount(), 1);
});

describe('a cancel', () => {
  test('of a call that went out in a frame is an entry of its own, with its reason', async () => {
    const { client, next } = await begun();
    const controller = new AbortController();
    void client.call('x', {}, { signal: controller.signal });
    assert.deepEqual(await next(), [1, 1, 'x', {}]);
    controller.abort('enough');
    assert.deepEqual(await next(), [7, 1, 'enough', undefined]);
  });

  const error = { code: 'OWN', message: 'no', retryable: true };
  const beside = { cancelled: false, code: 'OWN', retryable: true };
  for (const [what, answer, expected] of [
    ['yes', { callId: 'other', cancelled: true }, { cancelled: true }],
    ['no', { cancelled: false, reason: 'too late' }, { cancelled: false, reason: 'too late' }],
    ['a reason that is no text', { cancelled: true, reason: 7 }, { cancelled: true }],
    ['an error', { cancelled: false, error }, { cancelled: false, error }],
    ['an error that is none', { cancelled: false, error: 'no' }, { cancelled: false }],
    ['a code beside it', { ...beside, message: 'no' }, { ...beside, message: 'no', error }],
    ['a code and a reason', { ...beside, reason: 'no' }, { ...beside, reason: 'no', error }],
  ])
    test(`by an id is a message, and may be answered by ${what}`, async () => {
      const { client, next, say } = await begun();
      const answered = client.cancel('mine', 'enough');
      const [kind, , , { type, id, payload }] = await next();
      assert.deepEqual([kind, type], [6, 'capabilities/cancel']);
      assert.deepEqual(payload, { callId: 'mine', reason: 'enough' });
      say({ type: 'capabilities/cancel-result', id, payload: answer });
      assert.deepEqual(await answered, { callId: 'mine', ...expected });
    });

  for (const [what, end, code] of [
    ['is lost', ({ lose }) => lose(), 'DISCONNECTED'],
    ['is closed', ({ client }) => client.close(), 'CANCELLED'],
  ])
    test(`by an id is answered when the session ${what}`, async () => {
      const it = await begun();
      const answered = it.client.cancel('mine');
      await it.next();
      end(it);
      const { error: why, ...answer } = await answered;
      assert.deepEqual(answer, { callId: 'mine', cancelled: false, reason: why.message });
      assert.equal(why.code, code);
    });
});
