// A question belongs to the call whose handler asks it: when the call is stopped, the agent's
// dialog goes away, too.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TRANSPORTS } from '../contracts/channels.js';
import { useClock } from '../support/clock.js';
import { connect } from '../../parts/main/index.js';
import { AGENT, APP, closeAfter, openPair } from '../support/pair.js';
import { Raw } from '../support/raw.js';

const deferred = () => {
  const parts = {};
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
};

/** A handler that asks, an agent with a dialog, and what becomes of both. */
async function pair(way, { deaf = false } = {}) {
  const dialog = { shown: deferred(), withdrawn: deferred(), answered: deferred() };
  const question = { method: 'elicitation/confirmation', params: { message: 'Really?' } };
  const capabilities = {
    async asks({ timeout }, { elicit }) {
      const answer = await elicit({ ...question, timeout });
      dialog.answered.resolve(answer);
      return answer;
    },
    async leaves(_params, { elicit }) {
      void elicit(question).then(dialog.answered.resolve);
      await dialog.shown.promise;
      return 'left';
    },
    async goesOn(params, { call, signal }) {
      dialog.handler = signal;
      await call('asks', params);
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    },
    plain: () => 1,
  };
  const onElicitation = (_request, { signal }) => {
    dialog.signal = signal;
    dialog.shown.resolve();
    return new Promise((resolve, reject) => {
      dialog.answer = resolve;
      signal.addEventListener('abort', () => {
        dialog.withdrawn.resolve(signal.reason);
        if (!deaf) reject(signal.reason);
      });
    });
  };
  const agent = { onElicitation, ...way.agent };
  return { ...(await openPair(capabilities, { ...way, agent })), dialog };
}

for (const { name, ...way } of [
  ...TRANSPORTS,
  { name: 'a port, without frames', upgrade: 'port' },
]) {
  describe(`questions over ${name}`, () => {
    test('a call that is cancelled withdraws its question', async () => {
      const { client, dialog } = await pair(way);
      const controller = new AbortController();
      const called = client.call('asks', {}, { signal: controller.signal });
      await dialog.shown.promise;
      controller.abort('changed my mind');
      const reason = await dialog.withdrawn.promise;
      assert.equal(reason.name, 'AbortError');
      assert.equal((await dialog.answered.promise).cancelled, true);
      assert.equal((await called).cancelled, true);
      assert.equal((await client.call('plain')).data, 1);
    });

    test('and so does one whose handler has ended', async () => {
      const { client, dialog } = await pair(way);
      assert.equal((await client.call('leaves')).data, 'left');
      await dialog.withdrawn.promise;
      assert.equal((await dialog.answered.promise).cancelled, true);
    });

    test('while a person is asked, the timeout of the call stands still, on both sides', async (t) => {
      const clock = useClock(t);
      const { client, dialog } = await pair(way);
      const called = client.call('goesOn', {}, { timeout: 1000 });
      await dialog.shown.promise;
      clock.advance(600_000);
      await client.call('plain');
      assert.equal(dialog.signal.aborted, false);
      clock.pass(600_000); // nobody has looked at the clock when the answer comes
      dialog.answer('yes');
      await dialog.answered.promise;
      await client.call('plain');
      clock.advance(980); // the core is told the time in steps of 10 ms
      await client.call('plain');
      assert.equal(dialog.handler.aborted, false);
      clock.advance(20);
      assert.equal((await called).error.code, 'TIMEOUT');
      assert.equal(dialog.handler.aborted, true);
    });
  });
}

describe('questions', () => {
  test('a dialog that does not go away holds nothing up, and its answer is late', async () => {
    const { client, exposed, dialog } = await pair({}, { deaf: true });
    const controller = new AbortController();
    const called = client.call('asks', {}, { signal: controller.signal });
    await dialog.shown.promise;
    controller.abort();
    // The handler goes on at once, whatever the agent does.
    assert.equal((await dialog.answered.promise).cancelled, true);
    assert.equal((await called).cancelled, true);
    await dialog.withdrawn.promise;
    dialog.answer('yes');
    await client.call('plain');
    await client.call('plain');
    assert.equal(exposed.counters[0].late, 1);
  });

  test('one that was answered is not withdrawn', async () => {
    const { client, dialog } = await pair({});
    const called = client.call('asks');
    await dialog.shown.promise;
    dialog.answer('yes');
    assert.equal((await called).data, 'yes');
    assert.equal(dialog.signal.aborted, false);
  });

  test('an agent ends the question of a call that it has cancelled by itself, where nothing else says so', async () => {
    const { client, dialog } = await pair({ upgrade: 'none' });
    const controller = new AbortController();
    const called = client.call('asks', {}, { signal: controller.signal });
    await dialog.shown.promise;
    controller.abort();
    assert.equal(dialog.signal.aborted, true);
    assert.equal((await called).cancelled, true);
    assert.equal((await client.call('plain')).data, 1);
  });

  test('a question that has a timeout makes its call wait no longer than that', async (t) => {
    const clock = useClock(t);
    const { client, dialog } = await pair({});
    const called = client.call('goesOn', { timeout: 5000 }, { timeout: 1000 });
    await dialog.shown.promise;
    clock.advance(5000);
    assert.equal((await dialog.answered.promise).error.code, 'TIMEOUT');
    await client.call('plain');
    assert.equal(dialog.handler.aborted, false);
    clock.advance(1000);
    assert.equal((await called).error.code, 'TIMEOUT');
  });

  test('an app holds no call by a question that its agent does not ask, or about another call', async (t) => {
    const clock = useClock(t);
    const { port1, port2 } = new MessageChannel();
    closeAfter(() => port1.close());
    const raw = new Raw(port1);
    const asked = [];
    const connecting = connect(port2, {
      agent: AGENT,
      allowedRequests: ['elicitation/confirm'],
      onElicitation: ({ params }) => {
        asked.push(params);
        return new Promise(() => {});
      },
    });
    const { id } = await raw.next();
    raw.send('initialize-result', id, {
      sessionId: 's',
      app: APP,
      capabilities: [],
      features: { elicitation: true, 'bridge.frames': true, 'bridge.streams': true },
    });
    const client = await connecting;
    closeAfter(() => client.close());
    const options = { timeout: 1000, input: (async function* () {})() };
    const called = client.call('any', {}, { ...options, callId: 'mine' });
    await raw.next();
    const about = 'mine';
    const refused = [
      ['sampling/create', {}, about], // not among those that the agent takes
      ['bridge/input', { callId: 'mine' }, about], // without a window
    ];
    for (const [i, [name, params, callId]] of refused.entries()) {
      raw.port.postMessage([2, i + 1, name, [params, 0, false, 0, 0, callId]]);
      const [kind, key, , { error }] = await raw.next();
      assert.deepEqual([kind, key, typeof error.code], [4, i + 1, 'string']);
    }
    const odd = ['other', '', 'm\ud800', 7, true, null, {}, ['mine'], 's.1'];
    for (const [i, callId] of odd.entries()) {
      raw.port.postMessage([2, 10 + i, 'elicitation/confirm', [i, 0, false, 0, 0, callId]]);
    }
    raw.port.postMessage([2, 99, 'elicitation/confirm', ['last']]);
    while (asked.at(-1) !== 'last') await new Promise(setImmediate);
    clock.advance(1000);
    assert.deepEqual((await raw.next()).slice(0, 2), [7, 'mine']);
    raw.port.postMessage([4, 'mine', undefined, { success: false, cancelled: true }]);
    assert.equal((await called).error.code, 'TIMEOUT');
  });
});
