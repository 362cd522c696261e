/** Tasks in the store: all processes show them, until they are deleted. */
import assert from 'node:assert/strict';
import { ask, stateOf } from '../../../../a2a/tests/support/a2a.js';
import { V1, send, get, testsOver } from './processes.js';

/** @type {import('../store.js').StoreTests} */
export function testRecords(name, openBackend) {
  const it = testsOver(name, openBackend);

  it('all processes show a task of one', async (t, start) => {
    const { urls } = await start((context) => {
      context.emitArtifact({ artifactId: 'a', parts: [{ text: '1' }] });
      context.emitArtifact({ artifactId: 'a', parts: [{ text: '2' }] }, { append: true });
    });
    const sent = await send(urls[0], 'go');
    assert.equal(stateOf(sent), 'completed');
    const { id } = sent.result.task;
    const got = await get(urls[1], id);
    assert.deepEqual(got.result, (await get(urls[0], id)).result);
    assert.deepEqual(
      got.result.artifacts[0].parts.map(({ text }) => text),
      ['1', '2'],
    );
    const listed = await ask(urls[1], V1.list, {}, V1.headers);
    assert.deepEqual(
      listed.result.tasks.map((task) => [task.id, stateOf({ result: task })]),
      [[id, 'completed']],
    );
    assert.equal((await get(urls[1], 'nothing')).error.code, -32001);
    assert.equal((await get(urls[1], 'x'.repeat(300))).error.code, -32001);
  });

  it('flushed() resolves when all that was emitted is stored', async (t, start) => {
    const seen = [];
    const { urls, backend } = await start(async (context) => {
      context.emitArtifact({ artifactId: 'a', parts: [{ text: 'x' }] });
      await context.flushed();
      const records = await backend.read(context.task.id, 0);
      seen.push(records.some(({ data }) => data.includes('"artifactId":"a"')));
    });
    await send(urls[0], 'go');
    assert.deepEqual(seen, [true]);
  });

  it('an artifact too long for a record is kept beside it', async (t, start) => {
    const text = 'x'.repeat(2_500_000);
    const { urls } = await start((context) => {
      context.emitArtifact({ artifactId: 'a', parts: [{ text: 'first' }] });
      context.emitArtifact({ artifactId: 'b', parts: [{ text }] });
      context.emitArtifact({ artifactId: 'c', parts: [{ text: 'last' }] });
    });
    const { id } = (await send(urls[0], 'go')).result.task;
    const { artifacts } = (await get(urls[1], id)).result;
    assert.deepEqual(
      artifacts.map(({ artifactId }) => artifactId),
      ['a', 'b', 'c'],
    );
    assert.equal(artifacts[1].parts[0].text, text);
  });

  it('a task that ended longer ago than the retention is deleted, and no other', async (t, start) => {
    const HOUR = 3_600_000;
    const begun = Math.ceil(Date.now() / HOUR) * HOUR + HOUR / 2;
    t.mock.timers.enable({ apis: ['Date'], now: begun });
    const { urls, backend } = await start(
      ({ emitArtifact, emitStatus, message: { parts } }) => {
        if (parts[0].text === 'ask') return emitStatus('input-required');
        return emitArtifact({ parts: [{ text: 'x'.repeat(1_100_000) }] });
      },
      { store: { term: 2000, retention: 2 * HOUR }, limits: { rememberFor: 100 * HOUR } },
    );
    const old = (await send(urls[0], 'go')).result.task;
    const asks = (await send(urls[1], 'ask')).result.task;
    const swept = async () => Number((await backend.list({ tenant: 'swept' })).tasks[0]?.data);
    const setTime = async (ms) => {
      t.mock.timers.setTime(ms);
      const last = Math.floor(ms / HOUR) - 3;
      while ((await swept()) !== last) await new Promise(setImmediate);
    };
    await setTime(begun + HOUR);
    const young = (await send(urls[1], 'go')).result.task;
    await setTime(begun + 2.49 * HOUR);
    for (const { id } of [old, asks, young]) assert.ok((await get(urls[0], id)).result);
    assert.equal((await backend.objects('')).length, 2);
    await setTime(begun + 2.5 * HOUR);
    for (const url of urls) {
      while ((await get(url, old.id)).result) await new Promise(setImmediate);
      for (const { id } of [asks, young]) assert.ok((await get(url, id)).result);
      const listed = await ask(url, V1.list, {}, V1.headers);
      assert.deepEqual(listed.result.tasks.map(({ id }) => id).sort(), [asks.id, young.id].sort());
    }
    assert.deepEqual(await backend.read(old.id, 0), []);
    assert.equal((await backend.objects('')).length, 1);
    const { tasks } = await backend.list({ tenant: 'ended' });
    assert.deepEqual(
      tasks.map(({ data }) => data),
      [young.id],
    );
  });

  it('tasks of one tenant are not shown to another, by any process', async (t, start) => {
    const { urls } = await start(() => {}, {
      authorize: (task, access, { tenant }) => task.tenant === tenant,
    });
    const { id } = (await send(urls[0], 'go', { tenant: 'one' })).result.task;
    const one = await ask(urls[1], V1.get, { id, tenant: 'one' }, V1.headers);
    assert.equal(stateOf(one), 'completed');
    assert.equal((await get(urls[1], id)).error.code, -32001);
    const list = async (tenant) =>
      (await ask(urls[1], V1.list, { tenant }, V1.headers)).result.tasks.length;
    assert.deepEqual([await list('one'), await list('two')], [1, 0]);
  });
}
