// Tasks in a store, on the backends that need nothing but Node; tests/fleet has NATS.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { memoryBackend, sqliteBackend, taskStore } from '../src/index.js';
import { AbpError } from 'abp-bridge';
import { useClock } from '../../../tests/support/clock.js';
import { portTransport } from 'abp-bridge/driver';
import { createTaskClient, createTaskServer } from '@abp-bridge/a2a';
import { testStore } from './contracts/store.js';
import { VERSIONS, ask, deferred, gist, open, post, serve } from '../../a2a/tests/support/a2a.js';

const folder = mkdtempSync(join(tmpdir(), 'abp-store-'));
after(() => rmSync(folder, { recursive: true }));
let files = 0;

testStore('memory', async () => memoryBackend());

if (await import('node:sqlite').catch(() => undefined))
  testStore('SQLite', () => sqliteBackend(join(folder, `${files++}`)));

test('without a store, draining refuses new tasks and keeps the streams of those that run', async (t) => {
  const go = deferred();
  const { agent, url, close } = await serve(() => go.promise.then(() => {}));
  t.after(close);
  const { headers, message, stream, send } = VERSIONS['1.0'];
  const running = await open(url, stream, { message: message('go') }, headers);
  await running.next();
  const drained = agent.drain();
  const body = { jsonrpc: '2.0', id: 1, method: send, params: { message: message('no') } };
  const refused = await post(url, JSON.stringify(body), headers);
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
  go.resolve();
  assert.equal(gist((await running.rest()).at(-1)), 'completed');
  await drained;
});

test('what still runs when draining has waited is aborted', async (t) => {
  const aborted = deferred();
  const { agent, url, close } = await serve((context) => {
    context.signal.addEventListener('abort', () => aborted.resolve());
    return new Promise(() => {});
  });
  t.after(close);
  const { headers, message, send } = VERSIONS['1.0'];
  const sent = ask(url, send, { message: message('go') }, headers);
  while (agent.counters.live !== 1) await new Promise(setImmediate);
  await agent.drain({ ms: 1 });
  await aborted.promise;
  assert.equal((await sent).result.task.status.state, 'TASK_STATE_CANCELED');
});

test('a store that is none is refused where it is given', () => {
  const card = { name: 'x' };
  const execute = () => {};
  for (const store of [{}, 1, { attach: 1 }])
    assert.throws(() => createTaskServer({ card, execute }, { store }), { code: 'INVALID_PARAMS' });
  const backend = memoryBackend();
  for (const options of [
    {},
    { backend: {} },
    { backend, term: -1 },
    { backend, maxOutbox: 'x' },
    { backend, onOrphan: 'x' },
  ])
    assert.throws(() => taskStore(options), { code: 'INVALID_PARAMS' });
  assert.throws(() => taskStore({ backend, terms: 1 }), { code: 'INVALID_PARAMS' });
});

// --- What waits to be stored ---------------------------------------------------------------------

const V1 = VERSIONS['1.0'];
const tell = (url, text, more) =>
  ask(url, V1.send, { message: V1.message(text), ...more }, V1.headers);
const later = { configuration: { returnImmediately: true } };
const [WORKING, DONE] = ['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED'];

/**
 * A backend whose records are held back when it is told to; `change` replaces some of its methods.
 */
function heldBackend(change = (_backend) => ({})) {
  const backend = memoryBackend();
  let gate = Promise.resolve();
  let open = () => {};
  const own = {
    append: async (...given) => {
      await gate;
      return backend.append(...given);
    },
    ...change(backend),
  };
  return {
    backend: { ...backend, ...own },
    hold: () => void (gate = new Promise((resolve) => (open = resolve))),
    release: () => open(),
  };
}

async function serveHeld(t, execute, maxOutbox) {
  const held = heldBackend();
  const store = taskStore({ backend: held.backend, maxOutbox });
  const served = await serve(execute, { store });
  t.after(held.release);
  t.after(served.close);
  return { ...held, ...served };
}

test('what waits to be stored is bounded: emitting throws, new tasks are refused, cancels are not', async (t) => {
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
  const waiting = (await tell(url, 'wait', later)).result.task;
  const filled = tell(url, 'fill');
  const { emitted, error } = await full.promise;
  assert.equal(emitted, 4);
  assert.deepEqual([error.code, error.retryable], ['RATE_LIMITED', true]);
  const refused = await tell(url, 'another');
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

test('however often a task is cancelled, that waits once', async (t) => {
  const go = deferred();
  const { agent, url, hold, release } = await serveHeld(t, () => go.promise, 5000);
  const { id } = (await tell(url, 'go', later)).result.task;
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

test('a cancel that is stored before the end of its task decides how it ends, and that is the only end', async (t) => {
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
  const { id } = (await tell(url, 'go', later)).result.task;
  held.hold();
  go.resolve();
  while (agent.counters.outbox !== 1) await new Promise(setImmediate);
  await storeWish(kept, id);
  held.release();
  while (agent.counters.owned) await new Promise(setImmediate);
  assert.deepEqual(await endsOf(kept, id), [['status', 'canceled', { outcome: 'finished' }]]);
});

test('an end that another cancel decides says what was learnt by then, once', async (t) => {
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
  const { id } = (await tell(url, 'go', later)).result.task;
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

test('a message that another process takes while this one prepares to is taken once, and both are answered', async (t) => {
  const noting = deferred();
  const gate = deferred();
  let runs = 0;
  let kept;
  const held = heldBackend((backend) => {
    kept = backend;
    const note = async (name, entry, seq) => {
      if (entry.tenant === 'task:') {
        noting.resolve();
        await gate.promise;
      }
      return backend.note(name, entry, seq);
    };
    return { note };
  });
  const [late, other] = await Promise.all(
    [held.backend, kept].map((backend) =>
      serve(() => void runs++, { store: taskStore({ backend }), repeats: true }),
    ),
  );
  t.after(() => Promise.all([late.close(), other.close()]));
  t.after(gate.resolve);
  const message = V1.message('go');
  const sent = tell(late.url, 'go', { message });
  await noting.promise;
  const { id } = (await tell(other.url, 'go', { message })).result.task;
  // It reads what the other has stored.
  await ask(late.url, V1.get, { id }, V1.headers);
  gate.resolve();
  assert.equal((await sent).result.task.id, id);
  assert.equal(runs, 1);
});

test('a stream of chunks waits until there is room, and none is lost', async (t) => {
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
  const { artifacts } = (await tell(served.url, 'go')).result.task;
  assert.deepEqual(
    artifacts[0].parts.map(({ text }) => text.trim()).filter(Boolean),
    Array.from({ length: 60 }, (_, i) => `${i}`),
  );
  assert.equal(most, 4);
});

test('a task whose entry may not be stored has not begun, and its sender can try again', async (t) => {
  let fails = 1;
  const { backend } = heldBackend((whole) => ({
    note: async (...given) => {
      if (fails-- <= 0) return whole.note(...given);
      throw new AbpError('UNACKNOWLEDGED', 'Silence');
    },
  }));
  const { url, close } = await serve(() => {}, { store: taskStore({ backend }) });
  t.after(close);
  const body = { jsonrpc: '2.0', id: 1, method: V1.send, params: { message: V1.message('go') } };
  const refused = await post(url, JSON.stringify(body), V1.headers);
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
  assert.equal((await refused.json()).error.data[0].reason, 'UNAVAILABLE');
  assert.equal((await tell(url, 'go')).result.task.status.state, 'TASK_STATE_COMPLETED');
});

test('an answer that may not be stored is refused, and its sender can try again', async (t) => {
  let refuses = false;
  const { backend } = heldBackend((whole) => ({
    append: async (...given) => {
      if (refuses) throw new AbpError('UNAVAILABLE', 'It may not be stored', { retryable: true });
      return whole.append(...given);
    },
  }));
  const did = [];
  const execute = ({ message, task, emitStatus }) => {
    did.push(message.parts[0].text);
    if (task.history.length === 1) emitStatus('input-required', 'And?');
  };
  const { url, close } = await serve(execute, { store: taskStore({ backend }) });
  t.after(close);
  const { id } = (await tell(url, 'go')).result.task;
  const answer = (text) => {
    const message = { ...V1.message(text), taskId: id };
    const body = { jsonrpc: '2.0', id: 1, method: V1.send, params: { message } };
    return post(url, JSON.stringify(body), V1.headers);
  };
  refuses = true;
  const refused = await answer('no');
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
  assert.equal((await refused.json()).error.message, 'It may not be stored');
  refuses = false;
  const { result } = await (await answer('yes')).json();
  assert.equal(result.task.status.state, 'TASK_STATE_COMPLETED');
  assert.deepEqual(did, ['go', 'yes']);
});

test('an end that the backend refuses for a while is stored when it takes it', async (t) => {
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
  const { id } = (await tell(url, 'go', later)).result.task;
  while (agent.counters.owned) await new Promise(setImmediate);
  assert.equal((await ask(url, V1.get, { id }, V1.headers)).result.status.state, DONE);
  assert.equal(refusals, 3);
});

test('where nobody knows whether a process has entered, nothing has begun, and it can be asked again', async (t) => {
  let silent = true;
  const { backend } = heldBackend((whole) => ({
    renew: async (name) => {
      if (silent) throw new AbpError('UNACKNOWLEDGED', 'Silence');
      return whole.renew(name);
    },
  }));
  const { agent, url, close } = await serve(() => {}, { store: taskStore({ backend }) });
  t.after(close);
  const body = { jsonrpc: '2.0', id: 1, method: V1.send, params: { message: V1.message('go') } };
  const refused = await post(url, JSON.stringify(body), V1.headers);
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
  // Where there are no statuses, the error says so.
  const { port1, port2 } = new MessageChannel();
  t.after(() => port1.close());
  t.after(agent.serve(portTransport(port1)));
  const client = createTaskClient(portTransport(port2), { version: '1.0' });
  await assert.rejects(client.get('id'), {
    code: 'UNAVAILABLE',
    message: 'Silence',
    retryable: true,
  });
  await assert.rejects(client.send('go'), { code: 'UNAVAILABLE', retryable: true });
  silent = false;
  assert.equal((await tell(url, 'go')).result.task.status.state, 'TASK_STATE_COMPLETED');
});

test('a renewal that fails is tried again, before the lease is lost', async (t) => {
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
  await tell(url, 'go');
  await renewed.promise;
  assert.equal(names.size, 1);
});

test('a task whose record is stored after its message was refused is shown all the same', async (t) => {
  const clock = useClock(t);
  const begun = deferred();
  const go = deferred();
  let first = true;
  const { backend } = heldBackend((whole) => ({
    append: async (...given) => {
      if (first) {
        first = false;
        begun.resolve(given[0]);
        await go.promise;
      }
      return whole.append(...given);
    },
  }));
  const { url, close } = await serve(() => {}, { store: taskStore({ backend }) });
  t.after(close);
  const refused = tell(url, 'go');
  const id = await begun.promise;
  // As long as a process hangs that loses its lease.
  clock.advance(10_001);
  assert.equal((await tell(url, 'another')).result.task.status.state, 'TASK_STATE_COMPLETED');
  assert.equal((await refused).error.data[0].reason, 'ABORTED');
  go.resolve();
  while ((await backend.read(id, 0)).length === 0) await new Promise(setImmediate);
  await new Promise(setImmediate);
  assert.equal((await ask(url, V1.get, { id }, V1.headers)).result?.id, id);
});

test('a message whose task was lost while it began can come again', async (t) => {
  let fails = true;
  const { backend } = heldBackend((whole) => ({
    append: async (task, data, expected) => {
      if (!fails) return whole.append(task, data, expected);
      fails = false;
      // Another record is there, of whoever took the task.
      const other = JSON.stringify({ v: 1, id: 'x', by: 'other', epoch: 9, e: [] });
      await whole.append(task, other, 0);
      throw new AbpError('CONFLICT', 'Another record came first');
    },
  }));
  const { url, close } = await serve(() => {}, { store: taskStore({ backend }) });
  t.after(close);
  const body = { jsonrpc: '2.0', id: 1, method: V1.send, params: { message: V1.message('go') } };
  const headers = { ...V1.headers, 'a2a-extensions': 'urn:abp-bridge:a2a:repeats' };
  const refused = await post(url, JSON.stringify(body), headers);
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
  const plain = { ...body, params: { message: V1.message('go') } };
  fails = true;
  const lost = await post(url, JSON.stringify(plain), V1.headers);
  assert.equal((await lost.json()).error.data[0].reason, 'ABORTED');
});

test('a message whose task others begin while it waits is answered with that', async (t) => {
  const clock = useClock(t);
  const waits = deferred();
  const go = deferred();
  let held = false;
  const { backend } = heldBackend((whole) => ({
    renew: async (name) => {
      if (held) {
        waits.resolve();
        await go.promise;
      }
      return whole.renew(name);
    },
  }));
  let runs = 0;
  const own = async () => {
    const served = await serve(() => void runs++, { store: taskStore({ backend }) });
    t.after(served.close);
    return served.url;
  };
  const [one, two] = [await own(), await own()];
  for (const url of [one, two]) await ask(url, V1.get, { id: 'x' }, V1.headers);
  const message = V1.message('go');
  const headers = { ...V1.headers, 'a2a-extensions': 'urn:abp-bridge:a2a:repeats' };
  const post = (url) => ask(url, V1.send, { message }, headers);
  // Its lease has run out, and is begun anew.
  clock.advance(10_001);
  held = true;
  const waiting = post(two);
  await waits.promise;
  held = false;
  const { id } = (await post(one)).result.task;
  assert.equal((await ask(two, V1.get, { id }, V1.headers)).result.id, id);
  go.resolve();
  assert.equal((await waiting).result?.task.id, id);
  assert.equal(runs, 1);
});

/**
 * A task that asks for something, and answers to it that wait while they are prepared, before their
 * process enlists.
 * @param {number} count of answers that wait
 */
function heldAnswers(count) {
  const held = deferred();
  const go = deferred();
  const did = [];
  let left = 0;
  const { backend } = heldBackend((whole) => ({
    note: async (...given) => {
      if (left > 0 && given[1].tenant.startsWith('duties:')) {
        if (--left === 0) held.resolve();
        await go.promise;
      }
      return whole.note(...given);
    },
  }));
  const execute = ({ message: { parts }, emitStatus }) => {
    did.push(parts[0].text);
    if (parts[0].text === 'go') emitStatus('input-required');
  };
  return { backend, execute, did, held: held.promise, hold: () => (left = count), go: go.resolve };
}

test('an answer that another process takes while it is prepared here is answered with its task', async (t) => {
  const { backend, execute, did, held, hold, go } = heldAnswers(2);
  const urls = [];
  for (let i = 0; i < 2; i++) {
    const served = await serve(execute, { store: taskStore({ backend }) });
    t.after(served.close);
    urls.push(served.url);
  }
  const headers = { ...V1.headers, 'a2a-extensions': 'urn:abp-bridge:a2a:repeats' };
  const { id } = (await tell(urls[0], 'go')).result.task;
  const post = (url, message) => ask(url, V1.send, { message }, headers);
  const message = { ...V1.message('yes'), taskId: id };
  hold();
  const waiting = [message, { ...V1.message('no'), taskId: id }].map((one) => post(urls[1], one));
  await held;
  assert.equal((await post(urls[0], message)).result.task.status.state, 'TASK_STATE_COMPLETED');
  go();
  // Another answer is refused.
  const [same, other] = await Promise.all(waiting);
  assert.equal(same.result?.task.status.state, 'TASK_STATE_COMPLETED');
  assert.equal(other.error?.code, -32004);
  assert.deepEqual(did, ['go', 'yes']);
});

test('of two answers that are prepared at once, one is taken, and its sender is told so', async (t) => {
  const { backend, execute, did, held, hold, go } = heldAnswers(2);
  const { agent, url, close } = await serve(execute, { store: taskStore({ backend }) });
  t.after(close);
  const { id } = (await tell(url, 'go')).result.task;
  while (agent.counters.owned) await new Promise(setImmediate);
  hold();
  const answers = ['one', 'two'].map((text) =>
    ask(url, V1.send, { message: { ...V1.message(text), taskId: id } }, V1.headers),
  );
  await held;
  go();
  const told = await Promise.all(answers);
  const codes = told.map(({ error }) => error?.code ?? 0);
  assert.deepEqual(
    codes.sort((a, b) => a - b),
    [-32004, 0],
  );
  assert.equal(did.length, 2);
});

test('a list shows under its state what was stored before it was asked for', async (t) => {
  const gate = deferred();
  const { backend } = heldBackend((whole) => ({
    note: async (...given) => {
      if (given[1].state === 'completed') await gate.promise;
      return whole.note(...given);
    },
  }));
  const { url, close } = await serve(() => {}, { store: taskStore({ backend }) });
  t.after(close);
  const { id } = (await tell(url, 'go')).result.task;
  const listed = ask(url, V1.list, { status: DONE }, V1.headers);
  // What need not wait for the entry is answered by then.
  for (let i = 0; i < 10; i++) await ask(url, V1.get, { id }, V1.headers);
  gate.resolve();
  const { tasks, totalSize } = (await listed).result;
  assert.deepEqual([tasks.map((task) => task.id), totalSize], [[id], 1]);
});

// --- What is left behind -------------------------------------------------------------------------

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
  const { id } = (await tell(url, 'go')).result.task;
  while (agent.counters.owned) await new Promise(setImmediate);
  t.mock.timers.setTime(asked + 3_600_001);
  let state;
  do ({ state } = (await ask(url, V1.get, { id }, V1.headers)).result.status);
  while (state === 'TASK_STATE_INPUT_REQUIRED');
  assert.equal(state, 'TASK_STATE_CANCELED');
  assert.equal(refusals, 3);
});

test('of a process that is gone, what only a later version can read is looked at once', async (t) => {
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
  ({ id } = (await tell(first.url, 'go', later)).result.task);
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
  await tell(url, 'go');
  const [kept] = await backend.objects('');
  await backend.put('never/1/begun', new Uint8Array([1]));
  clock.advance(30 * 60_000);
  await backend.put('young/1/object', new Uint8Array([1]));
  clock.advance(31 * 60_000);
  while ((await backend.objects('')).includes('never/1/begun')) await new Promise(setImmediate);
  assert.deepEqual(await backend.objects(''), [kept, 'young/1/object'].sort());
});

test('a clock that was ahead keeps no task from being deleted later', async (t) => {
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
  const { id } = (await tell(url, 'go')).result.task;
  t.mock.timers.setTime(begun + 2.5 * HOUR);
  while ((await ask(url, V1.get, { id }, V1.headers)).result) await new Promise(setImmediate);
  assert.deepEqual(await backend.read(id, 0), []);
});

test('a message can come again whose task was given up before it began, and what was late of it is refused', async (t) => {
  let refused;
  const { backend } = heldBackend((whole) => ({
    append: async (...given) => {
      if (refused) return whole.append(...given);
      refused = given;
      throw new AbpError('UNAVAILABLE', 'Away', { retryable: true });
    },
  }));
  const store = () => ({ store: taskStore({ backend, term: 500 }) });
  const first = await serve(() => {}, store());
  const headers = { ...V1.headers, 'a2a-extensions': 'urn:abp-bridge:a2a:repeats' };
  const params = { message: V1.message('go') };
  assert.ok((await ask(first.url, V1.send, params, headers)).error);
  const [id, data] = refused;
  await first.close();
  const second = await serve(() => {}, store());
  t.after(second.close);
  // It has seen to what the first one left.
  while ((await backend.leases(10)).length > 1) await new Promise(setImmediate);
  await assert.rejects(backend.append(id, data, 0), { code: 'CONFLICT' });
  assert.equal((await ask(second.url, V1.get, { id }, V1.headers)).error.code, -32001);
  const { task } = (await ask(second.url, V1.send, params, headers)).result;
  assert.deepEqual([task.id, task.status.state], [id, 'TASK_STATE_COMPLETED']);
});

test('a task whose lease runs out while it is prepared does not begin', async (t) => {
  const clock = useClock(t);
  let id = '';
  const { backend } = heldBackend((whole) => ({
    note: async (...given) => {
      await whole.note(...given);
      if (id || !given[1].tenant.startsWith('duties:')) return;
      id = given[1].data;
      clock.advance(10_001);
    },
  }));
  const store = taskStore({ backend });
  const { url, close } = await serve(() => {}, { store });
  t.after(close);
  assert.equal((await tell(url, 'go')).error.data[0].reason, 'UNAVAILABLE');
  assert.deepEqual(await backend.read(id, 0), []);
  assert.ok((await tell(url, 'go')).result);
});

// --- What is kept beside the log -----------------------------------------------------------------

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

test('a task of which something cannot be read is refused to who asks, at once, and shown to who watches when it can', async (t) => {
  const go = deferred();
  const end = deferred();
  const { owner, other, state } = await serveApart(t, 60_000, async ({ emitArtifact }) => {
    await go.promise;
    emitArtifact({ artifactId: 'long', parts: [{ text: LONG }] });
    await end.promise;
  });
  const { id } = (await tell(owner.url, 'go', later)).result.task;
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
  const told = await watched.rest();
  const artifact = told.find(({ result }) => result.artifactUpdate)?.result.artifactUpdate.artifact;
  assert.equal(artifact.parts[0].text, LONG);
  assert.equal(gist(told.at(-1)), 'completed');
  const { result } = await ask(other.url, V1.get, { id }, V1.headers);
  assert.deepEqual([result.status.state, result.artifacts[0].parts[0].text], [DONE, LONG]);
});

for (const comesBack of [true, false])
  test(`a process that cannot read what it is to take over ${comesBack ? 'takes it when it can' : 'can be closed'}`, async (t) => {
    const emitted = deferred();
    const { owner, other, state } = await serveApart(t, 3000, async ({ emitArtifact, flushed }) => {
      emitArtifact({ parts: [{ text: LONG }] });
      await flushed();
      emitted.resolve();
      await new Promise(() => {});
    });
    const { id } = (await tell(owner.url, 'go', later)).result.task;
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

test('a cancel of which nobody says whether it is stored, nor its owner answers, is refused in the end', async (t) => {
  const backend = memoryBackend();
  const silenced =
    (name, code) =>
    async (...given) => {
      if (silences) throw new AbpError(code, 'No answer');
      return backend[name](...given);
    };
  const silent = {
    ...backend,
    append: silenced('append', 'UNACKNOWLEDGED'),
    ask: silenced('ask', 'TIMEOUT'),
  };
  let silences = false;
  const end = deferred();
  const execute = () => end.promise.then(() => {});
  const owner = await serve(execute, { store: taskStore({ backend }) });
  const other = await serve(execute, { store: taskStore({ backend: silent }) });
  t.after(() => Promise.all([owner.close(), other.close()]));
  const { id } = (await tell(owner.url, 'go', later)).result.task;
  silences = true;
  const { error } = await ask(other.url, V1.cancel, { id }, V1.headers);
  assert.equal(error.data[0].reason, 'UNAVAILABLE');
  silences = false;
  const { result } = await ask(other.url, V1.cancel, { id }, V1.headers);
  assert.equal(result.status.state, 'TASK_STATE_CANCELED');
  end.resolve();
});
