// Updates that wait to be stored: how many may wait, and which end of a task is stored.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { taskStore } from '../src/index.js';
import { AbpError } from 'abp-bridge';
import { ask, deferred, open, serve } from '../../a2a/tests/support/a2a.js';
import { DONE, heldBackend } from './support/held-backend.js';
import { V1, send, returnImmediately } from './contracts/store/processes.js';

async function serveHeld(t, execute, maxOutbox) {
  const held = heldBackend();
  const store = taskStore({ backend: held.backend, maxOutbox });
  const served = await serve(execute, { store });
  t.after(held.release);
  t.after(served.close);
  return { ...held, ...served };
}

/** What the log of a task says of its end and of its work. */
const endsOf = async (backend, id) =>
  (await backend.read(id, 0))
    .flatMap(({ data }) => JSON.parse(data).e)
    .map(({ k, status, metadata = status?.message?.metadata }) => [k, status?.state, metadata])
    .filter(([k, state]) => k === 'outcome' || (k === 'status' && state !== 'working'));

/** A cancel that another process stores while the end of a task is on its way. */
async function storeWish(backend, id) {
  const { seq } = (await backend.read(id, 0)).at(-1);
  const e = [{ k: 'wish' }];
  return backend.append(id, JSON.stringify({ v: 1, id: 'w', by: 'other', epoch: 0, e }), seq);
}

test('the outbox is bounded: emitting throws, new tasks are refused, cancels are not', async (t) => {
  const full = deferred();
  const go = deferred();
  const { agent, url, hold, release } = await serveHeld(
    t,
    async (context) => {
      if (context.message.parts[0].text === 'wait') return go.promise;
      hold();
      const emit = () => context.emitArtifact({ parts: [{ text: 'x'.repeat(1000) }] });
      let emitted = 0;
      try {
        for (; emitted < 100; emitted++) emit();
      } catch (error) {
        full.resolve({ emitted, error });
      }
      assert.throws(() => context.emitStatus('working', 'more'), { code: 'RATE_LIMITED' });
      await context.flushed();
      emit();
      context.emitStatus('working', 'more');
      return undefined;
    },
    5000,
  );
  const waiting = (await send(url, 'wait', returnImmediately)).result.task;
  const filled = send(url, 'fill');
  const { emitted, error } = await full.promise;
  assert.equal(emitted, 4);
  assert.deepEqual([error.code, error.retryable], ['RATE_LIMITED', true]);
  const refused = await send(url, 'another');
  assert.equal(refused.error.data[0].reason, 'RATE_LIMITED');
  const before = agent.counters.outbox;
  const cancels = Array.from({ length: 5 }, () =>
    ask(url, V1.cancel, { id: waiting.id }, V1.headers),
  );
  while (agent.counters.outbox < before + 1) await new Promise(setImmediate);
  release();
  for (const { result } of await Promise.all(cancels))
    assert.equal(result.status.state, 'TASK_STATE_CANCELED');
  const { status, artifacts } = (await filled).result.task;
  assert.deepEqual([status.state, artifacts.length], ['TASK_STATE_COMPLETED', 5]);
  assert.equal(agent.counters.outbox, 0);
});

test('repeated cancels of a task take one place in the outbox', async (t) => {
  const go = deferred();
  const { agent, url, hold, release } = await serveHeld(t, () => go.promise, 5000);
  const { id } = (await send(url, 'go', returnImmediately)).result.task;
  hold();
  const asked = [];
  for (let i = 0; i < 10; i++) asked.push(ask(url, V1.cancel, { id }, V1.headers));
  // All of them have come when this answer is there.
  for (let i = 0; i < 10; i++) await ask(url, V1.get, { id }, V1.headers);
  assert.equal(agent.counters.outbox, 1);
  release();
  for (const { result } of await Promise.all(asked))
    assert.equal(result.status.state, 'TASK_STATE_CANCELED');
  go.resolve();
});

test('a stream of chunks waits until the outbox has room, and no chunk is lost', async (t) => {
  let most = 0;
  let served;
  const releaseWhenFull = async () => {
    served.hold();
    while (served.agent.counters.outbox < 4) await new Promise(setImmediate);
    served.release();
  };
  async function* execute() {
    for (let i = 0; i < 60; i++) {
      if (i % 20 === 3) void releaseWhenFull();
      yield `${i}`.padEnd(1000);
      most = Math.max(most, served.agent.counters.outbox);
    }
  }
  served = await serveHeld(t, execute, 5000);
  const { artifacts } = (await send(served.url, 'go')).result.task;
  assert.deepEqual(
    artifacts[0].parts.map(({ text }) => text.trim()).filter(Boolean),
    Array.from({ length: 60 }, (_, i) => `${i}`),
  );
  assert.equal(most, 4);
});

test('a cancel that is stored before the end of its task decides the one end that is stored', async (t) => {
  const go = deferred();
  let kept;
  const held = heldBackend((backend) => {
    kept = backend;
    return {};
  });
  const execute = () => go.promise.then(() => {});
  const { agent, url, close } = await serve(execute, {
    store: taskStore({ backend: held.backend }),
  });
  t.after(close);
  const { id } = (await send(url, 'go', returnImmediately)).result.task;
  held.hold();
  go.resolve();
  while (agent.counters.outbox !== 1) await new Promise(setImmediate);
  await storeWish(kept, id);
  held.release();
  while (agent.counters.owned) await new Promise(setImmediate);
  assert.deepEqual(await endsOf(kept, id), [['status', 'canceled', { outcome: 'finished' }]]);
});

test('an end decided by a cancel has the outcome known by then, once', async (t) => {
  const go = deferred();
  let kept;
  const held = heldBackend((backend) => {
    kept = backend;
    return {};
  });
  const execute = ({ signal }) => go.promise.then(() => signal.throwIfAborted());
  const { agent, url, close } = await serve(execute, {
    store: taskStore({ backend: held.backend }),
  });
  t.after(close);
  const { id } = (await send(url, 'go', returnImmediately)).result.task;
  const stream = await open(url, V1.resubscribe, { id }, V1.headers);
  await stream.next();
  held.hold();
  await storeWish(kept, id);
  // The end that the first cancel decides, and what becomes of the work after it.
  while (agent.counters.outbox !== 1) await new Promise(setImmediate);
  go.resolve();
  while (agent.counters.outbox !== 2) await new Promise(setImmediate);
  await storeWish(kept, id);
  held.release();
  while (agent.counters.owned) await new Promise(setImmediate);
  assert.deepEqual(await endsOf(kept, id), [['status', 'canceled', { outcome: 'stopped' }]]);
});

test('an end that the backend refuses for a while is stored when the backend accepts it', async (t) => {
  let refusals = 0;
  const { backend } = heldBackend((whole) => ({
    append: async (task, data, expected) => {
      if (data.includes('"completed"') && refusals++ < 2)
        throw new AbpError('UNAVAILABLE', 'Busy', { retryable: true });
      return whole.append(task, data, expected);
    },
  }));
  const { agent, url, close } = await serve(() => {}, { store: taskStore({ backend }) });
  t.after(close);
  const { id } = (await send(url, 'go', returnImmediately)).result.task;
  while (agent.counters.owned) await new Promise(setImmediate);
  assert.equal((await ask(url, V1.get, { id }, V1.headers)).result.status.state, DONE);
  assert.equal(refusals, 3);
});
