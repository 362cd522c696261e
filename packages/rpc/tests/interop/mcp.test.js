/** Our peer and the MCP SDK, each as client and as server, over the SDK's in-memory transport. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CallToolRequestSchema,
  CreateMessageRequestSchema,
  CreateMessageResultSchema,
  CreateTaskResultSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { WebSocket, WebSocketServer } from 'ws';
import { mcpTransport } from '../../src/adapters/mcp.js';
import { createPeer, portTransport } from '../../src/index.js';
import { webSocketTransport } from 'abp-bridge/transports';
import { fired, gate, outcome, recording } from '../support/rpc.js';

const VERSION = '2025-11-25';
const CANCEL = 'notifications/cancelled';
const TASK = {
  taskId: 't1',
  ttl: null,
  createdAt: '2026-01-01T00:00:00Z',
  lastUpdatedAt: '2026-01-01T00:00:00Z',
};
const text = (said) => ({ content: [{ type: 'text', text: said }] });

/** One end of the SDK's transport as ours. */
function transportOf(linked) {
  const transport = {
    post: (message) => void linked.send(message).catch(() => {}),
    onMessage() {},
    close: () => void linked.close(),
  };
  linked.onmessage = (message) => transport.onMessage(message, []);
  linked.onclose = () => transport.onClose?.();
  return transport;
}

async function withServer(handle, options) {
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const server = new Server({ name: 'b', version: '1' }, { capabilities: { tools: {} } });
  const errors = [];
  server.onerror = (error) => errors.push(error.message);
  server.setRequestHandler(CallToolRequestSchema, handle);
  await server.connect(theirs);
  const log = [];
  const peer = createPeer(recording(transportOf(ours), log, 'ours', 'theirs'), {
    dialect: 'mcp',
    ...options,
  });
  await peer.request('initialize', {
    protocolVersion: VERSION,
    capabilities: { sampling: {} },
    clientInfo: { name: 'a', version: '1' },
  });
  peer.notify('notifications/initialized');
  log.length = 0;
  const call = (name, options) => peer.request('tools/call', { name, arguments: {} }, options);
  return { peer, server, log, errors, call };
}

async function withClient(define) {
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const log = [];
  const peer = createPeer(recording(transportOf(ours), log, 'ours', 'theirs'), { dialect: 'mcp' });
  peer.handle('initialize', () => ({
    protocolVersion: VERSION,
    capabilities: { tools: {} },
    serverInfo: { name: 'b', version: '1' },
  }));
  const client = new Client({ name: 'a', version: '1' }, { capabilities: { sampling: {} } });
  const errors = [];
  client.onerror = (error) => errors.push(error.message);
  define?.(client, peer);
  await client.connect(theirs);
  log.length = 0;
  const call = (name, options) => client.callTool({ name, arguments: {} }, undefined, options);
  return { peer, client, log, errors, call };
}

const methods = (log) =>
  log.map(({ dir, msg }) => `${dir} ${msg.method ?? msg.error?.code ?? 'result'}`);

test('a tool of their server answers us', async () => {
  const { peer, call, errors } = await withServer(({ params }) => text(params.name));
  assert.deepEqual(await call('echo'), text('echo'));
  assert.deepEqual(errors, []);
  peer.close();
});

test('our cancel settles at once and aborts their handler with our reason; nothing more is said', async () => {
  const [started, aborted] = [gate(), gate()];
  const { peer, call, log, errors } = await withServer(async (_, { signal }) => {
    started.open();
    aborted.open(await fired(signal));
    return text('too late');
  });
  const controller = new AbortController();
  const slow = outcome(call('slow', { signal: controller.signal }));
  await started.opened;
  controller.abort('user pressed stop');
  const { err } = await slow;
  assert.deepEqual([err.name, err.message], ['AbortError', 'user pressed stop']);
  assert.equal(await aborted.opened, 'user pressed stop');
  await peer.request('ping');
  assert.deepEqual(methods(log), [
    'ours tools/call',
    `ours ${CANCEL}`,
    'ours ping',
    'theirs result',
  ]);
  assert.deepEqual(errors, []);
  peer.close();
});

test('an abort after completion, or before the request, sends nothing', async () => {
  const { peer, call, log } = await withServer(() => text('done'));
  const controller = new AbortController();
  await call('quick', { signal: controller.signal });
  controller.abort();
  assert.equal(
    (await outcome(call('quick', { signal: controller.signal }))).err.name,
    'AbortError',
  );
  await peer.request('ping');
  assert.equal(log.filter(({ msg }) => msg.method === CANCEL).length, 0);
  peer.close();
});

test('initialize is never cancelled on the wire', async () => {
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const heard = [];
  theirs.onmessage = (message) => heard.push(message.method);
  const peer = createPeer(transportOf(ours), { dialect: 'mcp' });
  const controller = new AbortController();
  const initialize = outcome(peer.request('initialize', {}, { signal: controller.signal }));
  const awake = setInterval(() => {}, 1000); // nothing else here keeps the process alive
  const timed = await outcome(peer.request('initialize', {}, { timeout: 1 }));
  clearInterval(awake);
  assert.equal(timed.err.name, 'TimeoutError');
  controller.abort();
  assert.equal((await initialize).err.name, 'AbortError');
  assert.deepEqual(heard, ['initialize', 'initialize']);
  peer.close();
});

test('their progress reaches us, and begins the timeout anew', async () => {
  const { peer, call } = await withServer(async ({ params }, { sendNotification, signal }) => {
    for (let progress = 1; progress <= 5; progress++) {
      await new Promise((resolve) => setTimeout(resolve, 80));
      const { progressToken } = params._meta;
      await sendNotification({
        method: 'notifications/progress',
        params: { progressToken, progress, total: 5 },
      });
    }
    return signal.aborted ? text('aborted') : text('ok');
  });
  const seen = [];
  let last = performance.now();
  const { ok, err } = await outcome(
    call('progress', {
      timeout: 300,
      resetTimeoutOnProgress: true,
      onProgress(info) {
        seen.push(info);
        last = performance.now();
      },
    }),
  );
  peer.close();
  // A machine that is too busy for that has been silent for as long as the timeout.
  if (err) return assert.ok(err.name === 'TimeoutError' && performance.now() - last >= 299, err);
  assert.deepEqual(ok, text('ok'));
  assert.deepEqual(
    seen,
    [1, 2, 3, 4, 5].map((progress) => ({ progress, total: 5 })),
  );
});

test('our timeout cancels their handler, and the hard maximum holds against progress', async () => {
  const reasons = [];
  const { peer, call } = await withServer(async ({ params }, { sendNotification, signal }) => {
    const { progressToken } = params._meta ?? {};
    const timer = setInterval(() => {
      if (progressToken === undefined) return;
      const progress = { progressToken, progress: 1 };
      sendNotification({ method: 'notifications/progress', params: progress });
    }, 5);
    reasons.push(await fired(signal));
    clearInterval(timer);
    return text('too late');
  });
  const { err } = await outcome(call('deaf', { timeout: 30 }));
  assert.deepEqual(
    [err.name, err.code, err.data],
    ['TimeoutError', -32001, { outcome: 'unknown', timeout: 30 }],
  );
  const hard = await outcome(
    call('deaf', {
      timeout: 1000,
      maxTotalTimeout: 50,
      resetTimeoutOnProgress: true,
      onProgress() {},
    }),
  );
  assert.equal(hard.err.name, 'TimeoutError');
  await peer.request('ping');
  assert.deepEqual(reasons, Array(2).fill('McpError: MCP error -32001: Request timed out'));
  peer.close();
});

test('their client calls our tool, and progress is told when it asks', async () => {
  const { peer, call } = await withClient();
  peer.handle('tools/call', async (_, { progress }) => {
    progress({ progress: 1, total: 2 });
    return text('ok');
  });
  const seen = [];
  assert.deepEqual(
    (await call('echo', { onprogress: (info) => seen.push(info) })).content,
    text('ok').content,
  );
  assert.deepEqual(seen, [{ progress: 1, total: 2 }]);
  await call('echo');
  assert.equal(seen.length, 1);
  peer.close();
});

test('their cancel fires our signal with their reason, and our handler is not answered for', async () => {
  const { peer, call, log, errors } = await withClient();
  const [started, aborted] = [gate(), gate()];
  peer.handle('tools/call', async (_, { signal }) => {
    started.open();
    aborted.open(await fired(signal));
    return text('too late');
  });
  const controller = new AbortController();
  const slow = outcome(call('slow', { signal: controller.signal }));
  await started.opened;
  controller.abort('user pressed stop');
  assert.equal((await slow).err.code, -32001);
  assert.equal((await aborted.opened).message, 'user pressed stop');
  await peer.request('ping');
  assert.deepEqual(methods(log), [
    'theirs tools/call',
    `theirs ${CANCEL}`,
    'ours ping',
    'theirs result',
  ]);
  assert.deepEqual(errors, []);
  peer.close();
});

test('their timeout cancels our handler', async () => {
  const { peer, call } = await withClient();
  const aborted = gate();
  peer.handle('tools/call', async (_, { signal }) => aborted.open(await fired(signal)));
  assert.equal((await outcome(call('slow', { timeout: 30 }))).err.code, -32001);
  assert.match((await aborted.opened).message, /timed out/);
  peer.close();
});

test('a cancelled tool cancels the sampling that it asked their client for, the first one too', async () => {
  const [sampled, aborted] = [gate(), gate()];
  const { peer, call, log } = await withClient((client) => {
    client.setRequestHandler(CreateMessageRequestSchema, async (_, { signal }) => {
      sampled.open();
      aborted.open(await fired(signal));
      return {};
    });
  });
  peer.handle('tools/call', async (_, { request }) => {
    const messages = [{ role: 'user', content: { type: 'text', text: 'q' } }];
    return request('sampling/createMessage', { messages, maxTokens: 5 });
  });
  const controller = new AbortController();
  const outer = outcome(call('outer', { signal: controller.signal }));
  await sampled.opened;
  controller.abort('stop all');
  await outer;
  assert.equal(await aborted.opened, 'stop all');
  assert.deepEqual(
    log
      .filter(({ dir, msg }) => dir === 'ours' && msg.method === CANCEL)
      .map(({ msg }) => msg.params),
    [{ requestId: 1, reason: 'stop all' }],
  );
  peer.close();
});

test('their server asks us with id 0, and its cancel of it would be obeyed', async () => {
  const { peer, call, log } = await withServer(async (_, { sendRequest }) => {
    const message = { role: 'user', content: { type: 'text', text: 'q' } };
    const params = { messages: [message], maxTokens: 5 };
    const { model } = await sendRequest(
      { method: 'sampling/createMessage', params },
      CreateMessageResultSchema,
    );
    return text(model);
  });
  peer.handle('sampling/createMessage', (_, { id }) => ({
    model: `asked by ${id}`,
    role: 'assistant',
    content: { type: 'text', text: 'a' },
  }));
  assert.deepEqual(await call('outer'), text('asked by 0'));
  assert.equal(log.find(({ msg }) => msg.method === 'sampling/createMessage').msg.id, 0);
  peer.close();
});

test('what their strict schema refuses is never sent: no member more than JSON-RPC has', async () => {
  const { peer, call, log, errors } = await withServer(() => text('ok'));
  await call('a');
  await call('b', { onProgress() {} });
  for (const { msg } of log.filter(({ dir }) => dir === 'ours')) {
    assert.deepEqual(
      Object.keys(msg).filter((key) => !['jsonrpc', 'id', 'method', 'params'].includes(key)),
      [],
    );
  }
  assert.deepEqual(errors, []);
  peer.close();
});

test('the connection closes in the middle: pending requests reject, handlers are aborted', async () => {
  const { peer, client, call } = await withClient();
  const [started, aborted] = [gate(), gate()];
  peer.handle('tools/call', async (_, { signal, request }) => {
    started.open();
    aborted.open([await fired(signal), await outcome(request('ping'))]);
  });
  const pending = outcome(call('slow'));
  await started.opened;
  const ours = outcome(peer.request('roots/list'));
  await client.close();
  assert.equal((await pending).err.code, -32000);
  const { err } = await ours;
  assert.ok(err.code === -32000 || err.code === -32601);
  const [reason, late] = await aborted.opened;
  assert.equal(reason.name, 'AbortError');
  assert.ok(late.err);
  await peer.closed;
});

for (const kind of ['a port', 'a WebSocket']) {
  test(`a server of SDK 1.x that connects after its client has spoken over ${kind} misses nothing`, async () => {
    const [near, far, heard, end] = kind === 'a port' ? ports() : await sockets();
    const client = new Client({ name: 'a', version: '1' });
    const server = new Server({ name: 'b', version: '1' }, { capabilities: { tools: {} } });
    const connected = client.connect(mcpTransport(near));
    // What the client has said is there before the server is.
    await heard;
    await server.connect(mcpTransport(far));
    await connected;
    await client.ping();
    await client.close();
    end();
  });
}

function ports() {
  const { port1, port2 } = new MessageChannel();
  const transports = [portTransport(port1), portTransport(port2)];
  return [...transports, once(port2, 'message'), () => port1.close()];
}

async function sockets() {
  const listening = new WebSocketServer({ port: 0 });
  await once(listening, 'listening');
  const near = new WebSocket(`ws://127.0.0.1:${listening.address().port}`);
  const [[far]] = await Promise.all([once(listening, 'connection'), once(near, 'open')]);
  listening.close();
  const transports = [webSocketTransport(near), webSocketTransport(far)];
  return [...transports, once(far, 'message'), () => far.terminate()];
}

test('their client stops a task of our server: the signal of the call fires', async () => {
  const { peer, client } = await withClient();
  const acts = [];
  const made = gate();
  peer.handle('tools/call', (_params, { signal }) => {
    const stopped = fired(signal).then(() => acts.push('stopped'));
    made.open(stopped);
    return { task: { ...TASK, status: 'working' } };
  });
  peer.handle('tasks/cancel', async () => {
    await made.opened;
    return { ...TASK, status: 'cancelled' };
  });
  const params = { name: 'slow', arguments: {}, task: { ttl: null } };
  const { task } = await client.request({ method: 'tools/call', params }, CreateTaskResultSchema);
  const { status } = await client.experimental.tasks.cancelTask(task.taskId);
  assert.deepEqual([status, acts], ['cancelled', ['stopped']]);
  await client.close();
});
