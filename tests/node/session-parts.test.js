// An endpoint whose other side is the test: what it loads with the first question, which frames it takes, and the errors of calls
// that its core refuses.
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import * as abp from '../../js/core/abp-boundary.js';
import { ready } from '../../js/core/abp-core.js';
import { Endpoint, carried } from '../../js/session/endpoint.js';
import { makeCall } from '../../js/session/pending-call.js';
import { cancelById } from '../../js/session/pending-cancel.js';
import { useClock } from '../support/clock.js';

await ready();
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

let parts;
let sent;
let events;
let transport;
let endpoint;

/** An agent whose app is the test, after the handshake. */
beforeEach(() => {
  parts = [];
  sent = [];
  events = [];
  transport = { post: (message) => sent.push(message), close: () => events.push('closed') };
  endpoint = new Endpoint({
    role: abp.AGENT,
    features: abp.ELICITATION | abp.NOTIFICATIONS | abp.PROGRESS | abp.FRAMES | abp.LIVENESS,
    transport,
    callee: { rejectionFor: () => 0, run: ({ name }) => (events.push(name), `${name}!`) },
    load: () => new Promise((resolve, reject) => parts.push({ resolve, reject })),
    side: { onSession() {}, onNotification: (event) => events.push(event) },
  });
  endpoint.core.describe('agent', { name: 'a', version: '1' });
  endpoint.connect(0);
  const [{ id }] = sent;
  const payload = {
    sessionId: 's',
    protocolVersion: '0.1',
    app: { id: 'a', name: 'A', version: '1' },
    capabilities: [],
    features: {
      ...{ notifications: true, elicitation: true, progress: true },
      ...{ 'bridge.frames': true, 'bridge.liveness': true },
    },
  };
  transport.onMessage({ type: 'initialize-result', id, payload }, []);
  assert.ok(endpoint.ready);
  sent.splice(0);
});

const question = (id, method) => ({ type: 'elicitation/request', id, payload: { method } });
const notification = (event) => ({ type: 'notification', payload: { event } });

test('what follows a question waits for it, entry by entry and message by message', async () => {
  const call = makeCall(endpoint, 'x', {}, { callId: 'mine' });
  transport.onMessage([6, 0, undefined, notification('first')], []);
  transport.onMessage(
    [
      ...[6, 0, undefined, question('q', 'ask')],
      ...[6, 0, undefined, notification('second')],
      ...[3, 'mine', 1, 'done'],
    ],
    [],
  );
  transport.onMessage(notification('third'), []);
  await nextTurn();
  assert.deepEqual(events, ['first']);
  assert.equal(parts.length, 1);
  parts[0].resolve(await import('../../js/session/invocation.js'));
  assert.equal((await call).data, 'done');
  await nextTurn();
  assert.deepEqual(events, ['first', 'ask', 'second', 'third']);
  const answer = sent.find(({ type }) => type === 'elicitation/response');
  assert.deepEqual(answer.payload, { success: true, data: 'ask!' });
});

test('a part that does not load fails what waits for it with a typed error, and is tried again', async () => {
  transport.onMessage(question('q', 'ask'), []);
  transport.onMessage(notification('later'), []);
  parts[0].reject(new TypeError('Failed to fetch'));
  await nextTurn();
  const [{ id, payload }] = sent.splice(0);
  assert.equal(id, 'q');
  assert.equal(payload.success, false);
  assert.equal(payload.error.code, 'TRANSPORT_ERROR');
  assert.equal(payload.error.retryable, true);
  assert.match(payload.error.message, /did not load: Failed to fetch/);
  assert.deepEqual(events, ['later']);
  transport.onMessage(question('r', 'ask'), []);
  parts[1].resolve(await import('../../js/session/invocation.js'));
  await nextTurn();
  assert.deepEqual(sent.at(-1).payload, { success: true, data: 'ask!' });
});

test('what waits is bounded: too much of it ends the session', async () => {
  const call = makeCall(endpoint, 'x', {});
  transport.onMessage(question('q', 'ask'), []);
  for (let i = 0; i < 1100; i++) transport.onMessage(notification('n'), []);
  assert.equal((await call).error.code, 'DISCONNECTED');
  assert.deepEqual(events, ['closed']);
  parts[0].resolve(await import('../../js/session/invocation.js'));
  await nextTurn();
  assert.deepEqual(events, ['closed']);
});

test('of what waits 1,024 messages are kept', async (t) => {
  transport.onMessage(question('q', 'ask'), []);
  for (let i = 1; i < 1024; i++) transport.onMessage(notification('n'), []);
  assert.ok(endpoint.ready);
  transport.onMessage(notification('n'), []);
  assert.equal(endpoint.ready, false);
  assert.equal(endpoint.cause.code, 'RATE_LIMITED');
  assert.match(endpoint.cause.message, /^Too many messages/);
  const tick = t.mock.method(endpoint.machine, 'tick');
  parts[0].resolve(await import('../../js/session/invocation.js'));
  await nextTurn();
  assert.equal(tick.mock.callCount(), 0, 'what waited is not read any more');
});

describe('a frame', () => {
  const entries = (count) =>
    Array.from({ length: count }, () => [6, 0, undefined, notification('n')]).flat();

  test('has at most 4,096 entries: a longer one is malformed, and nothing of it is read', () => {
    transport.onMessage(entries(4096), []);
    assert.equal(events.length, 4096);
    transport.onMessage(entries(4097), []);
    assert.equal(events.length, 4096);
    assert.equal(endpoint.counters.malformed, 1);
  });

  test('of a part of an entry is malformed, and so are its other entries', () => {
    transport.onMessage([...entries(2), 6], []);
    assert.deepEqual(events, []);
    assert.equal(endpoint.counters.malformed, 1);
  });

  test('is malformed where frames were not agreed on', () => {
    const plain = new Endpoint({
      role: abp.AGENT,
      features: abp.NOTIFICATIONS,
      transport,
      callee: { rejectionFor: () => 0, run() {} },
      load: () => Promise.reject(new Error('not needed')),
      side: { onSession() {}, onNotification: (event) => events.push(event) },
    });
    plain.core.describe('agent', { name: 'a', version: '1' });
    plain.connect(0);
    const payload = {
      sessionId: 's',
      app: { id: 'a', name: 'A', version: '1' },
      capabilities: [],
      features: { notifications: true, 'bridge.frames': true },
    };
    transport.onMessage({ type: 'initialize-result', id: sent.at(-1).id, payload }, []);
    transport.onMessage(entries(1), []);
    assert.deepEqual(events, []);
    assert.equal(plain.counters.malformed, 1);
    transport.onMessage(notification('message'), []);
    assert.deepEqual(events, ['message']);
  });
});

describe('a call that the core refuses', () => {
  test('on behalf of one that is over is cancelled', async () => {
    const { error } = await makeCall(endpoint, 'x', {}, {}, 12345);
    assert.equal(error.code, 'CANCELLED');
  });

  test('because its id is in use is the fault of its params, whatever it is made for', async () => {
    transport.onMessage(question('q', 'ask'), []);
    parts[0].resolve(await import('../../js/session/invocation.js'));
    endpoint.callee.run = () => new Promise(() => {});
    await nextTurn();
    const { handle } = endpoint.machine.find((record) => record.handle);
    void makeCall(endpoint, 'x', {}, { callId: 'mine' });
    for (const parent of [0, handle]) {
      const { error } = await makeCall(endpoint, 'x', {}, { callId: 'mine' }, parent);
      assert.equal(error.code, 'INVALID_PARAMS');
    }
  });

  test('because the session is lost is disconnected', async () => {
    endpoint.lost(new Error('gone'));
    const response = await makeCall(endpoint, 'x', {});
    assert.equal(response.error.code, 'DISCONNECTED');
    assert.equal('cancelled' in response, false);
    const { error } = await makeCall(endpoint, 'x', {}, { callId: '' });
    assert.equal(error.code, 'INVALID_PARAMS');
    assert.notEqual(error.message, 'gone');
  });
});

test('a transport carries frames, liveness and streams, unless it says what else', () => {
  assert.equal(carried({}), abp.FRAMES | abp.LIVENESS | abp.STREAMS);
  assert.equal(carried({ carries: ['port', 'frames'] }), abp.PORT | abp.FRAMES);
  assert.equal(carried({ carries: [] }), 0);
});

describe('what comes in', () => {
  test('and cannot be read is reported and counted, and costs nothing else', (t) => {
    const reported = t.mock.method(console, 'error', () => {});
    const broken = {
      get type() {
        throw new Error('unreadable');
      },
    };
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    transport.onMessage(broken, []);
    transport.onMessage(revoked.proxy, []);
    assert.equal(endpoint.counters.malformed, reported.mock.callCount());
    assert.ok(endpoint.counters.malformed > 0);
    transport.onMessage(notification('after'), []);
    assert.deepEqual(events, ['after']);
  });

  test('after what ended the session is not read, in its frame or later', () => {
    endpoint.side.onNotification = (event) => {
      events.push(event);
      endpoint.close();
    };
    transport.onMessage(
      ['last', 'late'].flatMap((event) => [6, 0, undefined, notification(event)]),
      [],
    );
    transport.onMessage(notification('later'), []);
    assert.deepEqual(events, ['last', 'closed']);
  });

  test('is shown to its observer before and after it is read', () => {
    const seen = [];
    endpoint.observe({
      message: (isSent, data) => seen.push([isSent, data.payload.event]),
      action: () => {},
      read: () => seen.push(['read', ...events]),
    });
    transport.onMessage(notification('n'), []);
    assert.deepEqual(seen, [
      [false, 'n'],
      ['read', 'n'],
    ]);
    endpoint.dispose();
    transport.onMessage(notification('n'), []);
    assert.equal(seen.length, 2);
  });

  test('has its ports and its time until it has been read', () => {
    const port = {};
    endpoint.side.onNotification = () => events.push([endpoint.ports, endpoint.now > 0]);
    transport.onMessage(notification('n'), [port]);
    endpoint.receive(notification('n'));
    assert.deepEqual(events, [
      [[port], true],
      [[], true],
    ]);
    assert.equal(endpoint.now, 0);
  });

  test('may be progress of a call, of one in a frame by its number, or of none', () => {
    const told = [];
    const onProgress = (info) => told.push(info);
    endpoint.side.onProgress = (info) => told.push(['of none', info]);
    void makeCall(endpoint, 'x', {}, { onProgress });
    const { handle } = endpoint.machine.find((record) => record.name === 'x');
    const id = endpoint.core.idText(handle);
    transport.onMessage([5, Number(id.split('.').pop()), undefined, { progress: 1 }], []);
    const payload = { operationId: id, progress: 2 };
    transport.onMessage({ type: 'progress', payload }, []);
    for (const more of [{ operationId: 'other' }, {}]) {
      transport.onMessage({ type: 'progress', payload: { ...more, progress: 3 } }, []);
    }
    assert.deepEqual(told, [
      { operationId: id, progress: 1 },
      payload,
      ['of none', { operationId: 'other', progress: 3 }],
      ['of none', { progress: 3 }],
    ]);
  });
});

describe('the handshake', () => {
  let kinds;
  beforeEach(() => {
    sent = [];
    kinds = [];
    events = [];
    transport = {
      post: (message, _transfer, kind) => (sent.push(message), kinds.push(kind)),
      close() {},
    };
    endpoint = new Endpoint({
      role: abp.AGENT,
      features: 0,
      transport,
      callee: { rejectionFor: () => 0, run() {} },
      side: { onSession: (state) => events.push(state) },
    });
    endpoint.core.describe('agent', { name: 'a', version: '1' });
  });
  const accept = () => {
    const payload = { sessionId: 's', capabilities: [], features: {} };
    transport.onMessage({ type: 'initialize-result', id: sent[0].id, payload }, []);
  };

  test('is a greeting; what is said later is none', () => {
    endpoint.connect(0);
    accept();
    endpoint.close();
    assert.deepEqual(
      sent.map(({ type }, i) => [type, kinds[i]]),
      [
        ['initialize', 'greeting'],
        ['shutdown', undefined],
      ],
    );
  });

  for (const [timeout, state] of [
    [50, abp.SESSION_FAILED],
    [0, undefined],
  ]) {
    test(`is given up after its time, or never (${timeout} ms)`, (t) => {
      const clock = useClock(t);
      endpoint.connect(timeout);
      clock.advance(49);
      assert.deepEqual(events, []);
      clock.advance(2 ** 30);
      assert.equal(events[0], state);
    });
  }

  test('keeps the process alive until it ends, however often it is begun', (t) => {
    const wait = t.mock.method(endpoint.machine, 'wait');
    const waits = () => wait.mock.calls.map((call) => call.arguments[0]);
    endpoint.connect(0);
    endpoint.connect(0);
    assert.deepEqual(waits(), [1]);
    accept();
    endpoint.connect(0);
    assert.deepEqual(waits(), [1, -1]);
    endpoint.lost();
    assert.deepEqual(waits(), [1, -1]);
  });

  test('remembers what it was answered, and nothing that comes later', () => {
    endpoint.noteControl('before');
    assert.equal(endpoint.heard, undefined);
    endpoint.connect(0);
    transport.onMessage({ type: 'no/such' }, []);
    assert.deepEqual(endpoint.heard, { type: 'no/such' });
    accept();
    const { heard } = endpoint;
    transport.onMessage({ type: 'no/such either' }, []);
    assert.equal(endpoint.heard, heard);
  });

  test('that was lost is no more waited for', async () => {
    endpoint.lost(new Error('the cable'));
    const { error } = await makeCall(endpoint, 'x', {});
    assert.deepEqual([error.code, error.message], ['DISCONNECTED', 'the cable']);
  });

  test('has to come before a call', async () => {
    const { error, metadata } = await makeCall(endpoint, 'x', {});
    assert.deepEqual([error.code, metadata.outcome], ['NOT_INITIALIZED', 'unstarted']);
  });

  test('goes to the newest transport, and its refusal to where it came from', () => {
    const app = new Endpoint({
      role: abp.APP,
      features: 0,
      transport,
      callee: { rejectionFor: () => 0, run() {} },
      side: { onSession() {}, onHandshake: (message, via) => via.post(message) },
    });
    app.core.describe('app', { id: 'a', name: 'A', version: '1' });
    app.core.describe('capabilities', []);
    const others = [];
    const other = { post: (message) => others.push(message), close() {} };
    const initialize = (id) => ({ type: 'initialize', id, payload: { protocolVersion: '0.1' } });
    app.receive(initialize('first'));
    app.receive(initialize('second'), [], other);
    assert.deepEqual(
      [sent, others].map(([{ id, payload }]) => [id, payload.success]),
      [
        ['first', undefined],
        ['second', false],
      ],
    );
  });
});

describe('a session', () => {
  test('that is lost says why, to what was called and to what is called then', async () => {
    const pending = makeCall(endpoint, 'x', {});
    endpoint.lost(new Error('the cable'));
    for (const { error } of [await pending, await makeCall(endpoint, 'x', {})]) {
      assert.deepEqual([error.code, error.message], ['DISCONNECTED', 'the cable']);
    }
    assert.deepEqual(events, ['closed']);
  });

  for (const [code, isLost] of [
    ['SESSION_EXPIRED', true],
    ['OWN', false],
  ]) {
    test(`whose app refuses a call with ${code} is ${isLost ? 'lost for that' : 'as it was'}`, () => {
      endpoint.refused({ code, message: 'no', retryable: false });
      assert.equal(endpoint.ready, !isLost);
      assert.equal(endpoint.cause?.code, isLost ? code : undefined);
    });
  }

  test('ends once, whoever ends it', () => {
    let ended = 0;
    endpoint.side.onEnd = () => ended++;
    endpoint.close();
    endpoint.lost();
    endpoint.dispose();
    assert.deepEqual([ended, events], [1, ['closed']]);
  });

  test('whose core fails is lost, and nobody knows what becomes of its calls', async (t) => {
    t.mock.method(console, 'error', () => {});
    endpoint.side.onSession = (state) => events.push(state);
    const pending = makeCall(endpoint, 'x', {});
    endpoint.machine.feed(() => {
      throw new Error('a trap');
    });
    assert.deepEqual(events, ['closed', abp.SESSION_LOST]);
    const { error, metadata } = await pending;
    assert.deepEqual([error.code, metadata.outcome], ['INTERNAL_ERROR', 'unknown']);
  });

  test('that its page leaves says so at once', () => {
    for (const persisted of [true, false]) endpoint.leave(persisted);
    assert.deepEqual(
      sent.map(([, , , { type, payload }]) => [type, payload]),
      [
        ['bridge/bye', { persisted: true }],
        ['bridge/bye', { persisted: false }],
      ],
    );
  });

  test('whose app may be another one is asked', (t) => {
    const advance = t.mock.method(endpoint.machine, 'advance');
    endpoint.suspect();
    assert.equal(sent[0][3].type, 'bridge/ping');
    // The answer has its time from now on.
    assert.equal(advance.mock.callCount(), 1);
  });
});

describe('a cancel', () => {
  test('of a call that went out in a frame is an entry of its own, with its reason', async () => {
    const controller = new AbortController();
    void makeCall(endpoint, 'x', {}, { signal: controller.signal });
    await nextTurn();
    controller.abort('enough');
    await nextTurn();
    assert.deepEqual(sent, [
      [1, 1, 'x', {}],
      [7, 1, 'enough', undefined],
    ]);
  });

  test('by an id is a message, and waits for its answer', async () => {
    const answered = new Promise((resolve) => cancelById(endpoint, 'mine', 'enough', resolve));
    await nextTurn();
    const [[kind, , , { type, id, payload }]] = sent;
    assert.deepEqual([kind, type], [6, 'capabilities/cancel']);
    assert.deepEqual(payload, { callId: 'mine', reason: 'enough' });
    const answer = { callId: 'mine', cancelled: true };
    transport.onMessage({ type: 'capabilities/cancel-result', id, payload: answer }, []);
    assert.deepEqual(await answered, answer);
  });
});

describe('a cancel by an id that is answered', () => {
  const error = { code: 'OWN', message: 'no', retryable: true };
  for (const [what, payload, expected] of [
    ['yes', { callId: 'other', cancelled: true }, { cancelled: true }],
    ['no', { cancelled: false, reason: 'too late' }, { cancelled: false, reason: 'too late' }],
    ['with a reason that is no text', { cancelled: true, reason: 7 }, { cancelled: true }],
    ['with an error', { cancelled: false, error }, { cancelled: false, error }],
    ['with an error that is none', { cancelled: false, error: 'no' }, { cancelled: false }],
    [
      'with a code beside it',
      { cancelled: false, code: 'OWN', message: 'no', retryable: true },
      { cancelled: false, code: 'OWN', message: 'no', retryable: true, error },
    ],
    [
      'with a code and a reason',
      { cancelled: false, code: 'OWN', reason: 'no', retryable: true },
      { cancelled: false, code: 'OWN', reason: 'no', retryable: true, error },
    ],
  ]) {
    test(`${what}`, async () => {
      const answered = new Promise((resolve) => cancelById(endpoint, 'mine', undefined, resolve));
      await nextTurn();
      const [[, , , { id }]] = sent;
      transport.onMessage({ type: 'capabilities/cancel-result', id, payload }, []);
      assert.deepEqual(await answered, { callId: 'mine', ...expected });
    });
  }

  for (const [what, end, code] of [
    ['nothing, because the session is lost', () => endpoint.lost(), 'DISCONNECTED'],
    ['nothing, because it is closed', () => endpoint.close(), 'CANCELLED'],
  ]) {
    test(what, async () => {
      const answered = new Promise((resolve) => cancelById(endpoint, 'mine', undefined, resolve));
      end();
      const { error: why, ...answer } = await answered;
      assert.deepEqual(answer, { callId: 'mine', cancelled: false, reason: why.message });
      assert.equal(why.code, code);
    });
  }
});

test('a call of which nothing was sent is told so, and no other', () => {
  const told = [];
  for (const name of ['x', 'y']) void makeCall(endpoint, name, {});
  endpoint.machine.find((record) => {
    record.unsent = (error) => told.push([record.name, error]);
  });
  const { key } = endpoint.machine.find(({ name }) => name === 'y');
  endpoint.tellUnsent('unsent', key, 'why');
  endpoint.tellUnsent('chunkFailed', key, 'why');
  endpoint.tellUnsent('unsent', 99, 'why');
  assert.deepEqual(told, [['y', 'why']]);
});

test('observers are told of calls before they are made', () => {
  const begun = [];
  const none = () => {};
  endpoint.observe({
    ...{ message: none, read: none, end: none },
    begin: ({ name }, parent) => begun.push([name, parent, sent.length]),
    action: (kind) => begun.push(kind),
  });
  void makeCall(endpoint, 'x', {});
  assert.deepEqual(begun, [['x', 0, 0], abp.REQUEST]);
});
