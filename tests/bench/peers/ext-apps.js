import { App, PostMessageTransport } from '@modelcontextprotocol/ext-apps';
import { AppBridge } from '@modelcontextprotocol/ext-apps/app-bridge';

const info = { name: 'bench', version: '1' };
const YEAR = { timeout: 2 ** 31 - 1 };
// It reports every message to the console, which is no part of the work.
console.debug = () => {};

export async function host({ iframe }) {
  const bridge = new AppBridge(null, info, {});
  const ready = new Promise((resolve) => (bridge.oninitialized = resolve));
  await bridge.connect(new PostMessageTransport(iframe.contentWindow, iframe.contentWindow));
  iframe.contentWindow.postMessage({ setUp: 'connect' }, '*');
  await ready;
  const call = (name, params, options) =>
    bridge.callTool({ name, arguments: params }, { ...YEAR, ...options });
  return {
    echo: (params) => call('echo', params),
    size: (bytes) => call('size', { bytes }),
    wait: (signal) => call('wait', {}, { signal }).catch((error) => error),
    pend: (params) => void call('pend', params).catch(() => {}),
    close: () => bridge.close(),
    value: ({ structuredContent }) => structuredContent.size ?? structuredContent,
  };
}

export function app(_way, { echo, size, wait, pend }) {
  const server = new App(info, { tools: {} }, { autoResize: false });
  const tools = {
    echo,
    size: async ({ bytes }) => ({ size: await size(bytes) }),
    wait: async (_params, signal) => ({ said: await wait(signal) }),
    pend,
  };
  server.oncalltool = async ({ name, arguments: params }, { mcpReq }) => ({
    content: [],
    structuredContent: await tools[name](params, mcpReq.signal),
  });
  addEventListener('message', ({ data }) => {
    if (data?.setUp === 'connect') void server.connect(new PostMessageTransport(parent, parent));
  });
}
