// Leases, tasks and objects of processes that are gone, and objects that cannot be read for a
// while.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryBackend, taskStore } from '../src/index.js';
import { AbpError } from 'abp-bridge';
import { useClock } from '../../../tests/support/clock.js';
import { ask, deferred, updateOf, open, serve } from '../../a2a/tests/support/a2a.js';
import { WORKING, DONE, heldBackend } from './support/held-backend.js';
import { V1, send, returnImmediately } from './contracts/store/processes.js';

/**
 * Two processes on one backend, whose leases last for `term` ms; the second cannot read what is
 * kept beside the log as long as `away` is true.
 */
async function serveApart(t, term, execute) {
  const backend = memoryBackend();
  const state = { away: true, tried: 0 };
  const get = async (name) => {
    if (!state.away) return backend.get(name);
    state.tried++;
    throw new AbpError('UNAVAILABLE', 'Away', { retryable: true });
  };
  const apart = { ...backend, get };
  const [owner, other] = [
    await serve(execute, { store: taskStore({ backend, term }) }),
    await serve(execute, { store: taskStore({ backend: apart, term }) }),
  ];
  t.after(() => Promise.all([owner.close(), other.close()]));
  return { owner, other, state };
}

/** An artifact that no record has room for. */
const LONG = 'x'.repeat(1_100_000);

test('a renewal that fails is tried again before the lease expires', async (t) => {
  const names = new Set();
  let failures = 0;
  const renewed = deferred();
  const { backend } = heldBackend((whole) => ({
    renew: async (name) => {
      names.add(name);
      // The first one is that of the beginning.
      if (names.size === 1 && failures < 10 && (await whole.lease(name)) > 0) {
        failures++;
        throw new AbpError('UNAVAILABLE', 'Busy');
      }
      await whole.renew(name);
      if (failures === 10) renewed.resolve();
    },
  }));
  const { url, close } = await serve(() => {}, { store: taskStore({ backend }) });
  t.after(close);
  await send(url, 'go');
  await renewed.promise;
  assert.equal(names.size, 1);
});

test('a list filtered by state has each task that was stored before the request', async (t) => {
  const gate = deferred();
  const { backend } = heldBackend((whole) => ({
    note: async (...given) => {
      if (given[1].state === 'completed') await gate.promise;
      return whole.note(...given);
    },
  }));
  const { url, close } = await serve(() => {}, { store: taskStore({ backend }) });
  t.after(close);
  const { id } = (await send(url, 'go')).result.task;
  const listed = ask(url, V1.list, { status: DONE }, V1.headers);
  // What need not wait for the entry is answered by then.
  for (let i = 0; i < 10; i++) await ask(url, V1.get, { id }, V1.headers);
  gate.resolve();
  const { tasks, totalSize } = (await listed).result;
  assert.deepEqual([tasks.map((task) => task.id), totalSize], [[id], 1]);
});

test('a question whose cancel could not be stored is canceled later', async (t) => {
  const asked = Date.now();
  t.mock.timers.enable({ apis: ['Date'], now: asked });
  let refusals = 0;
  const { backend } = heldBackend((whole) => ({
    append: async (task, data, expected) => {
      if (data.includes('"k":"wish"') && refusals++ < 2)
        throw new AbpError('UNAVAILABLE', 'Busy', { retryable: true });
      return whole.append(task, data, expected);
    },
  }));
  const store = taskStore({ backend, term: 1000 });
  const { agent, url, close } = await serve(({ emitStatus }) => emitStatus('input-required'), {
    store,
    limits: { rememberFor: 3_600_000 },
  });
  t.after(close);
  const { id } = (await send(url, 'go')).result.task;
  while (agent.counters.owned) await new Promise(setImmediate);
  t.mock.timers.setTime(asked + 3_600_001);
  let state;
  do ({ state } = (await ask(url, V1.get, { id }, V1.headers)).result.status);
  while (state === 'TASK_STATE_INPUT_REQUIRED');
  assert.equal(state, 'TASK_STATE_CANCELED');
  assert.equal(refusals, 3);
});

test('a record of a later version left by a process that is gone is read once', async (t) => {
  t.mock.method(console, 'error', () => {});
  let id;
  let scans = 0;
  let reads = 0;
  const { backend } = heldBackend((whole) => ({
    list: async (filter) => {
      if (filter.tenant.startsWith('duties:')) scans++;
      return whole.list(filter);
    },
    read: async (...given) => {
      if (scans && given[0] === id) reads++;
      return whole.read(...given);
    },
  }));
  const first = await serve(() => new Promise(() => {}), { store: taskStore({ backend }) });
  ({ id } = (await send(first.url, 'go', returnImmediately)).result.task);
  const { seq } = (await backend.read(id, 0)).at(-1);
  await backend.append(id, JSON.stringify({ v: 2 }), seq);
  await first.close();
  const second = await serve(() => {}, { store: taskStore({ backend, term: 50 }) });
  t.after(second.close);
  while (scans < 5) await new Promise(setImmediate);
  assert.equal(reads, 1);
});

test('an object of a task that never began is deleted when it is old, and others stay', async (t) => {
  const clock = useClock(t);
  const backend = memoryBackend();
  const { url, close } = await serve(
    ({ emitArtifact }) => emitArtifact({ parts: [{ text: 'x'.repeat(1_100_000) }] }),
    { store: taskStore({ backend, term: 500 }) },
  );
  t.after(close);
  await send(url, 'go');
  const [kept] = await backend.objects('');
  await backend.put('never/1/begun', new Uint8Array([1]));
  clock.advance(30 * 60_000);
  await backend.put('young/1/object', new Uint8Array([1]));
  clock.advance(31 * 60_000);
  while ((await backend.objects('')).includes('never/1/begun')) await new Promise(setImmediate);
  assert.deepEqual(await backend.objects(''), [kept, 'young/1/object'].sort());
});

test('a clock that was ahead for a while does not keep tasks from being deleted', async (t) => {
  const HOUR = 3_600_000;
  const begun = Math.ceil(Date.now() / HOUR) * HOUR + HOUR / 2;
  t.mock.timers.enable({ apis: ['Date'], now: begun });
  const backend = memoryBackend();
  const store = taskStore({ backend, term: 500, retention: 2 * HOUR });
  const { url, close } = await serve(() => {}, { store });
  t.after(close);
  const swept = async () => Number((await backend.list({ tenant: 'swept' })).tasks[0]?.data);
  t.mock.timers.setTime(begun + 100 * HOUR);
  while (!((await swept()) > begun / HOUR)) await new Promise(setImmediate);
  t.mock.timers.setTime(begun);
  const { id } = (await send(url, 'go')).result.task;
  t.mock.timers.setTime(begun + 2.5 * HOUR);
  while ((await ask(url, V1.get, { id }, V1.headers)).result) await new Promise(setImmediate);
  assert.deepEqual(await backend.read(id, 0), []);
});

test('a task with an object that cannot be read is refused at once, and its stream goes on when it can be read', async (t) => {
  const go = deferred();
  const end = deferred();
  const { owner, other, state } = await serveApart(t, 60_000, async ({ emitArtifact }) => {
    await go.promise;
    emitArtifact({ artifactId: 'long', parts: [{ text: LONG }] });
    await end.promise;
  });
  const { id } = (await send(owner.url, 'go', returnImmediately)).result.task;
  const watched = await open(other.url, V1.resubscribe, { id }, V1.headers);
  go.resolve();
  while (!state.tried) await new Promise(setImmediate);
  const reason = async (method, params) =>
    (await ask(other.url, method, params, V1.headers)).error?.data[0].reason;
  assert.equal(await reason(V1.get, { id }), 'UNAVAILABLE');
  assert.equal(await reason(V1.list, {}), 'UNAVAILABLE');
  assert.equal(await reason(V1.resubscribe, { id }), 'UNAVAILABLE');
  assert.equal((await ask(owner.url, V1.get, { id }, V1.headers)).result.status.state, WORKING);
  state.away = false;
  end.resolve();
  const frames = await watched.rest();
  const artifact = frames.find(({ result }) => result.artifactUpdate)?.result.artifactUpdate
    .artifact;
  assert.equal(artifact.parts[0].text, LONG);
  assert.equal(updateOf(frames.at(-1)), 'completed');
  const { result } = await ask(other.url, V1.get, { id }, V1.headers);
  assert.deepEqual([result.status.state, result.artifacts[0].parts[0].text], [DONE, LONG]);
});

for (const comesBack of [true, false])
  test(`a process that cannot read a task that it takes over ${comesBack ? 'takes it over when it can' : 'can be closed'}`, async (t) => {
    const emitted = deferred();
    const { owner, other, state } = await serveApart(t, 3000, async ({ emitArtifact, flushed }) => {
      emitArtifact({ parts: [{ text: LONG }] });
      await flushed();
      emitted.resolve();
      await new Promise(() => {});
    });
    const { id } = (await send(owner.url, 'go', returnImmediately)).result.task;
    await emitted.promise;
    await owner.close();
    while (state.tried < 3) await new Promise((resolve) => setTimeout(resolve, 1));
    if (!comesBack) return other.close();
    state.away = false;
    let result;
    do ({ result } = await ask(other.url, V1.get, { id }, V1.headers));
    while (result?.status.state !== 'TASK_STATE_FAILED');
    assert.equal(result.artifacts[0].parts[0].text, LONG);
  });
