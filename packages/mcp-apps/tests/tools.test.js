// The tools of a view: names, results, failures, and the list of them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect } from 'abp-bridge';
import { createPeer } from '@abp-bridge/rpc';
import { createHost } from '../src/index.js';
import { linkedTransports } from '../../rpc/tests/support/rpc.js';
import { AGENT, HOST, turn, agentOfView } from './support/hosts-and-views.js';

/** A view whose every answer the test gives, and an agent of its tools. */
async function scriptedView(t, answer, tools = [{ name: 'x', inputSchema: { type: 'object' } }]) {
  const [there, here] = linkedTransports();
  const view = createPeer(here, { dialect: 'mcp' });
  view.handle('tools/list', () => ({ tools: typeof tools === 'function' ? tools() : tools }));
  view.handle('tools/call', answer);
  const hosting = createHost(there, { host: HOST });
  await view.request('ui/initialize', {
    appInfo: { name: 'View', version: '1' },
    appCapabilities: { tools: {} },
  });
  view.notify('ui/notifications/initialized');
  const host = await hosting;
  const client = await connect(() => host.transport(), { agent: AGENT });
  t.after(() => {
    client.close();
    view.close();
    return host.close({ timeout: 1 });
  });
  return { client, view, host };
}

test('names of tools fit every model, and lead back to their capabilities', async (t) => {
  const names = ['a.b', 'a_b', 'a-b', 'é', 'x'.repeat(200), '__proto__', 'constructor'];
  const all = Object.fromEntries(names.map((name) => [name, () => ({ called: name })]));
  Object.defineProperty(all, '__proto__', {
    value: () => ({ called: '__proto__' }),
    enumerable: true,
  });
  const { client, host } = await agentOfView(t, all);
  const { tools } = await host.request('tools/list');
  assert.equal(new Set(tools.map(({ name }) => name)).size, names.length);
  for (const { name, title } of tools) {
    assert.match(name, /^\w{1,64}$/);
    assert.deepEqual((await host.callTool(name)).structuredContent, { called: title });
  }
  for (const name of names) assert.equal((await client.call(name)).data.called, name);
  // What is fine stays, whichever comes first.
  for (const name of ['a_b', 'constructor'])
    assert.equal(tools.find(({ title }) => title === name).name, name);
  for (const name of ['toString', {}])
    assert.equal((await host.request('tools/call', { name })).isError, true);
});

test('data passes through the result of a tool', async (t) => {
  const bytes = new Uint8Array([1, 2, 3]).buffer;
  const odd = {
    map: new Map([['a', 1n]]),
    set: new Set([1, [2]]),
    error: Object.assign(new RangeError('far'), { code: 5 }),
    at: new Date(0),
  };
  const capabilities = {
    echo: (params) => params.data,
    bytes: () => ({ content: bytes.slice(), mimeType: 'image/png' }),
    pdf: () => ({ pdf: { content: bytes.slice(), mimeType: 'application/pdf' }, n: 1 }),
    odd: () => odd,
  };
  const ours = await agentOfView(t, capabilities);
  for (const data of [{ a: [1] }, 'text', 5, null, [1, 2], undefined, true])
    assert.deepEqual((await ours.client.call('echo', { data })).data, data);
  assert.deepEqual((await ours.client.call('bytes')).data.content, bytes);
  assert.deepEqual((await ours.client.call('odd')).data.map, odd.map);
  // Anybody's host gets JSON.
  const others = await agentOfView(t, capabilities, { reportsOutcomes: false });
  assert.deepEqual(await others.host.callTool('pdf'), {
    content: [
      { type: 'text', text: '{"pdf":{"mimeType":"application/pdf","size":3},"n":1}' },
      {
        type: 'resource',
        resource: { uri: 'abp-bridge:///result/1', mimeType: 'application/pdf', blob: 'AQID' },
      },
    ],
    structuredContent: { pdf: { mimeType: 'application/pdf', size: 3 }, n: 1 },
  });
  assert.equal((await others.client.call('echo', { data: 'text' })).data, 'text');
  assert.deepEqual((await others.client.call('odd')).data, {
    map: [['a', '1']],
    set: [1, [2]],
    error: { name: 'RangeError', message: 'far', code: 5 },
    at: '1970-01-01T00:00:00.000Z',
  });
});

test('a failure passes through the result of a tool', async (t) => {
  const error = { code: 'RATE_LIMITED', message: 'later', retryable: true, retryAfter: 5 };
  const cyclic = {};
  cyclic.cyclic = cyclic;
  const fails = (details) => () => {
    throw Object.assign(new Error(error.message), error, { details });
  };
  const capabilities = {
    fails: fails(undefined),
    details: fails({ left: new Set([1n]) }),
    act: () => () => {},
    cyclic: () => ({ a: cyclic }),
  };
  const { client, host } = await agentOfView(t, capabilities, { reportsOutcomes: false });
  const result = await host.callTool('fails');
  assert.equal(result.isError, true);
  assert.deepEqual(result.content, [{ type: 'text', text: 'RATE_LIMITED: later' }]);
  assert.deepEqual((await client.call('fails')).error, error);
  assert.deepEqual((await host.callTool('details')).structuredContent.error.details, {
    left: ['1'],
  });
  for (const name of ['act', 'cyclic'])
    assert.match(
      (await host.callTool(name)).content[0].text,
      /^OPERATION_FAILED: The result cannot be sent/,
    );
});

test('any value as the result of a tool gives a valid response', async (t) => {
  let result;
  const { client } = await scriptedView(t, () => result);
  for (result of [
    undefined,
    null,
    5,
    'x',
    [],
    {},
    { content: 5 },
    { content: [null] },
    { isError: true },
    { isError: true, content: [{ type: 'text', text: 5 }], structuredContent: { error: 5 } },
    { content: [{ type: 'image', data: '%', mimeType: 'image/png' }] },
  ]) {
    const response = await client.call('x');
    assert.equal(typeof response.success, 'boolean');
    if (!response.success) assert.equal(typeof response.error.code, 'string');
  }
  result = { content: [{ type: 'audio', data: 'AQID', mimeType: 'audio/ogg' }] };
  const { data } = await client.call('x');
  assert.deepEqual([data.mimeType, data.content.byteLength], ['audio/ogg', 3]);
  result = { isError: true, structuredContent: { error: { code: 'CANCELLED', message: 'no' } } };
  assert.equal((await client.call('x')).cancelled, true);
});

test('an agent calls the tools of a view as it calls an app', async (t) => {
  const { client, exposed, changes, heard } = await agentOfView(t, {
    'text.echo': (params) => params,
    hidden: { handler() {}, available: false },
    steps(_params, { progress }) {
      for (const n of [1, 1, 3]) progress({ progress: n, total: 3 });
      return 'done';
    },
  });
  assert.equal(client.app.name, 'View');
  assert.deepEqual(
    (await client.listCapabilities()).map(({ name }) => name),
    ['text.echo', 'steps'],
  );
  assert.deepEqual((await client.call('text.echo', { a: 1 })).data, { a: 1 });
  const progress = [];
  const onProgress = (info) => progress.push(info.progress);
  const { data } = await client.call('steps', {}, { onProgress });
  // MCP's progress rises.
  assert.deepEqual([data, progress], ['done', [1, 3]]);
  assert.equal((await client.call('hidden')).error.code, 'UNKNOWN_CAPABILITY');
  exposed.set('more', () => 1);
  await heard.opened;
  assert.deepEqual(changes, [{ added: ['more'], removed: [], changed: [] }]);
  assert.equal((await client.call('more')).data, 1);
});

test('a list that changes often is requested once at a time', async (t) => {
  let lists = 0;
  const tools = () => (lists++ ? [] : [{ name: 'x' }]);
  const { client, view, host } = await scriptedView(t, () => ({}), tools);
  for (let i = 0; i < 1000; i++) view.notify('notifications/tools/list_changed');
  // Past all that was said.
  await view.request('ping');
  await host.request('ping');
  while ((await client.listCapabilities()).length) await turn();
  assert.ok(lists < 10, `${lists}`);
});

test('a foreign app has tools, too', async (t) => {
  const abp = {
    app: { id: 'x.y', name: 'Other', version: '1' },
    initialize: async () => ({
      sessionId: 's',
      protocolVersion: '0.1',
      app: abp.app,
      features: {},
    }),
    listCapabilities: async () => [{ name: 'add', available: true }],
    call: async (_name, { a, b }) => ({ success: true, data: a + b }),
    shutdown: async () => {},
  };
  const { client, heard } = await agentOfView(t, {}, { definition: abp });
  // Its list is known when it has answered.
  if (!(await client.listCapabilities()).length) await heard.opened;
  assert.equal((await client.call('add', { a: 1, b: 2 })).data, 3);
});

test('a question in a call of a tool is refused: MCP Apps has no way to ask a host', async (t) => {
  const { client } = await agentOfView(t, {
    ask: (_params, { elicit }) => elicit({ method: 'elicitation/confirm', params: {} }),
  });
  const { success, error } = await client.call('ask');
  assert.deepEqual([success, error.code], [false, 'NOT_SUPPORTED']);
  assert.equal(
    error.message,
    'The agent does not support elicitation: ask the user in the app itself',
  );
});
