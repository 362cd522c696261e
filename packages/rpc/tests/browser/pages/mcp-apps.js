// Hosts and views of MCP Apps, in one form: theirs, ours, and theirs on our channel.
import { App, PostMessageTransport } from '@modelcontextprotocol/ext-apps';
import { AppBridge } from '@modelcontextprotocol/ext-apps/app-bridge';
import { createPeer } from '../../../src/index.js';
import { handlers } from '../../support/sdks.js';
import { note } from './common.js';

const VERSION = '2026-01-26';
const info = (name) => ({ name, version: '1' });
const serve = handlers(note);
/** A tool's result, and back. */
const result = async (value) => ({ content: [], structuredContent: { value: await value } });
const valueOf = ({ structuredContent }) => structuredContent.value;
const tool = (name, params) => ({ name, arguments: { params } });
const say = (what) => (params) => note(`${what} ${JSON.stringify(params)}`);
/** What their callbacks get, besides the params. */
const byTheirs = ({ name, arguments: { params } }, { mcpReq }) =>
  result(serve(name, params, mcpReq.signal));
const byOurs = ({ name, arguments: { params } }, { signal }) => result(serve(name, params, signal));

async function bridge(transport) {
  const host = new AppBridge(null, info('host'), { serverTools: {} });
  host.oncalltool = byTheirs;
  host.onerror = (error) => note(`error ${error.message}`);
  const initialized = new Promise((resolve) => (host.oninitialized = resolve));
  await host.connect(transport);
  await initialized;
  return {
    input: (args) => host.sendToolInput({ arguments: args }),
    result: (value) => result(value).then((r) => host.sendToolResult(r)),
    cancelled: (reason) => host.sendToolCancelled({ reason }),
    teardown: () => host.teardownResource({}),
    call: async (name, params, signal) =>
      valueOf(await host.callTool(tool(name, params), { signal })),
    close: () => host.close(),
  };
}

async function app(transport) {
  const view = new App(info('view'), { tools: {} }, { autoResize: false });
  view.ontoolinput = say('input');
  view.ontoolresult = (r) => say('result')(valueOf(r));
  view.ontoolcancelled = say('cancelled');
  view.onteardown = () => (note('teardown'), {});
  view.oncalltool = byTheirs;
  view.onerror = (error) => note(`error ${error.message}`);
  await view.connect(transport);
  note('initialized');
  return {
    call: async (name, params, signal) =>
      valueOf(await view.callServerTool(tool(name, params), { signal })),
    close: () => view.close(),
  };
}

const callBy = (peer) => async (name, params, signal) =>
  valueOf(await peer.request('tools/call', tool(name, params), { signal }));

export const HOSTS = {
  'their AppBridge': ({ iframe: { contentWindow } }) =>
    bridge(new PostMessageTransport(contentWindow, contentWindow)),
  'their AppBridge on our channel': ({ channel, mcpTransport }) => bridge(mcpTransport(channel())),
  async 'our host'({ channel }) {
    const peer = createPeer(channel(), { dialect: 'mcp' });
    peer.handle('ui/initialize', () => ({
      protocolVersion: VERSION,
      hostInfo: info('host'),
      hostCapabilities: { serverTools: {} },
      hostContext: {},
    }));
    peer.handle('tools/call', byOurs);
    await new Promise((resolve) => peer.onNotification('ui/notifications/initialized', resolve));
    return {
      input: (args) => peer.notify('ui/notifications/tool-input', { arguments: args }),
      result: (value) => result(value).then((r) => peer.notify('ui/notifications/tool-result', r)),
      cancelled: (reason) => peer.notify('ui/notifications/tool-cancelled', { reason }),
      teardown: () => peer.request('ui/resource-teardown', {}),
      call: callBy(peer),
      close: () => peer.close(),
    };
  },
};

export const VIEWS = {
  'their App': () => app(new PostMessageTransport(parent, parent)),
  'their App on our channel': ({ channel, mcpTransport }) => app(mcpTransport(channel())),
  async 'our view'({ channel }) {
    const peer = createPeer(channel(), { dialect: 'mcp' });
    const listen = (name, listener) => peer.onNotification(`ui/notifications/${name}`, listener);
    listen('tool-input', say('input'));
    listen('tool-result', (r) => say('result')(valueOf(r)));
    listen('tool-cancelled', say('cancelled'));
    peer.handle('ui/resource-teardown', () => (note('teardown'), {}));
    peer.handle('tools/call', byOurs);
    const { protocolVersion } = await peer.request('ui/initialize', {
      appInfo: info('view'),
      appCapabilities: { tools: {} },
      protocolVersion: VERSION,
    });
    if (protocolVersion !== VERSION) throw new Error(protocolVersion);
    peer.notify('ui/notifications/initialized');
    note('initialized');
    return { call: callBy(peer), close: () => peer.close() };
  },
};
