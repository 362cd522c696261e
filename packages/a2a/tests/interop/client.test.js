/**
 * Our client against the real SDK's server, in 1.0 and through its compatibility with 0.3; and
 * against it with our tasks behind it.
 */
import assert from 'node:assert/strict';
import { test as nodeTest } from 'node:test';
import { createTaskClient } from '../../src/index.js';
import { startSdkAgent } from '../support/a2a-sdk.js';
import { stateOrKind } from '../support/clients.js';

/** What a peer is waited for may never come: a test that waits fails. */
const test = (name, run) => nodeTest(name, { timeout: 600_000 }, run);

const VERSIONS = ['1.0', '0.3', 'HTTP+JSON'];

/** An agent, and our client of it: of 1.0 found by its card in both bindings, of 0.3 told. */
async function pairOf(t, version, options, clientOptions) {
  const agent = await startSdkAgent({ ...options, rest: version === 'HTTP+JSON' });
  t.after(() => agent.close());
  const client =
    version !== '0.3'
      ? createTaskClient(agent.url, clientOptions)
      : createTaskClient(`${agent.url}/a2a`, { version, ...clientOptions });
  return { agent, client };
}

/** Reads a stream to its end, and calls `at` when it shows so many artifacts. */
async function read(stream, count, at) {
  const states = [];
  let artifacts = 0;
  for await (const event of stream) {
    if (event.kind !== 'artifact') states.push(stateOrKind(event));
    else if (++artifacts === count) await at();
  }
  return states;
}

const BEHIND = [undefined, { grace: 30_000 }];
for (const [version, behind] of VERSIONS.flatMap((one) => BEHIND.map((other) => [one, other]))) {
  const whose = behind ? ', our tasks behind it' : '';
  const it = (what, run) => test(`${version}${whose}: ${what}`, run);
  const pair = (t, version, options, clientOptions) =>
    pairOf(t, version, { ...options, behind }, clientOptions);

  for (const policy of ['immediate', 'cooperative']) {
    it(`three tasks, one cancelled by its signal, executor ${policy}`, async (t) => {
      const { agent, client } = await pair(t, version, { policy });
      const stop = new AbortController();
      const streams = ['A', 'B', 'C'].map((name) =>
        client.subscribe(name, name === 'B' ? { signal: stop.signal } : {}),
      );
      const states = await Promise.all(
        streams.map((stream, i) => read(stream, i === 1 ? 3 : 0, () => stop.abort())),
      );
      assert.deepEqual(states, [
        ['submitted', 'working', 'completed'],
        ['submitted', 'working', 'canceled'],
        ['submitted', 'working', 'completed'],
      ]);
      const { steps, cancels } = agent.executor;
      assert.equal(cancels, 1);
      assert.ok(steps.B < 10, `${steps.B} steps`);
      assert.deepEqual([steps.A, steps.C], [10, 10]);
      for (const { task } of streams) {
        const stored = await client.get(task.id);
        assert.equal(stored.status.state, task.status.state);
        // What the stream showed is what the agent has: no artifact twice, none lost.
        assert.deepEqual(stored.artifacts, task.artifacts);
      }
    });
  }

  it('a signal aborted before the id is known cancels the task', async (t) => {
    const { agent, client } = await pair(t, version);
    await client.list().catch(() => {}); // knows its agent now
    const stop = new AbortController();
    const stream = client.subscribe('A', { signal: stop.signal });
    const first = stream.next();
    // The request goes out in the next turn, and its answer cannot come before the one after.
    await new Promise(setImmediate);
    stop.abort();
    assert.equal(stateOrKind((await first).value), 'submitted');
    assert.equal((await read(stream)).at(-1), 'canceled');
    assert.ok(agent.executor.steps.A < 10);
  });

  it('a cancel that the executor ignores: the task completes, and the stream says so', async (t) => {
    const { agent, client } = await pair(t, version, { policy: 'ignore' });
    const stop = new AbortController();
    const stream = client.subscribe('A', { signal: stop.signal });
    const states = await read(stream, 2, () => stop.abort());
    assert.equal(states.at(-1), 'completed');
    assert.equal(agent.executor.steps.A, 10);
    assert.equal(stream.task.artifacts.length, 10);
  });

  it('a cancel that the executor ignores for longer than the grace period: the stream says that', async (t) => {
    const options = { policy: 'ignore', step: 200 };
    const { client } = await pair(t, version, options, { limits: { grace: 50 } });
    const stop = new AbortController();
    const stream = client.subscribe('A', { signal: stop.signal });
    await assert.rejects(
      read(stream, 1, () => stop.abort()),
      { code: 'TIMEOUT' },
    );
  });

  it('an unknown task, and no task: the errors have names and codes', async (t) => {
    const { client } = await pair(t, version);
    for (const ask of ['get', 'cancel']) {
      await assert.rejects(
        client[ask]('none'),
        ({ code, details }) => code === 'TASK_NOT_FOUND' && details.code === -32001,
      );
    }
    await assert.rejects(client.cancel(''), { code: 'INVALID_PARAMS' });
    const nobody = client.resubscribe('none');
    await assert.rejects(nobody.next(), { code: 'TASK_NOT_FOUND' });
  });

  it('a task that completed: cancelling it is refused, subscribing to it too', async (t) => {
    const { client } = await pair(t, version, { steps: 1, step: 1 });
    const { id, status } = await client.send('A');
    assert.equal(status.state, 'completed');
    await assert.rejects(client.cancel(id), { code: 'TASK_NOT_CANCELABLE' });
    await assert.rejects(client.resubscribe(id).next(), { code: 'UNSUPPORTED_OPERATION' });
    assert.equal((await client.get(id)).status.state, 'completed');
  });

  it('two cancels at once and a third: canceled each time', async (t) => {
    const { client } = await pair(t, version, { policy: 'cooperative' });
    const stream = client.subscribe('A');
    let cancels;
    await read(stream, 2, () => {
      cancels = [client.cancel(stream.task.id), client.cancel(stream.task.id)];
    });
    cancels.push(client.cancel(stream.task.id));
    assert.deepEqual((await Promise.all(cancels)).map(stateOrKind), Array(3).fill('canceled'));
  });

  it('a second stream of a task shows its state so far, and the same end', async (t) => {
    const { client } = await pair(t, version);
    const stream = client.subscribe('A');
    let second;
    const states = await read(stream, 3, async () => {
      const again = client.resubscribe(stream.task.id);
      const { value } = await again.next();
      assert.equal(value.kind, 'task');
      second = { again, states: read(again, 2, () => client.cancel(stream.task.id)) };
    });
    assert.equal(states.at(-1), 'canceled');
    assert.deepEqual(await second.states, ['canceled']);
    assert.deepEqual(second.again.task.artifacts, stream.task.artifacts);
  });

  it('leaving the stream cancels nothing: the task completes', async (t) => {
    const { agent, client } = await pair(t, version);
    const stream = client.subscribe('A');
    for await (const event of stream) if (event.kind === 'artifact') break;
    const states = await read(client.resubscribe(stream.task.id));
    assert.equal(states.at(-1), 'completed');
    assert.deepEqual([agent.executor.cancels, agent.executor.steps.A], [0, 10]);
  });

  it('a task that needs input ends the stream, and a message to it goes on', async (t) => {
    const { client } = await pair(t, version, { steps: 2, step: 1 });
    const first = client.subscribe('ask');
    assert.equal((await read(first)).at(-1), 'input-required');
    const { id: taskId, contextId } = first.task;
    const more = client.subscribe({ parts: [{ text: 'ask' }], taskId, contextId });
    // The agent begins with the task as it was before the message.
    assert.deepEqual(await read(more), ['input-required', 'working', 'completed']);
    assert.equal(more.task.id, taskId);
  });

  it('a send with a signal is cancelled as a stream is', async (t) => {
    const { client } = await pair(t, version);
    const stop = new AbortController();
    const sent = client.send('A', { signal: stop.signal });
    // Another task's third step shows that this one has begun.
    await read(client.subscribe('B'), 3, () => stop.abort());
    assert.equal((await sent).status.state, 'canceled');
  });

  it('an agent that answers with a message', async (t) => {
    const { client } = await pair(t, version);
    assert.deepEqual((await client.send('say')).parts[0].text, 'said');
    const stream = client.subscribe('say');
    assert.deepEqual(await read(stream), ['message']);
    assert.equal(stream.message.parts[0].text, 'said');
  });

  it('a task that failed', async (t) => {
    const { client } = await pair(t, version, { steps: 1, step: 1, end: 4 });
    assert.equal((await read(client.subscribe('A'))).at(-1), 'failed');
  });
}

test('1.0: tasks are listed', async (t) => {
  const { client } = await pairOf(t, '1.0', { steps: 1, step: 1 });
  const { id } = await client.send('A');
  const { tasks } = await client.list();
  assert.deepEqual(
    tasks.map((task) => [task.id, task.status.state]),
    [[id, 'completed']],
  );
});

test('0.3: tasks cannot be listed, and nothing is sent', async (t) => {
  const { client } = await pairOf(t, '0.3');
  await assert.rejects(client.list(), { code: 'NOT_SUPPORTED' });
});

test('1.0: an agent without streams: a send with a signal is cancelled once its task is known', async (t) => {
  const stop = new AbortController();
  const { client } = await pairOf(
    t,
    '1.0',
    { streaming: false, steps: 3 },
    {
      fetch: (url, init) => {
        const answer = fetch(url, init);
        if (String(init.body).includes('"SendMessage"')) stop.abort();
        return answer;
      },
    },
  );
  await assert.rejects(client.subscribe('A').next(), { code: 'UNSUPPORTED_OPERATION' });
  const sent = client.send('A', {
    signal: stop.signal,
    configuration: { returnImmediately: true },
  });
  assert.equal((await sent).status.state, 'canceled');
});
