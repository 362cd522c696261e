// The signal of a client: when a cancel is sent, and what its stream settles with.
import assert from 'node:assert/strict';
import { createTaskClient } from '../src/index.js';
import { task } from './support/a2a-agent.js';
import { deferred } from './support/a2a.js';
import {
  restOf,
  stateOrKind,
  bytesOf,
  frameOf,
  subscribeTo,
  subscribeToWorking,
  test,
} from './support/clients.js';

test('a signal aborted before anything was sent: nothing is sent', async (t) => {
  const { agent, client, stream } = await subscribeTo(t, { signal: AbortSignal.abort('no more') });
  await assert.rejects(stream.next(), (reason) => reason === 'no more');
  await assert.rejects(
    client.send('go', { signal: AbortSignal.abort('nor this') }),
    (reason) => reason === 'nor this',
  );
  assert.deepEqual(agent.seen, []);
});

test('a signal aborted before the stream is read: nothing is sent', async (t) => {
  const stop = new AbortController();
  const { agent, stream } = await subscribeTo(t, { signal: stop.signal });
  stop.abort();
  await assert.rejects(stream.next(), { name: 'AbortError' });
  assert.deepEqual(agent.seen, []);
});

test('a signal aborted while the card is asked for: no message is sent', async (t) => {
  const stop = new AbortController();
  const { agent, stream } = await subscribeTo(t, { signal: stop.signal, version: undefined });
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
  const { agent, stream } = await subscribeTo(t, { signal: stop.signal });
  const events = restOf(stream);
  const asked = await agent.next('SendStreamingMessage');
  stop.abort('enough');
  asked.open().frame({ task: task('t', 'SUBMITTED') });
  const cancel = await agent.next('CancelTask');
  assert.deepEqual(cancel.rpc.params, { id: 't', metadata: { reason: 'enough' } });
  cancel.answer({ result: task('t', 'CANCELED') });
  asked.status('t', 'CANCELED').end();
  assert.deepEqual((await events).map(stateOrKind), ['submitted', 'canceled']);
  assert.deepEqual(agent.seen, ['SendStreamingMessage', 'CancelTask']);
});

for (const [what, sent, refused] of [
  ['has completed when it is known', 'COMPLETED', []],
  ['completes before its cancel comes', 'WORKING', ['CancelTask', 'GetTask']],
]) {
  test(`an agent without streams: a task that ${what} is the result of its send, aborted or not`, async (t) => {
    const stop = new AbortController();
    const { agent, client } = await subscribeTo(t, { version: undefined });
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
  const { agent, stream } = await subscribeTo(t, { signal: stop.signal });
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
  test(`a signal aborted mid-stream, the cancel's ${order[0]} first: one canceled event`, async (t) => {
    const stop = new AbortController();
    const { agent, client, stream, asked } = await subscribeToWorking(t, { signal: stop.signal });
    const events = restOf(stream);
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
    assert.deepEqual((await events).map(stateOrKind), ['canceled']);
    assert.deepEqual(agent.seen, ['SendStreamingMessage', 'CancelTask']);
    assert.equal(client.dropped, 0);
  });
}

test('a signal aborted with the final event: nothing is cancelled', async (t) => {
  const stop = new AbortController();
  const { agent, stream, asked } = await subscribeToWorking(t, { signal: stop.signal });
  asked.status('t', 'COMPLETED');
  const { value } = await stream.next();
  stop.abort();
  assert.equal(stateOrKind(value), 'completed');
  assert.equal((await stream.next()).done, true);
  asked.end();
  await asked.closed;
  assert.deepEqual(agent.seen, ['SendStreamingMessage']);
});

test('a task that completes although it was cancelled: the stream ends with completed', async (t) => {
  const stop = new AbortController();
  const { agent, stream, asked } = await subscribeToWorking(t, { signal: stop.signal });
  const events = restOf(stream);
  stop.abort();
  const cancel = await agent.next('CancelTask');
  cancel.answer({ error: { code: -32002, message: 'Task not cancelable: t' } });
  asked.artifact('t', 'a', 'all').status('t', 'COMPLETED').end();
  assert.deepEqual((await events).map(stateOrKind), ['artifact', 'completed']);
});

test('an agent that confirms the cancel and leaves the stream open: the task is asked for', async (t) => {
  const stop = new AbortController();
  const { agent, stream } = await subscribeToWorking(t, {
    signal: stop.signal,
    limits: { linger: 1 },
  });
  const events = restOf(stream);
  stop.abort();
  (await agent.next('CancelTask')).answer({ result: task('t', 'CANCELED') });
  (await agent.next('GetTask')).answer({ result: task('t', 'CANCELED') });
  assert.deepEqual((await events).map(stateOrKind), ['canceled']);
});

test('an agent that refuses the cancel: the stream rejects with its error', async (t) => {
  const stop = new AbortController();
  const { agent, stream } = await subscribeToWorking(t, {
    signal: stop.signal,
    limits: { linger: 1 },
  });
  const events = restOf(stream);
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
    const { agent, stream } = await subscribeToWorking(t, {
      signal: stop.signal,
      limits: { grace: 50 },
    });
    const events = restOf(stream);
    stop.abort();
    answer(await agent.next('CancelTask'));
    (await agent.next('GetTask')).answer({ result: task('t', 'WORKING') });
    await assert.rejects(events, { code: 'TIMEOUT' });
  });
}

test('an agent that never answers at all: after the grace period the abort settles', async (t) => {
  const stop = new AbortController();
  const { agent, stream } = await subscribeTo(t, { signal: stop.signal, limits: { grace: 20 } });
  const events = restOf(stream);
  const asked = await agent.next('SendStreamingMessage');
  stop.abort();
  await assert.rejects(events, { code: 'TIMEOUT' });
  await asked.closed;
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
  await assert.rejects(restOf(stream), { code: 'TIMEOUT' });
  assert.deepEqual(asked, ['SendStreamingMessage', 'CancelTask', 'GetTask', 'GetTask']);
});

test('leaving the stream closes it, and cancels nothing', async (t) => {
  const { agent, stream, asked } = await subscribeToWorking(t);
  asked.artifact('t', 'a', 'some');
  for await (const event of stream) {
    assert.equal(event.kind, 'artifact');
    break;
  }
  await asked.closed;
  assert.deepEqual(agent.seen, ['SendStreamingMessage']);
});
