/**
 * Inputs of n parts, for tests/node/costs.test.js, which counts the steps that each takes. Each
 * fails unless its input has arrived.
 */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { connect, expose } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { createTaskClient } from '../../packages/a2a/src/index.js';
import { memoryBackend } from '../../packages/a2a-store/src/index.js';
import { connectPage } from '../../packages/automation/src/index.js';
import { drivenPage } from '../../packages/automation/tests/support/driven-page.js';
import { createPeer, headerTransport, lineTransport } from '../../packages/rpc/src/index.js';
import { Raw } from './raw.js';
import { overSockets, socketPair } from './sockets.js';

const APP = { id: 'a.b', name: 'A', version: '1' };
const AGENT = { name: 'a', version: '1' };
const listOf = (n, make = (i) => ({ i })) => Array.from({ length: n }, (_, i) => make(i));
const objectOf = (n) => Object.fromEntries(listOf(n, (i) => [`member ${i}`, [i, 'x']]));
const turn = () => new Promise(setImmediate);

// --- Values --------------------------------------------------------------------------------------

const echo = (params) => params;
/** Our app, and our agent, over the two ends of a transport. */
async function pair(capabilities, [agent, app]) {
  expose({ app: APP, capabilities }).accept(app.transport());
  return connect(agent.transport, { agent: AGENT });
}
const overText = async (capabilities) => pair(capabilities, await overSockets(socketPair())());
function inFrames(capabilities) {
  const { port1, port2 } = new MessageChannel();
  const ends = [port1, port2].map((port) => ({ transport: () => portTransport(port) }));
  return pair(capabilities, ends);
}

export const valuesAsText = async (n) => {
  const client = await overText({ echo });
  const value = { list: listOf(n), object: objectOf(n) };
  assert.deepEqual((await client.call('echo', value)).data, value);
};
export const bytesAsText = async (n) => {
  const file = { content: new ArrayBuffer(3), mimeType: 'a/b' };
  const client = await overText({ get: () => listOf(n, () => ({ ...file })) });
  const { data } = await client.call('get');
  assert.equal(data[n - 1].content.byteLength, 3);
};
export const valuesForAPageThatIsDriven = async (n) => {
  const exposed = expose({ app: APP, capabilities: { echo } }, { origins: [] });
  const page = drivenPage({ abp: exposed.abp });
  const client = await connectPage(page, { agent: AGENT });
  const value = { list: listOf(n), map: new Map([[1, objectOf(n)]]) };
  assert.deepEqual((await client.call('echo', value)).data, value);
};
export const valuesInFrames = async (n) => {
  const client = await inFrames({ echo });
  const values = [1, objectOf(n), listOf(n)]; // the first one of a turn is never copied
  const answers = await Promise.all(values.map((value) => client.call('echo', value)));
  assert.deepEqual(
    answers.map(({ data }) => data),
    values,
  );
};
export const aLongChunkOfAStream = async (n) => {
  async function* gives() {
    yield listOf(n);
  }
  const client = await inFrames({ gives });
  for await (const chunk of client.stream('gives')) assert.equal(chunk.length, n);
};
export const whatCannotBeCloned = async (n) => {
  const client = await inFrames({ echo });
  const params = { a: { list: [...listOf(n), () => 1] } };
  const { error } = await client.call('echo', params);
  assert.match(error.message, /params\.a\.list\[\d+\] \(function\)/);
};
export const bytesInAnAnswerOfThePage = async (n) => {
  const files = () => listOf(n, () => ({ content: new ArrayBuffer(3), mimeType: 'a/b' }));
  const { abp } = expose({ app: APP, capabilities: { files } }, { origins: [] });
  await abp.initialize({ agent: AGENT });
  assert.equal((await abp.call('files')).data[n - 1].content, 'AAAA');
};

// --- Sessions ------------------------------------------------------------------------------------

async function rawAgent(capabilities, features = {}) {
  const { port1, port2 } = new MessageChannel();
  const exposed = expose(
    { app: APP, capabilities },
    { port: port1, limits: { maxCalls: 1 << 16 } },
  );
  const raw = new Raw(port2);
  await raw.ask('initialize', 'P', { agent: AGENT, protocolVersion: '0.1', features });
  return { raw, exposed };
}
const honest = async (raw) =>
  assert.equal(
    (await raw.ask('capabilities/call', 'h', { capability: 'echo', params: 1 })).payload.data,
    1,
  );

export const aNameAmongMany = async (n) => {
  const names = listOf(n, (i) => `capability ${i}`.padEnd(60, 'x'));
  const { raw } = await rawAgent(Object.fromEntries(names.map((name) => [name, echo])));
  const { payload } = await raw.ask('capabilities/call', 'a', { capability: 'capabilty' });
  assert.equal(payload.error.code, 'UNKNOWN_CAPABILITY');
};
export const aControlMessage = async (n) => {
  const { raw, exposed } = await rawAgent({ echo });
  const { payload } = await raw.ask('capabilities/cancel', 'c', {
    callId: 'x',
    reason: objectOf(n),
  });
  assert.equal(payload.cancelled, false);
  assert.equal(exposed.counters[0].malformed, 0);
};
export const paramsThatASchemaChecks = async (n) => {
  const inputSchema = { type: 'array', items: { type: 'object', required: ['i'] } };
  const { raw } = await rawAgent({ long: { handler: (list) => list.length, inputSchema } });
  const { payload } = await raw.ask('capabilities/call', 'a', {
    capability: 'long',
    params: listOf(n),
  });
  assert.equal(payload.data, n);
};
export const paramsThatASchemaRefuses = async (n) => {
  const inputSchema = { type: 'array', items: { type: 'object', required: ['j'] } };
  const { raw } = await rawAgent({ long: { handler: (list) => list.length, inputSchema } });
  const { payload } = await raw.ask('capabilities/call', 'a', {
    capability: 'long',
    params: listOf(n),
  });
  assert.equal(payload.error.code, 'INVALID_PARAMS');
};
export const callsAtOnce = async (n) => {
  const { raw } = await rawAgent({ echo: (x) => x });
  for (let i = 0; i < n; i++) raw.send('capabilities/call', `${i}`, { capability: 'echo' });
  for (let i = 0; i < n; i++) await raw.next();
};
export const cancelsOfNothing = async (n) => {
  const { raw } = await rawAgent({ echo: (x) => x });
  for (let i = 0; i < n; i++) raw.send('capabilities/cancel', `${i}`, { callId: 'nobody' });
  for (let i = 0; i < n; i++) await raw.next();
};
export const aFrame = async (parts) => {
  const n = parts / 4; // a frame has room for 4096 entries
  const { raw } = await rawAgent({ echo: (x) => x }, { 'bridge.frames': true });
  raw.port.postMessage(listOf(4 * n, (i) => [1, 1 + (i >> 2), 'echo', {}][i % 4]));
  for (let answers = 0; answers < n;) answers += (await raw.next()).length / 4;
};
export const messagesThatAreNone = async (n) => {
  const { raw, exposed } = await rawAgent({ echo: (x) => x });
  for (let i = 0; i < n; i++) raw.port.postMessage([[[i]]]);
  await honest(raw);
  assert.equal(exposed.counters[0].malformed, n);
};
async function rawApp() {
  const { port1, port2 } = new MessageChannel();
  const raw = new Raw(port2);
  const connecting = connect(port1, { agent: AGENT });
  const session = { sessionId: 's', protocolVersion: '0.1', app: APP, capabilities: [] };
  raw.send('initialize-result', (await raw.next()).id, { ...session, features: {} });
  return { raw, client: await connecting };
}
export const answersToNothing = async (n) => {
  const { raw, client } = await rawApp();
  for (let i = 0; i < n; i++) raw.send('capabilities/call-result', `${i}`, { success: true });
  while (client.counters.stray < n) await turn();
};
export const capabilitiesThatChange = async (parts) => {
  const n = parts / 4; // 4096 are known
  const { raw, client } = await rawApp();
  const changes = async (data) => {
    const heard = new Promise((resolve) => (client.onCapabilitiesChanged = resolve));
    const event = 'notifications/capabilities/list_changed';
    raw.send('notification', undefined, { event, data });
    await heard;
    return (await client.listCapabilities()).length;
  };
  const names = listOf(n, (i) => `c${i}`);
  const capabilities = names.map((name) => ({ name }));
  assert.equal(await changes({ added: names, capabilities }), n);
  assert.equal(await changes({ removed: names }), 0);
};

// --- Bytes ---------------------------------------------------------------------------------------

const readBy =
  (open) =>
  async (input, messages, unreadables = 0) => {
    const readable = new PassThrough();
    const transport = open({ readable, writable: new PassThrough() });
    const seen = { messages: 0, unreadables: 0 };
    transport.onUnreadable = () => seen.unreadables++;
    const closed = new Promise((resolve) => (transport.onClose = resolve));
    transport.onMessage = () => seen.messages++;
    for (const piece of input) readable.write(piece);
    readable.end();
    await closed;
    assert.deepEqual(seen, { messages, unreadables });
  };
const lines = readBy(lineTransport);
const headers = readBy(headerTransport);
export const lineFeeds = (n) => lines(['\n'.repeat(n), '1\n'], 1);
export const brokenLines = (n) => lines(['{\n'.repeat(n)], 0, n);
export const shortLines = (n) => lines(['1\n'.repeat(n)], n);
export const aLineInSingleBytes = (n) => lines([...`"${'x'.repeat(n)}"\n`], 1);
export const headersWithoutALength = (n) => headers(['x\r\n\r\n'.repeat(n)], 0, n);
export const aHeaderInSingleBytes = (n) =>
  headers([...`Content-Length: ${n + 2}\r\n\r\n"${'x'.repeat(n)}"`], 1);

/**
 * A task that is followed by a stream of events, which comes in pieces; `noise` is what stands
 * before the last event.
 */
async function events(noise, count) {
  const id = { id: 't', contextId: 'c' };
  const eventOf = (result) => JSON.stringify({ jsonrpc: '2.0', id: 1, result });
  const works = eventOf({ task: { ...id, status: { state: 'TASK_STATE_WORKING' } } });
  const ends = eventOf({ task: { ...id, status: { state: 'TASK_STATE_COMPLETED' } } });
  const text = Buffer.from(`data: ${works}\n\n${noise(works)}data: ${ends}\n\n`);
  const body = new ReadableStream({
    start(controller) {
      for (let at = 0; at < text.length; at += 64) controller.enqueue(text.subarray(at, at + 64));
      controller.close();
    },
  });
  const headers = { 'content-type': 'text/event-stream' };
  const fetch = async () => new Response(body, { headers });
  const client = createTaskClient('http://localhost/', { version: '1.0', fetch });
  const stream = client.subscribe('go');
  let seen = 0;
  while (!(await stream.next()).done) seen++;
  assert.equal(stream.task.status.state, 'completed');
  assert.equal(seen, count);
}
export const serverSentEvents = (n) =>
  events((works) => `data: ${works}\n\n`.repeat(n / 8), n / 8 + 2);
export const oneEventOfManyLines = (n) =>
  events((works) => `${'data: \r\n'.repeat(n)}data: ${works}\n\n`, 3);
export const commentsInAStream = (n) => events(() => ': x\r'.repeat(n), 2);

export const jsonRpcMessages = async (n) => {
  const { port1, port2 } = new MessageChannel();
  const peer = createPeer(portTransport(port1), { dialect: 'lsp', limits: { maxCalls: 1 << 16 } });
  peer.handle('echo', (params) => params);
  const raw = new Raw(port2);
  for (let id = 0; id < n; id++) {
    raw.port.postMessage({ jsonrpc: '2.0', id, method: 'echo', params: {} });
    raw.port.postMessage({ jsonrpc: '2.0', method: '$/cancelRequest', params: { id: `${id}` } });
    raw.port.postMessage({ jsonrpc: '2.0', id: `${id}`, result: 1 });
  }
  for (let i = 0; i < n; i++) await raw.next();
};

// --- Tasks in a store ----------------------------------------------------------------------------

/** As many entries are read as there are: by a page of each kind, over and over. */
export const pagesOfTasksInMemory = async (n) => {
  const backend = memoryBackend();
  const note = (i, time, seq) =>
    backend.note(`t${i}`, { tenant: 'a', context: `c${i % 8}`, time, data: '' }, seq);
  for (let i = 0; i < n; i++) await note(i, i, 1);
  for (let i = 0; i < n; i++) await note(i, n + ((i * 7919) % n), 2);
  const { cursor } = await backend.list({ tenant: 'a', limit: n >> 1 });
  const filters = [{}, { cursor }, { context: 'c1' }, { context: 'c1', cursor }];
  for (let read = 0; read < n; read += 16) {
    const { tasks } = await backend.list({ tenant: 'a', ...filters[(read / 16) % 4], limit: 16 });
    assert.equal(tasks.length, 16);
  }
  for (let i = 0; i < n; i++) await backend.forget(`t${i}`);
  assert.deepEqual((await backend.list({ tenant: 'a' })).tasks, []);
};
