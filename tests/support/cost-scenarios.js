/**
 * Inputs of n parts, for tests/node/costs.test.js, which counts the steps that each takes. Each fails unless its input has
 * arrived.
 */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { CapabilityList } from '../../js/agent/capability-list.js';
import { snapshot as traced } from '../../js/common/snapshot.js';
import { similarName } from '../../js/common/similar-name.js';
import { uncloneablePart } from '../../js/common/uncloneable.js';
import { sizeOf } from '../../js/common/value-size.js';
import { controlText } from '../../js/core/control-text.js';
import { connect, expose } from '../../js/index.js';
import { jsonText } from '../../js/wire/json-text.js';
import { bytesToText, textToBytes } from '../../js/wire/binary.js';
import { withBase64 } from '../../js/wire/result-store.js';
import { memoryBackend } from '../../packages/a2a/src/backends/memory.js';
import { EventParser } from '../../packages/a2a/src/sse.js';
import { fromText, toText } from '../../packages/automation/src/clone-codec.js';
import { headerTransport, lineTransport } from '../../packages/rpc/src/byte-streams.js';
import { createPeer } from '../../packages/rpc/src/index.js';
import { portTransport } from '../../js/transports/port.js';
import { Raw } from './raw.js';

const APP = { id: 'a.b', name: 'A', version: '1' };
const AGENT = { name: 'a', version: '1' };
const listOf = (n, make = (i) => ({ i })) => Array.from({ length: n }, (_, i) => make(i));
const objectOf = (n) => Object.fromEntries(listOf(n, (i) => [`member ${i}`, [i, 'x']]));
const turn = () => new Promise(setImmediate);

// --- Values ------------------------------------------------------------------------------------------

export const aListAsJson = (n) => assert.ok(jsonText(listOf(n), 1e7).length > n);
export const anObjectAsJson = (n) => assert.ok(jsonText(objectOf(n), 1e7).length > n);
export const aControlMessage = (n) => {
  const payload = { callId: 'x', reason: objectOf(n) };
  assert.ok(controlText({ type: 'capabilities/cancel', id: 'c', payload }, 1e7).length > n);
};
export const forAPageThatIsDriven = (n) => {
  const value = { list: listOf(n), map: new Map([[1, objectOf(n)]]) };
  assert.deepEqual(fromText(toText(value)), value);
};
export const whatATraceShows = (n) => assert.ok(traced([objectOf(n), listOf(n)]));
export const theSizeOfAChunk = (n) => assert.ok(sizeOf(listOf(n)) > 0);
export const whatCannotBeCloned = (n) => {
  const value = { a: { list: listOf(n) } };
  value.a.list.push(() => 1);
  assert.match(uncloneablePart(value, 'params'), /list\[\d+\] \(function\)/);
};
export const aNameAmongMany = (n) =>
  similarName(
    'capabilty',
    listOf(n, (i) => `capability ${i}`.padEnd(60, 'x')),
  );
export const bytesInAResult = async (n) => {
  const value = listOf(n, () => ({ content: new ArrayBuffer(3), mimeType: 'a/b' }));
  const sent = await withBase64(value);
  assert.equal(sent[n - 1].content, 'AAAA');
  const text = JSON.stringify(sent, bytesToText);
  assert.equal(JSON.parse(text, textToBytes)[n - 1].content.byteLength, 3);
};
export const capabilitiesThatChange = (parts) => {
  const n = parts / 4; // 4096 are known
  const list = new CapabilityList();
  list.merge({
    added: listOf(n, (i) => `c${i}`),
    capabilities: listOf(n, (i) => ({ name: `c${i}` })),
  });
  assert.equal(list.list().length, n);
  list.merge({ removed: listOf(n, (i) => `c${i}`) });
  assert.equal(list.list().length, 0);
};

// --- Sessions ----------------------------------------------------------------------------------------

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
export const answersToNothing = async (n) => {
  const { port1, port2 } = new MessageChannel();
  const raw = new Raw(port2);
  const connecting = connect(port1, { agent: AGENT });
  const session = {
    sessionId: 's',
    protocolVersion: '0.1',
    app: APP,
    capabilities: [],
    features: {},
  };
  raw.send('initialize-result', (await raw.next()).id, session);
  const client = await connecting;
  for (let i = 0; i < n; i++) raw.send('capabilities/call-result', `${i}`, { success: true });
  while (client.counters.stray < n) await turn();
};

// --- Bytes -------------------------------------------------------------------------------------------

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

const events = (n, text, count) => {
  const parser = new EventParser(1e7);
  let found = 0;
  for (let at = 0; at < text.length; at += 7)
    found += parser.push(Buffer.from(text.slice(at, at + 7))).length;
  assert.equal(found, count);
};
export const serverSentEvents = (n) => events(n, 'data: x\n\n'.repeat(n), n);
export const oneEventOfManyLines = (n) => events(n, `${'data: x\r\n'.repeat(n)}\n`, 1);
export const commentsInAStream = (n) => events(n, `${': x\r'.repeat(n)}data: x\n\n`, 1);

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

// --- Tasks in a store --------------------------------------------------------------------------------

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
