// What an app remembers for agents that come back, beside the cores of their sessions: how much, and for how long.
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, mock, test } from 'node:test';
import { Memory } from '../../js/app/memory.js';
import * as abp from '../../js/core/abp-boundary.js';
import { OUTCOME } from '../../js/wire/messages.js';
import { useClock } from '../support/clock.js';

const HOUR = 3_600_000;
let memory, connections;
beforeEach(() => {
  connections = new Set();
  memory = new Memory(connections, HOUR);
});
afterEach(() => memory.close());

/** A connection whose core knows these fates by callId. */
function connectionOf(owner, fates = {}) {
  const endpoint = {
    machine: { advance() {}, failed: false, forget: mock.fn(), find() {} },
    core: { became: (callId) => ({ fate: 0, outcome: abp.PENDING, call: 0, ...fates[callId] }) },
    failure: (code, message) => ({ success: false, error: { code, message } }),
  };
  return { endpoint, owner };
}
const forgotten = ({ endpoint }) => endpoint.machine.forget.mock.callCount();
const open = () => false;
/** The connection has ended. */
const add = (connection) => memory.add(connection.endpoint, connection.owner, open);

/** What a connection is told of a call. */
function ask(connection, params) {
  const call = { request: { name: OUTCOME, params }, signal: new AbortController().signal };
  return memory.recall(connection, call);
}

/** Makes a call with a key, and ends it. */
async function callWith(connection, idempotencyKey, run, { fate = abp.FATE_FINISHED } = {}) {
  let end;
  const returned = new Promise((resolve) => (end = resolve));
  const callId = `call ${idempotencyKey}`;
  const { core } = connection.endpoint;
  core.became = () => ({ fate, outcome: abp.COMPLETED, call: 0 });
  const request = { name: 'work', params: {}, idempotencyKey };
  const { signal } = new AbortController();
  const beginAfter = async (needed, begin) => begin(await needed);
  const answer = memory.recall(connection, { request, callId, returned, signal, beginAfter }, run);
  await answer.catch(() => {});
  end();
  await returned;
  return answer;
}

describe('a connection that has ended', () => {
  test('is kept for as long as the app remembers', (t) => {
    const clock = useClock(t);
    const connection = connectionOf('o');
    add(connection);
    clock.advance(HOUR - 1);
    assert.equal(forgotten(connection), 0);
    clock.advance(1);
    assert.equal(forgotten(connection), 1);
    memory.close();
    assert.equal(forgotten(connection), 1);
  });

  test('is one of 16', () => {
    const all = Array.from({ length: 17 }, () => connectionOf('o'));
    all.slice(0, 16).forEach(add);
    assert.deepEqual(all.map(forgotten), new Array(17).fill(0));
    add(all[16]);
    assert.deepEqual(all.map(forgotten), [1, ...new Array(16).fill(0)]);
  });

  test('is forgotten with the app, and at once if that was closed', (t) => {
    const [one, two, late] = [connectionOf('o'), connectionOf('o'), connectionOf('o')];
    const clear = t.mock.method(globalThis, 'clearTimeout');
    add(one);
    add(two);
    memory.close();
    assert.deepEqual([one, two].map(forgotten), [1, 1]);
    assert.equal(clear.mock.callCount(), 2);
    memory.add(late.endpoint, 'o', () => true);
    memory.close();
    assert.equal(forgotten(late), 1);
  });

  test('has a timer that is a number where timers are', (t) => {
    t.mock.method(globalThis, 'setTimeout', () => 7);
    add(connectionOf('o'));
  });
});

describe('what became of a call', () => {
  test('is asked of the agent’s own connections, the newest first', async () => {
    const fates = (fate) => ({ c: { fate } });
    const own = connectionOf('o');
    add(connectionOf('another', fates(abp.FATE_FAILED)));
    add(connectionOf('o', { ...fates(abp.FATE_FAILED), older: { fate: abp.FATE_STOPPED } }));
    add(connectionOf('o', fates(abp.FATE_FINISHED)));
    assert.deepEqual(await ask(own, { callId: 'c' }), { outcome: 'finished' });
    assert.deepEqual(await ask(own, { callId: 'older' }), { outcome: 'stopped' });
    assert.deepEqual(await ask(own, { callId: 'none' }), { outcome: 'unknown' });
    assert.deepEqual(await ask(connectionOf(undefined), { callId: 'c' }), { outcome: 'unknown' });
    connections.add(connectionOf('o', fates(abp.FATE_RUNNING)));
    assert.deepEqual(await ask(own, { callId: 'c' }), { outcome: 'running' });
  });

  test('is not known to a core that has failed', async () => {
    const own = connectionOf('o', { c: { fate: abp.FATE_FINISHED } });
    own.endpoint.machine.failed = true;
    assert.deepEqual(await ask(own, { callId: 'c' }), { outcome: 'unknown' });
  });

  test('is waited for until its handler returns, if it still runs', async () => {
    const fates = { c: { fate: abp.FATE_RUNNING, call: 7 } };
    const own = connectionOf('o', fates);
    await Promise.all([
      ask(own, { callId: 'c', settled: true }), // its handler has returned by now
      assert.rejects(ask(own, { callId: 7 }), { code: 'INVALID_PARAMS' }),
    ]);
    let end;
    const returned = new Promise((resolve) => (end = resolve));
    own.endpoint.machine.find = (is) => [{ handle: 6 }, { handle: 7, returned }].find(is);
    const settled = ask(own, { callId: 'c', settled: true });
    assert.deepEqual(await ask(own, { callId: 'c' }), { outcome: 'running' });
    fates.c = { fate: abp.FATE_STOPPED };
    end();
    assert.deepEqual(await settled, { outcome: 'stopped' });
  });

  test('is not waited for by one that was cancelled', async () => {
    const own = connectionOf('o', { c: { fate: abp.FATE_RUNNING, call: 7 } });
    own.endpoint.machine.find = () => ({ handle: 7, returned: new Promise(() => {}) });
    const request = { name: OUTCOME, params: { callId: 'c', settled: true } };
    const before = memory.recall(own, { request, signal: AbortSignal.abort('before') });
    await assert.rejects(before, (reason) => reason === 'before');
    const controller = new AbortController();
    const meanwhile = memory.recall(own, { request, signal: controller.signal });
    controller.abort('meanwhile');
    await assert.rejects(meanwhile, (reason) => reason === 'meanwhile');
  });

  test('comes with what its handler said last, and with nothing else', async () => {
    const own = connectionOf('o', { c: { fate: abp.FATE_STOPPED }, d: { fate: abp.FATE_STOPPED } });
    memory.keep(own, 'c', { report: 1, progress: { progress: 1 } });
    memory.keep(own, 'd', { progress: { progress: 2 } });
    memory.keep(own, 'c', { report: null, more: 1 });
    assert.deepEqual(await ask(own, { callId: 'c' }), { outcome: 'stopped', report: null });
    assert.deepEqual(await ask(own, { callId: 'd' }), {
      outcome: 'stopped',
      progress: { progress: 2 },
    });
  });

  test('comes with that for 1,024 calls', async () => {
    const fate = abp.FATE_STOPPED;
    const ids = Array.from({ length: 1025 }, (_, i) => `c${i}`);
    const own = connectionOf('o', Object.fromEntries(ids.map((id) => [id, { fate }])));
    for (const id of ids.slice(0, 1024)) memory.keep(own, id, { report: id });
    memory.keep(own, 'c0', { report: 'again' });
    assert.equal((await ask(own, { callId: 'c1' })).report, 'c1');
    memory.keep(own, 'c1024', { report: 'c1024' });
    const reports = [];
    for (const callId of ['c0', 'c1', 'c2', 'c1024'])
      reports.push((await ask(own, { callId })).report);
    assert.deepEqual(reports, ['again', undefined, 'c2', 'c1024']);
  });
});

describe('a key', () => {
  test('is a text of 1 to 256 characters', async () => {
    const own = connectionOf('o');
    const run = mock.fn(() => 'ran');
    for (const key of ['', 'k'.repeat(257), 7, null]) {
      const { error, metadata } = await callWith(own, key, run);
      assert.deepEqual([error.code, metadata.outcome], ['INVALID_PARAMS', 'unstarted']);
    }
    assert.equal(run.mock.callCount(), 0);
    for (const key of ['k', 'k'.repeat(256)]) assert.equal(await callWith(own, key, run), 'ran');
  });

  test('counts for its agent, in each of its connections', async () => {
    const run = mock.fn(() => 'ran');
    await callWith(connectionOf('o'), 'k', run);
    await callWith(connectionOf('o'), 'k', run);
    assert.equal(run.mock.callCount(), 1);
    await callWith(connectionOf('p'), 'k', run);
    assert.equal(run.mock.callCount(), 2);
  });

  test('of an agent that does not say who it is counts for its connection', async () => {
    const run = mock.fn(() => 'ran');
    const [one, two] = [connectionOf(undefined), connectionOf(undefined)];
    for (const connection of [one, two, one, two]) await callWith(connection, 'k', run);
    assert.equal(run.mock.callCount(), 2);
  });

  test('counts for as long as the app remembers, and no longer', async (t) => {
    const clock = useClock(t);
    const own = connectionOf('o');
    const run = mock.fn(() => 'ran');
    await callWith(own, 'k', run);
    clock.advance(HOUR);
    await callWith(own, 'k', run);
    assert.equal(run.mock.callCount(), 1);
    clock.advance(1);
    await callWith(own, 'k', run);
    assert.equal(run.mock.callCount(), 2);
  });

  test('may be used again where its call never ran, or failed in a way that may be tried again', async () => {
    const own = connectionOf('o');
    const failure = (retryable) => () =>
      Promise.reject(Object.assign(new Error('no'), { code: 'OWN', retryable }));
    for (const [run, fate, runs] of [
      [() => 'ran', abp.FATE_UNSTARTED, 2],
      [failure(true), abp.FATE_FAILED, 2],
      [failure(false), abp.FATE_FAILED, 1],
      [failure(true), abp.FATE_STOPPED, 1],
    ]) {
      const counted = mock.fn(run);
      for (let i = 0; i < 2; i++)
        await callWith(own, `${fate} ${runs}`, counted, { fate }).catch(() => {});
      assert.equal(counted.mock.callCount(), runs, `${abp.FATES[fate]}, ${runs}`);
    }
  });

  test('of a call that failed is answered by its error, which is not for being tried again', async () => {
    const own = connectionOf('o');
    const error = { code: 'OWN', message: 'no', retryable: true };
    const fate = abp.FATE_UNKNOWN;
    await callWith(own, 'k', () => Promise.reject(error), { fate }).catch(() => {});
    const again = await callWith(own, 'k', assert.fail, { fate });
    assert.deepEqual(
      [again.success, again.error.code, again.error.retryable],
      [false, 'OWN', false],
    );
    assert.equal(again.metadata.outcome, 'unknown');
  });

  test('is kept with 4 MiB of data exactly, and all of them are let go with the app', async () => {
    const own = connectionOf('o');
    const data = 'x'.repeat(4_194_304 / 2);
    const run = mock.fn(() => data);
    await callWith(own, 'one', run);
    await callWith(own, 'two', run);
    assert.equal(await callWith(own, 'one', run), data);
    assert.equal(run.mock.callCount(), 2);
    memory.close();
    await callWith(own, 'one', run);
    assert.equal(run.mock.callCount(), 3);
  });
});
