import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTaskClient, createTaskServer } from '../../js/a2a/index.js';
import { EventParser } from '../../js/a2a/sse.js';
import { portTransport } from '../../js/transports/port.js';
import { startAgent, task } from '../support/a2a-agent.js';
import { recording, replay } from '../support/a2a-replay.js';

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

// --- Server-sent events ------------------------------------------------------------------------------------

const bytesOf = (text) => new TextEncoder().encode(text);
const parsed = (text, size = Infinity, limit = 1000) => {
  const parser = new EventParser(limit);
  const bytes = bytesOf(text);
  const events = [];
  for (let at = 0; at < bytes.length; at += size) {
    events.push(...parser.push(bytes.subarray(at, Math.min(bytes.length, at + size))));
  }
  return events.map(({ event, data, id }) => [event, data, id]);
};

for (const [what, text, events] of [
  ['line feeds end lines', 'data: a\ndata: b\n\n', [['message', 'a\nb', '']]],
  ['carriage returns end lines', 'data: a\rdata: b\r\r', [['message', 'a\nb', '']]],
  ['both end a line once', 'data: a\r\ndata: b\r\n\r\n', [['message', 'a\nb', '']]],
  ['a byte order mark is skipped', '\ufeffdata: ä€😀\n\n', [['message', 'ä€😀', '']]],
  ['comments are skipped', ': ping\n\n:\n\ndata: a\n: x\n\n', [['message', 'a', '']]],
  ['one space after the colon is not data', 'data:a\ndata:  b\n\n', [['message', 'a\n b', '']]],
  ['a field may have no colon', 'data\ndata\n\n', [['message', '\n', '']]],
  [
    'an event has a type',
    'event: error\ndata: a\n\ndata: b\n\n',
    [
      ['error', 'a', ''],
      ['message', 'b', ''],
    ],
  ],
  [
    'an id lasts',
    'id: 7\ndata: a\n\ndata: b\n\n',
    [
      ['message', 'a', '7'],
      ['message', 'b', '7'],
    ],
  ],
  ['unknown fields are skipped', 'retry: 9\nfoo: bar\n\ndata: a\n\n', [['message', 'a', '']]],
  ['an event without data is none', 'event: x\n\ndata: a\n\n', [['message', 'a', '']]],
  ['an event that the stream cuts off is none', 'data: a\n\ndata: b\n', [['message', 'a', '']]],
]) {
  test(`server-sent events: ${what}, however the stream is cut`, () => {
    for (let size = 1; size <= bytesOf(text).length; size++) {
      assert.deepEqual(parsed(text, size), events, `${size} bytes at a time`);
    }
  });
}

for (const [what, text] of [
  ['line', 'x'],
  ['data line', 'data: x'],
  ['event', 'data: x\n'],
  ['comment', ': x'],
]) {
  test(`server-sent events: an endless ${what} is an error, and never kept`, () => {
    const parser = new EventParser(1000);
    const endless = () => {
      for (let i = 0; i < 2000; i++) parser.push(bytesOf(text));
    };
    assert.throws(endless, { name: 'AbpError', code: 'TOO_LARGE' });
  });
}

test('server-sent events: a stream of any length may pass', () => {
  const parser = new EventParser(100);
  for (let i = 0; i < 2000; i++) assert.equal(parser.push(bytesOf('data: x\n\n: y\n\n')).length, 1);
});

// --- Recordings --------------------------------------------------------------------------------------------

/** Exchanges the lines of the cancel's answer and of the final event that follows it, or the other way round. */
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
    // What the gem refuses is found canceled by asking for the task, which its recording has at its end only.
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

// --- Signals -----------------------------------------------------------------------------------------------

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
  const asked = await all.agent.next('SendStreamingMessage');
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
  stop.abort();
  asked.open().frame({ task: task('t', 'SUBMITTED') });
  const cancel = await agent.next('CancelTask');
  assert.deepEqual(cancel.rpc.params, { id: 't' });
  cancel.answer({ result: task('t', 'CANCELED') });
  asked.status('t', 'CANCELED').end();
  assert.deepEqual((await events).map(stateOf), ['submitted', 'canceled']);
  assert.deepEqual(agent.seen, ['SendStreamingMessage', 'CancelTask']);
});

test('a stream left after its signal and before its id is known: the cancel is sent all the same', async (t) => {
  const stop = new AbortController();
  const { agent, stream } = await begun(t, { signal: stop.signal });
  stream.next();
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
