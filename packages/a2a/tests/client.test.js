import assert from 'node:assert/strict';
import { test as nodeTest } from 'node:test';
import { createTaskClient, createTaskServer } from '../src/index.js';
import { portTransport } from 'abp-bridge/driver';
import { startAgent, task } from './support/a2a-agent.js';
import { deferred } from './support/a2a.js';
import { recording, replay } from './support/a2a-replay.js';
import { useClock } from '../../../tests/support/clock.js';

/** What a peer is waited for may never come: a test that waits fails. */
const test = (name, run) => nodeTest(name, { timeout: 60_000 }, run);

/** Collects the rest of a stream. */
async function rest(stream) {
  const events = [];
  for (;;) {
    const { value, done } = await stream.next();
    if (done) return events;
    events.push(value);
  }
}
const stateOf = (event) => event.status?.state ?? event.task?.status.state ?? event.kind;

// --- Server-sent events --------------------------------------------------------------------------

const bytesOf = (text) => new TextEncoder().encode(text);
const statusOf = (text, state = 'WORKING') => ({
  taskId: 't',
  contextId: 'c',
  status: {
    state: `TASK_STATE_${state}`,
    message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text }] },
  },
});
const frameOf = (result) => JSON.stringify({ jsonrpc: '2.0', id: 1, result });
const says = (...status) => frameOf({ statusUpdate: statusOf(...status) });
const END = `data: ${says('end', 'COMPLETED')}\n\n`;

/**
 * A stream of an agent that says these bytes, and that its task has ended when it is asked for
 * that.
 */
function streamOf(chunks, limits = {}) {
  const answers = [[chunks, 'text/event-stream']];
  const { taskId: id, contextId, status } = statusOf('end', 'COMPLETED');
  const task = frameOf({ id, contextId, status });
  const fetch = async () => {
    const [source, type] = answers.shift() ?? [[bytesOf(task)], 'application/json'];
    return new Response(ReadableStream.from(source), { headers: { 'content-type': type } });
  };
  const options = { version: /** @type {const} */ ('1.0'), fetch, limits: { retry: 1, ...limits } };
  return createTaskClient('http://agent.example/', options).subscribe('go');
}
/** What it says in statuses. */
const textsOf = async (stream) =>
  (await rest(stream)).flatMap(({ status }) => (status ? [status.message.parts[0].text] : []));
const slices = (bytes, size) =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
    bytes.subarray(i * size, (i + 1) * size),
  );

const [A, B] = [says('a'), says('b')];
const [A1, A2] = [A.slice(0, A.indexOf('"id"')), A.slice(A.indexOf('"id"'))];
const LINES = `data: ${A1}\ndata: ${A2}\n\ndata: ${B}\n\n${END}`;
for (const [what, text, told = ['a', 'b', 'end']] of [
  ['line feeds end lines', LINES],
  ['carriage returns end lines', LINES.replaceAll('\n', '\r')],
  ['both end a line once', LINES.replaceAll('\n', '\r\n')],
  ['a byte order mark is skipped', `\ufeffdata: ${says('ä€😀')}\n\n${END}`, ['ä€😀', 'end']],
  ['comments are skipped', `: ping\n\n:\n\ndata: ${A1}\n: x\ndata: ${A2}\n\n${END}`, ['a', 'end']],
  ['a space after the colon is not needed', `data:${A1}\ndata:  ${A2}\n\n${END}`, ['a', 'end']],
  ['a field may have no colon', `data\ndata: ${A}\ndata\n\n${END}`, ['a', 'end']],
  ['an event has a type', `event: error\ndata: ${A}\n\n${END}`, ['a', 'end']],
  ['unknown fields are skipped', `retry: 9\nfoo: bar\n\ndata: ${A}\n\n${END}`, ['a', 'end']],
  ['an event without data is none', `event: x\n\n${END}`, ['end']],
  ['an event that the stream cuts off is none', `data: ${A}\n\ndata: ${B}\n`, ['a']],
]) {
  test(`server-sent events: ${what}, however the stream is cut`, async () => {
    const bytes = bytesOf(text);
    for (let size = 1; size <= bytes.length; size = size < 8 ? size + 1 : size * 2)
      assert.deepEqual(
        await textsOf(streamOf(slices(bytes, size))),
        told,
        `${size} bytes at a time`,
      );
  });
}

for (const [what, text] of [
  ['line', 'x'],
  ['data line', 'data: x'],
  ['event', 'data: x\n'],
  ['comment', ': x'],
]) {
  test(`server-sent events: an endless ${what} is an error, and never kept`, async () => {
    let read = 0;
    const endless = (function* () {
      for (;;) yield (read++, bytesOf(text));
    })();
    const stream = streamOf(endless, { maxEvent: 1000 });
    await assert.rejects(rest(stream), { name: 'AbpError', code: 'TOO_LARGE' });
    assert.ok(read < 2000, `${read}`);
  });
}

test('server-sent events: megabytes of carriage returns are read in one go', async () => {
  // Looking for the line feed behind each of them took an hour.
  const stream = streamOf([new Uint8Array(2 ** 23).fill(13), bytesOf(END)], { maxEvent: 1000 });
  assert.deepEqual(await textsOf(stream), ['end']);
});

test('server-sent events: a stream of any length may pass', async () => {
  const frame = bytesOf(`data: ${A}\n\n: y\n\n`);
  const stream = streamOf([...Array(2000).fill(frame), bytesOf(END)], { maxEvent: 400 });
  assert.equal((await textsOf(stream)).length, 2001);
});

test('a stream keeps the latest messages of its task, and no more than it has room for', async () => {
  const history = (stream) => stream.task.history.map(({ parts }) => parts[0].text);
  const event = (text) => bytesOf(`data: ${text}\n\n`);
  const texts = [
    ...Array(1001).fill(''),
    ...Array.from({ length: 20 }, (_, i) => `${i}`.padEnd(1000)),
  ];
  const latest = Array.from({ length: 9 }, (_, i) => i + 11);
  const task = { id: 't', contextId: 'c', status: statusOf('').status, artifacts: [] };
  task.history = [11, 12].map((i) => ({ ...statusOf(`${i}`.padEnd(1000)).status.message }));
  const stream = streamOf(
    [
      ...texts.map((text) => event(says(text))),
      event(frameOf({ task })),
      ...Array(7).fill(event(says('x'.repeat(1000)))),
      bytesOf(END),
    ],
    { maxTask: 10_000 },
  );
  for (let i = 0; i < 1001; i++) await stream.next();
  assert.ok(history(stream).length < 200);
  for (let i = 0; i < 20; i++) await stream.next();
  assert.deepEqual(history(stream).map(Number), latest);
  for (let i = 0; i < 8; i++) await stream.next();
  assert.equal(history(stream).length, 9);
  await rest(stream);
});

// --- Recordings ----------------------------------------------------------------------------------

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
    assert.deepEqual(tasks.map(stateOf), Array(3).fill('canceled'));
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

// --- Signals -------------------------------------------------------------------------------------

/** A client of a scripted agent, with a subscription. */
async function begun(t, { signal, ...options } = {}) {
  const agent = await startAgent();
  t.after(() => agent.close());
  const client = createTaskClient(agent.url, { version: '1.0', ...options });
  const stream = client.subscribe('go', { signal });
  return { agent, client, stream };
}
/** The same, up to its first event. */
async function working(t, options) {
  const all = await begun(t, options);
  const first = all.stream.next();
  const gem = options?.version === 'gem';
  const asked = await all.agent.next(gem ? 'tasks/sendSubscribe' : 'SendStreamingMessage');
  asked.open().status('t', 'WORKING');
  assert.equal(stateOf((await first).value), 'working');
  return { ...all, asked };
}

test('a signal aborted before anything was sent: nothing is sent', async (t) => {
  const { agent, client, stream } = await begun(t, { signal: AbortSignal.abort('no more') });
  await assert.rejects(stream.next(), (reason) => reason === 'no more');
  await assert.rejects(
    client.send('go', { signal: AbortSignal.abort('nor this') }),
    (reason) => reason === 'nor this',
  );
  assert.deepEqual(agent.seen, []);
});

test('a signal aborted before the stream is read: nothing is sent', async (t) => {
  const stop = new AbortController();
  const { agent, stream } = await begun(t, { signal: stop.signal });
  stop.abort();
  await assert.rejects(stream.next(), { name: 'AbortError' });
  assert.deepEqual(agent.seen, []);
});

test('a signal aborted while the card is asked for: no message is sent', async (t) => {
  const stop = new AbortController();
  const { agent, stream } = await begun(t, { signal: stop.signal, version: undefined });
  const first = stream.next();
  const card = await agent.next('/.well-known/agent-card.json');
  stop.abort();
  const supportedInterfaces = [
    { url: agent.url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
  ];
  card.raw(
    200,
    'application/json',
    JSON.stringify({ capabilities: { streaming: true }, supportedInterfaces }),
  );
  await assert.rejects(first, { name: 'AbortError' });
  assert.deepEqual(agent.seen, ['/.well-known/agent-card.json']);
});

test('a signal aborted before the id is known: the cancel is sent as soon as it is', async (t) => {
  const stop = new AbortController();
  const { agent, stream } = await begun(t, { signal: stop.signal });
  const events = rest(stream);
  const asked = await agent.next('SendStreamingMessage');
  stop.abort('enough');
  asked.open().frame({ task: task('t', 'SUBMITTED') });
  const cancel = await agent.next('CancelTask');
  assert.deepEqual(cancel.rpc.params, { id: 't', metadata: { reason: 'enough' } });
  cancel.answer({ result: task('t', 'CANCELED') });
  asked.status('t', 'CANCELED').end();
  assert.deepEqual((await events).map(stateOf), ['submitted', 'canceled']);
  assert.deepEqual(agent.seen, ['SendStreamingMessage', 'CancelTask']);
});

for (const [what, sent, refused] of [
  ['has completed when it is known', 'COMPLETED', []],
  ['completes before its cancel comes', 'WORKING', ['CancelTask', 'GetTask']],
]) {
  test(`an agent without streams: a task that ${what} is what a send brings, aborted or not`, async (t) => {
    const stop = new AbortController();
    const { agent, client } = await begun(t, { version: undefined });
    const answer = client.send('go', { signal: stop.signal });
    const card = await agent.next('/.well-known/agent-card.json');
    const supportedInterfaces = [
      { url: agent.url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    ];
    const capabilities = { streaming: false };
    card.raw(200, 'application/json', JSON.stringify({ capabilities, supportedInterfaces }));
    const asked = await agent.next('SendMessage');
    stop.abort('enough');
    asked.answer({ result: { task: task('t', sent) } });
    if (refused.length) {
      const cancel = await agent.next('CancelTask');
      assert.deepEqual(cancel.rpc.params, { id: 't', metadata: { reason: 'enough' } });
      cancel.answer({ error: { code: -32002, message: 'Task not cancelable: t' } });
      (await agent.next('GetTask')).answer({ result: task('t', 'COMPLETED') });
    }
    assert.equal((await answer).status.state, 'completed');
    assert.deepEqual(agent.seen.slice(1), ['SendMessage', ...refused]);
  });
}

test('a stream left after its signal and before its id is known: the cancel is sent all the same', async (t) => {
  const stop = new AbortController();
  const { agent, stream } = await begun(t, { signal: stop.signal });
  void stream.next();
  const asked = await agent.next('SendStreamingMessage');
  stop.abort();
  const left = stream.return();
  asked.open().status('t', 'WORKING');
  const cancel = await agent.next('CancelTask');
  cancel.answer({ result: task('t', 'CANCELED') });
  await asked.closed;
  assert.equal((await left).done, true);
});

for (const order of [
  ['answer', 'event'],
  ['event', 'answer'],
]) {
  test(`a signal aborted mid-stream, the cancel's ${order[0]} first: canceled, told once`, async (t) => {
    const stop = new AbortController();
    const { agent, client, stream, asked } = await working(t, { signal: stop.signal });
    const events = rest(stream);
    stop.abort();
    stop.abort();
    const cancel = await agent.next('CancelTask');
    const steps = {
      answer: () => cancel.answer({ result: task('t', 'CANCELED') }),
      event: () => asked.status('t', 'CANCELED').end(),
    };
    steps[order[0]]();
    if (order[0] === 'event') await events;
    else await cancel.closed;
    steps[order[1]]();
    assert.deepEqual((await events).map(stateOf), ['canceled']);
    assert.deepEqual(agent.seen, ['SendStreamingMessage', 'CancelTask']);
    assert.equal(client.dropped, 0);
  });
}

test('a signal aborted with the final event: nothing is cancelled', async (t) => {
  const stop = new AbortController();
  const { agent, stream, asked } = await working(t, { signal: stop.signal });
  asked.status('t', 'COMPLETED');
  const { value } = await stream.next();
  stop.abort();
  assert.equal(stateOf(value), 'completed');
  assert.equal((await stream.next()).done, true);
  asked.end();
  await asked.closed;
  assert.deepEqual(agent.seen, ['SendStreamingMessage']);
});

test('a task that completes although it was cancelled: the stream says so', async (t) => {
  const stop = new AbortController();
  const { agent, stream, asked } = await working(t, { signal: stop.signal });
  const events = rest(stream);
  stop.abort();
  const cancel = await agent.next('CancelTask');
  cancel.answer({ error: { code: -32002, message: 'Task not cancelable: t' } });
  asked.artifact('t', 'a', 'all').status('t', 'COMPLETED').end();
  assert.deepEqual((await events).map(stateOf), ['artifact', 'completed']);
});

test('an agent that confirms the cancel and leaves the stream open: the task is asked for', async (t) => {
  const stop = new AbortController();
  const { agent, stream } = await working(t, { signal: stop.signal, limits: { linger: 1 } });
  const events = rest(stream);
  stop.abort();
  (await agent.next('CancelTask')).answer({ result: task('t', 'CANCELED') });
  (await agent.next('GetTask')).answer({ result: task('t', 'CANCELED') });
  assert.deepEqual((await events).map(stateOf), ['canceled']);
});

test('an agent that refuses to cancel: the stream throws why', async (t) => {
  const stop = new AbortController();
  const { agent, stream } = await working(t, { signal: stop.signal, limits: { linger: 1 } });
  const events = rest(stream);
  stop.abort();
  (await agent.next('CancelTask')).answer({ error: { code: -32004, message: 'Never' } });
  (await agent.next('GetTask')).answer({ result: task('t', 'WORKING') });
  await assert.rejects(events, { code: 'UNSUPPORTED_OPERATION', message: 'Never' });
});

for (const [what, answer] of [
  ['never answers the cancel', () => {}],
  [
    'answers the cancel with a task that works',
    (cancel) => cancel.answer({ result: task('t', 'WORKING') }),
  ],
]) {
  test(`an agent that ${what}: after the grace period the task is asked for`, async (t) => {
    const stop = new AbortController();
    const { agent, stream } = await working(t, { signal: stop.signal, limits: { grace: 50 } });
    const events = rest(stream);
    stop.abort();
    answer(await agent.next('CancelTask'));
    (await agent.next('GetTask')).answer({ result: task('t', 'WORKING') });
    await assert.rejects(events, { code: 'TIMEOUT' });
  });
}

test('an agent that never answers at all: after the grace period the abort settles', async (t) => {
  const stop = new AbortController();
  const { agent, stream } = await begun(t, { signal: stop.signal, limits: { grace: 20 } });
  const events = rest(stream);
  const asked = await agent.next('SendStreamingMessage');
  stop.abort();
  await assert.rejects(events, { code: 'TIMEOUT' });
  await asked.closed;
});

test('leaving the stream closes it, and cancels nothing', async (t) => {
  const { agent, stream, asked } = await working(t);
  asked.artifact('t', 'a', 'some');
  for await (const event of stream) {
    assert.equal(event.kind, 'artifact');
    break;
  }
  await asked.closed;
  assert.deepEqual(agent.seen, ['SendStreamingMessage']);
});

// --- Streams that end as they should not ---------------------------------------------------------

test('a stream that ends before its task: the task is asked for', async (t) => {
  const { agent, stream, asked } = await working(t);
  const events = rest(stream);
  asked.artifact('t', 'a', 'one').end();
  const artifacts = ['a', 'b'].map((artifactId) => ({ artifactId, parts: [{ text: 'all' }] }));
  (await agent.next('GetTask')).answer({ result: task('t', 'COMPLETED', artifacts) });
  assert.deepEqual((await events).map(stateOf), ['artifact', 'completed']);
  assert.deepEqual(
    stream.task.artifacts.map(({ artifactId, parts }) => [artifactId, parts[0].text]),
    [
      ['a', 'all'],
      ['b', 'all'],
    ],
  );
});

test('a stream that breaks while its task works is opened again, once for all that it brings', async (t) => {
  const { agent, stream, asked } = await working(t);
  const events = rest(stream);
  asked.artifact('t', 'a', 'one').destroy();
  const artifact = (...parts) => ({ artifactId: 'a', parts: parts.map((text) => ({ text })) });
  (await agent.next('GetTask')).answer({ result: task('t', 'WORKING', [artifact('one', 'two')]) });
  const again = (await agent.next('SubscribeToTask')).open();
  again.frame({ task: task('t', 'WORKING', [artifact('one', 'two')]) });
  again.artifact('t', 'a', 'three', true).status('t', 'COMPLETED').end();
  await events;
  assert.deepEqual(
    stream.task.artifacts[0].parts.map(({ text }) => text),
    ['one', 'two', 'three'],
  );
  assert.equal(stream.task.status.state, 'completed');
});

test('an agent that is gone mid-stream', async (t) => {
  const { agent, stream } = await working(t, { limits: { outage: 1 } });
  const events = rest(stream);
  agent.close();
  await assert.rejects(events, ({ code, retryable, details }) => {
    assert.deepEqual([code, retryable, details.taskId], ['DISCONNECTED', true, 't']);
    assert.equal(details.task.status.state, 'working');
    return true;
  });
});

test('a stream that breaks before it says which task it is of', async (t) => {
  const { agent, stream } = await begun(t);
  const events = rest(stream);
  (await agent.next('SendStreamingMessage')).open().destroy();
  await assert.rejects(events, { code: 'DISCONNECTED' });
});

test('a task that needs somebody to log in: a stream that ends there has ended', async (t) => {
  const { agent, stream, asked } = await working(t);
  const events = rest(stream);
  asked.status('t', 'AUTH_REQUIRED').end();
  (await agent.next('GetTask')).answer({ result: task('t', 'AUTH_REQUIRED') });
  assert.deepEqual((await events).map(stateOf), ['auth-required']);
});

test('events after the end are dropped and counted, and the stream is closed when they do not stop', async (t) => {
  const dropped = [];
  const { client, stream, asked } = await working(t, {
    onDropped: (event) => dropped.push(stateOf(event)),
    limits: { linger: 200 },
  });
  asked.status('t', 'CANCELED').artifact('t', 'a', 'late').status('t', 'COMPLETED');
  assert.deepEqual((await rest(stream)).map(stateOf), ['canceled']);
  assert.equal(stream.task.status.state, 'canceled');
  await asked.closed;
  assert.deepEqual(dropped, ['artifact', 'completed']);
  assert.equal(client.dropped, 2);
  assert.deepEqual(stream.task.artifacts, []);
});

test('events of another task are none of this one', async (t) => {
  const { client, stream, asked } = await working(t);
  asked.status('other', 'COMPLETED').artifact('other', 'a', 'x').status('t', 'COMPLETED').end();
  assert.deepEqual((await rest(stream)).map(stateOf), ['completed']);
  assert.deepEqual(stream.task.artifacts, []);
  assert.equal(client.dropped, 2);
});

test('artifacts are created, replaced and appended to', async (t) => {
  const { stream, asked } = await working(t);
  asked.artifact('t', 'a', '1', true).artifact('t', 'a', '2', true).artifact('t', 'b', 'x');
  asked.artifact('t', 'a', '3').artifact('t', '__proto__', 'y', true).artifact('t', 'b', 'z', true);
  asked.status('t', 'COMPLETED').end();
  const events = await rest(stream);
  assert.deepEqual(
    stream.task.artifacts.map(({ artifactId, parts }) => [artifactId, ...parts.map((p) => p.text)]),
    [
      ['a', '3'],
      ['b', 'x', 'z'],
      ['__proto__', 'y'],
    ],
  );
  // What an event said stays what it said.
  assert.deepEqual(events[2].artifact.parts, [{ text: 'x' }]);
});

test('an error mid-stream is thrown as the agent gave it', async (t) => {
  const { stream, asked } = await working(t);
  const error = { code: -32603, message: 'Out of luck', data: { more: 1 } };
  asked.text(`event: error\ndata: ${JSON.stringify({ jsonrpc: '2.0', id: 1, error })}\n\n`).end();
  await assert.rejects(rest(stream), {
    name: 'AbpError',
    code: 'INTERNAL_ERROR',
    message: 'Out of luck',
    details: { code: -32603, data: { more: 1 }, taskId: 't', task: stream.task },
  });
  await asked.closed;
});

test('frames that are no events yet are skipped', async (t) => {
  const { stream, asked } = await working(t);
  asked.text(': ping\n\ndata:\n\n').frame({ kind: 'of-the-future' }).status('t', 'COMPLETED').end();
  assert.deepEqual((await rest(stream)).map(stateOf), ['completed']);
});

// --- Faults --------------------------------------------------------------------------------------

const LIMITS = { maxEvent: 1 << 16, maxBody: 1 << 20, maxTask: 1 << 16, maxArtifacts: 3 };

for (const [what, code, answer] of [
  ['an endless line', 'TOO_LARGE', (asked) => asked.open().endless('x'.repeat(1 << 14))],
  ['an endless event', 'TOO_LARGE', (asked) => asked.open().endless(`data: ${'x'.repeat(100)}\n`)],
  [
    'a body of 100 MB',
    'TOO_LARGE',
    (asked) => asked.open('application/json').endless(' '.repeat(1 << 16), 100 << 20),
  ],
  [
    'a frame that is not JSON',
    'INVALID_AGENT_RESPONSE',
    (asked) => asked.open().text('data: {"a":\n\n'),
  ],
  [
    'a frame without a result',
    'INVALID_AGENT_RESPONSE',
    (asked) => asked.open().text('data: {}\n\n'),
  ],
  [
    'a frame that is no object',
    'INVALID_AGENT_RESPONSE',
    (asked) => asked.open().text('data: null\n\n'),
  ],
  ['a page', 'INVALID_AGENT_RESPONSE', (asked) => asked.raw(200, 'text/html', '<p>hello</p>')],
  [
    'JSON that is none',
    'INVALID_AGENT_RESPONSE',
    (asked) => asked.raw(200, 'application/json', '{'),
  ],
  ['nothing', 'INVALID_AGENT_RESPONSE', (asked) => asked.raw(204, 'application/json', '')],
  ['HTTP 500', 'TRANSPORT_ERROR', (asked) => asked.raw(500, 'text/plain', 'oh no')],
  [
    'HTTP 401',
    'TRANSPORT_ERROR',
    (asked) => asked.raw(401, 'application/json', '{"error":"who?"}'),
  ],
  [
    'a redirect',
    'TRANSPORT_ERROR',
    (asked) => asked.raw(307, 'text/plain', '', { location: 'http://127.0.0.1:1/' }),
  ],
  [
    'HTTP 400 and an error of JSON-RPC',
    'INVALID_REQUEST',
    (asked) => asked.raw(400, 'application/json', '{"error":{"code":-32600,"message":"no"}}'),
  ],
  [
    'an error in place of a stream',
    'UNSUPPORTED_OPERATION',
    (asked) => asked.answer({ error: { code: -32004, message: 'no' } }),
  ],
  ['an error that is none', 'OPERATION_FAILED', (asked) => asked.answer({ error: 'no' })],
  [
    'artifacts without end',
    'TOO_LARGE',
    (asked) => {
      asked.open();
      for (let i = 0; i < 40; i++) asked.artifact('t', 'a', 'x'.repeat(2000), true);
    },
  ],
  [
    'too many artifacts',
    'TOO_LARGE',
    (asked) => {
      asked.open();
      for (let i = 0; i < 4; i++) asked.artifact('t', `a${i}`, 'x');
    },
  ],
  [
    'an artifact without an id',
    'INVALID_AGENT_RESPONSE',
    (asked) => asked.open().artifact('t', undefined, 'x'),
  ],
]) {
  test(`an agent that answers a stream with ${what}: ${code}`, async (t) => {
    const { agent, stream } = await begun(t, { limits: LIMITS });
    const events = rest(stream);
    const asked = await agent.next('SendStreamingMessage');
    const sent = answer(asked);
    await assert.rejects(events, { name: 'AbpError', code });
    // The connection is let go of, however much was still to come.
    await asked.closed;
    if (what === 'a body of 100 MB') assert.ok((await sent) < 50 << 20, `${await sent} bytes sent`);
  });
}

test('an answer that is announced as too large is not read', async (t) => {
  const { agent, client } = await begun(t, { limits: LIMITS });
  const got = client.get('t');
  const asked = await agent.next('GetTask');
  asked.raw(200, 'application/json', '', { 'content-length': `${100 << 20}` });
  await assert.rejects(got, { code: 'TOO_LARGE' });
});

test('an agent that does not answer in time', async (t) => {
  const { agent, client } = await begun(t, { limits: { timeout: 5000 } });
  const clock = useClock(t);
  const got = client.get('t');
  const asked = await agent.next('GetTask');
  clock.advance(5000);
  await assert.rejects(got, { code: 'TIMEOUT' });
  await asked.closed;
});

test('an agent that cannot be reached', async () => {
  const client = createTaskClient('http://127.0.0.1:1/', { version: '1.0' });
  await assert.rejects(client.subscribe('go').next(), { code: 'TRANSPORT_ERROR', retryable: true });
  await assert.rejects(client.get('t'), { code: 'TRANSPORT_ERROR' });
});

test('a version that nobody speaks', () => {
  assert.throws(() => createTaskClient('http://127.0.0.1:1/', { version: '9' }), {
    code: 'NOT_SUPPORTED',
  });
});

// --- The card ------------------------------------------------------------------------------------

const CARD = { capabilities: { streaming: true } };
const interfaceOf = (url, protocolVersion) => ({
  url,
  protocolVersion,
  protocolBinding: 'JSONRPC',
});

for (const [what, path, card, method] of [
  [
    '1.0',
    '/.well-known/agent-card.json',
    (url) => ({ ...CARD, supportedInterfaces: [interfaceOf(url, '1.0')] }),
    'GetTask',
  ],
  [
    'the first version that is known',
    '/.well-known/agent-card.json',
    (url) => ({
      ...CARD,
      supportedInterfaces: [
        { url, protocolBinding: 'GRPC', protocolVersion: '1.0' },
        interfaceOf(url, '7.1'),
        interfaceOf(url, '0.3.0'),
        interfaceOf(url, '1.0'),
      ],
    }),
    'tasks/get',
  ],
  [
    '0.3',
    '/.well-known/agent-card.json',
    (url) => ({ ...CARD, url, protocolVersion: '0.3.0' }),
    'tasks/get',
  ],
  [
    '0.3 by another transport',
    '/.well-known/agent-card.json',
    (url) => ({
      ...CARD,
      url: 'http://127.0.0.1:1/',
      preferredTransport: 'GRPC',
      additionalInterfaces: [{ url, transport: 'JSONRPC' }],
    }),
    'tasks/get',
  ],
  [
    'the gem, whose URL is not to be trusted',
    '/agentCard',
    () => ({
      ...CARD,
      interfaces: [{ type: 'json-rpc', url: 'http://127.0.0.1', version: '1.0' }],
    }),
    'tasks/get',
  ],
]) {
  test(`the agent card says what to speak: ${what}`, async (t) => {
    const { agent, client } = await begun(t, { version: undefined });
    const got = client.get('t');
    for (const place of ['/.well-known/agent-card.json', '/agentCard']) {
      const asked = await agent.next(place);
      if (place === path) {
        asked.raw(200, 'application/json', JSON.stringify(card(agent.url)));
        break;
      }
      // Whatever an agent says that has no card there: nothing, or its home page.
      if (place === '/agentCard') asked.raw(404, 'text/plain', '');
      else asked.raw(200, 'text/html', '<p>hello</p>');
    }
    (await agent.next(method)).answer({ result: task('t', 'WORKING') });
    assert.equal((await got).status.state, 'working');
  });
}

test('an agent without a card: the error says what to do, and the next request asks again', async (t) => {
  const { agent, client } = await begun(t, { version: undefined });
  for (let i = 0; i < 2; i++) {
    const got = client.get('t');
    for (const place of ['/.well-known/agent-card.json', '/agentCard'])
      (await agent.next(place)).raw(404, 'text/plain', '');
    await assert.rejects(got, { code: 'AGENT_CARD_NOT_FOUND', message: /version/ });
  }
});

test('headers go to the origin that they were given for, and to no other', async (t) => {
  const other = await startAgent();
  t.after(() => other.close());
  const { agent, client } = await begun(t, {
    version: undefined,
    headers: { authorization: 'secret' },
    endpoints: [new URL(other.url).origin],
  });
  const got = client.get('t');
  const asked = await agent.next('/.well-known/agent-card.json');
  assert.equal(asked.headers.authorization, 'secret');
  asked.raw(
    200,
    'application/json',
    JSON.stringify({ ...CARD, supportedInterfaces: [interfaceOf(other.url, '1.0')] }),
  );
  const elsewhere = await other.next('GetTask');
  assert.equal(elsewhere.headers.authorization, undefined);
  assert.equal(elsewhere.headers['a2a-version'], '1.0');
  elsewhere.answer({ result: task('t', 'WORKING') });
  await got;
});

test('a stream that ends when the grace of a cancel is over is not opened again: its task is asked for', async (t) => {
  const asked = [];
  const ends = deferred();
  const working = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } };
  const chunks = async function* () {
    yield bytesOf(`id: 1\ndata: ${frameOf({ task: working })}\n\n`);
    await ends.promise;
  };
  const fetch = async (_url, { body }) => {
    const { method } = JSON.parse(body);
    asked.push(method);
    const streams = method === 'SendStreamingMessage';
    const source = streams ? chunks() : [bytesOf(frameOf(working))];
    const type = streams ? 'text/event-stream' : 'application/json';
    return new Response(ReadableStream.from(source), { headers: { 'content-type': type } });
  };
  const client = createTaskClient('http://agent.example/', { version: '1.0', fetch });
  const stop = new AbortController();
  const stream = client.subscribe('go', { signal: stop.signal });
  await stream.next();
  stop.abort();
  await client.get('t');
  const now = performance.now.bind(performance);
  t.mock.method(performance, 'now', () => now() + 120_000);
  ends.resolve();
  await assert.rejects(rest(stream), { code: 'TIMEOUT' });
  assert.deepEqual(asked, ['SendStreamingMessage', 'CancelTask', 'GetTask', 'GetTask']);
});

// --- Transports ----------------------------------------------------------------------------------

/** Our client and our server at the ends of a channel. */
function channel(t, execute, options) {
  const server = createTaskServer({ card: { name: 'Agent' }, execute });
  const { port1, port2 } = new MessageChannel();
  server.serve(portTransport(port2));
  const client = createTaskClient(portTransport(port1), options);
  t.after(() => {
    client.close();
    server.close();
  });
  return { server, port2, client };
}

test('over a port: three tasks, one cancelled by its signal', async (t) => {
  const stop = new AbortController();
  let aborted = 0;
  const { client, server } = channel(t, async (context) => {
    const { message, signal } = context;
    for (let n = 1; n <= 3; n++) {
      if (signal.aborted) return void aborted++;
      context.emitArtifact({ artifactId: `${n}`, parts: [{ text: `${n}` }] });
      if (message.parts[0].text !== 'B') continue;
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    }
  });
  const states = await Promise.all(
    ['A', 'B', 'C'].map(async (name) => {
      const stream = client.subscribe(name, name === 'B' ? { signal: stop.signal } : {});
      for await (const event of stream) if (event.kind === 'artifact' && name === 'B') stop.abort();
      return [stream.task.status.state, stream.task.artifacts.length];
    }),
  );
  assert.deepEqual(states, [
    ['completed', 3],
    ['canceled', 1],
    ['completed', 3],
  ]);
  assert.equal(aborted, 1);
  assert.equal(server.counters.streams, 0);
});

test('over a port: leaving a stream cancels nothing', async (t) => {
  let go;
  const gone = new Promise((resolve) => (go = resolve));
  const { client, server } = channel(t, () => gone);
  const stream = client.subscribe('A');
  await stream.next();
  await stream.return();
  const { id } = stream.task;
  assert.equal((await client.get(id)).status.state, 'working');
  assert.equal(server.counters.streams, 0);
  const states = rest(client.resubscribe(id));
  await client.get(id);
  go();
  assert.equal((await states).map(stateOf).at(-1), 'completed');
});

test('over a port: a signal in the place of options is refused, wherever one is taken', (t) => {
  const { client } = channel(t, assert.fail);
  const { signal } = new AbortController();
  const refused = { code: 'INVALID_PARAMS', message: /must be an object: pass \{ signal \}/ };
  assert.throws(() => client.resubscribe('1', signal), refused);
  assert.throws(() => client.subscribe('A', signal), refused);
  assert.throws(() => client.resubscribe('1', { signal: new AbortController() }), {
    code: 'INVALID_PARAMS',
    message: 'signal of resubscribe must be an AbortSignal',
  });
});

test("over a port: a card that cannot be sent is not waited for, and is in nobody's way", async (t) => {
  const provider = { url: 'http://agent.example/' };
  const card = { name: 'Agent', provider };
  const server = createTaskServer({ card, execute() {} });
  provider.url = () => 'http://agent.example/';
  const { port1, port2 } = new MessageChannel();
  server.serve(portTransport(port2));
  const client = createTaskClient(portTransport(port1), { limits: { timeout: 50_000 } });
  t.after(() => (client.close(), server.close()));
  for (let i = 0; i < 4100; i++) await assert.rejects(client.card(), { code: 'DISCONNECTED' });
  delete card.provider;
  assert.equal((await client.card()).name, 'Agent');
});

test('over a port: an agent that is gone', async (t) => {
  const { client, port2 } = channel(t, () => new Promise(() => {}));
  const stream = client.subscribe('A');
  await stream.next();
  const events = rest(stream);
  port2.close();
  await assert.rejects(events, { code: 'DISCONNECTED' });
  await assert.rejects(client.get('t'), { code: 'DISCONNECTED' });
});

test('over a port: a client that is closed ends its streams', async (t) => {
  const { client } = channel(t, () => new Promise(() => {}));
  const stream = client.subscribe('A');
  await stream.next();
  const events = rest(stream);
  client.close();
  await assert.rejects(events, { code: 'DISCONNECTED' });
});

test('over a port: a reader that is too slow loses events, and learns how the task ended', async (t) => {
  const execute = (context) => {
    for (let n = 1; n <= 100; n++) {
      context.emitArtifact({ artifactId: 'a', parts: [{ text: `${n}` }] }, { append: n > 1 });
    }
  };
  const { client } = channel(t, execute, { limits: { maxQueue: 10 } });
  const stream = client.subscribe('A');
  await stream.next();
  // What is answered now comes after all that the executor has emitted.
  await client.get(stream.task.id);
  const events = await rest(stream);
  assert.ok(events.length < 20, `${events.length} events`);
  assert.equal(stateOf(events.at(-1)), 'completed');
  assert.equal(stream.task.artifacts[0].parts.length, 100);
});
