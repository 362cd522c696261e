// Messages whose task may not be stored, or is taken by another process: nothing begins twice, and
// each sender is answered.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { memoryBackend, taskStore } from '../src/index.js';
import { AbpError } from 'abp-bridge';
import { useClock } from '../../../tests/support/clock.js';
import { portTransport } from 'abp-bridge/driver';
import { createTaskClient } from '@abp-bridge/a2a';
import { ask, deferred, post, serve } from '../../a2a/tests/support/a2a.js';
import { heldBackend } from './support/held-backend.js';
import { V1, send, returnImmediately } from './contracts/store/processes.js';

/**
 * A task that asks for something, and answers to it that wait while they are prepared, before their
 * process enlists.
 * @param {number} count of answers that wait
 */
function heldAnswers(count) {
  const held = deferred();
  const go = deferred();
  const executed = [];
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
    executed.push(parts[0].text);
    if (parts[0].text === 'go') emitStatus('input-required');
  };
  return {
    backend,
    execute,
    executed,
    held: held.promise,
    hold: () => (left = count),
    go: go.resolve,
  };
}

test('a message that two processes prepare begins one task, and both answer with it', async (t) => {
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
  const sent = send(late.url, 'go', { message });
  await noting.promise;
  const { id } = (await send(other.url, 'go', { message })).result.task;
  // It reads what the other has stored.
  await ask(late.url, V1.get, { id }, V1.headers);
  gate.resolve();
  assert.equal((await sent).result.task.id, id);
  assert.equal(runs, 1);
});

test('a task whose entry may not be stored does not begin, and its sender can try again', async (t) => {
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
  assert.equal((await send(url, 'go')).result.task.status.state, 'TASK_STATE_COMPLETED');
});

test('an answer to a question that may not be stored is refused, and its sender can try again', async (t) => {
  let refuses = false;
  const { backend } = heldBackend((whole) => ({
    append: async (...given) => {
      if (refuses) throw new AbpError('UNAVAILABLE', 'It may not be stored', { retryable: true });
      return whole.append(...given);
    },
  }));
  const executed = [];
  const execute = ({ message, task, emitStatus }) => {
    executed.push(message.parts[0].text);
    if (task.history.length === 1) emitStatus('input-required', 'And?');
  };
  const { url, close } = await serve(execute, { store: taskStore({ backend }) });
  t.after(close);
  const { id } = (await send(url, 'go')).result.task;
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
  assert.deepEqual(executed, ['go', 'yes']);
});

test('while it is unknown whether the lease is stored, every request is refused as UNAVAILABLE', async (t) => {
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
  assert.equal((await send(url, 'go')).result.task.status.state, 'TASK_STATE_COMPLETED');
});

test('a task whose record is stored after its message was refused is shown', async (t) => {
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
  const refused = send(url, 'go');
  const id = await begun.promise;
  // As long as a process hangs that loses its lease.
  clock.advance(10_001);
  assert.equal((await send(url, 'another')).result.task.status.state, 'TASK_STATE_COMPLETED');
  assert.equal((await refused).error.data[0].reason, 'ABORTED');
  go.resolve();
  while ((await backend.read(id, 0)).length === 0) await new Promise(setImmediate);
  await new Promise(setImmediate);
  assert.equal((await ask(url, V1.get, { id }, V1.headers)).result?.id, id);
});

test('a message whose task is lost while it begins is refused so that it can come again', async (t) => {
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

test('a message whose task another process begins meanwhile is answered with that task', async (t) => {
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

test('an answer that another process takes meanwhile is answered with its task; another answer is refused', async (t) => {
  const { backend, execute, executed, held, hold, go } = heldAnswers(2);
  const urls = [];
  for (let i = 0; i < 2; i++) {
    const served = await serve(execute, { store: taskStore({ backend }) });
    t.after(served.close);
    urls.push(served.url);
  }
  const headers = { ...V1.headers, 'a2a-extensions': 'urn:abp-bridge:a2a:repeats' };
  const { id } = (await send(urls[0], 'go')).result.task;
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
  assert.deepEqual(executed, ['go', 'yes']);
});

test('one of two answers that are prepared at once is taken', async (t) => {
  const { backend, execute, executed, held, hold, go } = heldAnswers(2);
  const { agent, url, close } = await serve(execute, { store: taskStore({ backend }) });
  t.after(close);
  const { id } = (await send(url, 'go')).result.task;
  while (agent.counters.owned) await new Promise(setImmediate);
  hold();
  const answers = ['one', 'two'].map((text) =>
    ask(url, V1.send, { message: { ...V1.message(text), taskId: id } }, V1.headers),
  );
  await held;
  go();
  const results = await Promise.all(answers);
  const codes = results.map(({ error }) => error?.code ?? 0);
  assert.deepEqual(
    codes.sort((a, b) => a - b),
    [-32004, 0],
  );
  assert.equal(executed.length, 2);
});

test('a message can come again after its task was given up, and a late record of the task is refused', async (t) => {
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
  assert.equal((await send(url, 'go')).error.data[0].reason, 'UNAVAILABLE');
  assert.deepEqual(await backend.read(id, 0), []);
  assert.ok((await send(url, 'go')).result);
});

test('a cancel is refused if neither the backend nor the owner of the task answers', async (t) => {
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
  const { id } = (await send(owner.url, 'go', returnImmediately)).result.task;
  silences = true;
  const { error } = await ask(other.url, V1.cancel, { id }, V1.headers);
  assert.equal(error.data[0].reason, 'UNAVAILABLE');
  silences = false;
  const { result } = await ask(other.url, V1.cancel, { id }, V1.headers);
  assert.equal(result.status.state, 'TASK_STATE_CANCELED');
  end.resolve();
});
