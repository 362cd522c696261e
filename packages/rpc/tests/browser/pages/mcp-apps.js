// Hosts and views of ext-apps, in one form: on their channel and on ours.
import { App, PostMessageTransport } from '@modelcontextprotocol/ext-apps';
import { AppBridge } from '@modelcontextprotocol/ext-apps/app-bridge';
import { handlers } from '../../support/sdks.js';
import { note } from './common.js';

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

export const HOSTS = {
  'their AppBridge': ({ iframe: { contentWindow } }) =>
    bridge(new PostMessageTransport(contentWindow, contentWindow)),
  'their AppBridge on our channel': ({ channel, mcpTransport }) => bridge(mcpTransport(channel())),
};

export const VIEWS = {
  'their App': () => app(new PostMessageTransport(parent, parent)),
  'their App on our channel': ({ channel, mcpTransport }) => app(mcpTransport(channel())),
};
