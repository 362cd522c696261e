// Recorded conversations with other agents, replayed to the client.
import assert from 'node:assert/strict';
import { createTaskClient } from '../src/index.js';

import { recording, replay } from './support/a2a-replay.js';
import { stateOrKind, test } from './support/clients.js';

/**
 * Exchanges the lines of the cancel's answer and of the final event that follows it, or the other
 * way round.
 */
function finalFirst(lines) {
  const cancel = lines.find((line) => line.raw?.match(/ancel(Task)?"/) && line.dir === 'c2s').conn;
  const answer = lines.filter((line) => line.conn === cancel && line.dir === 's2c');
  const final = lines.find(
    ({ ev, raw }) => ev === 'sse' && /"(TASK_STATE_CANCELED|canceled)"/.test(raw),
  );
  const others = lines.filter((line) => !answer.includes(line));
  others.splice(others.indexOf(final) + 1, 0, ...answer);
  return others;
}

for (const [name, options, steps, counts, late] of [
  ['ruby-three-concurrent', {}, 3, [12, 5, 12], 1],
  ['ruby-three-concurrent-repo', {}, 3, [12, 5, 12], 0],
  ['three-concurrent', {}, 3, [13, 6, 13], 0],
  ['three-concurrent-v03', { version: '0.3' }, 3, [13, 6, 13], 0],
]) {
  for (const order of ['as recorded', 'final event first']) {
    test(`recording ${name}, ${order}: completed, canceled, completed`, async (t) => {
      const lines = recording(name);
      const agent = await replay(order === 'as recorded' ? lines : finalFirst(lines), {
        bytes: 40,
      });
      t.after(() => agent.close());
      const path = options.version ? 'a2a' : '';
      const dropped = [];
      const onDropped = (event) => dropped.push(event.kind);
      const client = createTaskClient(agent.url + path, { ...options, onDropped });
      const stop = new AbortController();
      const subscription = async (label) => {
        const stream = client.subscribe(
          `task ${label}`,
          label === 'B' ? { signal: stop.signal } : {},
        );
        let count = 0;
        let done = 0;
        for await (const event of stream) {
          count++;
          const message = event.status?.text;
          if (event.kind === 'artifact' || message?.startsWith('Step ')) done++;
          if (label === 'B' && done === steps) stop.abort();
        }
        return { count, task: stream.task };
      };
      const results = await Promise.all(['A', 'B', 'C'].map(subscription));
      const states = [];
      for (const { task } of results) states.push((await client.get(task.id)).status.state);
      await agent.played;
      assert.deepEqual(states, ['completed', 'canceled', 'completed']);
      assert.deepEqual(
        results.map(({ task }) => task.status.state),
        states,
      );
      assert.deepEqual(
        results.map(({ count }) => count),
        counts,
      );
      assert.equal(agent.requests.filter(({ method }) => /cancel/i.test(method)).length, 1);
      // The recording's last line on B's stream was played long before A and C ended.
      assert.deepEqual(dropped, Array(late).fill('artifact'));
      assert.equal(client.dropped, late);
    });
  }
}

for (const [name, options] of [
  ['ruby-double-cancel', { version: 'gem' }],
  ['double-cancel', {}],
]) {
  test(`recording ${name}: whoever cancels again finds the task canceled`, async (t) => {
    const gem = options.version === 'gem';
    const agent = await replay(recording(name));
    t.after(() => agent.close());
    const client = createTaskClient(agent.url, options);
    const stream = client.subscribe('task B');
    const cancels = [];
    const cancel = () => cancels.push(client.cancel(stream.task.id));
    let artifacts = 0;
    for await (const event of stream) {
      if (event.kind !== 'artifact' || ++artifacts !== 2) continue;
      cancel();
      if (!gem) cancel();
    }
    cancel();
    // What the gem refuses is found canceled by asking for the task, which its recording has at its
    // end only.
    if (gem) cancel();
    const tasks = await Promise.all(cancels);
    assert.deepEqual(tasks.map(stateOrKind), Array(3).fill('canceled'));
    assert.equal(stream.task.status.state, 'canceled');
  });
}

for (const [name, options] of [
  ['ruby-cancel-unknown', { version: 'gem' }],
  ['cancel-unknown', {}],
]) {
  test(`recording ${name}: the agent's errors have their names and codes`, async (t) => {
    const agent = await replay(recording(name));
    t.after(() => agent.close());
    const client = createTaskClient(agent.url, options);
    const unknown = '00000000-0000-4000-8000-000000000000';
    const notFound = (error) => error.code === 'TASK_NOT_FOUND' && error.details.code === -32001;
    await assert.rejects(client.cancel(unknown), notFound);
    await assert.rejects(
      client.cancel(options.version ? null : undefined),
      ({ code, details }) => code === 'INVALID_PARAMS' && details.code === -32602,
    );
    await assert.rejects(client.get(unknown), notFound);
    await agent.played;
  });
}

test('recording append-duplication: a refused cancel leaves the stream to its end, each part in it once', async (t) => {
  const agent = await replay(recording('append-duplication'));
  t.after(() => agent.close());
  const client = createTaskClient(agent.url);
  const stop = new AbortController();
  const stream = client.subscribe('task B', { signal: stop.signal });
  let artifacts = 0;
  for await (const event of stream)
    if (event.kind === 'artifact' && ++artifacts === 2) stop.abort();
  assert.equal(stream.task.status.state, 'completed');
  const steps = (parts) => parts.map(({ text }) => text);
  assert.deepEqual(
    steps(stream.task.artifacts[0].parts),
    [1, 2, 3, 4, 5].map((n) => `step ${n}/5`),
  );
  // What the agent stored is what its defect made of it, and is shown as it is.
  const { artifacts: stored } = await client.get(stream.task.id);
  assert.equal(stored[0].parts.length, 8);
  await agent.played;
});
