/** What a peer does of MCP from 2026-07-28 on, whoever says the rest. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fired, gate, outcome, peerPair, scriptedPeer } from './support/rpc.js';

const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';
const LISTEN = 'subscriptions/listen';
const tag = (id) => ({ _meta: { [SUBSCRIPTION]: id } });

test('a request whose server needs input is made again with it, and is one request to its caller', async () => {
  const { a, b, sent } = peerPair('mcp');
  b.handle('tools/call', ({ answer }) =>
    answer ? { hello: answer } : { resultType: 'input_required', inputRequests: { name: {} } },
  );
  const onInputRequired = ({ inputRequests }) => ({ answer: Object.keys(inputRequests)[0] });
  assert.deepEqual(await a.request('tools/call', {}, { onInputRequired }), { hello: 'name' });
  const ids = sent('a2b').map(({ id }) => id);
  assert.equal(new Set(ids).size, 2, 'each round has an id of its own');
  const refuse = () => Promise.reject(new Error('nobody is there'));
  const refused = await outcome(a.request('tools/call', {}, { onInputRequired: refuse }));
  assert.equal(refused.err.message, 'nobody is there');
  a.close();
  b.close();
});

test('a cancel while the input is gathered ends the request, and no round follows', async () => {
  const { a, b, sent } = peerPair('mcp');
  b.handle('tools/call', () => ({ resultType: 'input_required' }));
  const [asked, gathered] = [gate(), gate()];
  const onInputRequired = () => (asked.open(), gathered.opened);
  const controller = new AbortController();
  const { signal } = controller;
  const pending = outcome(a.request('tools/call', {}, { signal, onInputRequired }));
  await asked.opened;
  controller.abort();
  assert.equal((await pending).err.name, 'AbortError');
  gathered.open({});
  await a.request('ping');
  const methods = sent('a2b').map(({ method }) => method);
  assert.deepEqual(methods.filter((method) => method === 'tools/call').length, 1);
  a.close();
  b.close();
});

test('a subscription hears what is tagged with its request, and other listeners hear the rest', async () => {
  const { a, b } = peerPair('mcp');
  const [tagged, others] = [[], []];
  a.onNotification('*', (_params, { method }) => others.push(method));
  const listens = gate();
  b.handle(LISTEN, (_params, context) => {
    listens.open(context);
    return fired(context.signal);
  });
  const onTagged = ({ method }) => tagged.push(method);
  const open = outcome(a.request(LISTEN, {}, { onTagged }));
  const { id } = await listens.opened;
  b.notify('changed', tag(id));
  b.notify('changed too', tag(99));
  b.notify('untagged');
  await a.request('ping');
  assert.deepEqual([tagged, others], [['changed'], ['changed too', 'untagged']]);
  b.close();
  assert.deepEqual((await open).ok, { resultType: 'complete', ...tag(id) });
  a.close();
});

test('a subscription that its client has ended is answered by nobody', async () => {
  const { peer, post, heard, quiet } = scriptedPeer('mcp');
  const stopped = gate();
  peer.handle(LISTEN, (_params, { signal }) => fired(signal).then(stopped.open));
  post({ jsonrpc: '2.0', id: 7, method: LISTEN, params: {} });
  post({ jsonrpc: '2.0', id: 'other', method: 'ping' });
  await quiet();
  post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } });
  await stopped.opened;
  await quiet();
  assert.deepEqual(
    heard.map(({ id }) => id),
    ['other'],
  );
  peer.close();
});

test('a task is stopped by the signal of its request, with what requests of its version say', async () => {
  const { a, b, sent } = peerPair('mcp');
  a.envelope = { version: '2026-07-28' };
  const stopped = gate();
  b.handle('tools/call', (_params, { signal }) => {
    void fired(signal).then(stopped.open);
    return { resultType: 'task', taskId: 't' };
  });
  b.handle('tasks/cancel', () => ({}));
  const controller = new AbortController();
  const { signal } = controller;
  assert.equal((await a.request('tools/call', { name: 'x' }, { signal })).taskId, 't');
  controller.abort();
  await stopped.opened;
  const { params } = sent('a2b').at(-1);
  assert.deepEqual(params, { taskId: 't', _meta: a.envelope });
  a.close();
  b.close();
});
