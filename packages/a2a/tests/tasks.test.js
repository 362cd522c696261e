// The life of a task in each version: what it streams, stores, asks and ends with.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AbpError } from 'abp-bridge';
import {
  VERSIONS,
  ask,
  updateOf,
  open,
  servingUntilEnd,
  stateOf,
  deferred,
} from './support/a2a.js';
import { stepwise, beginTask, askAbout } from './support/stepwise.js';
import { createTaskClient } from '../src/index.js';

const ALL = Object.keys(VERSIONS);

const served = servingUntilEnd();
const names = VERSIONS['1.0'];

for (const version of ALL) {
  const names = VERSIONS[version];

  test(`${version}: a task streams its states and artifacts in order, and is stored as it was streamed`, async () => {
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
      frames.map(updateOf).filter((about) => !about.startsWith('task')),
      ['working', ...artifacts, 'completed'],
    );
    const { taskId } = frames.at(-1).result.statusUpdate ?? frames.at(-1).result;
    const { result } = await askAbout(url, names, 'get', taskId);
    assert.deepEqual(
      result.artifacts.map(({ parts }) => parts.map(({ text }) => text)),
      [['1', '2'], ['y']],
    );
    assert.equal(stateOf({ result }), 'completed');
  });

  test(`${version}: a blocking send is answered with the task when it has ended`, async () => {
    const { url } = await served((ctx) => ctx.emitStatus('failed', 'no luck'));
    const answer = await ask(url, names.send, { message: names.message('go') }, names.headers);
    assert.equal(stateOf(answer), 'failed');
  });

  test(`${version}: a resubscription begins with the task and ends with it; a task that has ended is refused`, async () => {
    const script = stepwise();
    const { url } = await served(script.execute);
    const { id, stream, run } = await beginTask(url, script, version);
    run.ctx.emitArtifact({ artifactId: 'one', parts: [] });
    const other = await open(url, names.resubscribe, { id }, names.headers);
    assert.equal(updateOf(await other.next()), 'task working');
    // Without a store there are no numbers to go on from.
    for (const number of ['1.0', '0.0', 'x', '9'.repeat(99)]) {
      const headers = { ...names.headers, 'last-event-id': number };
      const numbered = await open(url, names.resubscribe, { id }, headers);
      assert.equal(updateOf(await numbered.next()), 'task working');
      numbered.leave();
    }
    run.ctx.emitArtifact({ artifactId: 'two', parts: [] });
    run.gate.resolve();
    assert.deepEqual((await other.rest()).map(updateOf), ['artifact two', 'completed']);
    assert.deepEqual((await stream.rest()).map(updateOf), [
      'artifact one',
      'artifact two',
      'completed',
    ]);
    if (version === '0.3') {
      const [frame] = await (await open(url, names.resubscribe, { id }, names.headers)).rest();
      assert.equal(frame.event, 'error');
      assert.equal(frame.error.code, -32004);
    } else assert.equal((await askAbout(url, names, 'resubscribe', id)).error.code, -32004);
  });

  test(`${version}: a task that asks for input ends its stream, and goes on with the answer`, async () => {
    const { url } = await served((ctx) => {
      const [{ text }] = ctx.message.parts;
      if (text === 'go') ctx.emitStatus('input-required', 'Which one?');
      else ctx.emitArtifact({ artifactId: 'answer', parts: [{ text }] });
    });
    const stream = await open(url, names.stream, { message: names.message('go') }, names.headers);
    const asks = (await stream.rest()).at(-1);
    assert.equal(updateOf(asks), 'input-required');
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

  test(`${version}: every answer has the spelling of the version`, async () => {
    const { url } = await served((ctx) => ctx.emitStatus('auth-required', 'Log in'));
    const { result } = await ask(url, names.send, { message: names.message('go') }, names.headers);
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
}

test('1.0: a send with returnImmediately is answered with the task that works', async () => {
  const script = stepwise();
  const { url } = await served(script.execute);
  const params = { message: names.message('go'), configuration: { returnImmediately: true } };
  const answer = await ask(url, names.send, params, names.headers);
  assert.equal(stateOf(answer), 'working');
  script.runs[0].gate.resolve();
});

test('updates of an earlier run are dropped once a message has begun another', async () => {
  const script = stepwise();
  const { url } = await served(script.execute);
  const { id, run: first, stream } = await beginTask(url, script, '1.0');
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

test('an executor that throws after the cancel of its task fails nothing', async () => {
  const script = stepwise();
  const { url } = await served(script.execute);
  const cancelled = await beginTask(url, script, '1.0');
  await askAbout(url, names, 'cancel', cancelled.id);
  cancelled.run.gate.reject(new Error('aborted'));
  assert.deepEqual((await cancelled.stream.rest()).map(updateOf), ['canceled']);
  assert.equal(stateOf(await askAbout(url, names, 'get', cancelled.id)), 'canceled');
});

test('emitting something other than an artifact or a message throws, and nothing is sent', async () => {
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
  const stream = await open(url, names.stream, { message: names.message('go') }, names.headers);
  assert.deepEqual((await stream.rest()).map(updateOf), [
    'task submitted',
    'working',
    'artifact a',
    'artifact a',
    'completed',
  ]);
  assert.deepEqual(heard, Array(14).fill(TypeError));
});

test('tasks are listed in pages, the latest first, and filtered by state and context', async () => {
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

test('each of 1,000 tasks at once has its own outcome, though a third is cancelled, and nothing is left', async () => {
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
    await Promise.all(cancelled.slice(n, n + 50).map((id) => askAbout(url, names, 'cancel', id)));
  for (const run of script.runs) run.gate.resolve();
  const lasts = await Promise.all(
    streams.map(async (stream) => updateOf((await stream.rest()).at(-1))),
  );
  assert.deepEqual(
    lasts,
    ids.map((_, i) => (i % 3 === 0 ? 'canceled' : 'completed')),
  );
  assert.deepEqual(agent.counters, { live: 0, finished: 1000, dropped: 0, streams: 0 });
});

test('the error of an executor is logged; the client receives the message of an AbpError or a general one', async (t) => {
  const reported = [];
  t.mock.method(console, 'error', (...args) => reported.push(args.at(-1)));
  const secret = new Error('password of the database: x');
  for (const [thrown, text] of [
    [secret, 'The agent failed to execute the task'],
    [new AbpError('OPERATION_FAILED', 'No such city'), 'No such city'],
    [{ code: 'NO_CITY', message: 'No such city' }, 'No such city'],
  ]) {
    const { url } = await served(() => Promise.reject(thrown));
    const { status } = await createTaskClient(url).send('go');
    assert.equal(status.state, 'failed');
    assert.equal(status.message.parts[0].text, text);
  }
  assert.deepEqual(reported, [secret]);
});

test('0.3: message/send waits unless `blocking` is false', async () => {
  const { send, message } = VERSIONS['0.3'];
  const gate = deferred();
  const { url } = await served(
    ({ message: { parts } }) => parts[0].text === 'long' && gate.promise,
  );
  for (const configuration of [undefined, {}, { acceptedOutputModes: ['text/plain'] }])
    assert.equal(
      stateOf(await ask(url, send, { message: message('go'), configuration })),
      'completed',
    );
  const params = { message: message('long'), configuration: { blocking: false } };
  assert.notEqual(stateOf(await ask(url, send, params)), 'completed');
  gate.resolve();
});
