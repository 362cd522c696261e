/**
 * Our tasks behind the official SDK: its Express front, its client and executors written for it,
 * with our request handler between them.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { Role, TaskState } from '@a2a-js/sdk';
import { ClientFactory } from '@a2a-js/sdk/client';
import { TaskNotFoundError } from '@a2a-js/sdk/errors';
import { AgentEvent, JsonRpcTransportHandler, ServerCallContext } from '@a2a-js/sdk/server';
import { createRequestHandler } from '../../src/adapters/a2a-sdk.js';
import { createTaskClient } from '../../src/index.js';
import { memoryBackend, taskStore } from '@abp-bridge/a2a-store';
import { deferred } from '../support/a2a.js';
import { startSdkAgent } from '../support/a2a-sdk.js';

const REPEATS = 'urn:abp-bridge:a2a:repeats';

const part = (value) => ({
  content: { $case: 'text', value },
  mediaType: 'text/plain',
  filename: '',
});
const messageOf = (text, given) => ({
  message: {
    messageId: crypto.randomUUID(),
    role: Role.ROLE_USER,
    contextId: '',
    taskId: '',
    parts: [part(text)],
    extensions: [],
    referenceTaskIds: [],
    ...given,
  },
});
const { TASK_STATE_CANCELED: CANCELED, TASK_STATE_COMPLETED: COMPLETED } = TaskState;
const { TASK_STATE_SUBMITTED: SUBMITTED, TASK_STATE_INPUT_REQUIRED: ASKS } = TaskState;

/** What an executor publishes first, and what it says later. */
const begins = ({ taskId: id, contextId, userMessage, task }) =>
  AgentEvent.task(
    task ?? { id, contextId, status: { state: SUBMITTED }, artifacts: [], history: [userMessage] },
  );
const says = ({ taskId, contextId }, state) =>
  AgentEvent.statusUpdate({ taskId, contextId, status: { state }, metadata: {} });

/** An executor of one function, whose cancels are counted. */
function executorOf(execute) {
  const cancelled = [];
  return {
    cancelled,
    execute,
    async cancelTask(taskId) {
      cancelled.push(taskId);
    },
  };
}

async function agentOf(t, execute, { behind = {}, ...options } = {}) {
  const executor = typeof execute === 'function' ? executorOf(execute) : execute;
  const agent = await startSdkAgent({ executor, behind, ...options });
  t.after(() => agent.close());
  const client = await new ClientFactory().createFromUrl(agent.url);
  return { ...agent, client };
}

async function all(stream) {
  const events = [];
  for await (const { payload } of stream) events.push(payload);
  return events;
}
const about = ({ $case, value }) =>
  $case === 'artifactUpdate'
    ? value.artifact.artifactId
    : `${$case} ${value.status ? TaskState[value.status.state].slice('TASK_STATE_'.length) : ''}`;

for (const rest of [false, true]) {
  const binding = rest ? 'HTTP+JSON' : 'JSON-RPC';

  test(`${binding}: an executor is given what the SDK gives it, and its events are told`, async (t) => {
    const asked = [];
    const { client } = await agentOf(
      t,
      async (context, bus) => {
        asked.push(context);
        bus.publish(begins(context));
        const { taskId, contextId } = context;
        const artifact = { artifactId: 'a', parts: [part('x')], metadata: { deep: [1] } };
        bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, lastChunk: true }));
        bus.publish(says(context, asked.length === 1 ? ASKS : COMPLETED));
        bus.finished();
      },
      { rest },
    );
    const metadata = { of: 'the request' };
    const first = await all(client.sendMessageStream({ ...messageOf('one'), metadata }));
    assert.deepEqual(first.map(about), [
      'task SUBMITTED',
      'statusUpdate WORKING',
      'a',
      'statusUpdate INPUT_REQUIRED',
    ]);
    const { id, contextId } = first[0].value;
    const task = await client.sendMessage(
      messageOf('two', { taskId: id, contextId, referenceTaskIds: [id, 'none'] }),
    );
    assert.equal(task.status.state, COMPLETED);
    assert.deepEqual(task.artifacts[0].metadata, { deep: [1] });
    assert.deepEqual(
      task.history.map(({ parts }) => parts[0].content.value),
      ['one', 'two'],
    );
    const [one, two] = asked;
    assert.deepEqual([one.taskId, one.contextId, one.task], [id, contextId, undefined]);
    assert.deepEqual(one.request.metadata, metadata);
    assert.equal(one.context.user.isAuthenticated, false);
    assert.ok(one.context.state.get('headers').host);
    assert.equal(one.userMessage.parts[0].content.value, 'one');
    assert.equal(two.task.artifacts[0].artifactId, 'a');
    assert.deepEqual(
      two.referenceTasks.map((other) => other.id),
      [id],
    );
  });

  test(`${binding}: errors of the agent are those of the SDK`, async (t) => {
    const { client, requestHandler } = await agentOf(t, async () => {}, { rest });
    const notFound = (error) => error instanceof TaskNotFoundError;
    await assert.rejects(client.getTask({ id: 'none' }), notFound);
    const { id } = await client.sendMessage(messageOf('go'));
    await assert.rejects(client.cancelTask({ id }), { name: /TaskNotCancelableError/ });
    await assert.rejects(client.sendMessage(messageOf('more', { taskId: id })), {
      name: /UnsupportedOperationError/,
    });
    await assert.rejects(client.sendMessage(messageOf('go', { parts: [] })), {
      name: /RequestMalformedError/,
    });
    const push = { taskId: id, id: '', url: 'https://example.org/' };
    const refused = requestHandler.createTaskPushNotificationConfig(push, new ServerCallContext());
    await assert.rejects(refused, { name: 'PushNotificationNotSupportedError' });
  });
}

for (const grace of [0, 60_000])
  test(`a cancel calls cancelTask, and what became of the work is told: grace ${grace}`, async (t) => {
    const gate = deferred();
    const running = deferred();
    const executor = {
      async execute(context, bus) {
        bus.publish(begins(context));
        running.resolve(context);
        await gate.promise;
        bus.publish(says(context, CANCELED));
      },
      async cancelTask(id) {
        assert.equal(id, (await running.promise).taskId);
        gate.resolve();
      },
    };
    const { client, url } = await agentOf(t, executor, { behind: { grace } });
    const stream = client.sendMessageStream(messageOf('go'));
    const { value } = await stream.next();
    await running.promise;
    const { id } = value.payload.value;
    const both = await Promise.all([client.cancelTask({ id }), client.cancelTask({ id })]);
    for (const { status } of both) assert.equal(status.state, CANCELED);
    assert.equal(about((await all(stream)).at(-1)), 'statusUpdate CANCELED');
    const ours = createTaskClient(url);
    let outcome;
    do ({ outcome } = (await ours.get(id)).status);
    while (outcome === 'running');
    assert.equal(outcome, 'stopped');
  });

test('without a grace period a task is canceled at once, whatever its executor still says', async (t) => {
  const gate = deferred();
  const done = deferred();
  const { client, executor } = await agentOf(t, async (context, bus) => {
    bus.publish(begins(context));
    await gate.promise;
    bus.publish(says(context, COMPLETED));
    done.resolve();
  });
  const stream = client.sendMessageStream(messageOf('go'));
  const { id } = (await stream.next()).value.payload.value;
  assert.equal((await client.cancelTask({ id })).status.state, CANCELED);
  gate.resolve();
  await done.promise;
  assert.equal((await client.getTask({ id })).status.state, CANCELED);
  assert.deepEqual(executor.cancelled, [id]);
});

test('a message that takes over stops nothing by the id of the task, which is its own', async (t) => {
  const gate = deferred();
  let runs = 0;
  const { client, executor } = await agentOf(t, async (context, bus) => {
    bus.publish(begins(context));
    if (++runs === 2) return bus.publish(says(context, COMPLETED));
    bus.publish(says(context, ASKS));
    return gate.promise; // it need not, but an executor may
  });
  const { id } = await client.sendMessage(messageOf('one'));
  const { status } = await client.sendMessage(messageOf('two', { taskId: id }));
  assert.equal(status.state, COMPLETED);
  assert.deepEqual([runs, executor.cancelled], [2, []]);
  gate.resolve();
});

test('what fails in an executor fails its task; its words are for those who run the agent', async (t) => {
  const reported = t.mock.method(console, 'error', () => {});
  const { client } = await agentOf(t, async (context, bus) => {
    if (context.userMessage.parts[0].content.value === 'throw') throw new Error('the secret');
    bus.publish(begins(context));
    // What our context refuses is thrown where it was published.
    bus.publish(says(context, TaskState.TASK_STATE_UNSPECIFIED));
  });
  for (const text of ['throw', 'publish']) {
    const { status } = await client.sendMessage(messageOf(text));
    assert.equal(status.state, TaskState.TASK_STATE_FAILED);
    assert.doesNotMatch(JSON.stringify(status.message), /secret/);
  }
  const words = reported.mock.calls.map(({ arguments: [, error] }) => String(error));
  assert.deepEqual(words, ['Error: the secret', 'TypeError: "unknown" is not a task state']);
});

test('a task is for the user who began it, unless `authorize` says otherwise', async (t) => {
  const userBuilder = async ({ headers }) => ({
    isAuthenticated: true,
    userName: headers.authorization,
  });
  const clientsOf = async (behind) => {
    const { url } = await agentOf(t, async () => {}, { behind, userBuilder });
    return ['ann', 'bob'].map((authorization) =>
      createTaskClient(url, { headers: { authorization } }),
    );
  };
  const [ann, bob] = await clientsOf({});
  const { id } = await ann.send('go');
  await assert.rejects(bob.get(id), { code: 'TASK_NOT_FOUND' });
  assert.deepEqual((await bob.list()).tasks, []);
  assert.deepEqual([(await ann.get(id)).id, (await ann.list()).totalSize], [id, 1]);
  const [one, other] = await clientsOf({ authorize: () => true });
  const shared = await one.send('go');
  assert.equal((await other.get(shared.id)).id, shared.id);
});

test('tasks of a store are run by another process with what is known of their request', async (t) => {
  const backend = memoryBackend();
  const gate = deferred();
  t.after(() => gate.resolve());
  const running = deferred();
  const saveRequest = ({ metadata }) => ({ metadata });
  const store = () => taskStore({ backend, onOrphan: 'rerun', saveRequest });
  const first = await agentOf(
    t,
    async (context, bus) => {
      bus.publish(begins(context));
      running.resolve(context);
      await gate.promise;
    },
    { behind: { store: store() } },
  );
  const { id } = await first.client.sendMessage({
    ...messageOf('go'),
    configuration: { returnImmediately: true, acceptedOutputModes: [] },
  });
  await running.promise;
  const again = deferred();
  const second = await agentOf(
    t,
    async (context, bus) => {
      bus.publish(begins(context));
      bus.publish(says(context, COMPLETED));
      again.resolve(context);
    },
    { behind: { store: store() } },
  );
  const watching = second.client.resubscribeTask({ id });
  await watching.next();
  await first.requestHandler.server.drain({ ms: 0 });
  const context = await again.promise;
  assert.deepEqual([context.taskId, context.task.id, context.context.user.userName], [id, id, '']);
  assert.equal(context.userMessage.parts[0].content.value, 'go');
  assert.equal(about((await all(watching)).at(-1)), 'statusUpdate COMPLETED');
});

test('the card behind a login is the one that was given', async (t) => {
  const card = (name) => ({ name, capabilities: { extendedAgentCard: true } });
  const handlerOf = (options) =>
    createRequestHandler(
      card('all'),
      executorOf(() => {}),
      options,
    );
  const of = (handler, isAuthenticated) =>
    handler.getAuthenticatedExtendedAgentCard(
      {},
      new ServerCallContext({ user: { isAuthenticated, userName: 'ann' } }),
    );
  const given = handlerOf({ extendedAgentCard: card('more') });
  assert.equal((await of(given, true)).name, 'more');
  assert.equal((await of(given, false)).name, 'all');
  const made = handlerOf({ extendedAgentCard: async ({ user }) => card(user.userName) });
  assert.equal((await of(made, true)).name, 'ann');
  await assert.rejects(of(handlerOf(), true), { name: 'ExtendedAgentCardNotConfiguredError' });
  t.after(() => [given, made].forEach(({ server }) => server.close()));
});

test('a reader that is left behind has a bounded queue, and its task goes on', async (t) => {
  const handler = createRequestHandler(
    { name: 'many', capabilities: { streaming: true } },
    executorOf(async (context, bus) => {
      bus.publish(begins(context));
      const { taskId, contextId } = context;
      for (let n = 0; n < 5000; n++) {
        const artifact = { artifactId: 'a', parts: [part(`${n}`)] };
        bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: n > 0 }));
      }
    }),
  );
  t.after(() => handler.server.close());
  const context = new ServerCallContext({ requestedVersion: '1.0' });
  const front = new JsonRpcTransportHandler(handler);
  const params = {
    message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'go' }] },
  };
  const request = { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params };
  const stream = await front.handle(request, context);
  const { task } = (await stream.next()).value.result;
  let count = 1;
  for await (const event of stream) count += event ? 1 : 0;
  assert.ok(count < 4200, `${count} events`);
  const { artifacts, status } = await handler.getTask({ id: task.id }, context);
  assert.deepEqual([artifacts[0].parts.length, status.state], [5000, COMPLETED]);
});

test('a message that our client sends twice is taken once: the card and the answers say so', async (t) => {
  let runs = 0;
  const { url, card } = await agentOf(t, async (context, bus) => {
    runs++;
    bus.publish(begins(context));
  });
  const printed = await (await fetch(`${url}/.well-known/agent-card.json`)).json();
  assert.equal(card.capabilities.extensions.length, 0);
  assert.deepEqual(
    printed.capabilities.extensions.map(({ uri }) => uri),
    [REPEATS],
  );
  for (const method of ['SendMessage', 'SendStreamingMessage']) {
    const params = { message: { messageId: method, role: 'ROLE_USER', parts: [{ text: 'go' }] } };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const headers = {
      'content-type': 'application/json',
      'a2a-version': '1.0',
      'a2a-extensions': REPEATS,
    };
    const send = () => fetch(`${url}/a2a`, { method: 'POST', headers, body });
    const [once, again] = [await send(), await send()];
    for (const response of [once, again]) {
      assert.equal(response.headers.get('a2a-extensions'), REPEATS);
      await response.text();
    }
  }
  assert.equal(runs, 2);
});

/** An agent whose tasks wait until they are cancelled, asked over HTTP as it is. */
async function waitingAgent(t, behind) {
  const waiting = executorOf(async (context, bus) => {
    bus.publish(begins(context));
    await new Promise(() => {});
  });
  const agent = await agentOf(t, waiting, { behind });
  const params = { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'wait' }] } };
  const ask = (method, about, headers = {}) =>
    new Promise((resolve, reject) => {
      const asked = httpRequest(`${agent.url}/a2a`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'a2a-version': '1.0', ...headers },
      });
      asked.on('response', resolve).on('error', reject);
      asked.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: about }));
    });
  return { ...agent, params, ask };
}

test('guard: a reader that has left is forgotten while its task goes on', async (t) => {
  const { ask, params, requestHandler } = await waitingAgent(t);
  const response = await ask('SendStreamingMessage', params);
  await once(response, 'data');
  assert.equal(requestHandler.server.counters.streams, 1);
  response.destroy();
  while (requestHandler.server.counters.streams > 0) await turn();
  assert.equal(requestHandler.server.counters.live, 1);
});

test('guard: a silent stream shows signs of life', async (t) => {
  const { ask, params } = await waitingAgent(t, { keepAlive: 1 });
  const response = await ask('SendStreamingMessage', params);
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) if (/^:$/m.test((text += chunk))) break;
  assert.match(text, /^data: /);
});

test('guard: a client that comes back with the id of an event gets what it has missed', async (t) => {
  const [begun, go] = [deferred(), deferred()];
  const store = taskStore({ backend: memoryBackend() });
  const { url, client, requestHandler } = await agentOf(
    t,
    async (context, bus) => {
      bus.publish(begins(context));
      const { taskId, contextId } = context;
      const add = (artifactId) =>
        bus.publish(
          AgentEvent.artifactUpdate({
            taskId,
            contextId,
            artifact: { artifactId, parts: [part('x')] },
          }),
        );
      add('one');
      begun.resolve();
      await go.promise;
      add('two');
      add('three');
    },
    { behind: { store } },
  );
  const ours = createTaskClient(url);
  const stream = ours.subscribe('go');
  const seen = [];
  for await (const event of stream) {
    seen.push(event.artifact?.artifactId ?? event.kind);
    if (event.kind === 'artifact') break;
  }
  assert.deepEqual(seen, ['task', 'status', 'one']);
  await begun.promise;
  const { id } = stream.task;
  assert.ok(stream.lastEventId);
  while (requestHandler.server.counters.streams > 0) await turn();
  const again = ours.resubscribe(id, { lastEventId: stream.lastEventId });
  const missed = again.next();
  while (requestHandler.server.counters.streams === 0) await turn();
  go.resolve();
  const events = [await missed];
  for await (const event of again) events.push({ value: event });
  assert.deepEqual(
    events.map(({ value }) => value.artifact?.artifactId ?? value.status?.state ?? value.kind),
    ['two', 'three', 'completed'],
  );
  assert.equal((await client.getTask({ id })).artifacts.length, 3);
});

test('guard: a page whose name was rebound to this machine is refused, unless the name is listed', async (t) => {
  for (const [hosts, status] of [
    [undefined, 403],
    [['evil.example'], 200],
  ]) {
    const { ask } = await waitingAgent(t, hosts && { hosts });
    const { statusCode } = await ask('GetTask', { id: 'none' }, { host: 'evil.example' });
    assert.equal(statusCode, status);
  }
});

test('guard: a slow reader is cut off at maxUnread, and its task goes on', async (t) => {
  const text = 'x'.repeat(100_000);
  const { url, requestHandler, client } = await agentOf(
    t,
    async (context, bus) => {
      bus.publish(begins(context));
      const { taskId, contextId } = context;
      for (let n = 0; n < 200; n++) {
        const artifact = { artifactId: `${n}`, parts: [part(text)] };
        bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact }));
        await turn();
      }
    },
    { behind: { maxUnread: 1_000_000 } },
  );
  const asked = httpRequest(`${url}/a2a`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
  });
  const params = { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'go' }] } };
  asked.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params }));
  const [response] = await once(asked, 'response');
  // Not read until the task has ended.
  const { id } = await ended(client);
  let length = 0;
  for await (const chunk of response) length += chunk.length;
  assert.ok(length < 15_000_000, `${length} bytes`);
  assert.equal((await client.getTask({ id })).artifacts.length, 200);
  assert.equal(requestHandler.server.counters.streams, 0);
});

/** The only task of an agent, once it has completed. */
async function ended(client) {
  for (;;) {
    const { tasks } = await client.listTasks({
      pageSize: 1,
      status: TaskState.TASK_STATE_UNSPECIFIED,
    });
    if (tasks[0]?.status.state === COMPLETED) return tasks[0];
    await turn();
  }
}
