// An endpoint whose other side is the test: what it loads with the first question, which frames it takes, and the errors of calls
// that its core refuses.
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'node:test';
import * as abp from '../../js/core/abp-boundary.js';
import { ready } from '../../js/core/abp-core.js';
import { Endpoint } from '../../js/session/endpoint.js';
import { makeCall } from '../../js/session/pending-call.js';

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
    features: abp.ELICITATION | abp.NOTIFICATIONS | abp.FRAMES,
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
    features: { notifications: true, elicitation: true, 'bridge.frames': true },
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
    const { error } = await makeCall(endpoint, 'x', {});
    assert.equal(error.code, 'DISCONNECTED');
  });
});
