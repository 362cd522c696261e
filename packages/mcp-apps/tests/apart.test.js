// A view and its host without a browser, over a transport that is given to both; and the helpers of a server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connect, expose } from '../../../js/index.js';
import { portChannel } from '../../rpc/src/channels.js';
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
  const told = new Promise((resolve) => view.on('onToolResult', resolve));
  host.toolInputPartial({ q: 'w' });
  host.toolInput({ q: 'whole' });
  host.toolInputPartial({ q: 'who' });
  host.toolResult({ content: [] });
  await told;
  assert.deepEqual(heard, [{ q: 'w' }, { q: 'whole' }]);
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
