// A client lasts as long as its task, however long that is silent and whoever ends silent
// connections meanwhile.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import { createTaskClient } from '../src/index.js';
import { startAgent, task } from './support/a2a-agent.js';
import { VERSIONS, deferred, open, serve } from './support/a2a.js';
import { restOf, test, stateOrKind } from './support/clients.js';

// --- Node's own limits ---------------------------------------------------------------------------

/** Where Node finds its connections: which of them its fetch asks depends on its version. */
const DISPATCHERS = [1, 2].map((version) => Symbol.for(`undici.globalDispatcher.${version}`));

/** Begins a stream that is cut when it has told that its task works. */
async function cut(agent, client, options) {
  const stream = client.subscribe('go', options);
  const first = stream.next();
  const asked = (await agent.next('SendStreamingMessage')).open().status('t', 'WORKING');
  await first;
  asked.destroy();
  return stream;
}

/**
 * Has every connection of the process end after the shortest silence that Node takes, and waits
 * with `silence` until one has: whatever had the same limit has ended by then, too.
 */
async function impatient(t) {
  new Headers(); // Node makes its dispatcher when it is first needed
  for (const symbol of DISPATCHERS.filter((symbol) => symbol in globalThis)) {
    const whole = globalThis[symbol];
    globalThis[symbol] = {
      dispatch: (options, handler) =>
        whole.dispatch({ headersTimeout: 1, bodyTimeout: 1, ...options }, handler),
    };
    t.after(() => (globalThis[symbol] = whole));
  }
  const silent = createServer((request, response) => {
    if (request.url === '/body') response.writeHead(200).flushHeaders();
  });
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.after(() => {
    silent.closeAllConnections();
    silent.close();
  });
  const url = `http://127.0.0.1:${silent.address().port}`;
  return {
    silence: async () => {
      await assert.rejects(fetch(`${url}/head`));
      await assert.rejects(fetch(`${url}/body`).then((response) => response.text()));
    },
  };
}

test('a send whose agent is silent for longer than Node lets a connection be', async (t) => {
  const { silence } = await impatient(t);
  const agent = await startAgent();
  t.after(() => agent.close());
  const sent = createTaskClient(agent.url, { version: '1.0' }).send('go');
  const asked = await agent.next('SendMessage');
  await silence();
  asked.answer({ result: { task: task('t', 'COMPLETED') } });
  assert.equal((await sent).status.state, 'completed');
  assert.deepEqual(agent.seen, ['SendMessage']);
});

test('a stream whose agent is silent for longer than Node lets a connection be', async (t) => {
  const { silence } = await impatient(t);
  const agent = await startAgent();
  t.after(() => agent.close());
  const events = restOf(createTaskClient(agent.url, { version: '1.0' }).subscribe('go'));
  const asked = (await agent.next('SendStreamingMessage')).open().status('t', 'WORKING');
  await silence();
  asked.status('t', 'COMPLETED').end();
  assert.deepEqual((await events).map(stateOrKind), ['working', 'completed']);
  assert.deepEqual(agent.seen, ['SendStreamingMessage']);
});

test("another fetch is asked in its own way, and hears nothing of Node's", async (t) => {
  const agent = await startAgent();
  t.after(() => agent.close());
  const inits = [];
  const own = (url, init) => {
    inits.push(init);
    return fetch(url, init);
  };
  const sent = createTaskClient(agent.url, { version: '1.0', fetch: own }).get('t');
  (await agent.next('GetTask')).answer({ result: task('t', 'COMPLETED') });
  await sent;
  assert.equal('dispatcher' in inits[0], false);
});

// --- Connections that are cut --------------------------------------------------------------------

test('a stream that is cut again and again, and brings nothing between, lasts until its task has ended', async (t) => {
  const agent = await startAgent();
  t.after(() => agent.close());
  const client = createTaskClient(agent.url, { version: '1.0', limits: { retry: 1 } });
  const events = restOf(await cut(agent, client));
  for (let i = 0; i < 6; i++) {
    (await agent.next('GetTask')).answer({ result: task('t', 'WORKING') });
    const again = await agent.next('SubscribeToTask');
    again.open().frame({ task: task('t', 'WORKING') });
    if (i < 5) again.destroy();
    else again.status('t', 'COMPLETED').end();
  }
  assert.equal((await events).map(stateOrKind).at(-1), 'completed');
});

test('an agent that has no streams to open again is asked for the task until that has ended', async (t) => {
  const agent = await startAgent();
  t.after(() => agent.close());
  const client = createTaskClient(agent.url, { version: '1.0', limits: { retry: 1 } });
  const events = restOf(await cut(agent, client));
  const half = [{ artifactId: 'a', parts: [{ text: 'half' }] }];
  for (const [state, artifacts] of [
    ['WORKING'],
    ['WORKING'],
    ['WORKING', half],
    ['WORKING', half],
    ['COMPLETED', half],
  ]) {
    (await agent.next('GetTask')).answer({ result: task('t', state, artifacts) });
    if (state === 'WORKING')
      (await agent.next('SubscribeToTask')).answer({ error: { code: -32004, message: 'No' } });
  }
  // Only what has changed is an event.
  assert.deepEqual(
    (await events).map((event) => [stateOrKind(event), event.task.artifacts.length]),
    [
      ['working', 1],
      ['completed', 1],
    ],
  );
});

test('a stream that has become polling says why, and no more once it is a stream again', async (t) => {
  const agent = await startAgent();
  t.after(() => agent.close());
  const client = createTaskClient(agent.url, { version: '1.0', limits: { retry: 1 } });
  const stream = await cut(agent, client);
  assert.equal(stream.polling, undefined);
  const events = restOf(stream);
  (await agent.next('GetTask')).answer({ result: task('t', 'WORKING') });
  (await agent.next('SubscribeToTask')).answer({ error: { code: -32004, message: 'No streams' } });
  (await agent.next('GetTask')).answer({ result: task('t', 'WORKING') });
  const again = await agent.next('SubscribeToTask');
  assert.deepEqual(
    [stream.polling.code, stream.polling.message],
    ['UNSUPPORTED_OPERATION', 'No streams'],
  );
  again.open().status('t', 'COMPLETED').end();
  await events;
  assert.equal(stream.polling, undefined);
});

/**
 * A client whose stream has been cut, and who waits to open it again for longer than a test takes.
 */
async function pausing(t, signal) {
  const agent = await startAgent();
  t.after(() => agent.close());
  const client = createTaskClient(agent.url, { version: '1.0', limits: { retry: 2 ** 30 } });
  const stream = await cut(agent, client, { signal });
  const events = restOf(stream);
  (await agent.next('GetTask')).answer({ result: task('t', 'WORKING') });
  const again = await agent.next('SubscribeToTask');
  again.open().frame({ task: task('t', 'WORKING') });
  again.destroy();
  const asked = await agent.next('GetTask');
  asked.answer({ result: task('t', 'WORKING') });
  await asked.closed;
  return { agent, stream, events };
}

test('a signal that is aborted between two streams cancels the task at once', async (t) => {
  const stop = new AbortController();
  const { agent, events } = await pausing(t, stop.signal);
  stop.abort('enough');
  (await agent.next('CancelTask')).answer({ result: task('t', 'CANCELED') });
  const again = await agent.next('SubscribeToTask');
  again.answer({ error: { code: -32004, message: 'It has ended' } });
  (await agent.next('GetTask')).answer({ result: task('t', 'CANCELED') });
  assert.equal((await events).map(stateOrKind).at(-1), 'canceled');
});

test('a stream that is left between two connections opens no other', async (t) => {
  const { agent, stream, events } = await pausing(t);
  await stream.return();
  await events;
  assert.equal(agent.seen.filter((method) => method === 'SubscribeToTask').length, 1);
});

test('a send outlives whoever cuts its connection: it is a stream where the agent has streams', async (t) => {
  const gate = deferred();
  const running = deferred();
  const server = await serve(
    async (ctx) => {
      ctx.emitStatus('working', 'On it');
      running.resolve();
      await gate.promise;
      ctx.emitArtifact({ artifactId: 'a', parts: [{ text: 'done' }] });
    },
    { keepAlive: 0 },
  );
  t.after(() => server.close());
  // What stands between and ends silent connections, when the test says that it has been long
  // enough.
  const sockets = new Set();
  const between = createTcpServer((socket) => {
    const to = connect(server.http.address().port, '127.0.0.1');
    for (const end of [socket, to]) {
      sockets.add(end);
      end.on('error', () => {});
      end.on('close', () => (socket.destroy(), to.destroy()));
    }
    socket.pipe(to).pipe(socket);
  });
  between.listen(0, '127.0.0.1');
  await once(between, 'listening');
  t.after(() => between.close());
  const hasWorked = deferred();
  const client = createTaskClient(`http://127.0.0.1:${between.address().port}/`, {
    fetch: async (...args) => {
      const answer = await fetch(...args);
      const transform = (chunk, controller) => {
        controller.enqueue(chunk);
        if (/working/i.test(new TextDecoder().decode(chunk))) hasWorked.resolve();
      };
      return new Response(answer.body.pipeThrough(new TransformStream({ transform })), answer);
    },
  });
  const sent = client.send('go');
  await running.promise;
  await hasWorked.promise;
  await new Promise(setImmediate);
  for (const socket of sockets) socket.destroy();
  while (server.agent.counters.streams > 0) await new Promise(setImmediate);
  gate.resolve();
  const { status, artifacts, history } = await sent;
  assert.deepEqual([status.state, artifacts[0].parts[0].text], ['completed', 'done']);
  assert.deepEqual(
    history.map(({ parts }) => parts[0].text),
    ['go', 'On it'],
  );
});

test('a send that is not to wait does not, where the agent has streams, too', async (t) => {
  const gate = deferred();
  const server = await serve(() => gate.promise);
  t.after(() => server.close());
  const client = createTaskClient(server.url);
  const configuration = { returnImmediately: true };
  assert.equal((await client.send('go', { configuration })).status.state, 'working');
  gate.resolve();
});

// --- Signs of life -------------------------------------------------------------------------------

test('an agent shows signs of life in streams and in answers that take their time, unless told not to', async (t) => {
  const every = [];
  const { setInterval } = globalThis;
  t.after(() => (globalThis.setInterval = setInterval));
  globalThis.setInterval = (act, ms) => {
    every.push(ms);
    return setInterval(act, ms);
  };
  const gate = deferred();
  const names = VERSIONS['1.0'];
  for (const keepAlive of [undefined, 0]) {
    const server = await serve(() => gate.promise, keepAlive === 0 ? { keepAlive } : {});
    t.after(() => server.close());
    const params = { message: names.message('go') };
    const stream = await open(server.url, names.stream, params);
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: names.send, params });
    const headers = { 'content-type': 'application/json' };
    void fetch(server.url, { method: 'POST', headers, body }).catch(() => {});
    while (server.agent.counters.live < 2) await new Promise(setImmediate);
    stream.leave();
  }
  assert.deepEqual(every, [15_000, 15_000]);
  gate.resolve();
});

test('an answer that takes its time begins with spaces, and is the JSON that it would have been', async (t) => {
  const gate = deferred();
  const server = await serve(() => gate.promise, { keepAlive: 1 });
  t.after(() => server.close());
  const names = VERSIONS['1.0'];
  const message = names.message('go');
  for (const [path, body] of [
    ['', { jsonrpc: '2.0', id: 1, method: names.send, params: { message } }],
    ['message:send', { message }],
  ]) {
    const answer = await fetch(server.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...names.headers },
      body: JSON.stringify(body),
    });
    // The head has come, and the task works.
    assert.equal(answer.status, 200);
    const reader = answer.body.getReader();
    const { value } = await reader.read();
    assert.match(new TextDecoder().decode(value), /^ +$/);
    if (path) gate.resolve();
    else {
      await reader.cancel();
      continue;
    }
    let text = '';
    for (let next; !(next = await reader.read()).done;)
      text += new TextDecoder().decode(next.value);
    assert.equal(JSON.parse(text).task.status.state, 'TASK_STATE_COMPLETED');
  }
});

// --- Moments without an agent --------------------------------------------------------------------

test('a task outlives refusals, 503s and a port that is closed for a while', async (t) => {
  const agent = await startAgent();
  t.after(() => agent.close());
  let refusals = 0;
  const away = async (...args) => {
    if (refusals-- <= 0) return fetch(...args);
    throw new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } });
  };
  const client = createTaskClient(agent.url, { version: '1.0', fetch: away, limits: { retry: 1 } });
  refusals = 2;
  const stream = client.subscribe('go');
  const first = stream.next();
  // The message is sent again: it cannot have arrived.
  const busy = await agent.next('SendStreamingMessage');
  busy.raw(503, 'text/plain', 'Soon', { 'retry-after': '0' });
  const asked = await agent.next('SendStreamingMessage');
  assert.equal(asked.rpc.params.message.messageId, busy.rpc.params.message.messageId);
  asked.open().status('t', 'WORKING');
  await first;
  const events = restOf(stream);
  refusals = 3;
  asked.destroy();
  (await agent.next('GetTask')).raw(503, 'text/plain', 'Soon');
  (await agent.next('GetTask')).answer({ result: task('t', 'WORKING') });
  (await agent.next('SubscribeToTask')).raw(503, 'text/plain', 'Soon');
  (await agent.next('GetTask')).answer({ result: task('t', 'COMPLETED') });
  assert.equal((await events).map(stateOrKind).at(-1), 'completed');
});

/** What an agent answers that has too much to do: as JSON-RPC, and with a status of HTTP. */
const busy = (id, retryDelay) => ({
  jsonrpc: '2.0',
  id,
  error: {
    code: -32603,
    message: 'Too many tasks',
    data: [
      { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'RATE_LIMITED' },
      ...(retryDelay ? [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay }] : []),
    ],
  },
});

test('an agent that is too busy is asked again, whichever way it says so', async (t) => {
  const agent = await startAgent();
  t.after(() => agent.close());
  const client = createTaskClient(agent.url, { version: '1.0', limits: { retry: 1 } });
  const sent = client.send('go');
  for (let i = 0; i < 3; i++) {
    const asked = await agent.next('SendMessage');
    const { id } = asked.rpc;
    if (i === 0) asked.answer(busy(id));
    else asked.raw(429, 'application/json', JSON.stringify(busy(id)), { 'retry-after': '0' });
  }
  (await agent.next('SendMessage')).answer({ result: { task: task('t', 'COMPLETED') } });
  assert.equal((await sent).status.state, 'completed');
});

test('an agent that wants to be left alone for too long is given up, by its own words', async (t) => {
  const agent = await startAgent();
  t.after(() => agent.close());
  const client = createTaskClient(agent.url, { version: '1.0', limits: { outage: 1000 } });
  for (const inBody of [true, false]) {
    const sent = client.send('go');
    const asked = await agent.next('SendMessage');
    const { id } = asked.rpc;
    if (inBody) asked.answer(busy(id, '3600s'));
    else asked.raw(429, 'application/json', JSON.stringify(busy(id)), { 'retry-after': '3600' });
    await assert.rejects(sent, { code: 'RATE_LIMITED', retryAfter: 3_600_000, retryable: true });
  }
});

test('when an agent stays out of reach, the error has the id of the task and what is known of it', async (t) => {
  const agent = await startAgent();
  t.after(() => agent.close());
  const client = createTaskClient(agent.url, { version: '1.0', limits: { outage: 1 } });
  const stream = await cut(agent, client);
  const events = restOf(stream);
  (await agent.next('GetTask')).raw(503, 'text/plain', 'Away', { 'retry-after': '60' });
  await assert.rejects(events, ({ code, details }) => {
    assert.equal(code, 'DISCONNECTED');
    assert.equal(details.taskId, 't');
    assert.equal(details.task.status.state, 'working');
    return true;
  });
});

test('a message that may have arrived is not sent again', async (t) => {
  const agent = await startAgent();
  t.after(() => agent.close());
  const client = createTaskClient(agent.url, { version: '1.0', limits: { retry: 1 } });
  const sent = client.send('go');
  (await agent.next('SendMessage')).destroy();
  await assert.rejects(sent, { code: 'TRANSPORT_ERROR' });
  assert.deepEqual(agent.seen, ['SendMessage']);
});

test('a signal ends the wait for an agent, with its reason where nothing has arrived', async () => {
  const stop = new AbortController();
  const refused = async () => {
    setImmediate(() => stop.abort('enough'));
    throw new TypeError('fetch failed', { cause: { code: 'ECONNREFUSED' } });
  };
  const client = createTaskClient('http://127.0.0.1:1/', {
    version: '1.0',
    fetch: refused,
    limits: { retry: 30_000 },
  });
  const sent = client.send('go', { signal: stop.signal });
  await assert.rejects(sent, (reason) => reason === 'enough');
});
