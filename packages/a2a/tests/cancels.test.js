// The cancel of a task: how it is answered, when it waits for the executor, and what it races with.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { createTaskServer, createTaskClient } from '../src/index.js';
import {
  CARD,
  VERSIONS,
  ask,
  updateOf,
  servingUntilEnd,
  stateOf,
  deferred,
} from './support/a2a.js';
import { stepwise, beginTask, askAbout } from './support/stepwise.js';

const ALL = Object.keys(VERSIONS);

const served = servingUntilEnd();
const names = VERSIONS['1.0'];

for (const version of ALL) {
  const names = VERSIONS[version];

  test(`${version}: a cancel is answered with the canceled task, the stream ends with it, the signal has fired`, async () => {
    const script = stepwise();
    const { url } = await served(script.execute);
    const { stream, run, id } = await beginTask(url, script, version);
    const { signal } = run.ctx;
    run.ctx.emitArtifact({ artifactId: 'one', parts: [{ text: '1' }] });
    const answer = await askAbout(url, names, 'cancel', id);
    assert.equal(stateOf(answer), 'canceled');
    assert.equal(signal.aborted, true);
    assert.equal(signal.reason.name, 'AbortError');
    assert.equal(run.ctx.task.terminal, true);
    assert.equal(run.ctx.emitArtifact({ artifactId: 'late', parts: [] }), false);
    assert.equal(run.ctx.emitStatus('completed'), false);
    run.gate.resolve();
    assert.deepEqual((await stream.rest()).map(updateOf), ['artifact one', 'canceled']);
    const { result } = await askAbout(url, names, 'get', id);
    assert.equal(stateOf({ result }), 'canceled');
    assert.deepEqual(
      result.artifacts.map(({ artifactId }) => artifactId),
      ['one'],
    );
  });

  test(`${version}: a canceled task cancelled again is answered as the version has it`, async () => {
    const script = stepwise();
    const { url } = await served(script.execute);
    const { id, stream } = await beginTask(url, script, version);
    await askAbout(url, names, 'cancel', id);
    const again = await askAbout(url, names, 'cancel', id);
    if (version === 'gem') assert.equal(again.error.code, -32002);
    else assert.equal(stateOf(again), 'canceled');
    await stream.rest();
  });

  test(`${version}: the cancel of a completed task, an unknown one or of no task is refused`, async () => {
    const { url } = await served(() => {});
    const sent = await ask(url, names.send, { message: names.message('go') }, names.headers);
    const { id } = sent.result.task ?? sent.result;
    const errors = [
      await askAbout(url, names, 'cancel', id),
      await askAbout(url, names, 'cancel', 'nobody'),
      await askAbout(url, names, 'cancel', ''),
      await askAbout(url, names, 'cancel', null),
      await askAbout(url, names, 'cancel', undefined),
      await askAbout(url, names, 'cancel', 'x'.repeat(5000)),
      await askAbout(url, names, 'cancel', '\ud800'),
    ].map(({ error }) => error.code);
    assert.deepEqual(errors, [-32002, -32001, -32602, -32602, -32602, -32001, -32001]);
  });
}

describe('a cancel that waits for the executor', () => {
  test('is answered when the executor returns, and so is another one', async () => {
    const script = stepwise();
    const { url } = await served(script.execute, { grace: 60_000 });
    const { id, run, stream } = await beginTask(url, script, '1.0');
    let aborts = 0;
    const fired = new Promise((resolve) => {
      run.ctx.signal.addEventListener('abort', () => resolve(++aborts));
    });
    const answers = [askAbout(url, names, 'cancel', id), askAbout(url, names, 'cancel', id)];
    await fired;
    assert.equal(stateOf(await askAbout(url, names, 'get', id)), 'working');
    assert.equal(run.ctx.emitArtifact({ artifactId: 'still', parts: [] }), true);
    run.gate.resolve();
    for (const answer of await Promise.all(answers)) assert.equal(stateOf(answer), 'canceled');
    assert.deepEqual((await stream.rest()).map(updateOf), ['artifact still', 'canceled']);
    assert.equal(aborts, 1);
  });

  test('is refused when the executor completes in spite of it', async () => {
    const script = stepwise();
    const { url } = await served(script.execute, { grace: 60_000 });
    const { id, run, stream } = await beginTask(url, script, '1.0');
    const fired = once(run.ctx.signal, 'abort');
    const answer = askAbout(url, names, 'cancel', id);
    await fired;
    run.ctx.emitStatus('completed');
    run.gate.resolve();
    assert.equal((await answer).error.code, -32002);
    assert.deepEqual((await stream.rest()).map(updateOf), ['completed']);
    assert.equal(stateOf(await askAbout(url, names, 'get', id)), 'completed');
  });

  test('does not wait longer than the grace period', async () => {
    const script = stepwise();
    const { url, agent } = await served(script.execute, { grace: 20 });
    const { id, run, stream } = await beginTask(url, script, '1.0');
    assert.equal(stateOf(await askAbout(url, names, 'cancel', id)), 'canceled');
    assert.deepEqual((await stream.rest()).map(updateOf), ['canceled']);
    assert.equal(agent.counters.live, 1); // its executor has not returned
    assert.equal(run.ctx.emitArtifact({ artifactId: 'late', parts: [] }), false);
    run.gate.resolve();
  });

  test('takes effect at once on a task that waits for input, or that asks for input', async () => {
    const script = stepwise();
    const { url } = await served(script.execute, { grace: 60_000 });
    const parked = await beginTask(url, script, '1.0');
    parked.run.ctx.emitStatus('input-required');
    parked.run.gate.resolve();
    await parked.run.returned.promise;
    assert.equal(stateOf(await askAbout(url, names, 'cancel', parked.id)), 'canceled');
    const parks = await beginTask(url, script, '1.0');
    const fired = once(parks.run.ctx.signal, 'abort');
    const answer = askAbout(url, names, 'cancel', parks.id);
    await fired;
    parks.run.ctx.emitStatus('input-required', 'What?');
    assert.equal(stateOf(await answer), 'canceled');
    parks.run.gate.resolve();
  });
});

test('the grace period begins with the cancel, however long the agent was idle before', async (t) => {
  const script = stepwise();
  const { url } = await served(script.execute, { grace: 60_000 });
  const { stream, run, id, names } = await beginTask(url, script, '1.0');
  const now = performance.now.bind(performance);
  t.mock.method(performance, 'now', () => now() + 120_000);
  run.ctx.signal.addEventListener('abort', async () => {
    // What is due by now happens before what is said in another turn.
    await new Promise(setImmediate);
    run.ctx.emitStatus('completed');
    run.gate.resolve();
  });
  const { error } = await ask(url, names.cancel, { id }, names.headers);
  assert.equal(error?.data[0].reason, 'TASK_NOT_CANCELABLE');
  assert.equal((await stream.rest()).map(updateOf).at(-1), 'completed');
});

test('an update after the grace period is dropped, even if its timer has not run yet', async (t) => {
  const script = stepwise();
  const { url } = await served(script.execute, { grace: 60_000 });
  const { stream, run, id, names } = await beginTask(url, script, '1.0');
  const now = performance.now.bind(performance);
  run.ctx.signal.addEventListener('abort', () => {
    t.mock.method(performance, 'now', () => now() + 120_000);
    assert.equal(run.ctx.emitStatus('working', 'still'), false);
    run.gate.resolve();
  });
  assert.equal(stateOf(await ask(url, names.cancel, { id }, names.headers)), 'canceled');
  assert.deepEqual((await stream.rest()).map(updateOf), ['canceled']);
});

describe('a cancel that races the completion', () => {
  /** Asks without a network between, so that turns and microtasks are all that differs. */
  const fetched = (agent, method, params) =>
    agent.fetch(
      new Request('http://x/', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      }),
    );
  const answered = async (...args) => (await fetched(...args)).json();

  test('in 320 moments: stream, store and answer agree', async () => {
    const agent = createTaskServer({
      card: CARD,
      async execute(ctx) {
        // Some microtasks and turns of the loop later: before, with and after the cancel.
        const delay = Number(ctx.message.parts[0].text);
        for (let i = 0; i < delay % 5; i++) await new Promise(setImmediate);
        for (let i = 0; i < delay % 11; i++) await null;
        if (delay % 2) ctx.emitStatus('completed');
      },
    });
    const outcomes = { canceled: 0, completed: 0 };
    const race = async (n) => {
      const response = await fetched(agent, names.stream, { message: names.message(String(n)) });
      const { value } = await response.clone().body.getReader().read();
      const { id } = JSON.parse(new TextDecoder().decode(value).slice(6)).result.task;
      for (let turn = 0; turn < (n >> 4) % 4; turn++) await new Promise(setImmediate);
      const [answer, text] = await Promise.all([
        answered(agent, names.cancel, { id }),
        response.text(),
      ]);
      const streamed = updateOf(JSON.parse(text.trim().split('\n\n').at(-1).slice(6)));
      const stored = stateOf(await answered(agent, names.get, { id }));
      assert.equal(stored, streamed);
      if (answer.error) assert.deepEqual([answer.error.code, streamed], [-32002, 'completed']);
      else assert.deepEqual([stateOf(answer), streamed], ['canceled', 'canceled']);
      outcomes[streamed]++;
    };
    for (let n = 0; n < 320; n += 20)
      await Promise.all(Array.from({ length: 20 }, (_, i) => race(n + i)));
    assert.equal(outcomes.canceled + outcomes.completed, 320);
    assert.ok(Math.min(outcomes.canceled, outcomes.completed) > 16, JSON.stringify(outcomes));
    agent.close();
  });

  test('in the turn of the completion: the first of the two counts', async () => {
    const answers = [];
    const agent = createTaskServer({
      card: CARD,
      async execute(ctx) {
        const answer = answered(agent, names.cancel, { id: ctx.task.id });
        for (let i = 0; i < Number(ctx.message.parts[0].text) % 48; i++) await null;
        ctx.emitStatus('completed');
        answers.push([await answer, ctx.task.state]);
      },
    });
    for (let n = 0; n < 240; n++) {
      const message = names.message(String(n));
      const sentState = stateOf(await answered(agent, names.send, { message }));
      while (answers.length <= n) await new Promise(setImmediate);
      const [answer, stored] = answers[n];
      assert.equal(stored, sentState);
      assert.equal(answer.error ? 'completed' : stateOf(answer), sentState);
    }
    const completed = answers.filter(([answer]) => answer.error).length;
    assert.ok(completed > 12 && completed < 228, `${completed} of 240 completed`);
    agent.close();
  });
});

test('with an endless grace a cancel waits for its executor, and with an endless timeout a client for its agent', async () => {
  const gate = deferred();
  const { url } = await served(() => gate.promise, { grace: Infinity });
  const client = createTaskClient(url, { limits: { timeout: Infinity, grace: Infinity } });
  const { id } = await client.send('go', { configuration: { returnImmediately: true } });
  const cancelled = client.cancel(id);
  // Its executor is told before the cancel is answered.
  assert.equal((await client.get(id)).status.state, 'working');
  gate.resolve();
  assert.equal((await cancelled).status.state, 'canceled');
});
