// The HTTP+JSON binding of 1.0: its paths, its statuses, its streams.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import { createTaskClient, createTaskServer } from '../src/index.js';
import { CARD, updateOf, plainState, servingUntilEnd } from './support/a2a.js';

const served = servingUntilEnd();
const message = (text, more) => ({
  messageId: crypto.randomUUID(),
  role: 'ROLE_USER',
  parts: [{ text }],
  ...more,
});
const HEADERS = { 'a2a-version': '1.0', 'content-type': 'application/a2a+json' };
/** A path that has a colon in it would be a URL by itself. */
const placeOf = (url, path) => new URL(path.startsWith('/') ? path : `./${path}`, url);
/** One request: its status and its body. */
async function ask(url, verb, path, body, headers = {}) {
  const init = { method: verb, headers: { ...HEADERS, ...headers } };
  if (body !== undefined) init.body = typeof body === 'string' ? body : JSON.stringify(body);
  const response = await fetch(placeOf(url, path), init);
  const type = response.headers.get('content-type');
  return { status: response.status, type, headers: response.headers, body: await response.json() };
}
/** The events of a stream. */
async function events(url, verb, path, body) {
  const init = { method: verb, headers: HEADERS, ...(body && { body: JSON.stringify(body) }) };
  const response = await fetch(placeOf(url, path), init);
  assert.equal(response.headers.get('content-type'), 'text/event-stream');
  const frames = (await response.text()).split('\n\n').filter(Boolean);
  return frames.map((frame) => JSON.parse(frame.slice('data: '.length)));
}

/** Does as it is told. */
const execute = ({ message, emitStatus, emitArtifact }) => {
  const [{ text }] = message.parts;
  if (text === 'ask') emitStatus('input-required', 'What?');
  else if (text === 'log in') emitStatus('auth-required');
  else emitArtifact({ artifactId: 'a', parts: [{ text }] });
};

test('a message is sent, and its task got, listed and cancelled', async () => {
  const { url } = await served(execute);
  const sent = await ask(url, 'POST', 'message:send', { message: message('go') });
  assert.deepEqual([sent.status, sent.type], [200, 'application/a2a+json; charset=utf-8']);
  const { task } = sent.body;
  assert.equal(task.status.state, 'TASK_STATE_COMPLETED');
  assert.deepEqual((await ask(url, 'GET', `tasks/${task.id}`)).body, task);
  const withoutHistory = await ask(url, 'GET', `tasks/${task.id}?historyLength=0`);
  assert.equal(withoutHistory.body.history, undefined);
  const asks = await ask(url, 'POST', 'message:send', { message: message('ask') });
  const { id } = asks.body.task;
  const listed = await ask(url, 'GET', 'tasks?status=TASK_STATE_INPUT_REQUIRED&pageSize=5');
  assert.deepEqual(
    [listed.body.tasks.map((each) => each.id), listed.body.pageSize, listed.body.nextPageToken],
    [[id], 5, ''],
  );
  const all = await ask(url, 'GET', 'tasks?includeArtifacts=true');
  assert.equal(all.body.tasks.filter(({ artifacts }) => artifacts).length, 1);
  const body = { metadata: { reason: 'enough' } };
  const canceled = await ask(url, 'POST', `tasks/${id}:cancel`, body);
  assert.equal(canceled.body.status.state, 'TASK_STATE_CANCELED');
});

test('a cancel needs no body, and says why in its metadata', async () => {
  let reason;
  const { url } = await served(
    ({ signal, emitStatus }) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => resolve((reason = signal.reason.message)));
        emitStatus('auth-required');
      }),
  );
  const start = async () =>
    (await ask(url, 'POST', 'message:send', { message: message('x') })).body.task.id;
  const one = await fetch(placeOf(url, `tasks/${await start()}:cancel`), { method: 'POST' });
  assert.equal((await one.json()).status.state, 'TASK_STATE_CANCELED');
  await ask(url, 'POST', `tasks/${await start()}:cancel`, { metadata: { reason: 'enough' } });
  assert.equal(reason, 'enough');
});

test('a message is streamed, and a task subscribed to, by either verb', async () => {
  const { url, agent } = await served(execute);
  const streamed = await events(url, 'POST', 'message:stream', { message: message('go') });
  assert.deepEqual(
    streamed.map((result) => updateOf({ result })),
    ['task submitted', 'working', 'artifact a', 'completed'],
  );
  const asks = await ask(url, 'POST', 'message:send', { message: message('ask') });
  const { id } = asks.body.task;
  const again = ['GET', 'POST'].map((verb) => events(url, verb, `tasks/${id}:subscribe`));
  while (agent.counters.streams < 2) await new Promise(setImmediate);
  const answer = await ask(url, 'POST', 'message:send', { message: message('go', { taskId: id }) });
  assert.equal(answer.body.task.status.state, 'TASK_STATE_COMPLETED');
  for (const updates of await Promise.all(again))
    assert.deepEqual(
      updates.map((result) => updateOf({ result })),
      ['task input-required', 'working', 'artifact a', 'completed'],
    );
});

test('errors have the status, the name and the reason of their kind', async () => {
  const { url } = await served(execute);
  const sent = await ask(url, 'POST', 'message:send', { message: message('go') });
  const { id } = sent.body.task;
  const push = 'pushNotificationConfigs';
  for (const [verb, path, body, status, name, reason] of [
    ['GET', 'tasks/none', undefined, 404, 'NOT_FOUND', 'TASK_NOT_FOUND'],
    ['POST', 'tasks/none:cancel', {}, 404, 'NOT_FOUND', 'TASK_NOT_FOUND'],
    ['GET', 'tasks/none:subscribe', undefined, 404, 'NOT_FOUND', 'TASK_NOT_FOUND'],
    ['POST', `tasks/${id}:cancel`, {}, 400, 'FAILED_PRECONDITION', 'TASK_NOT_CANCELABLE'],
    [
      'GET',
      `tasks/${id}:subscribe`,
      undefined,
      400,
      'FAILED_PRECONDITION',
      'UNSUPPORTED_OPERATION',
    ],
    ['POST', 'message:send', {}, 400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'],
    ['POST', 'message:send', '[]', 400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'],
    ['POST', 'message:send', '{', 400, 'INVALID_ARGUMENT', undefined],
    ['POST', 'message:stream', { message: 5 }, 400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'],
    ['GET', 'tasks?pageSize=many', undefined, 400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'],
    ['GET', `tasks/${id}?historyLength=-5`, undefined, 400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'],
    ['GET', `tasks/${id}?historyLength=two`, undefined, 400, 'INVALID_ARGUMENT', 'INVALID_PARAMS'],
    [
      'POST',
      `tasks/${id}/${push}`,
      {},
      400,
      'FAILED_PRECONDITION',
      'PUSH_NOTIFICATION_NOT_SUPPORTED',
    ],
    [
      'GET',
      `tasks/${id}/${push}`,
      undefined,
      400,
      'FAILED_PRECONDITION',
      'PUSH_NOTIFICATION_NOT_SUPPORTED',
    ],
    [
      'DELETE',
      `tasks/${id}/${push}/1`,
      undefined,
      400,
      'FAILED_PRECONDITION',
      'PUSH_NOTIFICATION_NOT_SUPPORTED',
    ],
    ['GET', 'extendedAgentCard', undefined, 400, 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION'],
  ]) {
    const answer = await ask(url, verb, path, body);
    const { error } = answer.body;
    const what = `${verb} ${path} ${JSON.stringify(answer.body)}`;
    assert.deepEqual([answer.status, error.code, error.status], [status, status, name], what);
    assert.equal(typeof error.message, 'string');
    assert.equal(error.details[0]?.reason, reason, what);
  }
  const other = await ask(url, 'GET', `tasks/${id}`, undefined, { 'a2a-version': '0.3' });
  assert.deepEqual(
    [other.status, other.body.error.details[0].reason],
    [400, 'VERSION_NOT_SUPPORTED'],
  );
  const typed = await ask(url, 'POST', 'message:send', '{}', { 'content-type': 'text/plain' });
  assert.deepEqual(
    [typed.status, typed.body.error.details[0].reason],
    [400, 'CONTENT_TYPE_NOT_SUPPORTED'],
  );
  const long = await ask(url, 'POST', 'message:send', `"${'x'.repeat(5 << 20)}"`);
  assert.equal(long.status, 413);
});

test('what the path names counts, whatever the body says', async () => {
  const { url } = await served(execute);
  const asks = await ask(url, 'POST', 'message:send', { message: message('ask') });
  const { id } = asks.body.task;
  const canceled = await ask(url, 'POST', `tasks/${id}:cancel`, { id: 'another', taskId: 'third' });
  assert.equal(canceled.body.id, id);
  const odd = await fetch(placeOf(url, 'tasks/%E0%A4%A'), { headers: HEADERS });
  assert.equal(odd.status, 404);
});

test('a client whose agent has no other binding speaks it', async () => {
  const supportedInterfaces = [{ protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' }];
  const { url } = await served(execute, {}, { ...CARD, supportedInterfaces });
  const client = createTaskClient(url);
  const stream = client.subscribe('go');
  const states = [];
  for await (const event of stream) if (event.kind === 'status') states.push(event.status.state);
  assert.deepEqual(states, ['working', 'completed']);
  const { id } = stream.task;
  assert.deepEqual((await client.get(id, { historyLength: 0 })).history, []);
  const { tasks } = await client.list({ pageSize: 3, includeArtifacts: true });
  assert.deepEqual([tasks[0].id, tasks[0].artifacts.length], [id, 1]);
  const asks = await client.send('ask');
  assert.equal((await client.cancel(asks.id, { reason: 'enough' })).status.state, 'canceled');
  await assert.rejects(client.cancel(id), { code: 'TASK_NOT_CANCELABLE' });
  await assert.rejects(
    client.get('none'),
    ({ code, details }) => code === 'TASK_NOT_FOUND' && details.code === -32001,
  );
  await assert.rejects(client.get('../x?y#z'), { code: 'TASK_NOT_FOUND' });
});

describe('beside others under the same place', () => {
  test("paths that are somebody else's are left to them", async () => {
    const agent = createTaskServer({ card: CARD, execute });
    const http = createServer((request, response) => {
      // What Express does with what it mounts at a path.
      request.originalUrl = request.url;
      request.url = request.url.replace(/^\/a2a/, '');
      void agent.handle(request, response, () => response.writeHead(418).end('{}'));
    });
    http.listen(0, '127.0.0.1');
    await once(http, 'listening');
    const url = `http://127.0.0.1:${http.address().port}`;
    const sent = await ask(url, 'POST', '/a2a/message:send', { message: message('go') });
    assert.equal(plainState(sent.body.task.status.state), 'completed');
    assert.equal((await ask(url, 'GET', `/a2a/tasks/${sent.body.task.id}`)).status, 200);
    for (const path of ['/shop/tasks', '/shop/tasks/5', '/a2a/more/tasks/5'])
      assert.equal((await ask(url, 'GET', path)).status, 418, path);
    http.close();
    http.closeAllConnections();
    agent.close();
  });

  test('a server in the style of fetch takes them below any path, a tenant among them', async () => {
    const agent = createTaskServer({ card: CARD, execute });
    const request = (path, init) =>
      agent.fetch(
        new Request(`http://agent.example/deep/in/${path}`, { headers: HEADERS, ...init }),
      );
    const sent = await request('message:send', {
      method: 'POST',
      body: JSON.stringify({ message: message('go') }),
    });
    const { task } = await sent.json();
    assert.equal((await (await request(`tenant/tasks/${task.id}`)).json()).id, task.id);
    assert.equal((await request('elsewhere')).status, 404);
    assert.equal((await request('tasks', { method: 'PUT' })).status, 405);
    agent.close();
  });
});
