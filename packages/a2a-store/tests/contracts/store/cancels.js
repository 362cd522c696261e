/** Cancels through any process, and the outcome that all processes report. */
import assert from 'node:assert/strict';
import {
  ask,
  deferred,
  updateOf,
  open,
  plainState,
  stateOf,
} from '../../../../a2a/tests/support/a2a.js';
import { V1, send, get, cancel, returnImmediately, testsOver } from './processes.js';

/** @type {import('../store.js').StoreTests} */
export function testCancels(name, openBackend) {
  const it = testsOver(name, openBackend);

  it('a cancel through another process reaches the executor, and all processes report it', async (t, start) => {
    const aborted = deferred();
    const { urls } = await start((context) => {
      context.signal.addEventListener('abort', () => aborted.resolve(context.signal.reason));
      return aborted.promise.then(() => {});
    });
    const sent = await send(urls[0], 'go', returnImmediately);
    const { id } = sent.result.task;
    const stream = await open(urls[0], V1.resubscribe, { id }, V1.headers);
    const params = { id, metadata: { reason: 'enough' } };
    const answer = await ask(urls[1], V1.cancel, params, V1.headers);
    assert.equal(stateOf(answer), 'canceled');
    assert.match(String(await aborted.promise), /enough/);
    assert.equal(updateOf((await stream.rest()).at(-1)), 'canceled');
    assert.equal(stateOf(await get(urls[0], id)), 'canceled');
    assert.equal(stateOf(await cancel(urls[1], id)), 'canceled');
    const gem = await ask(urls[1], 'tasks/cancel', { id }, { 'a2a-version': '1.0' });
    assert.equal(gem.error.code, -32002);
  });

  it('all processes report the outcome of a canceled task, at once and later', async (t, start) => {
    const go = deferred();
    const { urls } = await start(async ({ report, signal }) => {
      report({ applied: 1 });
      await go.promise;
      report({ applied: 2 });
      signal.throwIfAborted();
    });
    const metadataOf = ({ result }) => (result.task ?? result).status.message.metadata;
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    const running = { outcome: 'running', report: { applied: 1 } };
    assert.deepEqual(metadataOf(await cancel(urls[1], id)), running);
    for (const url of urls) assert.deepEqual(metadataOf(await get(url, id)), running);
    go.resolve();
    const stopped = { outcome: 'stopped', report: { applied: 2 } };
    for (const url of urls) {
      let metadata;
      do metadata = metadataOf(await get(url, id));
      while (metadata.outcome === 'running');
      assert.deepEqual(metadata, stopped);
      const listed = await ask(url, V1.list, {}, V1.headers);
      assert.deepEqual(listed.result.tasks[0].status.message.metadata, stopped);
    }
  });

  it('with grace, the end of a task has its outcome in every process', async (t, start) => {
    const { urls } = await start(
      ({ signal }) =>
        new Promise((resolve) => signal.addEventListener('abort', resolve)).then(() => {}),
      { grace: 60_000 },
    );
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    const answer = await cancel(urls[1], id);
    assert.deepEqual(answer.result.status.message.metadata, { outcome: 'finished' });
    assert.deepEqual((await get(urls[0], id)).result, answer.result);
  });

  it('a question is cancelled through any process, with the outcome stopped', async (t, start) => {
    const { agents, urls } = await start(({ emitStatus }) => emitStatus('input-required'));
    const { id } = (await send(urls[0], 'go')).result.task;
    // Its executor has returned, and nobody owns it.
    while (agents[0].agent.counters.owned) await new Promise(setImmediate);
    const answer = await cancel(urls[1], id);
    assert.equal(stateOf(answer), 'canceled');
    assert.deepEqual(answer.result.status.message.metadata, { outcome: 'stopped' });
    assert.equal(stateOf(await get(urls[0], id)), 'canceled');
  });

  it('the outcome of tasks of a process that is gone is unknown', async (t, start) => {
    const { agents, urls } = await start(() => new Promise(() => {}));
    const ids = [];
    for (let i = 0; i < 2; i++)
      ids.push((await send(urls[0], 'go', returnImmediately)).result.task.id);
    assert.equal((await cancel(urls[1], ids[0])).result.status.message.metadata.outcome, 'running');
    await agents[0].close();
    const states = [];
    for (const id of ids) {
      let status;
      do status = (await get(urls[1], id)).result.status;
      while (status.message?.metadata.outcome !== 'unknown');
      states.push(plainState(status.state));
    }
    assert.deepEqual(states, ['canceled', 'failed']);
  });

  it('a process that was taken for gone does not change the outcome that is stored', async (t, start) => {
    const go = deferred();
    const { agents, backend, urls } = await start(() => go.promise);
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    assert.equal((await cancel(urls[0], id)).result.status.message.metadata.outcome, 'running');
    const { seq } = (await backend.read(id, 0)).at(-1);
    const e = [{ k: 'outcome', metadata: { outcome: 'unknown' } }];
    await backend.append(id, JSON.stringify({ v: 1, id: 'x', by: 'other', epoch: 0, e }), seq);
    go.resolve();
    while (agents[0].agent.counters.owned) await new Promise(setImmediate);
    for (const url of urls)
      assert.equal((await get(url, id)).result.status.message.metadata.outcome, 'unknown');
    assert.equal((await backend.read(id, 0)).at(-1).data.includes('unknown'), true);
  });

  it('a cancel after the end is refused by every process', async (t, start) => {
    const { urls } = await start(() => {});
    const { id } = (await send(urls[0], 'go')).result.task;
    assert.equal((await cancel(urls[1], id)).error.code, -32002);
    assert.equal(stateOf(await get(urls[1], id)), 'completed');
  });

  it('with grace, the executor decides the end of a task that another process cancels', async (t, start) => {
    const { urls } = await start(
      async (context) => {
        await new Promise((resolve) => context.signal.addEventListener('abort', resolve));
        context.emitStatus('completed', 'it was done already');
      },
      { grace: 60_000 },
    );
    const { id } = (await send(urls[0], 'go', returnImmediately)).result.task;
    assert.equal((await cancel(urls[1], id)).error.code, -32002);
    assert.equal(stateOf(await get(urls[1], id)), 'completed');
  });
}
