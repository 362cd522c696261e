/** MCP's two eras over our peers: found out by the client, served side by side, and handlers written once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { useClock } from '../../../tests/support/clock.js';
import { connectMcp, serveMcp } from '../src/mcp.js';
import { fired, gate, outcome, peerPair, scriptedPeer } from './support/rpc.js';
import { faultsIn } from './support/mcp-schemas.js';

const MODERN = '2026-07-28';
const LEGACY = '2025-11-25';
const clientInfo = { name: 'client', version: '1' };
const serverInfo = { name: 'server', version: '1' };
const VERSION = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const SERVER = 'io.modelcontextprotocol/serverInfo';
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';

/** A server that asks the client for a name. */
const greet = (params, _context, { version }) => {
  const answer = params.inputResponses?.name;
  if (answer)
    return { greeting: `Hello ${answer.content.name}`, state: params.requestState, version };
  const input = { method: 'elicitation/create', params: { message: 'Who?' } };
  return { resultType: 'input_required', inputRequests: { name: input }, requestState: 's1' };
};

async function pairOf(era, capabilities = { elicitation: {} }, offered = { tools: {} }) {
  const pair = peerPair('mcp');
  const options = { serverInfo, capabilities: offered, instructions: 'be kind' };
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
      {
        resultType: 'complete',
        ttlMs: 0,
        cacheScope: 'private',
        tools: [],
        version: MODERN,
        _meta: { [SERVER]: serverInfo },
      },
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
    [{ code: -32022, message: 'no', data: { supported: ['2031-01-01'] } }, /No protocol version/],
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

/** What a server needs, as one input or several. */
const needs = (...inputs) => ({
  resultType: 'input_required',
  inputRequests: Object.fromEntries(inputs.map((input, i) => [`input ${i}`, input])),
});
const requestedSchema = { type: 'object', properties: { name: { type: 'string' } } };
const form = (more) => ({
  method: 'elicitation/create',
  params: { message: 'Who?', requestedSchema, ...more },
});
const url = {
  method: 'elicitation/create',
  params: { mode: 'url', message: 'Sign in', url: 'https://a.example', elicitationId: '1' },
};
const sampling = (more) => ({
  method: 'sampling/createMessage',
  params: {
    messages: [{ role: 'user', content: { type: 'text', text: 'q' } }],
    maxTokens: 5,
    ...more,
  },
});
const tool = { name: 'greet', inputSchema: { type: 'object' } };
const text = (said) => ({ content: [{ type: 'text', text: said }] });

for (const era of [MODERN, LEGACY]) {
  test(`${era}: every message that is sent is one of the revision's schema`, async () => {
    const pair = await pairOf(
      era,
      { elicitation: {}, sampling: {}, roots: {} },
      {
        tools: { listChanged: true },
        prompts: {},
        resources: { subscribe: true },
      },
    );
    const { client, server, log, done } = pair;
    const contents = [{ uri: 'a:b', text: 'c' }];
    for (const [method, result] of Object.entries({
      'tools/list': { tools: [tool] },
      'prompts/list': { prompts: [{ name: 'p' }] },
      'prompts/get': { messages: [] },
      'resources/list': { resources: [{ uri: 'a:b', name: 'r' }] },
      'resources/templates/list': { resourceTemplates: [] },
      'resources/read': { contents },
      'completion/complete': { completion: { values: [] } },
    })) {
      server.handle(method, () => result);
    }
    server.handle('tools/call', (params, { progress }) => {
      if (params.inputResponses) return text('done');
      progress(0.5);
      progress({ progress: 0.75, total: 1, message: 'nearly' });
      return needs(form(), sampling(), { method: 'roots/list' });
    });
    client.handle('elicitation/create', () => ({ action: 'accept', content: { name: 'Ada' } }));
    client.handle('sampling/createMessage', () => ({
      model: 'm',
      role: 'assistant',
      content: { type: 'text', text: 'a' },
    }));
    client.handle('roots/list', () => ({ roots: [{ uri: 'file:///a' }] }));
    const seen = [];
    const { content } = await client.request(
      'tools/call',
      { name: 'greet', arguments: {} },
      { onProgress: (info) => seen.push(info) },
    );
    assert.deepEqual(content, text('done').content);
    for (const [method, params] of Object.entries({
      'tools/list': undefined,
      'prompts/list': undefined,
      'prompts/get': { name: 'p' },
      'resources/list': undefined,
      'resources/templates/list': undefined,
      'resources/read': { uri: 'a:b' },
      'completion/complete': {
        ref: { type: 'ref/prompt', name: 'p' },
        argument: { name: 'a', value: '' },
      },
    })) {
      await client.request(method, params);
    }
    const controller = new AbortController();
    const stopped = outcome(client.request('prompts/get', { name: 'p' }, controller));
    controller.abort('enough');
    await stopped;
    if (era === MODERN) {
      const listening = gate();
      pair.a.onNotification('notifications/subscriptions/acknowledged', listening.open);
      const filter = { toolsListChanged: true, resourceSubscriptions: ['a:b'] };
      const subscription = client.request('subscriptions/listen', { notifications: filter });
      await listening.opened;
      server.notifyChange('notifications/tools/list_changed');
      server.notifyChange('notifications/resources/updated', { uri: 'a:b' });
      pair.b.close();
      await subscription;
    }
    done();
    assert.deepEqual(faultsIn(log, era), []);
    assert.ok(log.length > 20);
    assert.deepEqual(seen, [{ progress: 0.5 }, { progress: 0.75, total: 1, message: 'nearly' }]);
  });

  test(`${era}: what ends a request ends the question to the user, whichever it is, and nothing is said of it`, async (t) => {
    const clock = useClock(t);
    const abort = (controller) => controller.abort(new Error('mine'));
    for (const [options, end, name, data] of [
      [{}, (_, { a }) => a.close(), 'RpcError', { closedBy: 'self', outcome: 'unknown' }],
      [
        {},
        (_, { b }) => b.close(),
        'RpcError',
        era === MODERN ? { closedBy: 'peer', outcome: 'unknown' } : undefined,
      ],
      [
        { timeout: 50 },
        () => clock.advance(51),
        'TimeoutError',
        { timeout: 50, outcome: 'unknown' },
      ],
      [
        { maxTotalTimeout: 60 },
        () => clock.advance(61),
        'TimeoutError',
        { timeout: 60, outcome: 'unknown' },
      ],
      [{}, abort, 'Error', undefined],
    ]) {
      const pair = await pairOf(era);
      const { client, server, sent, done } = pair;
      server.handle('tools/call', (params) =>
        params.inputResponses ? text('late') : needs(form()),
      );
      const [asked, ended] = [gate(), gate()];
      client.handle('elicitation/create', async (_params, { signal }) => {
        asked.open();
        ended.open(await fired(signal));
        return { action: 'accept', content: {} };
      });
      const controller = new AbortController();
      const { signal } = controller;
      const call = outcome(client.request('tools/call', { name: 'x' }, { ...options, signal }));
      await asked.opened;
      const before = sent('a2b').length;
      end(controller, pair);
      const { err } = await call;
      assert.deepEqual([err.name, err.data], [name, data]);
      assert.equal((await ended.opened).name, 'AbortError');
      if (era === MODERN) assert.equal(sent('a2b').length, before);
      assert.equal(pair.a.counters.inFlightOut, 0);
      done();
    }
  });

  test(`${era}: when one of several inputs fails, the others are not wanted any more`, async () => {
    const { client, server, done } = await pairOf(era, { elicitation: {}, sampling: {} });
    server.handle('tools/call', () => needs(form(), sampling()));
    const [asked, ended] = [gate(), gate()];
    client.handle('elicitation/create', async (_params, { signal }) => {
      asked.open();
      ended.open((await fired(signal)).name);
      return { action: 'cancel' };
    });
    client.handle('sampling/createMessage', async () => {
      await asked.opened;
      throw new Error('no model');
    });
    const { err } = await outcome(client.request('tools/call', { name: 'x' }));
    assert.match(err.message, /no model/);
    assert.equal(await ended.opened, 'AbortError');
    done();
  });

  test(`${era}: what a client has not declared, in all detail, it is not asked`, async () => {
    for (const [capabilities, input, lacked] of [
      [{ elicitation: {} }, form(), undefined],
      [{ elicitation: {} }, form({ mode: 'form' }), undefined],
      [{ elicitation: { form: {} } }, form(), undefined],
      [{ elicitation: {} }, url, { elicitation: { url: {} } }],
      [{ elicitation: { form: {} } }, url, { elicitation: { url: {} } }],
      [{ elicitation: { url: {} } }, url, undefined],
      [{ elicitation: { url: {} } }, form(), { elicitation: { form: {} } }],
      [{ elicitation: {} }, form({ mode: 'constructor' }), { elicitation: {} }],
      [{}, form(), { elicitation: {} }],
      [{ sampling: {} }, sampling(), undefined],
      [{ sampling: {} }, sampling({ tools: [] }), { sampling: { tools: {} } }],
      [{ sampling: {} }, sampling({ toolChoice: { mode: 'auto' } }), { sampling: { tools: {} } }],
      [{ sampling: { tools: {} } }, sampling({ tools: [] }), undefined],
      [{}, { method: 'roots/list' }, { roots: {} }],
      [{ roots: {} }, { method: 'roots/list' }, undefined],
      [{ roots: {} }, { method: 'ping' }, {}],
    ]) {
      const { client, server, b, done } = await pairOf(era, capabilities);
      server.handle('tools/call', ({ inputResponses }) =>
        inputResponses ? text('ok') : needs(input),
      );
      for (const method of ['elicitation/create', 'sampling/createMessage', 'roots/list']) {
        client.handle(method, () => ({}));
      }
      const { ok, err } = await outcome(client.request('tools/call', { name: 'x' }));
      if (!lacked) assert.deepEqual(ok.content, text('ok').content);
      else assert.deepEqual([err.code, err.data], [-32021, { requiredCapabilities: lacked }]);
      // A server that asks all the same is refused by the client.
      const declared = lacked && Object.keys(lacked).every((key) => capabilities[key]);
      const code = input.method === 'ping' ? undefined : declared ? -32602 : -32601;
      if (era === LEGACY) {
        const asked = await outcome(b.request(input.method, input.params));
        assert.equal(asked.err?.code, lacked ? code : undefined, JSON.stringify(input));
      } else {
        b.handle('tools/call', (params) => (params.inputResponses ? text('ok') : needs(input)));
        const again = await outcome(client.request('tools/call', { name: 'x' }));
        assert.equal(again.err?.code, lacked ? (code ?? -32601) : undefined, JSON.stringify(input));
      }
      done();
    }
  });

  test(`${era}: a result that is no object is an error, and none is spread`, async () => {
    const { client, server, done } = await pairOf(era);
    for (const result of [[1, 2], 'text', 5, null]) {
      server.handle('tools/call', () => result);
      const { err } = await outcome(client.request('tools/call', { name: 'x' }));
      assert.deepEqual(
        [err.code, err.message],
        [-32603, 'The result of tools/call must be an object'],
      );
    }
    server.handle('tools/call', () => {});
    assert.equal((await outcome(client.request('tools/call', { name: 'x' }))).err, undefined);
    done();
  });
}

test('what a handler says of its result stands, and what it leaves out is filled in', async () => {
  const { client, server, done } = await pairOf(MODERN);
  const info = { name: 'another', version: '2' };
  const says = { ttlMs: 5, cacheScope: 'public', _meta: { [SERVER]: info, more: 1 }, tools: [] };
  server.handle('tools/list', () => says);
  assert.deepEqual(await client.request('tools/list'), { resultType: 'complete', ...says });
  server.handle('tools/list', () => ({ tools: [], ttlMs: undefined, resultType: undefined }));
  assert.deepEqual(await client.request('tools/list'), {
    resultType: 'complete',
    ttlMs: 0,
    cacheScope: 'private',
    _meta: { [SERVER]: serverInfo },
    tools: [],
  });
  // What is not complete is not to be kept.
  server.handle('resources/read', () => needs(form()));
  client.handle('elicitation/create', () => {
    throw new Error('not now');
  });
  await assert.rejects(client.request('resources/read', { uri: 'a:b' }), /not now/);
  const { ttlMs } = (await outcome(client.request('prompts/get', {}))).ok ?? {};
  assert.equal(ttlMs, undefined);
  done();
});

test('a result of a type that is not known is no success, unless an extension is agreed on', async () => {
  for (const capabilities of [{}, { extensions: {} }, { extensions: { 'a.example/b': {} } }]) {
    const { client, b, server, done } = await pairOf(MODERN, capabilities);
    b.handle('tools/call', () => ({ resultType: 'task', taskId: 't' }));
    const { ok, err } = await outcome(client.request('tools/call', { name: 'x' }));
    if (ok) assert.deepEqual([ok.taskId, capabilities.extensions?.['a.example/b']], ['t', {}]);
    else assert.deepEqual([err.code, err.data], [-32600, { resultType: 'task' }]);
    server.handle('tools/call', () => ({ resultType: 'task', taskId: 't' }));
    const ours = await outcome(client.request('tools/call', { name: 'x' }));
    assert.equal(ours.err?.code, ok ? undefined : -32603);
    done();
  }
});

test('a request is judged by the version that it names before its method is looked at', async () => {
  const { peer, post, said } = scriptedPeer('mcp');
  serveMcp(peer, { serverInfo }).handle('tools/list', () => ({ tools: [] }));
  const meta = (version, more = { [CAPABILITIES]: {} }) => ({
    _meta: { [VERSION]: version, ...more },
  });
  const cases = [
    ['nobody/knows', meta('2031-01-01'), -32022],
    ['ping', meta('2031-01-01'), -32022],
    ['initialize', meta('2031-01-01'), -32022],
    ['nobody/knows', meta(MODERN), -32601],
    ['nobody/knows', meta(MODERN, {}), -32602],
    ['ping', meta(MODERN), -32601],
    [
      'initialize',
      { ...meta(MODERN), protocolVersion: LEGACY, capabilities: {}, clientInfo },
      -32601,
    ],
    ['logging/setLevel', meta(MODERN), -32601],
    ['resources/subscribe', meta(MODERN), -32601],
    ['server/discover', undefined, -32602],
    ['server/discover', { _meta: {} }, -32602],
    ['subscriptions/listen', { notifications: {} }, -32602],
    ['subscriptions/listen', meta(MODERN), -32602],
    ['ping', undefined, undefined],
    ['tools/list', undefined, undefined],
    ['tools/list', meta(MODERN), undefined],
  ];
  post(...cases.map(([method, params], id) => ({ jsonrpc: '2.0', id, method, params })));
  const heard = await said(cases.length);
  for (const [id, [method, , code]] of cases.entries()) {
    assert.equal(heard.find((answer) => answer.id === id).error?.code, code, `${id} ${method}`);
  }
  peer.close();
});

test('a server that has told its versions is spoken to in one that both know', async () => {
  for (const [reply, version] of [
    [
      { error: { code: -32022, message: 'no', data: { supported: ['1', '2025-06-18'] } } },
      '2025-06-18',
    ],
    [{ result: { supportedVersions: ['2025-03-26', '2031-01-01'] } }, '2025-03-26'],
    [{ result: { supportedVersions: ['2025-03-26', MODERN] } }, MODERN],
  ]) {
    const { peer, post, said } = scriptedPeer('mcp');
    const connecting = connectMcp(peer, { clientInfo });
    const [{ id }] = await said(1);
    post({ jsonrpc: '2.0', id, ...reply });
    if (version !== MODERN) {
      const [, { id, method, params }] = await said(2);
      assert.deepEqual([method, params.protocolVersion], ['initialize', version]);
      const result = { protocolVersion: version, capabilities: {}, serverInfo };
      post({ jsonrpc: '2.0', id, result });
    }
    assert.equal((await connecting).version, version);
    peer.close();
  }
});

test('the era can be given: a server that would not survive the question is reached', async () => {
  const { peer, post, said } = scriptedPeer('mcp');
  const connecting = connectMcp(peer, { clientInfo, era: 'legacy' });
  const [{ id, method }] = await said(1);
  assert.equal(method, 'initialize');
  post({ jsonrpc: '2.0', id, result: { protocolVersion: LEGACY, capabilities: {}, serverInfo } });
  assert.equal((await connecting).version, LEGACY);
  peer.close();

  const modern = scriptedPeer('mcp');
  const refused = outcome(connectMcp(modern.peer, { clientInfo, era: 'modern' }));
  const [asked] = await modern.said(1);
  modern.post({
    jsonrpc: '2.0',
    id: asked.id,
    error: { code: -32601, message: 'Method not found' },
  });
  assert.equal((await refused).err.code, -32601);
  assert.equal(modern.heard.length, 1);
  modern.peer.close();
});

test('connecting ends by the signal or the timeout, whatever it waits for', async (t) => {
  const clock = useClock(t);
  for (const era of ['modern', 'legacy', undefined]) {
    for (const [options, end, name] of [
      [{}, (controller) => controller.abort(), 'AbortError'],
      [{}, (controller) => controller.abort(new Error('mine')), 'Error'],
      [{ timeout: 40, discoveryTimeout: 40 }, () => clock.advance(41), 'TimeoutError'],
    ]) {
      const { peer, said } = scriptedPeer('mcp');
      const controller = new AbortController();
      const { signal } = controller;
      const connecting = outcome(connectMcp(peer, { clientInfo, era, signal, ...options }));
      await said(1);
      end(controller);
      if (!era && options.timeout) {
        // Silence is a server of the first era, which is silent, too.
        await said(3);
        end(controller);
      }
      assert.equal((await connecting).err.name, name);
      peer.close();
    }
  }
});

test('wrong options say so, and nothing is sent', async () => {
  const { peer, heard } = scriptedPeer('mcp');
  const wrong = [
    undefined,
    {},
    { clientInfo: 'me' },
    { clientInfo, capabilities: 'all' },
    { clientInfo, capabilities: [] },
    { clientInfo, era: '2026' },
    { clientInfo, discoveryTimeout: 'soon' },
    { clientInfo, timeout: -1 },
    { clientInfo, timeout: NaN },
    { clientInfo, signal: {} },
  ];
  for (const options of wrong) {
    assert.equal((await outcome(connectMcp(peer, options))).err.code, 'INVALID_PARAMS');
  }
  for (const options of [undefined, {}, { serverInfo: 1 }, { serverInfo, capabilities: 1 }]) {
    assert.throws(() => serveMcp(peer, options), { code: 'INVALID_PARAMS' });
  }
  const server = serveMcp(peer, { serverInfo });
  assert.throws(() => server.notifyChange('notifications/message'), { code: 'INVALID_PARAMS' });
  assert.deepEqual(heard, []);
  peer.close();
});

test('subscriptions: acknowledged as far as the server offers changes, told by tag, ended with a result', async () => {
  const { peer, post, said, heard, quiet } = scriptedPeer('mcp');
  const capabilities = {
    tools: { listChanged: true },
    prompts: {},
    resources: { subscribe: true },
  };
  const server = serveMcp(peer, { serverInfo, capabilities });
  const _meta = { [VERSION]: MODERN, [CAPABILITIES]: {} };
  const listen = (id, notifications) => ({
    jsonrpc: '2.0',
    id,
    method: 'subscriptions/listen',
    params: { notifications, _meta },
  });
  const asked = { toolsListChanged: true, promptsListChanged: true };
  post(
    listen(7, { ...asked, resourceSubscriptions: ['a:b', 5, 'c:d'] }),
    listen('7', { resourceSubscriptions: ['e:f'] }),
    listen(8, { toolsListChanged: 'yes', constructor: true }),
  );
  const acknowledged = (await said(3)).map(({ method, params }) => [
    method,
    params.notifications,
    params._meta[SUBSCRIPTION],
  ]);
  const method = 'notifications/subscriptions/acknowledged';
  assert.deepEqual(acknowledged, [
    [method, { toolsListChanged: true, resourceSubscriptions: ['a:b', 'c:d'] }, 7],
    [method, { resourceSubscriptions: ['e:f'] }, '7'],
    [method, {}, 8],
  ]);
  heard.length = 0;
  const changes = () => {
    server.notifyChange('notifications/tools/list_changed');
    server.notifyChange('notifications/prompts/list_changed');
    server.notifyChange('notifications/resources/list_changed');
    for (const uri of ['a:b', 'e:f', 'g:h']) {
      server.notifyChange('notifications/resources/updated', { uri, _meta: { more: uri } });
    }
    return heard.splice(0).map(({ method, params }) => [method, params]);
  };
  const tag = (id, more) => ({ _meta: { ...more, [SUBSCRIPTION]: id } });
  const updated = (uri, id) => [
    'notifications/resources/updated',
    { uri, ...tag(id, { more: uri }) },
  ];
  assert.deepEqual(changes(), [
    ['notifications/tools/list_changed', tag(7)],
    updated('a:b', 7),
    updated('e:f', '7'),
  ]);
  // Its client ends one: nothing more is said of it, from that moment on.
  post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } });
  for (let i = 0; i < 2; i++) {
    assert.deepEqual(changes(), [updated('e:f', '7')]);
    await quiet();
  }
  peer.close();
  const ends = new Map(heard.map(({ id, result }) => [id, result]));
  const result = (id) => ({
    resultType: 'complete',
    _meta: { [SERVER]: serverInfo, [SUBSCRIPTION]: id },
  });
  assert.deepEqual([heard.length, ends.get('7'), ends.get(8)], [2, result('7'), result(8)]);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(peer.counters.inFlightIn, 0);
});

test('a client listens: acknowledged, filtered, told by tag, and ended from either side', async () => {
  const capabilities = { tools: { listChanged: true }, resources: { subscribe: true } };
  const { client, server, a, b, done } = await pairOf(MODERN, {}, capabilities);
  const strays = [];
  a.onNotification('*', (_params, { method }) => strays.push(method));
  const told = [];
  const listen = (name, changes, options) =>
    client.listen(changes, (params, { method }) => told.push([name, method, params.uri]), options);
  const tools = await listen('tools', { toolsListChanged: true, promptsListChanged: true });
  const stop = new AbortController();
  const some = await listen('some', { resourceSubscriptions: ['a:b'] }, { signal: stop.signal });
  assert.deepEqual(
    [tools.notifications, some.notifications],
    [{ toolsListChanged: true }, { resourceSubscriptions: ['a:b'] }],
  );
  const change = async () => {
    server.notifyChange('notifications/tools/list_changed');
    server.notifyChange('notifications/resources/updated', { uri: 'a:b' });
    // All of it has come before this is answered.
    await client.request('server/discover');
    return told.splice(0);
  };
  const ofTools = ['tools', 'notifications/tools/list_changed', undefined];
  assert.deepEqual(await change(), [ofTools, ['some', 'notifications/resources/updated', 'a:b']]);
  stop.abort();
  await some.ended;
  assert.deepEqual(await change(), [ofTools]);
  tools.close();
  await tools.ended;
  assert.deepEqual(await change(), []);
  const last = await listen('last', { toolsListChanged: true });
  b.close();
  await last.ended;
  assert.deepEqual(strays, []);
  done();
});

test('a client that listens is told why it cannot', async () => {
  const { client, done } = await pairOf(LEGACY);
  const listen = (...args) => outcome(client.listen(...args));
  for (const args of [
    [5, () => {}],
    [{}, 5],
    [{}, () => {}, { signal: 5 }],
  ])
    assert.equal((await listen(...args)).err.code, 'INVALID_PARAMS');
  done();
  const modern = await pairOf(MODERN);
  modern.b.handle('subscriptions/listen', () => ({ resultType: 'complete' }));
  const { err } = await outcome(modern.client.listen({}, () => {}));
  assert.match(err.message, /did not acknowledge/);
  modern.b.handle('subscriptions/listen', () => new Promise(() => {}));
  const stop = new AbortController();
  const waiting = outcome(modern.client.listen({}, () => {}, { signal: stop.signal }));
  stop.abort(new Error('enough'));
  assert.equal((await waiting).err.message, 'enough');
  modern.done();
});

test('a client of the first era listens to what its server tells unasked', async () => {
  const lists = Object.fromEntries(['tools', 'prompts'].map((list) => [list, {}]));
  lists.tools.listChanged = true;
  const { client, server, a, b, done } = await pairOf(LEGACY, {}, { ...lists, resources: {} });
  const told = [];
  const all = [];
  a.onNotification('*', (_params, { method }) => all.push(method));
  const changes = {
    toolsListChanged: true,
    promptsListChanged: true,
    resourceSubscriptions: ['a'],
  };
  const listen = (name, more) =>
    client.listen(changes, (_params, { method }) => told.push([name, method]), more);
  const stop = new AbortController();
  const one = await listen('one', { signal: stop.signal });
  const other = await listen('other');
  // What the server does not offer is left out.
  assert.deepEqual(one.notifications, { toolsListChanged: true });
  const tools = 'notifications/tools/list_changed';
  const change = async () => {
    for (const method of [tools, 'notifications/prompts/list_changed']) server.notifyChange(method);
    await client.request('ping');
    return told.splice(0);
  };
  assert.deepEqual(await change(), [
    ['one', tools],
    ['other', tools],
  ]);
  stop.abort();
  await one.ended;
  assert.deepEqual(await change(), [['other', tools]]);
  other.close();
  await other.ended;
  assert.deepEqual(await change(), []);
  assert.equal(all.length, 6);
  const last = await listen('last');
  b.close();
  await last.ended;
  // Nobody is there to be told.
  server.notifyChange(tools);
  done();
});

test('a client of the first era is told of all changes, unasked', async () => {
  const { client, server, a, done } = await pairOf(LEGACY);
  assert.equal(client.version, LEGACY);
  const told = gate();
  a.onNotification('*', (params, { method }) => told.open([method, params]));
  server.notifyChange('notifications/resources/updated', { uri: 'a:b' });
  assert.deepEqual(await told.opened, ['notifications/resources/updated', { uri: 'a:b' }]);
  done();
});

test('a server that chooses a version that nobody knows is refused, and hears nothing more', async () => {
  const { peer, post, said, heard } = scriptedPeer('mcp');
  const connecting = outcome(connectMcp(peer, { clientInfo, era: 'legacy' }));
  const [{ id, method }] = await said(1);
  assert.equal(method, 'initialize');
  post({
    jsonrpc: '2.0',
    id,
    result: { protocolVersion: '1999-01-01', capabilities: {}, serverInfo },
  });
  const { err } = await connecting;
  assert.deepEqual([err.code, err.data], [-32022, { protocolVersion: '1999-01-01' }]);
  assert.equal(heard.length, 1);
});

test('a task of the second era is stopped in its words, by the signal of its request', async () => {
  const { client, server, sent, done } = await pairOf(MODERN, {
    extensions: { 'a.example/t': {} },
  });
  const stopped = gate();
  server.handle('tools/call', (_params, { signal }) => {
    void fired(signal).then(stopped.open);
    return { resultType: 'task', taskId: 't' };
  });
  server.handle('tasks/cancel', () => ({}));
  const controller = new AbortController();
  const { signal } = controller;
  assert.equal((await client.request('tools/call', { name: 'x' }, { signal })).taskId, 't');
  controller.abort();
  await stopped.opened;
  const { params } = sent('a2b').at(-1);
  assert.deepEqual([params.taskId, params._meta[VERSION]], ['t', MODERN]);
  await client.request('tools/list').catch(() => {});
  assert.deepEqual(sent('b2a').at(-2).result.resultType, 'complete');
  done();
});
