// A core that traps: its tasks fail, each caller is answered, and the agent and its clients go on.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createTaskClient } from '../src/index.js';
import { instanceWith, trap } from '../../../tests/support/trap.js';
import { VERSIONS, updateOf, servingUntilEnd, stateOf } from './support/a2a.js';
import { stepwise, beginTask, sendText, askAbout } from './support/stepwise.js';

const served = servingUntilEnd();

describe('a core that traps', () => {
  for (const name of ['says', 'artifact', 'find', 'wish', 'advance', 'add', 'returns'])
    test(`in "${name}": its tasks fail, waiting requests are answered, and the agent goes on`, async () => {
      const names = VERSIONS['1.0'];
      const script = stepwise();
      const { url, agent } = await served(script.execute);
      const running = script.nextRun();
      const send = sendText(url, names, 'kept waiting');
      await running;
      const { stream, run, id } = await beginTask(url, script, '1.0');
      const { instance, said } = trap(name, 'says');
      if (name === 'says') assert.equal(run.ctx.emitStatus('working', 'hm'), false);
      else if (name === 'artifact') assert.equal(run.ctx.emitArtifact({ parts: [] }), false);
      else if (name === 'returns') run.gate.resolve();
      else if (name === 'add') assert.ok((await sendText(url, names, 'new')).error);
      else assert.ok((await askAbout(url, names, 'cancel', id)).error);
      assert.match(await said, /core of the tasks failed/);
      assert.deepEqual((await stream.rest()).map(updateOf), ['failed']);
      assert.equal(stateOf(await send), 'failed');
      assert.equal(run.ctx.signal.aborted, name !== 'returns');
      // What was said of the lost task is nobody else's, though its number may be.
      const next = await beginTask(url, script, '1.0');
      assert.notEqual(instanceWith('says'), instance);
      assert.equal(run.ctx.emitStatus('failed'), false);
      run.gate.resolve();
      script.runs[0].gate.resolve();
      await script.runs[0].returned.promise;
      next.run.gate.resolve();
      assert.deepEqual((await next.stream.rest()).map(updateOf), ['completed']);
      assert.equal(agent.counters.finished, 1);
      assert.equal((await askAbout(url, names, 'get', id)).error.code, -32001);
    });

  test('fails the stream of a client, and its next stream works', async () => {
    const { url } = await served(() => {});
    const client = createTaskClient(url);
    const stream = client.subscribe('go');
    await stream.next();
    trap('says');
    await assert.rejects(
      (async () => {
        while (!(await stream.next()).done);
      })(),
      { code: 'INTERNAL_ERROR', retryable: true },
    );
    const next = client.subscribe('go');
    while (!(await next.next()).done);
    assert.equal(next.task.status.state, 'completed');
  });
});
