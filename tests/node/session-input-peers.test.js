// The input of a call and peers that are played by hand: what they may ask for, and what they are
// refused.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, expose } from '../../parts/main/index.js';
import { CAPABILITIES, handlers, source } from '../support/input.js';
import { APP, closeAfter } from '../support/pair.js';
import { Raw } from '../support/raw.js';
import { deferred } from '../support/site.js';

test('an app that cancels nothing: the source ends with the call all the same', async () => {
  const { client, raw, id } = await handmade();
  const watched = source(Infinity);
  const call = client.call('any', {}, { input: watched.values });
  const [, key] = await raw.next();
  raw.port.postMessage([2, 9, 'bridge/input', [{ callId: `${id}.${key}` }, 0, false, 1, 8]]);
  assert.deepEqual(await raw.next(), [8, 9, 8, 0]);
  raw.port.postMessage([3, key, 0, 'done']);
  assert.equal((await call).data, 'done');
  await watched.ended.promise;
});

test('an app is refused the input of other calls, and a second reading', async () => {
  const { client, raw } = await handmade();
  const watched = source(3);
  const call = client.call('any', {}, { input: watched.values, callId: 'mine' });
  await raw.next();
  const ask = (key, params) =>
    raw.port.postMessage([2, key, 'bridge/input', [params, 0, false, 9, 99]]);
  for (const [i, params] of [{ callId: 'other' }, {}, null, 'mine'].entries()) {
    ask(i + 1, params);
    const [kind, key, , response] = await raw.next();
    assert.deepEqual([kind, key, response.error.code], [4, i + 1, 'INVALID_PARAMS']);
  }
  ask(9, { callId: 'mine' });
  assert.deepEqual((await raw.next()).slice(0, 4), [8, 9, 8, 0]);
  ask(10, { callId: 'mine' });
  const entries = [];
  while (!entries.some(([kind, key]) => kind === 4 && key === 10)) {
    const frame = await raw.next();
    for (let i = 0; i < frame.length; i += 4) entries.push(frame.slice(i, i + 4));
  }
  assert.equal(entries.find(([, key]) => key === 10)[3].error.code, 'INVALID_PARAMS');
  raw.port.postMessage([3, 'mine', 0, 'done']);
  assert.equal((await call).data, 'done');
});

test('an agent that announces input and has none: the handler is told', async () => {
  handlers.ended = deferred();
  const { port1, port2 } = new MessageChannel();
  const exposed = expose({ app: APP, capabilities: CAPABILITIES }, { port: port1 });
  closeAfter(() => exposed.close());
  const raw = new Raw(port2);
  closeAfter(() => port2.close());
  const features = { 'bridge.frames': true, 'bridge.streams': true };
  await raw.ask('initialize', 'P', { agent: APP, protocolVersion: '0.1', features });
  port2.postMessage([2, 1, 'waits', [{}, 0, false, 0, 0, true]]);
  const [kind, key, name, more] = await raw.next();
  assert.deepEqual([kind, name, more[0]], [2, 'bridge/input', { callId: 'P.1' }]);
  port2.postMessage([4, key, undefined, { success: false, error: { code: 'INVALID_PARAMS' } }]);
  assert.equal((await handlers.ended.promise).code, 'INVALID_PARAMS');
});

test('an agent that announces input and has not agreed on streams: there is none', async () => {
  const { port1, port2 } = new MessageChannel();
  const capabilities = { has: (_params, { input }) => input !== undefined };
  const exposed = expose({ app: APP, capabilities }, { port: port1 });
  closeAfter(() => exposed.close());
  const raw = new Raw(port2);
  closeAfter(() => port2.close());
  await raw.ask('initialize', 'P', { agent: APP, protocolVersion: '0.1' });
  const options = { input: true };
  const { payload } = await raw.ask('capabilities/call', 'c', { capability: 'has', options });
  assert.equal(payload.data, false);
});

/** Our client, and an app that a test plays by hand, whose session's calls are `P.n`. */
async function handmade() {
  const { port1, port2 } = new MessageChannel();
  const raw = new Raw(port1);
  const connecting = connect(port2, { agent: APP });
  const { id } = await raw.next();
  raw.send('initialize-result', id, {
    sessionId: 's',
    protocolVersion: '0.1',
    app: APP,
    capabilities: [],
    features: { 'bridge.frames': true, 'bridge.streams': true },
  });
  const client = await connecting;
  closeAfter(() => port1.close());
  closeAfter(() => client.close());
  return { client, raw, id };
}
