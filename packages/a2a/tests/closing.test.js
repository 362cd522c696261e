// An agent that is closed, or begins to, at any moment of a message that is on its way: nothing is
// begun that nobody can ask for or cancel any more.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { memoryBackend, pushNotifications, taskStore } from '@abp-bridge/a2a-store';
import { createTaskServer } from '../src/index.js';
import {
  CARD,
  VERSIONS,
  servingUntilEnd,
  updateOf,
  ask,
  deferred,
  open,
  post,
  serve,
} from './support/a2a.js';
import { stepwise, beginTask } from './support/stepwise.js';

const served = servingUntilEnd();
const V1 = VERSIONS['1.0'];
const URI = 'urn:abp-bridge:a2a:repeats';
const turn = () => new Promise(setImmediate);

/** Microtasks, then turns: each is a moment. */
async function moments(count) {
  for (let i = 0; i < Math.min(count, 60); i++) await undefined;
  for (let i = 60; i < count; i++) await turn();
}

/** Sends a message, and has `end` end the agent after so many moments. */
async function sent(count, options, end, reply) {
  const runs = [];
  const execute = ({ signal }) =>
    new Promise((_resolve, reject) => {
      runs.push(signal);
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  const agent = createTaskServer({ card: CARD, execute, reply }, options);
  const message = V1.message('go');
  const configuration = {
    returnImmediately: true,
    ...(options.push && { taskPushNotificationConfig: { url: 'http://127.0.0.1:1/', token: 't' } }),
  };
  const body = { jsonrpc: '2.0', id: 1, method: V1.send, params: { message, configuration } };
  const headers = { 'content-type': 'application/json', ...V1.headers, 'a2a-extensions': URI };
  const request = new Request('http://agent.example/', {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  // A name that is too long for a key: what stands for it is made in another thread.
  const answer = agent.fetch(request, { user: { claims: 'x'.repeat(2000) } });
  await moments(count);
  const ending = end(agent);
  const { error, result } = await (await answer).json();
  await ending;
  await turn();
  return { runs, error, task: result?.task };
}

/** A store whose index takes its time. */
function slowStore() {
  const backend = memoryBackend();
  const { note } = backend;
  backend.note = async function (...given) {
    for (let i = 0; i < 3; i++) await turn();
    return note.apply(this, given);
  };
  return taskStore({ backend });
}

const STORES = {
  'in memory': () => ({}),
  'with push notifications': () => ({ push: pushNotifications({ allowPrivate: true }) }),
  'in a store': () => ({ store: taskStore({ backend: memoryBackend() }) }),
  'in a slow store': () => ({ store: slowStore() }),
};

for (const [where, optionsOf] of Object.entries(STORES))
  describe(where, () => {
    for (const [how, end] of Object.entries({
      closed: (agent) => agent.close(),
      drained: (agent) => agent.drain({ ms: 0 }),
    }))
      test(`an agent that is ${how} at any moment leaves no executor without a signal`, async () => {
        const ends = new Set();
        // On a busy machine a message takes more moments to begin its task.
        for (let count = 0; count < 75 || !ends.has('begun'); count++) {
          const { runs, error, task } = await sent(count, optionsOf(), end);
          ends.add(error ? 'refused' : 'begun');
          assert.equal(Boolean(error), !task);
          if (error) assert.deepEqual(runs, [], `after ${count} moments: refused, and run`);
          for (const signal of runs)
            assert.ok(signal.aborted, `after ${count} moments: it works on`);
        }
        assert.deepEqual([...ends].sort(), ['begun', 'refused']);
      });
  });

test('a message that is thought about while the agent begins to drain begins no task', async () => {
  let thinks;
  const thinking = new Promise((resolve) => (thinks = resolve));
  let answer;
  const answered = new Promise((resolve) => (answer = resolve));
  const works = [];
  const agent = createTaskServer({
    card: CARD,
    reply: ({ message }) => {
      if (message.parts[0].text !== 'think') return undefined;
      thinks();
      return answered;
    },
    execute: ({ message, signal }) =>
      new Promise((_resolve, reject) => {
        works.push(message.parts[0].text);
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
  });
  const ask = async (text) => {
    const message = V1.message(text);
    const params = { message, configuration: { returnImmediately: true } };
    const response = await agent.fetch(
      new Request('http://agent.example/', {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...V1.headers },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: V1.send, params }),
      }),
    );
    return [response.status, (await response.json()).error?.message];
  };
  await ask('work');
  const thought = ask('think');
  await thinking;
  const drained = agent.drain({ ms: 60_000 });
  answer(undefined);
  assert.deepEqual(await thought, [503, 'The agent is closing']);
  agent.close();
  await drained;
  assert.deepEqual(works, ['work']);
});

test('an agent that is closed refuses what comes then, as one that drains does, and says that it can be tried elsewhere', async () => {
  for (const optionsOf of [STORES['in memory'], STORES['in a store']]) {
    const agent = createTaskServer({ card: CARD, execute: () => {} }, optionsOf());
    agent.close();
    const request = new Request('http://agent.example/', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...V1.headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: V1.list, params: {} }),
    });
    const response = await agent.fetch(request);
    assert.deepEqual([response.status, response.headers.get('retry-after')], [503, '1']);
    assert.equal((await response.json()).error.message, 'The agent is closing');
  }
});

test('an agent that closes cancels its tasks and ends their streams', async () => {
  const script = stepwise();
  const { url, agent } = await served(script.execute);
  const tasks = [await beginTask(url, script, '1.0'), await beginTask(url, script, 'gem')];
  agent.close();
  for (const { stream, run } of tasks) {
    assert.deepEqual((await stream.rest()).map(updateOf), ['canceled']);
    assert.equal(run.ctx.signal.aborted, true);
    run.gate.resolve();
  }
});

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
  assert.equal(updateOf((await running.rest()).at(-1)), 'completed');
  await drained;
});

test('tasks that still run when drain() has waited long enough are aborted', async (t) => {
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
