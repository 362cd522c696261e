// A view and its host without a browser, over a transport that is given to both; and the helpers of
// a server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, expose, transfer } from 'abp-bridge';
import { createPeer, portChannel } from '@abp-bridge/rpc';
import {
  createHost,
  createView,
  registerAppResource,
  registerAppTool,
  toolsOf,
} from '../src/index.js';

const APP = { name: 'V', version: '1' };

/** A host and a view, one end of a port each. */
async function pair(t, viewOptions = {}, hostOptions = {}) {
  const { port1, port2 } = new MessageChannel();
  const [host, view] = await Promise.all([
    createHost(portChannel(port1), { host: { name: 'H', version: '1' }, ...hostOptions }),
    createView({ app: APP, transport: portChannel(port2), ...viewOptions }),
  ]);
  t.after(() => {
    view.close();
    return host.close({ timeout: 1 });
  });
  return { host, view };
}

test('a view and a host meet over a transport that is given to them', async (t) => {
  const app = expose(
    { app: { id: 'v', name: 'V', version: '1' }, capabilities: { echo: (params) => params } },
    { origins: [] },
  );
  t.after(() => app.close());
  const server = (_method, { name }) => ({ content: [], structuredContent: { name } });
  const context = { theme: /** @type {const} */ ('dark') };
  const { host, view } = await pair(t, { tools: toolsOf(app) }, { server, context });
  assert.equal(view.context.theme, 'dark');
  assert.deepEqual((await view.callTool('t')).structuredContent, { name: 't' });
  const client = await connect(() => host.transport(), { agent: APP });
  assert.deepEqual((await client.call('echo', { a: 1 })).data, { a: 1 });
});

test('what a handler moves is moved all the way to an agent', async (t) => {
  const bytes = new ArrayBuffer(8);
  const give = () => transfer({ bytes }, [bytes]);
  const app = expose(
    { app: { id: 'v', name: 'V', version: '1' }, capabilities: { give } },
    { origins: [] },
  );
  t.after(() => app.close());
  const { host } = await pair(t, { tools: toolsOf(app) });
  const client = await connect(() => host.transport(), { agent: APP });
  const { data } = await client.call('give');
  assert.deepEqual([data.bytes.byteLength, bytes.byteLength], [8, 0]);
});

test('listeners that are added later hear what they have missed of the view’s call', async (t) => {
  const heard = [];
  let arrived;
  const input = new Promise((resolve) => (arrived = resolve));
  const { host, view } = await pair(t, { onToolInput: arrived });
  host.toolInput({ a: 1 });
  await input;
  const remove = view.on('onToolInput', ({ arguments: args }) => heard.push(args));
  const changed = new Promise((resolve) => view.on('onContextChange', resolve));
  await Promise.resolve();
  assert.deepEqual(heard, [{ a: 1 }]);
  remove();
  host.toolInput({ a: 2 });
  host.setContext({ locale: 'eo' });
  assert.deepEqual(await changed, { locale: 'eo' });
  assert.deepEqual(heard, [{ a: 1 }]);
  assert.throws(() => view.on('onToolInput', /** @type {any} */ (5)), { code: 'INVALID_PARAMS' });
});

test('arguments that are known in part are not told after the whole', async (t) => {
  const heard = [];
  const { host, view } = await pair(t, {
    onToolInputPartial: ({ arguments: args }) => heard.push(args),
    onToolInput: ({ arguments: args }) => heard.push(args),
  });
  const toolResult = new Promise((resolve) => view.on('onToolResult', resolve));
  host.toolInputPartial({ q: 'w' });
  host.toolInput({ q: 'whole' });
  host.toolInputPartial({ q: 'who' });
  host.toolResult({ content: [] });
  await toolResult;
  assert.deepEqual(heard, [{ q: 'w' }, { q: 'whole' }]);
});

test('whoever is gone is told nothing more, and that is no error', async (t) => {
  const { host, view } = await pair(t);
  const tells = () => {
    host.toolInputPartial({ q: 'w' });
    host.toolInput({ q: 'whole' });
    host.toolResult({ content: [] });
    host.toolCancelled('enough');
    host.setContext({ locale: 'eo' });
    host.notify('notifications/tools/list_changed');
    view.log('info', 'still here');
    view.resize({ height: 5 });
    view.requestTeardown();
    view.toolsChanged();
    view.notify('notifications/message', {});
  };
  tells();
  view.close();
  // At once, and when the other side has heard of it.
  tells();
  await host.closed;
  tells();
  assert.equal(host.ended, true);
  // What has an answer says that there is none.
  await assert.rejects(host.callTool('x'), /closed/);
  await assert.rejects(view.callTool('x'), /closed/);
});

/** A server of MCP with one tool, and its client. */
function mcpServer(t) {
  const { port1, port2 } = new MessageChannel();
  const [client, served] = [port1, port2].map((port) =>
    createPeer(portChannel(port), { dialect: 'mcp' }),
  );
  t.after(() => client.close());
  const tools = [{ name: 'first', inputSchema: { type: 'object' } }];
  let listings = 0;
  served.handle('tools/list', () => (listings++, { tools }));
  served.handle('tools/call', ({ name }) => ({ content: [{ type: 'text', text: name }] }));
  return { client, served, tools, listings: () => listings };
}

test('a view is told of changes of its server’s lists that its host passes on, and may call what is added', async (t) => {
  const { client, served, tools, listings } = mcpServer(t);
  const notified = [];
  let heard;
  const onNotification = (method) => (notified.push(method), heard?.());
  const next = () => new Promise((resolve) => (heard = resolve));
  const { host, view } = await pair(t, { onNotification }, { server: client, listChanged: true });
  client.onNotification('*', (_params, { method }) => host.notify(method));
  const { serverTools, serverResources } = view.hostCapabilities;
  assert.deepEqual([serverTools, serverResources], Array(2).fill({ listChanged: true }));
  assert.equal((await view.callTool('first')).content[0].text, 'first');
  const refused = { code: -32602, message: /may not call the tool/ };
  await assert.rejects(view.callTool('second'), refused);
  for (const list of ['prompts', 'resources', 'tools']) {
    const method = `notifications/${list}/list_changed`;
    if (list === 'tools') tools[0] = { name: 'second', inputSchema: { type: 'object' } };
    const hears = next();
    served.notify(method);
    await hears;
    assert.deepEqual(notified.splice(0), [method]);
  }
  assert.equal((await view.callTool('second')).content[0].text, 'second');
  // And not what is removed.
  await assert.rejects(view.callTool('first'), refused);
  const before = listings();
  await view.callTool('second');
  assert.equal(listings(), before, 'what is known is not asked for again');
});

test('a view is promised changes only if its host passes them on', async (t) => {
  const { client, tools } = mcpServer(t);
  const can = async (more) => (await pair(t, {}, more)).view.hostCapabilities.serverTools;
  assert.deepEqual(await can({ server: client }), {});
  assert.deepEqual(await can({ server: () => ({}) }), {});
  // What is added unsaid may be called as well.
  const { view } = await pair(t, {}, { server: client });
  await view.callTool('first');
  tools.push({ name: 'second', inputSchema: { type: 'object' } });
  assert.equal((await view.callTool('second')).content[0].text, 'second');
});

test('a host with an iframe needs to know what to show, and where', async () => {
  const iframe = /** @type {any} */ ({});
  await assert.rejects(createHost(iframe, { host: APP }), { code: 'INVALID_PARAMS' });
});

test('a server registers tools with views, and the views', async () => {
  const registered = {};
  const server = {
    registerTool: (name, config, handler) => (registered.tool = [name, config, handler]),
    registerResource: (...all) => (registered.resource = all),
  };
  const handler = () => ({});
  const config = { title: 'T', resourceUri: 'ui://t/v', visibility: ['app'], _meta: { a: 1 } };
  registerAppTool(server, 't', /** @type {any} */ (config), handler);
  assert.deepEqual(registered.tool, [
    't',
    {
      title: 'T',
      _meta: {
        a: 1,
        ui: { resourceUri: 'ui://t/v', visibility: ['app'] },
        'ui/resourceUri': 'ui://t/v',
      },
    },
    handler,
  ]);
  const csp = { connectDomains: ['https://a.example'] };
  registerAppResource(server, 'v', 'ui://t/v', { description: 'D', html: async () => '<p>', csp });
  const [name, uri, described, read] = registered.resource;
  const mimeType = 'text/html;profile=mcp-app';
  assert.deepEqual(
    [name, uri, described],
    ['v', 'ui://t/v', { description: 'D', mimeType, _meta: { ui: { csp } } }],
  );
  assert.deepEqual(await read(), {
    contents: [{ uri, mimeType, text: '<p>', _meta: { ui: { csp } } }],
  });
  assert.throws(() => registerAppResource(server, 'v', 'https://x', { html: '' }), {
    code: 'INVALID_PARAMS',
  });
});

/** An app as the tools of a view; `hang` works until it is told to stop. */
function tooled() {
  const { port1 } = new MessageChannel();
  let begun;
  const began = new Promise((resolve) => (begun = resolve));
  const hang = (_params, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
      begun();
    });
  const app = { id: 'view.app', name: 'View', version: '1' };
  const exposed = expose(
    { app, capabilities: { hang, echo: (params) => params } },
    { port: port1 },
  );
  const close = () => (exposed.close(), port1.close());
  return { tools: toolsOf(exposed), began, close };
}
const agent = { name: 'agent', version: '1' };

test('a view that goes while its app has not answered leaves no session, and answers the calls that wait', async (t) => {
  const heard = [];
  const silent = {
    capabilities: [],
    limits: {},
    accept: (transport) => {
      transport.onMessage = ({ type }) => heard.push(type);
      transport.onClose = () => heard.push('closed');
    },
  };
  const tools = toolsOf(/** @type {any} */ (silent));
  const { host } = await pair(t, { tools });
  const calling = host.callTool('late');
  await host.request('tools/list');
  // The view begins again.
  tools.open({}, () => {});
  await host.close({ timeout: 0 });
  const { structuredContent } = await calling;
  assert.equal(structuredContent.error.code, 'DISCONNECTED');
  assert.equal(heard.at(-1), 'closed');
});

test('a view that closes itself in the midst of a call has not failed it: nobody knows what it does', async (t) => {
  for (const call of [
    (host) => host.callTool('hang').catch(({ data }) => data),
    async (host) => {
      const client = await connect(() => host.transport(), { agent });
      t.after(() => client.close());
      const { success, error, metadata } = await client.call('hang');
      return { success, code: error.code, outcome: metadata.outcome };
    },
  ]) {
    const { tools, began, close } = tooled();
    t.after(close);
    const { host, view } = await pair(t, { tools });
    const calling = call(host);
    await began;
    view.close();
    const { code = 'DISCONNECTED', success = false, outcome } = await calling;
    assert.deepEqual([success, code, outcome], [false, 'DISCONNECTED', 'unknown']);
  }
});

for (const [how, end, ended] of [
  ['was closed by its host', ({ host }) => host.close(), ['CANCELLED', 'stopped']],
  ['has closed itself', ({ view }) => view.close(), ['DISCONNECTED', 'unknown']],
])
  test(`who reconnects by itself to a view that ${how} gives up with words, and nothing waits for it`, async (t) => {
    const { tools, began, close } = tooled();
    t.after(close);
    const ends = await pair(t, { tools });
    let onReconnect;
    const gaveUp = new Promise((resolve) => (onReconnect = resolve));
    const client = await connect(() => ends.host.transport(), {
      agent,
      reconnect: { delay: 1 },
      onReconnect: onReconnect,
    });
    t.after(() => client.close());
    const hanging = client.call('hang', {}, { retry: true });
    await began;
    const became = client.outcome('nothing', { settled: true });
    await end(ends);
    const { error, metadata } = await hanging;
    assert.deepEqual([error.code, metadata.outcome], ended);
    assert.deepEqual(await became, { outcome: 'unknown' });
    const why = await gaveUp;
    assert.deepEqual([why.code, why.retryable], ['DISCONNECTED', false]);
    assert.match(why.message, /make another/);
    assert.equal((await client.call('echo', {}, { retry: true })).metadata.outcome, 'unstarted');
  });

test('a view that is closed tells first what a call has come to, also where that takes time to be read', async (t) => {
  let release;
  const released = new Promise((resolve) => (release = resolve));
  /** A file on a slow disk. */
  class SlowFile extends Blob {
    async arrayBuffer() {
      await released;
      return super.arrayBuffer();
    }
  }
  const { port1, port2 } = new MessageChannel();
  const own = new MessageChannel().port1;
  const read = () => ({ content: new SlowFile(['kept']), mimeType: 'text/plain' });
  const app = { id: 'view.app', name: 'View', version: '1' };
  const exposed = expose({ app, capabilities: { read } }, { port: own });
  // A host of others: what takes time is to write bytes as text for it.
  const host = createPeer(portChannel(port1), { dialect: 'mcp' });
  host.handle('ui/initialize', () => ({
    protocolVersion: '2026-01-26',
    hostInfo: { name: 'host', version: '1' },
    hostCapabilities: {},
    hostContext: {},
  }));
  let closing;
  const teardown = new Promise((resolve) => (closing = resolve));
  const view = await createView({
    app: APP,
    transport: portChannel(port2),
    tools: toolsOf(exposed),
    onTeardown: closing,
  });
  t.after(() => {
    view.close();
    host.close();
    exposed.close();
    own.close();
  });
  const answered = [];
  const ask = (method, params) => host.request(method, params).then(() => answered.push(method));
  const asked = [
    ask('tools/call', { name: 'read', arguments: {} }),
    ask('ui/resource-teardown', {}),
  ];
  await teardown;
  for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
  release();
  await Promise.all(asked);
  assert.deepEqual(answered, ['tools/call', 'ui/resource-teardown']);
});
