/** Processes that drain, close or lose their lease: others take over their tasks. */
import assert from 'node:assert/strict';
import { createTaskClient } from '@abp-bridge/a2a';
import { deferred, updateOf, open, post, stateOf } from '../../../../a2a/tests/support/a2a.js';
import { TASKS, V1, send, get, cancel, returnImmediately, testsOver } from './processes.js';

/** @type {import('../store.js').StoreTests} */
export function testHandovers(name, openBackend) {
  const it = testsOver(name, openBackend);

  it('a process whose lease was deleted gets one again, and its tasks are found', async (t, start) => {
    const { agents, backend, urls } = await start(() => new Promise(() => {}), {
      store: { term: 1000 },
    });
    await send(urls[0], 'go', returnImmediately);
    const names = async () => (await backend.leases(10)).map(({ process }) => process).sort();
    const before = await names();
    assert.equal(before.length, 2);
    for (const name of before) while (!(await backend.release(name, await backend.lease(name))));
    while ((await names()).length < 2) await new Promise(setImmediate);
    assert.deepEqual(await names(), before);
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    // It ends, and those who are left see its lease.
    await agents[0].agent.drain({ ms: 0 });
    let answer;
    do answer = await get(urls[1], id);
    while (stateOf(answer) === 'working');
    assert.equal(stateOf(answer), 'failed');
  });

  it('tasks of a process that closes fail at another', async (t, start) => {
    const { urls, agents } = await start(() => new Promise(() => {}));
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    const there = await open(urls[1], V1.resubscribe, { id }, V1.headers);
    await agents[0].agent.drain({ ms: 0 });
    assert.equal(updateOf((await there.rest()).at(-1)), 'failed');
  });

  it('with onOrphan: rerun, tasks of a process that closes run again with what was saved of their requests', async (t, start) => {
    const attempts = [];
    const store = {
      onOrphan: 'rerun',
      saveRequest: ({ metadata }) => ({ metadata }),
    };
    const { urls, agents } = await start(
      (context, process) => {
        attempts.push([process, context.attempt, context.request.metadata]);
        context.emitArtifact(
          { artifactId: 'a', parts: [{ text: `by ${process}` }] },
          { append: true },
        );
        return process === 0 ? new Promise(() => {}) : undefined;
      },
      { store },
    );
    const begun = await send(urls[0], 'go', { ...returnImmediately, metadata: { n: 1 } });
    const { id } = begun.result.task;
    const there = await open(urls[1], V1.resubscribe, { id }, V1.headers);
    for (let frame; (frame = await there.next());)
      if (updateOf(frame) === 'artifact a' || frame.result.task?.artifacts) break;
    await agents[0].agent.drain({ ms: 0 });
    assert.equal(updateOf((await there.rest()).at(-1)), 'completed');
    assert.deepEqual(attempts, [
      [0, 1, { n: 1 }],
      [1, 2, { n: 1 }],
    ]);
    const { artifacts } = (await get(urls[1], id)).result;
    assert.deepEqual(
      artifacts[0].parts.map(({ text }) => text),
      ['by 0', 'by 1'],
    );
  });

  it('each of many tasks, some cancelled elsewhere and some left behind, has one end in all processes', async (t, start) => {
    const go = deferred();
    const done = new Map();
    const { agents, backend, urls } = await start(
      async ({ task, signal, emitArtifact }) => {
        emitArtifact({ artifactId: 'a', parts: [{ text: '1' }] });
        await go.promise;
        signal.throwIfAborted();
        done.set(task.id, (done.get(task.id) ?? 0) + 1);
      },
      { count: 3, store: { onOrphan: 'rerun', saveRequest: () => ({}) } },
    );
    const every = (run) => Promise.all(Array.from({ length: TASKS }, (_, i) => run(i)));
    const ids = await every(
      async (i) => (await send(urls[i % 3], 'go', returnImmediately)).result.task.id,
    );
    // Every other one, through a process that does not own it, while one goes and leaves its tasks
    // behind.
    const cancelled = every(async (i) => i % 2 && stateOf(await cancel(urls[(i + 1) % 2], ids[i])));
    await agents[2].close();
    const answers = await cancelled;
    go.resolve();
    for (const [i, id] of ids.entries()) {
      const expected = i % 2 ? 'canceled' : 'completed';
      const endings = [];
      for (const url of urls.slice(0, 2)) {
        let answer;
        do answer = await get(url, id);
        while (
          answer.result.status.message?.metadata?.outcome === 'running' ||
          stateOf(answer) === 'working'
        );
        endings.push([stateOf(answer), answer.result.status.message?.metadata?.outcome]);
      }
      assert.deepEqual(endings[0], endings[1]);
      assert.equal(endings[0][0], expected);
      if (i % 2) assert.equal(answers[i], 'canceled');
      const events = (await backend.read(id, 0)).flatMap(({ data }) => JSON.parse(data).e);
      const ends = events.filter(({ status }) =>
        ['completed', 'canceled', 'failed'].includes(status?.state),
      );
      assert.deepEqual(
        ends.map(({ status }) => status.state),
        [expected],
      );
      assert.equal(done.get(id), i % 2 ? undefined : 1);
    }
  });

  it('drain() waits for running tasks, and refuses others', async (t, start) => {
    const go = deferred();
    const { urls, agents } = await start(async (context) => {
      await go.promise;
      context.emitArtifact({ artifactId: 'a', parts: [{ text: 'done' }] });
    });
    const [{ agent }] = agents;
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    const here = await open(urls[0], V1.resubscribe, { id }, V1.headers);
    await here.next();
    assert.equal(agent.draining, false);
    const drained = agent.drain();
    assert.equal(agent.draining, true);
    // Its stream ends, and its end is seen elsewhere.
    assert.deepEqual(await here.rest(), []);
    const there = await open(urls[1], V1.resubscribe, { id }, V1.headers);
    assert.equal(updateOf(await there.next()), 'task working');
    const body = (method, params) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    for (const [method, params] of [
      [V1.send, { message: V1.message('another') }],
      [V1.stream, { message: V1.message('another') }],
      [V1.resubscribe, { id }],
    ]) {
      const refused = await post(urls[0], body(method, params), V1.headers);
      assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1']);
      assert.equal((await refused.json()).error.data[0].reason, 'UNAVAILABLE');
    }
    assert.equal(stateOf(await get(urls[0], id)), 'working');
    go.resolve();
    await drained;
    assert.deepEqual((await there.rest()).map(updateOf), ['artifact a', 'completed']);
  });

  it('our client, with several addresses, is not disturbed by a process that drains', async (t, start) => {
    const go = deferred();
    const { urls, agents } = await start(() => go.promise.then(() => {}));
    let turn = 0;
    // A balancer: each request goes to the next process.
    const balanced = (_url, init) => fetch(urls[turn++ % urls.length], init);
    const client = createTaskClient(urls[0], {
      version: '1.0',
      fetch: balanced,
      limits: { retry: 1 },
    });
    const stream = client.subscribe('go');
    await stream.next();
    const drained = agents[0].agent.drain();
    go.resolve();
    for await (const event of stream) void event;
    assert.equal(stream.task.status.state, 'completed');
    await drained;
  });
}
