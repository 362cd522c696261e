/** Questions of tasks: any process takes the answer, and asks for it no longer than it may. */
import assert from 'node:assert/strict';
import { ask, stateOf } from '../../../../a2a/tests/support/a2a.js';
import { V1, send, get, testsOver } from './processes.js';

/** @type {import('../store.js').StoreTests} */
export function testQuestions(name, openBackend) {
  const it = testsOver(name, openBackend);

  it('any process takes an answer, and the task with it', async (t, start) => {
    const runs = [];
    const { urls } = await start((context, process) => {
      const [{ text }] = context.message.parts;
      runs.push([process, text]);
      if (text === 'go') context.emitStatus('input-required', 'Which one?');
      else context.emitArtifact({ artifactId: 'a', parts: [{ text }] });
    });
    const asked = await send(urls[0], 'go');
    assert.equal(stateOf(asked), 'input-required');
    const { id, contextId } = asked.result.task;
    const message = { ...V1.message('this one'), taskId: id };
    const done = await ask(urls[1], V1.send, { message }, V1.headers);
    assert.equal(stateOf(done), 'completed');
    assert.equal(done.result.task.contextId, contextId);
    assert.deepEqual(runs, [
      [0, 'go'],
      [1, 'this one'],
    ]);
    const got = await get(urls[0], id);
    assert.deepEqual(
      got.result.history.map(({ parts }) => parts[0].text),
      ['go', 'Which one?', 'this one'],
    );
    const late = await ask(urls[0], V1.send, { message }, V1.headers);
    assert.equal(late.error.code, -32004);
  });

  it('one of several answers at once is taken', async (t, start) => {
    let runs = 0;
    const { urls } = await start((context) => {
      if (context.message.parts[0].text === 'go') return context.emitStatus('input-required');
      runs++;
    });
    const { id } = (await send(urls[0], 'go')).result.task;
    const answers = await Promise.all(
      [...urls, ...urls].map((url) => {
        const message = { ...V1.message('answer'), taskId: id };
        return ask(url, V1.send, { message }, V1.headers);
      }),
    );
    assert.equal(runs, 1);
    assert.equal(answers.filter(({ result }) => result).length, 1);
    const refused = answers.filter(({ error }) => error);
    assert.deepEqual(
      refused.map(({ error }) => error.code),
      refused.map(() => -32004),
    );
    assert.equal(stateOf(await get(urls[1], id)), 'completed');
  });

  it('a question without an answer is canceled in time, however often processes were replaced', async (t, start) => {
    const { agents, backend, urls, join } = await start(
      ({ emitStatus }) => emitStatus('input-required', 'Which one?'),
      { count: 1, store: { term: 3000 } },
    );
    const ids = [];
    for (let i = 0; i < 3; i++) ids.push((await send(urls[0], 'go')).result.task.id);
    const processes = async () => (await backend.leases(1000)).length;
    // Three deployments: the next one is there, then this one ends, and the next one has found what
    // it left.
    for (let generation = 0; generation < 3; generation++) {
      // The questions of the last generation have no time left.
      const limits = generation < 2 ? {} : { limits: { rememberFor: 1 } };
      await join(limits);
      await agents[generation].agent.drain();
      if (generation === 1) {
        const answer = { ...V1.message('this one'), taskId: ids[2] };
        const answered = await ask(agents[2].url, V1.send, { message: answer }, V1.headers);
        assert.equal(stateOf(answered), 'input-required');
      }
      while ((await processes()) > 1) await new Promise(setImmediate);
    }
    for (const id of ids) {
      let answer;
      do answer = await get(agents[3].url, id);
      while (stateOf(answer) === 'input-required');
      assert.equal(stateOf(answer), 'canceled');
    }
    // Nothing is left of the processes before.
    await agents[3].agent.drain();
    const last = await join();
    while ((await processes()) > 1) await new Promise(setImmediate);
    assert.equal(stateOf(await get(last.url, ids[0])), 'canceled');
  });
}
