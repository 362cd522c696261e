// A question belongs to the call whose handler asks it: when the call is stopped, the agent's dialog goes away, too.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TRANSPORTS } from '../contracts/channels.js';
import { openPair } from '../support/pair.js';

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
    async asks(_params, { elicit }) {
      const answer = await elicit(question);
      dialog.answered.resolve(answer);
      return answer;
    },
    async leaves(_params, { elicit }) {
      void elicit(question).then(dialog.answered.resolve);
      await dialog.shown.promise;
      return 'left';
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

    test('and so does one whose time is up, or whose handler has ended', async () => {
      const { client, dialog } = await pair(way);
      const called = client.call('asks', {}, { timeout: 1 });
      await dialog.withdrawn.promise;
      assert.equal((await called).error.code, 'TIMEOUT');
      const other = await pair(way);
      assert.equal((await other.client.call('leaves')).data, 'left');
      await other.dialog.withdrawn.promise;
      assert.equal((await other.dialog.answered.promise).cancelled, true);
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

  test('plain messages have nothing that withdraws it, and its call ends all the same', async () => {
    const { client, dialog } = await pair({ upgrade: 'none' });
    const controller = new AbortController();
    const called = client.call('asks', {}, { signal: controller.signal });
    await dialog.shown.promise;
    controller.abort();
    assert.equal((await called).cancelled, true);
    assert.equal((await client.call('plain')).data, 1);
    assert.equal(dialog.signal.aborted, false);
  });
});
