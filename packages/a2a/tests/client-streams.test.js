// Streams of a client: artifacts, history, ends that come too early, and events that do not belong.
import assert from 'node:assert/strict';
import { task } from './support/a2a-agent.js';
import {
  restOf,
  stateOrKind,
  bytesOf,
  statusOf,
  frameOf,
  statusFrame,
  END,
  streamOf,
  subscribeTo,
  subscribeToWorking,
  test,
} from './support/clients.js';
import { createTaskClient } from '../src/index.js';
import { servingUntilEnd } from './support/a2a.js';

const served = servingUntilEnd();

test('a stream that ends before its task: the task is asked for', async (t) => {
  const { agent, stream, asked } = await subscribeToWorking(t);
  const events = restOf(stream);
  asked.artifact('t', 'a', 'one').end();
  const artifacts = ['a', 'b'].map((artifactId) => ({ artifactId, parts: [{ text: 'all' }] }));
  (await agent.next('GetTask')).answer({ result: task('t', 'COMPLETED', artifacts) });
  assert.deepEqual((await events).map(stateOrKind), ['artifact', 'completed']);
  assert.deepEqual(
    stream.task.artifacts.map(({ artifactId, parts }) => [artifactId, parts[0].text]),
    [
      ['a', 'all'],
      ['b', 'all'],
    ],
  );
});

test('a stream that breaks while its task works is opened again, and no part is repeated', async (t) => {
  const { agent, stream, asked } = await subscribeToWorking(t);
  const events = restOf(stream);
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

test('a stream whose agent is gone rejects with DISCONNECTED and the task as it is known', async (t) => {
  const { agent, stream } = await subscribeToWorking(t, { limits: { outage: 1 } });
  const events = restOf(stream);
  agent.close();
  await assert.rejects(events, ({ code, retryable, details }) => {
    assert.deepEqual([code, retryable, details.taskId], ['DISCONNECTED', true, 't']);
    assert.equal(details.task.status.state, 'working');
    return true;
  });
});

test('a stream that breaks before the id of its task arrives rejects with DISCONNECTED', async (t) => {
  const { agent, stream } = await subscribeTo(t);
  const events = restOf(stream);
  (await agent.next('SendStreamingMessage')).open().destroy();
  await assert.rejects(events, { code: 'DISCONNECTED' });
});

test('a stream that ends in auth-required has ended', async (t) => {
  const { agent, stream, asked } = await subscribeToWorking(t);
  const events = restOf(stream);
  asked.status('t', 'AUTH_REQUIRED').end();
  (await agent.next('GetTask')).answer({ result: task('t', 'AUTH_REQUIRED') });
  assert.deepEqual((await events).map(stateOrKind), ['auth-required']);
});

test('events after the end are dropped and counted, and the stream is closed when they do not stop', async (t) => {
  const dropped = [];
  const { client, stream, asked } = await subscribeToWorking(t, {
    onDropped: (event) => dropped.push(stateOrKind(event)),
    limits: { linger: 200 },
  });
  asked.status('t', 'CANCELED').artifact('t', 'a', 'late').status('t', 'COMPLETED');
  assert.deepEqual((await restOf(stream)).map(stateOrKind), ['canceled']);
  assert.equal(stream.task.status.state, 'canceled');
  await asked.closed;
  assert.deepEqual(dropped, ['artifact', 'completed']);
  assert.equal(client.dropped, 2);
  assert.deepEqual(stream.task.artifacts, []);
});

test('events of another task are dropped', async (t) => {
  const { client, stream, asked } = await subscribeToWorking(t);
  asked.status('other', 'COMPLETED').artifact('other', 'a', 'x').status('t', 'COMPLETED').end();
  assert.deepEqual((await restOf(stream)).map(stateOrKind), ['completed']);
  assert.deepEqual(stream.task.artifacts, []);
  assert.equal(client.dropped, 2);
});

test('artifacts are created, replaced and appended to', async (t) => {
  const { stream, asked } = await subscribeToWorking(t);
  asked.artifact('t', 'a', '1', true).artifact('t', 'a', '2', true).artifact('t', 'b', 'x');
  asked.artifact('t', 'a', '3').artifact('t', '__proto__', 'y', true).artifact('t', 'b', 'z', true);
  asked.status('t', 'COMPLETED').end();
  const events = await restOf(stream);
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

test('an error mid-stream is thrown with the code, message and data of the agent', async (t) => {
  const { stream, asked } = await subscribeToWorking(t);
  const error = { code: -32603, message: 'Out of luck', data: { more: 1 } };
  asked.text(`event: error\ndata: ${JSON.stringify({ jsonrpc: '2.0', id: 1, error })}\n\n`).end();
  await assert.rejects(restOf(stream), {
    name: 'AbpError',
    code: 'INTERNAL_ERROR',
    message: 'Out of luck',
    details: { code: -32603, data: { more: 1 }, taskId: 't', task: stream.task },
  });
  await asked.closed;
});

test('frames of unknown kinds are skipped', async (t) => {
  const { stream, asked } = await subscribeToWorking(t);
  asked.text(': ping\n\ndata:\n\n').frame({ kind: 'of-the-future' }).status('t', 'COMPLETED').end();
  assert.deepEqual((await restOf(stream)).map(stateOrKind), ['completed']);
});

test('a stream keeps the latest messages of its task, within maxTask', async () => {
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
      ...texts.map((text) => event(statusFrame(text))),
      event(frameOf({ task })),
      ...Array(7).fill(event(statusFrame('x'.repeat(1000)))),
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
  await restOf(stream);
});

test('the default limits of client and agent let two megabytes pass', async () => {
  const raw = 'A'.repeat(2 << 20);
  const { url } = await served((ctx) => ctx.emitArtifact({ parts: [{ raw }] }));
  const { artifacts } = await createTaskClient(url).send('go');
  assert.equal(artifacts[0].parts[0].raw.length, raw.length);
});
