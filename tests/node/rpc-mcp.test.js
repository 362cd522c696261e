/** MCP's two eras over our peers: found out by the client, served side by side, and handlers written once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectMcp, serveMcp } from '../../js/rpc/mcp.js';
import { fired, gate, outcome, peerPair, scriptedPeer } from '../support/rpc.js';

const MODERN = '2026-07-28';
const LEGACY = '2025-11-25';
const clientInfo = { name: 'client', version: '1' };
const serverInfo = { name: 'server', version: '1' };
const VERSION = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

/** A server that asks the client for a name. */
const greet = (params, _context, { version }) => {
  const answer = params.inputResponses?.name;
  if (answer)
    return { greeting: `Hello ${answer.content.name}`, state: params.requestState, version };
  const input = { method: 'elicitation/create', params: { message: 'Who?' } };
  return { resultType: 'input_required', inputRequests: { name: input }, requestState: 's1' };
};

async function pairOf(era, capabilities = { elicitation: {} }) {
  const pair = peerPair('mcp');
  const options = { serverInfo, capabilities: { tools: {} }, instructions: 'be kind' };
  const server = serveMcp(pair.b, options);
  if (era === LEGACY) pair.b.removeHandler('server/discover');
  const client = await connectMcp(pair.a, { clientInfo, capabilities });
  const done = () => (pair.a.close(), pair.b.close());
  return { ...pair, server, client, done };
}

test('what a server says of itself in another form than it has is not taken', async () => {
  const { a, b } = peerPair('mcp');
  const said = { supportedVersions: [MODERN], capabilities: 'all', instructions: { be: 'kind' } };
  b.handle('server/discover', () => said);
  const client = await connectMcp(a, { clientInfo });
  assert.deepEqual([client.serverCapabilities, client.instructions], [{}, undefined]);
  a.close();
  b.close();
});

for (const era of [MODERN, LEGACY]) {
  test(`${era}: the client finds out the version, and what the server says of itself`, async () => {
    const { client, sent, done } = await pairOf(era);
    assert.equal(client.version, era);
    assert.deepEqual(client.serverInfo, serverInfo);
    assert.deepEqual(client.serverCapabilities, { tools: {} });
    assert.equal(client.instructions, 'be kind');
    const methods = sent('a2b').map(({ method }) => method);
    const legacy = ['initialize', 'notifications/initialized'];
    assert.deepEqual(methods, ['server/discover', ...(era === LEGACY ? legacy : [])]);
    done();
  });

  test(`${era}: what a handler needs is asked of the client, however the version does that`, async () => {
    const { client, server, sent, done } = await pairOf(era);
    server.handle('tools/call', greet);
    const asked = [];
    client.handle('elicitation/create', ({ message }, { method, signal }) => {
      asked.push([message, method, signal.aborted]);
      return { action: 'accept', content: { name: 'Ada' } };
    });
    const result = await client.request('tools/call', { name: 'greet' });
    assert.deepEqual([result.greeting, result.state, result.version], ['Hello Ada', 's1', era]);
    assert.equal(result.resultType, era === MODERN ? 'complete' : undefined);
    assert.deepEqual(asked, [['Who?', 'elicitation/create', false]]);
    const calls = sent('a2b').filter(({ method }) => method === 'tools/call');
    assert.equal(calls.length, era === MODERN ? 2 : 1);
    assert.equal(
      sent('b2a').some(({ method }) => method !== undefined),
      era === LEGACY,
    );
    if (era === MODERN) {
      const [first, second] = calls;
      assert.notEqual(first.id, second.id);
      assert.equal(second.params._meta[VERSION], MODERN);
      assert.deepEqual(second.params._meta[CAPABILITIES], { elicitation: {} });
      assert.equal(second.params.requestState, 's1');
    }
    done();
  });

  test(`${era}: a client that cannot be asked is told what it lacks`, async () => {
    const { client, server, done } = await pairOf(era, {});
    server.handle('tools/call', greet);
    const { err } = await outcome(client.request('tools/call', { name: 'greet' }));
    assert.deepEqual([err.code, err.data], [-32021, { requiredCapabilities: { elicitation: {} } }]);
    done();
  });

  test(`${era}: a cancel while the user is asked reaches who asks`, async () => {
    const { client, server, done } = await pairOf(era);
    server.handle('tools/call', greet);
    const asked = gate();
    client.handle('elicitation/create', async (_params, { signal }) => {
      asked.open();
      throw await fired(signal);
    });
    const controller = new AbortController();
    const { signal } = controller;
    const call = outcome(client.request('tools/call', { name: 'greet' }, { signal }));
    await asked.opened;
    controller.abort('enough');
    assert.ok((await call).err);
    done();
  });

  test(`${era}: a server that never has enough is given up`, async () => {
    const { client, server, done } = await pairOf(era);
    let rounds = 0;
    server.handle('tools/call', () => ({
      resultType: 'input_required',
      requestState: `${rounds++}`,
    }));
    const { err } = await outcome(client.request('tools/call'));
    assert.match(err.message, /10 times/);
    assert.equal(rounds, 10);
    done();
  });
}

test('both eras on one connection: each request is served as what it says that it is', async () => {
  const { peer, post, said } = scriptedPeer('mcp');
  serveMcp(peer, { serverInfo }).handle('tools/list', (_params, context, { version }) => ({
    tools: [],
    version,
  }));
  const params = (version, capabilities = {}) => ({
    _meta: { [VERSION]: version, [CAPABILITIES]: capabilities },
  });
  const request = (id, method, params) => ({ jsonrpc: '2.0', id, method, params });
  post(request(1, 'server/discover', params(MODERN)));
  const [{ result: discovered }] = await said(1);
  assert.deepEqual(discovered.supportedVersions, [MODERN]);
  assert.deepEqual([discovered.ttlMs, discovered.cacheScope], [0, 'private']);
  post(request(2, 'initialize', { protocolVersion: '1999-01-01', capabilities: {}, clientInfo }));
  assert.equal((await said(2))[1].result.protocolVersion, LEGACY);
  post(
    request(3, 'tools/list', params(MODERN)),
    request(4, 'tools/list'),
    request(5, 'tools/list', params('2031-01-01')),
    request(6, 'tools/list', params(MODERN, 'none')),
  );
  const answers = (await said(6)).slice(2).sort((a, b) => a.id - b.id);
  assert.deepEqual(
    answers.map(({ result, error }) => result ?? [error.code, error.data]),
    [
      { resultType: 'complete', tools: [], version: MODERN },
      { tools: [], version: LEGACY },
      [-32022, { supported: [MODERN], requested: '2031-01-01' }],
      [-32602, undefined],
    ],
  );
  peer.close();
});

test('a server of the second era asks nothing by itself', async () => {
  const { client, server, done } = await pairOf(MODERN);
  server.handle('tools/call', (_params, { request }) => request('elicitation/create', {}));
  assert.match((await outcome(client.request('tools/call'))).err.message, /input_required/);
  done();
});

test('a server that names no version in common, or leaves, is told apart from one of the first era', async () => {
  for (const [answer, message] of [
    [{ code: -32022, message: 'no', data: { supported: ['2031-01-01'] } }, /no version/],
    [{ code: -32021, message: 'sampling, please' }, /sampling/],
  ]) {
    const { peer, post, said } = scriptedPeer('mcp');
    const connecting = outcome(connectMcp(peer, { clientInfo }));
    const [{ id }] = await said(1);
    post({ jsonrpc: '2.0', id, error: answer });
    assert.match((await connecting).err.message, message);
    peer.close();
  }
  const { peer, said, transport, heard } = scriptedPeer('mcp');
  const connecting = outcome(connectMcp(peer, { clientInfo }));
  await said(1);
  transport.onClose();
  assert.match((await connecting).err.message, /closed/);
  assert.equal(heard.length, 1);
});

test('a server that says nothing to server/discover is asked to initialize', async () => {
  const { peer, post, said } = scriptedPeer('mcp');
  const awake = setInterval(() => {}, 1000);
  const connecting = connectMcp(peer, { clientInfo, discoveryTimeout: 5 });
  const heard = await said(3);
  clearInterval(awake);
  assert.deepEqual(
    heard.map(({ method }) => method),
    ['server/discover', 'notifications/cancelled', 'initialize'],
  );
  const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo };
  post({ jsonrpc: '2.0', id: heard[2].id, result });
  assert.equal((await connecting).version, '2025-06-18');
  peer.close();
});

test('params and input that are no records are not walked, and what is asked by no text is refused', async () => {
  const { server, client, toB, done, sent } = await pairOf(LEGACY);
  const got = gate();
  server.handle('tools/call', (params) => (got.open(params), {}));
  toB({ jsonrpc: '2.0', id: 'odd', method: 'tools/call', params: 'x'.repeat(2 ** 20) });
  assert.deepEqual(await got.opened, {});
  assert.deepEqual(await client.request('tools/call'), {});
  assert.deepEqual(sent('b2a').at(-2), { jsonrpc: '2.0', id: 'odd', result: {} });
  done();

  const { peer, post, said } = scriptedPeer('mcp');
  const connecting = connectMcp(peer, { clientInfo });
  const heard = await said(1);
  post({ jsonrpc: '2.0', id: heard.pop().id, result: { supportedVersions: [MODERN] } });
  const modern = await connecting;
  const input = (inputRequests) => ({ resultType: 'input_required', inputRequests });
  for (const [result, code] of [
    [input({ a: { method: [new Array(2 ** 28)] } }), -32601],
    [input({ a: { method: 1n << 33_000_000n } }), -32601],
  ]) {
    const asked = outcome(modern.request('tools/call'));
    await said(1);
    post({ jsonrpc: '2.0', id: heard.pop().id, result });
    assert.equal((await asked).err.code, code);
  }
  // A text has no members: the request is made again as it was.
  const again = modern.request('tools/call');
  await said(1);
  post({ jsonrpc: '2.0', id: heard.pop().id, result: input('x'.repeat(2 ** 20)) });
  await said(1);
  assert.equal(heard[0].params.inputResponses, undefined);
  post({ jsonrpc: '2.0', id: heard.pop().id, result: { resultType: 'complete' } });
  assert.deepEqual(await again, { resultType: 'complete' });
  peer.close();
});
