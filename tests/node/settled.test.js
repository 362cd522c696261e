// `settled` of a response: it resolves with the outcome of a call that was left running or unknown,
// as soon as the app knows it.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { held, siteOf } from '../support/site.js';

describe('settled', () => {
  for (const [what, end, options] of [
    ['its signal fires', ({ controller }) => controller.abort()],
    ['it is cancelled by its id', ({ client }) => client.cancel('queued')],
    ['its time is over', () => {}, { timeout: 50 }],
    ['its client is closed', ({ client }) => client.close()],
    ['its line is cut', ({ cut }) => cut()],
  ]) {
    for (const [kind, key] of [
      ['', {}],
      [' with a key', { idempotencyKey: 'k' }],
    ]) {
      test(`of a call${kind} that waits for its turn: ${what}, and who has asked before is answered`, async () => {
        const work = held();
        const site = siteOf({
          capabilities: { work: work.handler },
          options: { limits: { maxConcurrent: 1 } },
        });
        const client = await site.client({ owner: 'o' });
        const { cut } = site.last;
        const other = await site.client({ owner: 'o' });
        const begun = work.next();
        void client.call('work');
        await begun;
        const controller = new AbortController();
        const { signal } = controller;
        const queued = client.call('work', {}, { callId: 'queued', signal, ...key, ...options });
        await client.outcome('until it has come');
        const asked = other.outcome('queued', { settled: true });
        if (!options) assert.equal((await other.outcome('queued')).outcome, 'running');
        await end({ client, controller, cut });
        assert.deepEqual(await asked, { outcome: 'unstarted' });
        assert.equal((await queued).success, false);
        assert.equal(work.calls.length, 1);
      });
    }
  }

  /** A client whose call lost its line, and which does not reconnect by itself. */
  async function lost() {
    const work = held();
    const site = siteOf({ capabilities: { work: work.handler } });
    const client = await site.client();
    const begun = work.next();
    const pending = client.call('work', {}, { callId: 'mine' });
    const call = await begun;
    site.cut();
    const response = await pending;
    assert.equal(response.metadata.outcome, 'unknown');
    return { client, call, response, site };
  }

  test('waits for the session that the program begins', async () => {
    const { client, call, response } = await lost();
    const { settled } = response;
    assert.equal(response.settled, settled, 'it is asked once');
    call.end.resolve(() => 1);
    // Who does not wait for that is told at once that nobody knows.
    assert.deepEqual(await client.outcome('mine'), { outcome: 'unknown' });
    await client.reconnect();
    assert.deepEqual(await settled, { outcome: 'finished' });
  });

  test('goes on in the session that replaces one in which it was asked', async () => {
    const { client, call, response } = await lost();
    await client.reconnect();
    const { settled } = response;
    // It has been asked by then.
    await client.outcome('mine');
    await client.reconnect();
    call.end.resolve(() => 1);
    assert.deepEqual(await settled, { outcome: 'finished' });
  });

  test('is asked again after an answer that said nothing', async () => {
    const { client, call, response } = await lost();
    client.close();
    assert.deepEqual(await response.settled, { outcome: 'unknown' });
    await client.reconnect();
    call.end.resolve(() => 1);
    assert.deepEqual(await response.settled, { outcome: 'finished' });
  });

  test('gives up with the client', async () => {
    const { client, response } = await lost();
    const { settled } = response;
    client.close();
    assert.deepEqual(await settled, { outcome: 'unknown' });
  });

  test('waits no longer than a minute for an app that is gone, or than it is told', async (t) => {
    const { client, response } = await lost();
    assert.deepEqual(await client.outcome('mine', { settled: true, timeout: 1 }), {
      outcome: 'unknown',
    });
    const controller = new AbortController();
    const stopped = client.outcome('mine', { settled: true, signal: controller.signal });
    controller.abort();
    assert.deepEqual(await stopped, { outcome: 'unknown' });
    // Without `settled` nobody waits for a session that nobody begins.
    assert.deepEqual(await client.outcome('mine'), { outcome: 'unknown' });
    t.mock.timers.enable({ apis: ['setTimeout'] });
    let told;
    const settled = response.settled.then((became) => (told = became));
    // What it asks with is loaded by now.
    for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
    t.mock.timers.tick(59_999);
    for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(told, undefined);
    t.mock.timers.tick(1);
    assert.deepEqual(await settled, { outcome: 'unknown' });
  });
});
