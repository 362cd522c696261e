import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect as connect2, createServer as createServer2 } from 'node:http2';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { MessageChannel } from 'node:worker_threads';
import { AbpError } from 'abp-bridge';
import { createTaskClient, createTaskServer } from '../src/index.js';
import { Tasks, ready } from '../src/tasks.js';
import { portTransport } from 'abp-bridge/driver';
import { instanceWith, trap } from '../../../tests/support/trap.js';
import {
  CARD,
  VERSIONS,
  ask,
  deferred,
  gist,
  open,
  plainState,
  post,
  servingUntilEnd,
} from './support/a2a.js';

const ALL = Object.keys(VERSIONS);
const served = servingUntilEnd();

/** An executor that stops at every step until the test lets it go on. */
function stepwise() {
  const runs = [];
  const waiting = [];
  const execute = async (ctx) => {
    const run = { ctx, gate: deferred(), returned: deferred() };
    runs.push(run);
    waiting.shift()?.resolve(run);
    try {
      await run.gate.promise;
    } finally {
      run.returned.resolve();
    }
  };
  const nextRun = () => {
    const next = deferred();
    waiting.push(next);
    return next.promise;
  };
  return { execute, runs, nextRun };
}

/** Begins a streamed task and waits until its executor runs. */
async function begin(url, script, version, text = 'go') {
  const names = VERSIONS[version];
  const running = script.nextRun();
  const stream = await open(url, names.stream, { message: names.message(text) }, names.headers);
  const run = await running;
  const first = await stream.next();
  if (version !== 'gem') assert.equal(gist(await stream.next()), 'working');
  assert.equal(gist(first), version === 'gem' ? 'working' : 'task submitted');
  return { stream, run, id: run.ctx.task.id, names };
}

const sent = (url, names, text) =>
  ask(url, names.send, { message: names.message(text) }, names.headers);
const asked = (url, names, what, id) => ask(url, names[what], { id }, names.headers);
const stateOf = ({ result }) => plainState((result.task ?? result).status.state);

for (const version of ALL) {
  describe(`in the dialect of ${version}`, () => {
    const names = VERSIONS[version];

    test('a task streams its states and artifacts in order, and is stored as it was streamed', async () => {
      const { url } = await served((ctx) => {
        ctx.emitArtifact({ artifactId: 'a', parts: [{ text: '1' }] });
        ctx.emitArtifact({ artifactId: 'a', parts: [{ text: '2' }] }, { append: true });
        ctx.emitArtifact({ artifactId: 'b', parts: [{ text: 'x' }] });
        ctx.emitArtifact({ artifactId: 'b', parts: [{ text: 'y' }] }, { lastChunk: true });
      });
      const stream = await open(url, names.stream, { message: names.message('go') }, names.headers);
      assert.equal(stream.headers['content-type'], 'text/event-stream');
      const frames = await stream.rest();
      const artifacts = ['artifact a', 'artifact a', 'artifact b', 'artifact b'];
      assert.deepEqual(
        frames.map(gist).filter((about) => !about.startsWith('task')),
        ['working', ...artifacts, 'completed'],
      );
      const { taskId } = frames.at(-1).result.statusUpdate ?? frames.at(-1).result;
      const { result } = await asked(url, names, 'get', taskId);
      assert.deepEqual(
        result.artifacts.map(({ parts }) => parts.map(({ text }) => text)),
        [['1', '2'], ['y']],
      );
      assert.equal(stateOf({ result }), 'completed');
    });

    test('a blocking send is answered with the task when it has ended', async () => {
      const { url } = await served((ctx) => ctx.emitStatus('failed', 'no luck'));
      const answer = await ask(url, names.send, { message: names.message('go') }, names.headers);
      assert.equal(stateOf(answer), 'failed');
    });

    test('a cancel is answered with the canceled task, the stream ends with it, the signal has fired', async () => {
      const script = stepwise();
      const { url } = await served(script.execute);
      const { stream, run, id } = await begin(url, script, version);
      const { signal } = run.ctx;
      run.ctx.emitArtifact({ artifactId: 'one', parts: [{ text: '1' }] });
      const answer = await asked(url, names, 'cancel', id);
      assert.equal(stateOf(answer), 'canceled');
      assert.equal(signal.aborted, true);
      assert.equal(signal.reason.name, 'AbortError');
      assert.equal(run.ctx.task.terminal, true);
      assert.equal(run.ctx.emitArtifact({ artifactId: 'late', parts: [] }), false);
      assert.equal(run.ctx.emitStatus('completed'), false);
      run.gate.resolve();
      assert.deepEqual((await stream.rest()).map(gist), ['artifact one', 'canceled']);
      const { result } = await asked(url, names, 'get', id);
      assert.equal(stateOf({ result }), 'canceled');
      assert.deepEqual(
        result.artifacts.map(({ artifactId }) => artifactId),
        ['one'],
      );
    });

    test('a canceled task cancelled again is answered as the version has it', async () => {
      const script = stepwise();
      const { url } = await served(script.execute);
      const { id, stream } = await begin(url, script, version);
      await asked(url, names, 'cancel', id);
      const again = await asked(url, names, 'cancel', id);
      if (version === 'gem') assert.equal(again.error.code, -32002);
      else assert.equal(stateOf(again), 'canceled');
      await stream.rest();
    });

    test('a completed task, an unknown one and none at all cannot be cancelled', async () => {
      const { url } = await served(() => {});
      const sent = await ask(url, names.send, { message: names.message('go') }, names.headers);
      const { id } = sent.result.task ?? sent.result;
      const errors = [
        await asked(url, names, 'cancel', id),
        await asked(url, names, 'cancel', 'nobody'),
        await asked(url, names, 'cancel', ''),
        await asked(url, names, 'cancel', null),
        await asked(url, names, 'cancel', undefined),
        await asked(url, names, 'cancel', 'x'.repeat(5000)),
        await asked(url, names, 'cancel', '\ud800'),
      ].map(({ error }) => error.code);
      assert.deepEqual(errors, [-32002, -32001, -32602, -32602, -32602, -32001, -32001]);
    });

    test('a resubscription begins with the task and ends as all streams do; an ended task has none', async () => {
      const script = stepwise();
      const { url } = await served(script.execute);
      const { id, stream, run } = await begin(url, script, version);
      run.ctx.emitArtifact({ artifactId: 'one', parts: [] });
      const other = await open(url, names.resubscribe, { id }, names.headers);
      assert.equal(gist(await other.next()), 'task working');
      // Without a store there are no numbers to go on from.
      for (const number of ['1.0', '0.0', 'x', '9'.repeat(99)]) {
        const headers = { ...names.headers, 'last-event-id': number };
        const numbered = await open(url, names.resubscribe, { id }, headers);
        assert.equal(gist(await numbered.next()), 'task working');
        numbered.leave();
      }
      run.ctx.emitArtifact({ artifactId: 'two', parts: [] });
      run.gate.resolve();
      assert.deepEqual((await other.rest()).map(gist), ['artifact two', 'completed']);
      assert.deepEqual((await stream.rest()).map(gist), [
        'artifact one',
        'artifact two',
        'completed',
      ]);
      if (version === '0.3') {
        const [frame] = await (await open(url, names.resubscribe, { id }, names.headers)).rest();
        assert.equal(frame.event, 'error');
        assert.equal(frame.error.code, -32004);
      } else assert.equal((await asked(url, names, 'resubscribe', id)).error.code, -32004);
    });

    test('a task that asks for input ends its stream, and goes on with the answer', async () => {
      const { url } = await served((ctx) => {
        const [{ text }] = ctx.message.parts;
        if (text === 'go') ctx.emitStatus('input-required', 'Which one?');
        else ctx.emitArtifact({ artifactId: 'answer', parts: [{ text }] });
      });
      const stream = await open(url, names.stream, { message: names.message('go') }, names.headers);
      const asks = (await stream.rest()).at(-1);
      assert.equal(gist(asks), 'input-required');
      const { taskId } = asks.result.statusUpdate ?? asks.result;
      const message = { ...names.message('this one'), taskId };
      const answer = await ask(url, names.send, { message }, names.headers);
      assert.equal(stateOf(answer), 'completed');
      const { artifacts, history } = answer.result.task ?? answer.result;
      assert.equal(artifacts[0].parts[0].text, 'this one');
      assert.deepEqual(
        history.map(({ parts }) => parts[0].text),
        ['go', 'Which one?', 'this one'],
      );
      const late = await ask(url, names.send, { message }, names.headers);
      assert.equal(late.error.code, -32004);
    });

    test('the dialect is heard in every answer', async () => {
      const { url } = await served((ctx) => ctx.emitStatus('auth-required', 'Log in'));
      const { result } = await ask(
        url,
        names.send,
        { message: names.message('go') },
        names.headers,
      );
      const task = result.task ?? result;
      const spelling = {
        '1.0': ['TASK_STATE_AUTH_REQUIRED', undefined, 'ROLE_AGENT', undefined],
        0.3: ['auth-required', 'task', 'agent', 'text'],
        gem: ['auth_required', undefined, undefined, undefined],
      }[version];
      const { message } = task.status;
      assert.deepEqual(
        [task.status.state, task.kind, message.role, message.parts?.[0].kind],
        spelling,
      );
      if (version === 'gem') assert.equal(message, 'Log in');
      // A name that versions share is answered as the task was begun.
      const got = await ask(url, names.get, { id: task.id });
      assert.equal(got.result.status.state, task.status.state);
    });
  });
}

describe('a cancel that waits for the executor', () => {
  const names = VERSIONS['1.0'];

  test('is answered when the executor returns, and so is another one', async () => {
    const script = stepwise();
    const { url } = await served(script.execute, { grace: 60_000 });
    const { id, run, stream } = await begin(url, script, '1.0');
    let aborts = 0;
    const fired = new Promise((resolve) => {
      run.ctx.signal.addEventListener('abort', () => resolve(++aborts));
    });
    const answers = [asked(url, names, 'cancel', id), asked(url, names, 'cancel', id)];
    await fired;
    assert.equal(stateOf(await asked(url, names, 'get', id)), 'working');
    assert.equal(run.ctx.emitArtifact({ artifactId: 'still', parts: [] }), true);
    run.gate.resolve();
    for (const answer of await Promise.all(answers)) assert.equal(stateOf(answer), 'canceled');
    assert.deepEqual((await stream.rest()).map(gist), ['artifact still', 'canceled']);
    assert.equal(aborts, 1);
  });

  test('is refused when the executor completes in spite of it', async () => {
    const script = stepwise();
    const { url } = await served(script.execute, { grace: 60_000 });
    const { id, run, stream } = await begin(url, script, '1.0');
    const fired = once(run.ctx.signal, 'abort');
    const answer = asked(url, names, 'cancel', id);
    await fired;
    run.ctx.emitStatus('completed');
    run.gate.resolve();
    assert.equal((await answer).error.code, -32002);
    assert.deepEqual((await stream.rest()).map(gist), ['completed']);
    assert.equal(stateOf(await asked(url, names, 'get', id)), 'completed');
  });

  test('does not wait longer than the grace period', async () => {
    const script = stepwise();
    const { url, agent } = await served(script.execute, { grace: 20 });
    const { id, run, stream } = await begin(url, script, '1.0');
    assert.equal(stateOf(await asked(url, names, 'cancel', id)), 'canceled');
    assert.deepEqual((await stream.rest()).map(gist), ['canceled']);
    assert.equal(agent.counters.live, 1); // its executor has not returned
    assert.equal(run.ctx.emitArtifact({ artifactId: 'late', parts: [] }), false);
    run.gate.resolve();
  });

  test('takes effect at once on a task that is parked, or that parks', async () => {
    const script = stepwise();
    const { url } = await served(script.execute, { grace: 60_000 });
    const parked = await begin(url, script, '1.0');
    parked.run.ctx.emitStatus('input-required');
    parked.run.gate.resolve();
    await parked.run.returned.promise;
    assert.equal(stateOf(await asked(url, names, 'cancel', parked.id)), 'canceled');
    const parks = await begin(url, script, '1.0');
    const fired = once(parks.run.ctx.signal, 'abort');
    const answer = asked(url, names, 'cancel', parks.id);
    await fired;
    parks.run.ctx.emitStatus('input-required', 'What?');
    assert.equal(stateOf(await answer), 'canceled');
    parks.run.gate.resolve();
  });
});

test('an executor that throws fails its task, with the message of an AbpError; one whose task was cancelled fails nothing', async () => {
  const names = VERSIONS['1.0'];
  const script = stepwise();
  const { url } = await served(script.execute);
  const thrown = await begin(url, script, '1.0');
  thrown.run.gate.reject(new AbpError('OPERATION_FAILED', 'out of paper'));
  const [last] = await thrown.stream.rest();
  assert.equal(gist(last), 'failed');
  assert.match(last.result.statusUpdate.status.message.parts[0].text, /out of paper/);
  const cancelled = await begin(url, script, '1.0');
  await asked(url, names, 'cancel', cancelled.id);
  cancelled.run.gate.reject(new Error('aborted'));
  assert.deepEqual((await cancelled.stream.rest()).map(gist), ['canceled']);
  assert.equal(stateOf(await asked(url, names, 'get', cancelled.id)), 'canceled');
});

test('an executor that emits what is no artifact and no message hears so, and nothing is told', async () => {
  const heard = [];
  const { url } = await served(({ emitArtifact, emitStatus }) => {
    const wrong = [undefined, null, {}, { parts: 'x' }, { parts: ['x'] }, { parts: [{}, null] }];
    const emits = wrong.flatMap((given) => [
      () => emitArtifact(given),
      () => emitStatus('working', given ?? 5),
    ]);
    // As progress is reported elsewhere.
    for (const emit of [...emits, () => emitStatus(3), () => emitStatus({ progress: 3 })]) {
      try {
        heard.push(emit());
      } catch (error) {
        heard.push(error.constructor);
      }
    }
    emitArtifact({ artifactId: 'a', parts: [{ text: '' }, { data: null }] });
    emitArtifact({ artifactId: 'a', parts: [] }, { append: true, lastChunk: true });
    emitStatus('completed', null);
  });
  const names = VERSIONS['1.0'];
  const stream = await open(url, names.stream, { message: names.message('go') }, names.headers);
  assert.deepEqual((await stream.rest()).map(gist), [
    'task submitted',
    'working',
    'artifact a',
    'artifact a',
    'completed',
  ]);
  assert.deepEqual(heard, Array(14).fill(TypeError));
});

test('a message that comes while the task works is refused, and so is one to a task nobody knows', async () => {
  const names = VERSIONS['1.0'];
  const script = stepwise();
  const { url } = await served(script.execute);
  const { id, run, stream } = await begin(url, script, '1.0');
  const send = (message) => ask(url, names.send, { message }, names.headers);
  assert.equal((await send({ ...names.message('more'), taskId: id })).error.code, -32004);
  assert.equal((await send({ ...names.message('more'), taskId: 'x' })).error.code, -32001);
  run.gate.resolve();
  assert.deepEqual((await stream.rest()).map(gist), ['completed']);
  assert.equal(run.ctx.task.history.length, 1);
});

test('what an earlier run still says of a task is dropped once another message has taken over', async () => {
  const names = VERSIONS['1.0'];
  const script = stepwise();
  const { url } = await served(script.execute);
  const { id, run: first, stream } = await begin(url, script, '1.0');
  const { signal } = first.ctx;
  first.ctx.emitStatus('input-required');
  await stream.rest();
  const running = script.nextRun();
  const message = { ...names.message('answer'), taskId: id };
  const answer = ask(url, names.send, { message }, names.headers);
  const second = await running;
  assert.equal(signal.aborted, true);
  assert.equal(first.ctx.emitStatus('failed'), false);
  first.gate.resolve();
  await first.returned.promise;
  assert.equal(second.ctx.task.state, 'working');
  second.gate.resolve();
  assert.equal(stateOf(await answer), 'completed');
});

describe('a send that does not wait', () => {
  for (const [version, configuration] of [
    ['1.0', { returnImmediately: true }],
    ['0.3', { blocking: false }],
  ]) {
    test(`${version} ${JSON.stringify(configuration)}`, async () => {
      const names = VERSIONS[version];
      const script = stepwise();
      const { url } = await served(script.execute);
      const params = { message: names.message('go'), configuration };
      const answer = await ask(url, names.send, params, names.headers);
      assert.equal(stateOf(answer), 'working');
      script.runs[0].gate.resolve();
    });
  }
});

test('tasks are listed by pages, the latest first, and by state and context', async () => {
  const names = VERSIONS['1.0'];
  const { url } = await served((ctx) => {
    ctx.emitArtifact({ artifactId: 'a', parts: [{ text: 'x' }] });
    if (ctx.message.parts[0].text === '2') ctx.emitStatus('rejected');
  });
  const sent = [];
  for (const text of ['1', '2', '3']) {
    const message = { ...names.message(text), contextId: `context of ${text}` };
    sent.push((await ask(url, names.send, { message }, names.headers)).result.task);
  }
  const listed = async (params) => (await ask(url, 'ListTasks', params, names.headers)).result;
  const first = await listed({ pageSize: 2 });
  const rest = await listed({ pageSize: 2, pageToken: first.nextPageToken });
  assert.deepEqual(
    [...first.tasks, ...rest.tasks].map(({ id }) => id).sort(),
    sent.map(({ id }) => id).sort(),
  );
  assert.deepEqual([first.totalSize, first.pageSize, rest.nextPageToken], [3, 2, '']);
  assert.equal(first.tasks[0].artifacts, undefined);
  const rejected = await listed({ status: 'TASK_STATE_REJECTED', includeArtifacts: true });
  assert.deepEqual(
    rejected.tasks.map(({ id }) => id),
    [sent[1].id],
  );
  assert.equal(rejected.tasks[0].artifacts.length, 1);
  assert.equal((await listed({ contextId: 'context of 3' })).totalSize, 1);
  assert.equal((await listed({ historyLength: 0 })).tasks[0].history, undefined);
  const soon = new Date(Date.now() + 60_000).toISOString();
  assert.equal((await listed({ statusTimestampAfter: soon })).totalSize, 0);
  for (const wrong of [
    { pageSize: 0 },
    { pageSize: 101 },
    { status: 'x' },
    { pageToken: '%' },
    // Its count would be that of another list.
    { pageToken: first.nextPageToken, contextId: 'context of 3' },
    { pageToken: first.nextPageToken, status: 'TASK_STATE_REJECTED' },
    { pageToken: first.nextPageToken, statusTimestampAfter: soon },
    { statusTimestampAfter: 'x' },
  ])
    assert.equal((await ask(url, 'ListTasks', wrong, names.headers)).error.code, -32602);
  assert.equal((await ask(url, 'tasks/list', {})).result.length, 3);
});

test('so many finished tasks are remembered, and so many may live', async () => {
  const names = VERSIONS['1.0'];
  const script = stepwise();
  const { url, agent } = await served(script.execute, { limits: { maxTasks: 2, remembered: 1 } });
  const one = await begin(url, script, '1.0');
  const two = await begin(url, script, '1.0');
  const refused = await ask(url, names.send, { message: names.message('three') }, names.headers);
  assert.equal(refused.error.code, -32603);
  one.run.gate.resolve();
  await one.stream.rest();
  two.run.gate.resolve();
  await two.stream.rest();
  assert.equal(agent.counters.finished, 1);
  assert.equal((await asked(url, names, 'get', one.id)).error.code, -32001);
  const { totalSize } = (await ask(url, names.list, {}, names.headers)).result;
  assert.equal(totalSize, 1);
  assert.equal((await ask(url, 'tasks/list', {})).result.length, 1);
});

test('finished tasks are forgotten when they are old enough', async () => {
  const names = VERSIONS['1.0'];
  const script = stepwise();
  const { url, agent } = await served(script.execute, { limits: { rememberFor: 300 } });
  const { run, stream, id } = await begin(url, script, '1.0');
  run.gate.resolve();
  await stream.rest();
  while (agent.counters.finished) {
    const { result, error } = await asked(url, names, 'get', id);
    if (error) assert.equal(error.code, -32001);
    else assert.equal(stateOf({ result }), 'completed');
  }
  assert.equal((await asked(url, names, 'get', id)).error.code, -32001);
});

test('a task whose question nobody answers is canceled when it has waited long enough', async () => {
  const names = VERSIONS['1.0'];
  const { url } = await served((ctx) => ctx.emitStatus('input-required', 'Anybody?'), {
    limits: { rememberFor: 500 },
  });
  const sent = await ask(url, names.send, { message: names.message('go') }, names.headers);
  assert.equal(stateOf(sent), 'input-required');
  const { id } = sent.result.task;
  let state = 'input-required';
  while (state === 'input-required') state = stateOf(await asked(url, names, 'get', id));
  assert.equal(state, 'canceled');
});

test('the grace of a cancel begins with the cancel, however long nothing has happened before', async (t) => {
  const script = stepwise();
  const { url } = await served(script.execute, { grace: 60_000 });
  const { stream, run, id, names } = await begin(url, script, '1.0');
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
  assert.equal((await stream.rest()).map(gist).at(-1), 'completed');
});

test('what is said after the grace of a cancel comes too late, even where nobody has had the time to say so', async (t) => {
  const script = stepwise();
  const { url } = await served(script.execute, { grace: 60_000 });
  const { stream, run, id, names } = await begin(url, script, '1.0');
  const now = performance.now.bind(performance);
  run.ctx.signal.addEventListener('abort', () => {
    t.mock.method(performance, 'now', () => now() + 120_000);
    assert.equal(run.ctx.emitStatus('working', 'still'), false);
    run.gate.resolve();
  });
  assert.equal(stateOf(await ask(url, names.cancel, { id }, names.headers)), 'canceled');
  assert.deepEqual((await stream.rest()).map(gist), ['canceled']);
});

test('a task of the table alone is remembered from its end, however long it has run', async (t) => {
  await ready();
  const tasks = new Tasks({ rememberFor: 60_000 });
  const work = { onAbort: assert.fail, onState() {} };
  const task = tasks.begin('1', work);
  const now = performance.now.bind(performance);
  t.mock.method(performance, 'now', () => now() + 120_000);
  task.returns();
  assert.equal(task.state, 'completed');
  // What is due by now comes first.
  tasks.begin('2', work).lease(60_000);
  assert.equal(tasks.find('1'), work);
  tasks.forget('2'); // its lease would end in the midst of another test
});

describe('cards', () => {
  test('each version has its own, at its own path', async () => {
    const { url } = await served(() => {});
    const get = async (path, headers) => {
      const response = await fetch(url + path, { headers });
      assert.match(response.headers.get('content-type'), /^application\/json/);
      return response.json();
    };
    const latest = await get('.well-known/agent-card.json', { 'a2a-version': '1.0' });
    assert.deepEqual(
      latest.supportedInterfaces.map((i) => [i.url, i.protocolBinding, i.protocolVersion]),
      [
        [url, 'JSONRPC', '1.0'],
        [url, 'HTTP+JSON', '1.0'],
        [url, 'JSONRPC', '0.3'],
      ],
    );
    assert.deepEqual(latest.capabilities, {
      streaming: true,
      pushNotifications: false,
      extensions: [
        {
          uri: 'urn:abp-bridge:a2a:repeats',
          description: 'A message that comes again from its sender is taken once',
          required: false,
        },
      ],
      extendedAgentCard: false,
    });
    assert.deepEqual(await get('.well-known/agent-card.json'), latest);
    const legacy = await get('.well-known/agent-card.json', { 'a2a-version': '0.3' });
    assert.deepEqual(
      [legacy.url, legacy.preferredTransport, legacy.protocolVersion],
      [url, 'JSONRPC', '0.3'],
    );
    // Of 0.2, which is not spoken.
    assert.equal((await fetch(`${url}.well-known/agent.json`)).status, 404);
    const gem = await get('agentCard');
    assert.deepEqual(gem.interfaces, [{ type: 'json-rpc', url, version: '1.0' }]);
    assert.equal((await get('under/it/agentCard')).interfaces[0].url, `${url}under/it`);
    assert.equal((await fetch(`${url}elsewhere`)).status, 404);
    assert.equal((await fetch(url, { method: 'PUT' })).status, 405);
  });

  test('a host that is none is not repeated', async () => {
    const { http } = await served(() => {}, { hosts: '*' });
    const socket = connect(http.address().port, '127.0.0.1');
    socket.write('GET /agentCard HTTP/1.1\r\nHost: evil"><script>\r\nConnection: close\r\n\r\n');
    let text = '';
    for await (const chunk of socket) text += chunk;
    assert.match(text, /"url":"\/"/);
    assert.doesNotMatch(text, /<script/);
  });

  test('over HTTP/2 they tell the address that was asked, too', async () => {
    const agent = createTaskServer({ card: CARD, execute() {} });
    const http = createServer2(agent.handle).listen(0, '127.0.0.1');
    await once(http, 'listening');
    const origin = `http://127.0.0.1:${http.address().port}`;
    const client = connect2(origin);
    const request = client.request({ ':path': '/.well-known/agent-card.json' });
    let text = '';
    for await (const chunk of request) text += chunk;
    assert.equal(JSON.parse(text).supportedInterfaces[0].url, `${origin}/`);
    client.close();
    http.close();
    agent.close();
  });

  test('an agent that does not stream says so', async () => {
    const { url } = await served(() => {}, {}, { ...CARD, capabilities: { streaming: false } });
    const { capabilities } = await (await fetch(`${url}agentCard`)).json();
    assert.equal(capabilities.streaming, false);
    for (const { stream, resubscribe, message, headers } of Object.values(VERSIONS)) {
      const sent = await ask(url, stream, { message: message('go') }, headers);
      const again = await ask(url, resubscribe, { id: 'x' }, headers);
      assert.deepEqual([sent.error.code, again.error.code], [-32004, -32004]);
    }
  });
});

describe('requests that are none', () => {
  const error = async (body, headers) => {
    const response = await post(shared.url, body, headers);
    return { status: response.status, ...(await response.json()) };
  };
  let shared;
  test('are answered with the error that says why', async () => {
    shared = await served(() => {});
    const codes = [];
    for (const [body, headers] of [
      ['{'],
      ['', {}],
      ['[]'],
      ['null'],
      ['"x"'],
      ['{"method":"tasks/get"}'],
      ['{"jsonrpc":"2.0","id":1}'],
      ['{"jsonrpc":"2.0","id":{},"method":"tasks/get","params":{}}'],
      ['{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":[]}'],
      ['{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":"x"}'],
      ['{"jsonrpc":"2.0","id":1,"method":"constructor","params":{}}'],
      ['{"jsonrpc":"2.0","id":1,"method":"no/such","params":{}}'],
      ['{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"x"}}', { 'a2a-version': '7' }],
      ['{}', { 'content-type': 'text/plain' }],
      ['{}', { 'content-encoding': 'gzip' }],
      ['{}', { 'a2a-version': '1.0' }],
      ['{"jsonrpc":"2.0","method":"tasks/cancel","params":{"id":"x"}}'],
      ['{"jsonrpc":"2.0","id":1,"method":"message/send","params":{}}'],
      ['{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"parts":[]}}}'],
      ['{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"messageId":"x"}}}'],
      ['{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotification/set","params":{}}'],
      ['{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/set","params":{}}'],
      ['{"jsonrpc":"2.0","id":1,"method":"CreateTaskPushNotificationConfig","params":{}}'],
      ['{"jsonrpc":"2.0","id":1,"method":"agent/getAuthenticatedExtendedCard"}'],
      ['{"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard"}'],
      [
        `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":${'['.repeat(9000)}${']'.repeat(9000)}}`,
      ],
      [
        `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"messageId":"x","parts":[],"metadata":${'{"a":'.repeat(9000)}1${'}'.repeat(9000)}}}}`,
      ],
    ]) {
      const answer = await error(body, headers);
      assert.equal(answer.status, 200);
      assert.equal(answer.jsonrpc, '2.0');
      assert.ok('id' in answer);
      assert.equal(typeof answer.error.message, 'string');
      codes.push(answer.error.code);
    }
    assert.deepEqual(
      codes,
      [
        -32700, -32700, -32600, -32600, -32600, -32600, -32600, -32600, -32602, -32602, -32601,
        -32601, -32009, -32005, -32005, -32600, -32001, -32602, -32602, -32602, -32003, -32003,
        -32003, -32004, -32004, -32602, -32602,
      ],
    );
  });

  test('__proto__ is data', async () => {
    const { url } = await served((ctx) => {
      ctx.emitArtifact({ artifactId: '__proto__', parts: ctx.message.parts });
    });
    const body =
      '{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"__proto__":{"message":{"taskId":"x"}},' +
      '"message":{"__proto__":{"taskId":"x"},"messageId":"m","role":"ROLE_USER","metadata":{"__proto__":{"a":1}},' +
      '"parts":[{"data":{"__proto__":{"polluted":true}}}]}}}';
    const text = await (await post(url, body)).text();
    const { task } = JSON.parse(text).result;
    assert.match(text, /"__proto__":\{"polluted":true\}/);
    assert.equal(task.artifacts[0].artifactId, '__proto__');
    assert.notEqual(task.id, 'x');
    assert.equal({}.polluted, undefined);
    const inherited =
      '{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"__proto__":{"id":"x"}}}';
    assert.equal((await (await post(url, inherited)).json()).error.code, -32602);
  });

  test('a body of 100 MB is refused before it has come, in bounded memory', async () => {
    const { http } = await served(() => {});
    for (const head of ['Content-Length: 104857600', 'Transfer-Encoding: chunked']) {
      const socket = connect(http.address().port, '127.0.0.1');
      socket.on('error', () => {});
      const before = process.memoryUsage.rss();
      socket.write(
        `POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${head}\r\n\r\n`,
      );
      const piece = 'x'.repeat(1 << 20);
      const chunk = `100000\r\n${piece}\r\n`;
      let text = '';
      socket.setEncoding('utf8').on('data', (data) => (text += data));
      let sent = 0;
      // Where its length says enough, none of it need come.
      const announced = head.startsWith('Content-Length');
      for (; !announced && sent < 100 && !text.includes('\r\n\r\n'); sent++) {
        if (!socket.write(chunk)) await Promise.race([once(socket, 'drain'), once(socket, 'data')]);
        await new Promise(setImmediate);
      }
      assert.ok(sent < 50, `${sent} MB were taken before the answer`);
      while (!text.includes('}}')) await once(socket, 'data');
      assert.match(text, /^HTTP\/1.1 413 /);
      assert.equal(JSON.parse(/\{.*\}/.exec(text)[0]).error.code, -32600);
      assert.ok(process.memoryUsage.rss() - before < 64 << 20);
      socket.destroy();
    }
  });
});

describe('readers', () => {
  test('one that leaves cancels nothing, and leaves nothing behind', async () => {
    const names = VERSIONS['1.0'];
    const script = stepwise();
    const { url, agent } = await served(script.execute);
    const { id, run, stream } = await begin(url, script, '1.0');
    assert.equal(agent.counters.streams, 1);
    stream.leave();
    while (agent.counters.streams) await new Promise(setImmediate);
    assert.equal(run.ctx.signal.aborted, false);
    run.ctx.emitArtifact({ artifactId: 'unseen', parts: [] });
    run.gate.resolve();
    await run.returned.promise;
    const { result } = await asked(url, names, 'get', id);
    assert.equal(stateOf({ result }), 'completed');
    assert.equal(result.artifacts.length, 1);
  });

  test('one that does not read is cut off, and the task and its other readers go on', async () => {
    const names = VERSIONS['1.0'];
    const script = stepwise();
    const { url, agent } = await served(script.execute, { maxUnread: 1 << 20 });
    const { id, run, stream: slow } = await begin(url, script, '1.0');
    slow.response.pause();
    const other = await open(url, names.resubscribe, { id }, names.headers);
    await other.next();
    const text = 'x'.repeat(1 << 18);
    let told = 0;
    for (; agent.counters.streams > 1; told++) {
      assert.ok(told < 400, 'the slow reader is still served');
      run.ctx.emitArtifact({ artifactId: 'log', parts: [{ text }] });
      await other.next();
    }
    run.gate.resolve();
    assert.deepEqual((await other.rest()).map(gist), ['completed']);
    assert.equal(stateOf(await asked(url, names, 'get', id)), 'completed');
  });

  test('one whose stream is silent hears a comment now and then, if that is wanted', async () => {
    const script = stepwise();
    const { url } = await served(script.execute, { keepAlive: 5 });
    const { run, stream } = await begin(url, script, '1.0');
    const rest = stream.rest();
    while (stream.comments < 2) await new Promise(setImmediate);
    run.gate.resolve();
    assert.deepEqual((await rest).map(gist), ['completed']);
  });
});

test('a server that closes cancels its tasks, ends their streams, and refuses what comes then', async () => {
  const names = VERSIONS['1.0'];
  const script = stepwise();
  const { url, agent } = await served(script.execute);
  const tasks = [await begin(url, script, '1.0'), await begin(url, script, 'gem')];
  agent.close();
  for (const { stream, run } of tasks) {
    assert.deepEqual((await stream.rest()).map(gist), ['canceled']);
    assert.equal(run.ctx.signal.aborted, true);
    run.gate.resolve();
  }
  const late = await ask(url, names.send, { message: names.message('late') }, names.headers);
  assert.equal(late.error.code, -32603);
});

describe('a core that traps', () => {
  for (const name of ['says', 'artifact', 'find', 'wish', 'advance', 'add', 'returns'])
    test(`in "${name}": its tasks have failed, whoever waits hears so, and the agent goes on`, async () => {
      const names = VERSIONS['1.0'];
      const script = stepwise();
      const { url, agent } = await served(script.execute);
      const running = script.nextRun();
      const send = sent(url, names, 'kept waiting');
      await running;
      const { stream, run, id } = await begin(url, script, '1.0');
      const { instance, said } = trap(name, 'says');
      if (name === 'says') assert.equal(run.ctx.emitStatus('working', 'hm'), false);
      else if (name === 'artifact') assert.equal(run.ctx.emitArtifact({ parts: [] }), false);
      else if (name === 'returns') run.gate.resolve();
      else if (name === 'add') assert.ok((await sent(url, names, 'new')).error);
      else assert.ok((await asked(url, names, 'cancel', id)).error);
      assert.match(await said, /core of the tasks failed/);
      assert.deepEqual((await stream.rest()).map(gist), ['failed']);
      assert.equal(stateOf(await send), 'failed');
      assert.equal(run.ctx.signal.aborted, name !== 'returns');
      // What was said of the lost task is nobody else's, though its number may be.
      const next = await begin(url, script, '1.0');
      assert.notEqual(instanceWith('says'), instance);
      assert.equal(run.ctx.emitStatus('failed'), false);
      run.gate.resolve();
      script.runs[0].gate.resolve();
      await script.runs[0].returned.promise;
      next.run.gate.resolve();
      assert.deepEqual((await next.stream.rest()).map(gist), ['completed']);
      assert.equal(agent.counters.finished, 1);
      assert.equal((await asked(url, names, 'get', id)).error.code, -32001);
    });

  test('fails the stream of a client, whose next one is none the worse', async () => {
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

describe('a cancel that races the completion', () => {
  const names = VERSIONS['1.0'];
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

  test('three hundred times: stream, store and answer agree every time', async () => {
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
      const told = gist(JSON.parse(text.trim().split('\n\n').at(-1).slice(6)));
      const stored = stateOf(await answered(agent, names.get, { id }));
      assert.equal(stored, told);
      if (answer.error) assert.deepEqual([answer.error.code, told], [-32002, 'completed']);
      else assert.deepEqual([stateOf(answer), told], ['canceled', 'canceled']);
      outcomes[told]++;
    };
    for (let n = 0; n < 320; n += 20)
      await Promise.all(Array.from({ length: 20 }, (_, i) => race(n + i)));
    assert.equal(outcomes.canceled + outcomes.completed, 320);
    assert.ok(Math.min(outcomes.canceled, outcomes.completed) > 16, JSON.stringify(outcomes));
    agent.close();
  });

  test('in the very turn of the completion: who came first has it', async () => {
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
      const told = stateOf(await answered(agent, names.send, { message }));
      while (answers.length <= n) await new Promise(setImmediate);
      const [answer, stored] = answers[n];
      assert.equal(stored, told);
      assert.equal(answer.error ? 'completed' : stateOf(answer), told);
    }
    const completed = answers.filter(([answer]) => answer.error).length;
    assert.ok(completed > 12 && completed < 228, `${completed} of 240 completed`);
    agent.close();
  });
});

test('1,000 tasks at once, a third of them cancelled: each has its own outcome, and none leaves anything', async () => {
  const names = VERSIONS['1.0'];
  const script = stepwise();
  const { url, agent } = await served(script.execute);
  const streams = [];
  for (let n = 0; n < 1000; n += 100) {
    streams.push(
      ...(await Promise.all(
        Array.from({ length: 100 }, (_, i) =>
          open(url, names.stream, { message: names.message(String(n + i)) }, names.headers),
        ),
      )),
    );
  }
  assert.deepEqual(agent.counters, { live: 1000, finished: 0, dropped: 0, streams: 1000 });
  const ids = await Promise.all(
    streams.map(async (stream) => (await stream.next()).result.task.id),
  );
  const cancelled = ids.filter((_, i) => i % 3 === 0);
  for (let n = 0; n < cancelled.length; n += 50)
    await Promise.all(cancelled.slice(n, n + 50).map((id) => asked(url, names, 'cancel', id)));
  for (const run of script.runs) run.gate.resolve();
  const lasts = await Promise.all(
    streams.map(async (stream) => gist((await stream.rest()).at(-1))),
  );
  assert.deepEqual(
    lasts,
    ids.map((_, i) => (i % 3 === 0 ? 'canceled' : 'completed')),
  );
  assert.deepEqual(agent.counters, { live: 0, finished: 1000, dropped: 0, streams: 0 });
});

describe('mounted elsewhere', () => {
  const names = VERSIONS['0.3'];
  const request = (params, method = names.stream) =>
    new Request('http://agent.example/a2a', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
  const steps = (ctx) => {
    ctx.emitArtifact({ artifactId: 'a', parts: [{ text: '1' }] });
  };

  for (const [what, parse] of [
    ['an object', JSON.parse],
    ['a text', String],
    ['bytes', Buffer.from],
  ])
    test(`among the middleware of another server, below a path, after a parser of bodies into ${what}`, async () => {
      const agent = createTaskServer({ card: CARD, execute: steps });
      const http = createServer(async (request, response) => {
        // What Express does: the path it is mounted at goes, the body is parsed.
        request.originalUrl = request.url;
        request.url = request.url.replace('/a2a', '');
        let text = '';
        for await (const chunk of request) text += chunk;
        if (text) request.body = parse(text);
        void agent.handle(request, response, () => response.writeHead(418).end());
      });
      http.listen(0, '127.0.0.1');
      await once(http, 'listening');
      const url = `http://127.0.0.1:${http.address().port}/a2a`;
      const card = await (await fetch(`${url}/.well-known/agent-card.json`)).json();
      assert.equal(card.supportedInterfaces[0].url, url);
      assert.equal(
        stateOf(await ask(url, names.send, { message: names.message('go') })),
        'completed',
      );
      assert.equal((await fetch(`${url}/else`)).status, 418);
      assert.equal((await fetch(url, { method: 'DELETE' })).status, 418);
      http.close();
      http.closeAllConnections();
    });

  test('in a server in the style of fetch', async () => {
    const agent = createTaskServer({ card: CARD, execute: steps });
    const card = await agent.fetch(
      new Request('http://agent.example/a2a/.well-known/agent-card.json'),
    );
    const [{ url }] = (await card.json()).supportedInterfaces;
    assert.equal(url, 'http://agent.example/a2a');
    const response = await agent.fetch(request({ message: names.message('go') }));
    const frames = (await response.text()).split('\n\n').filter(Boolean);
    assert.deepEqual(
      frames.map((frame) => gist(JSON.parse(frame.slice(6)))),
      ['task submitted', 'working', 'artifact a', 'completed'],
    );
    const long = new Request(request({ text: 'x'.repeat(5 << 20) }));
    assert.equal((await agent.fetch(long)).status, 413);
    assert.equal((await agent.fetch(new Request('http://agent.example/x'))).status, 404);
    agent.close();
  });

  test('in a server in the style of fetch, whose reader leaves or does not read', async () => {
    const script = stepwise();
    const agent = createTaskServer({ card: CARD, execute: script.execute }, { maxUnread: 1 << 16 });
    const running = script.nextRun();
    const response = await agent.fetch(request({ message: names.message('go') }));
    const { ctx, gate } = await running;
    const again = await agent.fetch(request({ id: ctx.task.id }, names.resubscribe));
    assert.equal(agent.counters.streams, 2);
    await response.body.cancel();
    assert.equal(agent.counters.streams, 1);
    const parts = [{ text: 'x'.repeat(1 << 16) }];
    while (agent.counters.streams) ctx.emitArtifact({ artifactId: 'log', parts });
    await assert.rejects(again.text(), RangeError);
    assert.equal(ctx.signal.aborted, false);
    gate.resolve();
    agent.close();
  });

  test('at the end of a port, where each request has a stream of its own', async () => {
    const script = stepwise();
    const agent = createTaskServer({ card: CARD, execute: script.execute });
    const { port1, port2 } = new MessageChannel();
    const stop = agent.serve(portTransport(port1));
    const heard = [];
    let more = deferred();
    port2.on('message', (message) => {
      heard.push(message);
      more.resolve();
    });
    const until = async (find) => {
      for (;;) {
        const found = heard.find(find);
        if (found) return found;
        more = deferred();
        await more.promise;
      }
    };
    const say = (stream, method, params) =>
      port2.postMessage({
        type: 'a2a/request',
        stream,
        request: { jsonrpc: '2.0', id: 1, method, params },
      });
    port2.postMessage({ type: 'a2a/card', stream: 'card', version: '1.0' });
    assert.equal((await until(({ stream }) => stream === 'card')).result.name, CARD.name);
    const running = script.nextRun();
    say(1, names.stream, { message: names.message('go') });
    const { ctx, gate } = await running;
    say(2, names.resubscribe, { id: ctx.task.id });
    await until(({ stream }) => stream === 2);
    port2.postMessage({ type: 'a2a/leave', stream: 2 });
    say(3, names.cancel, { id: ctx.task.id });
    const answer = await until(({ stream }) => stream === 3);
    assert.equal(stateOf(answer.result), 'canceled');
    await until(({ type, stream }) => type === 'a2a/end' && stream === 1);
    const frames = heard.filter(({ type, stream }) => type === 'a2a/result' && stream === 1);
    assert.deepEqual(
      frames.map(({ result }) => gist(result)),
      ['task submitted', 'working', 'canceled'],
    );
    assert.equal(heard.filter(({ stream }) => stream === 2).length, 1);
    port2.postMessage({ type: 'a2a/request', stream: 4, request: { cyclic: new Map(), n: 1n } });
    assert.equal((await until(({ stream }) => stream === 4)).result.error.code, -32700);
    gate.resolve();
    stop();
    port1.close();
    agent.close();
  });

  test('at the end of a port that it stops serving: streams end there, and tasks go on', async () => {
    const script = stepwise();
    const agent = createTaskServer({ card: CARD, execute: script.execute });
    const posted = [];
    const transport = { post: (message) => posted.push(message), onMessage() {}, close() {} };
    const stop = agent.serve(transport);
    const running = script.nextRun();
    const params = { message: names.message('go') };
    const asks = { jsonrpc: '2.0', id: 1, method: names.stream, params };
    transport.onMessage({ type: 'a2a/request', stream: 1, request: asks }, []);
    const { ctx, gate } = await running;
    stop();
    ctx.emitArtifact({ artifactId: 'unseen', parts: [] });
    assert.deepEqual(
      posted.map(({ type, result }) => (result ? gist(result) : type)),
      ['task submitted', 'working', 'a2a/end'],
    );
    assert.deepEqual([agent.counters.streams, ctx.signal.aborted], [0, false]);
    gate.resolve();
    agent.close();
  });

  test('at the end of a port, whose reader leaves before its request has been looked at', async () => {
    const script = stepwise();
    const agent = createTaskServer({ card: CARD, execute: script.execute });
    const posted = [];
    const transport = { post: (message) => posted.push(message), onMessage() {}, close() {} };
    agent.serve(transport);
    const running = script.nextRun();
    const params = { message: names.message('go') };
    const asks = { jsonrpc: '2.0', id: 1, method: names.stream, params };
    transport.onMessage({ type: 'a2a/request', stream: 1, request: asks }, []);
    transport.onMessage({ type: 'a2a/leave', stream: 1 }, []);
    const { ctx, gate } = await running;
    ctx.emitArtifact({ artifactId: 'unseen', parts: [] });
    assert.equal(agent.counters.streams, 0);
    assert.deepEqual(posted, []);
    gate.resolve();
    transport.onClose();
    agent.close();
  });
});
