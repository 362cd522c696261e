import { Client } from '@modelcontextprotocol/client';
import { Server } from '@modelcontextprotocol/server';

const info = { name: 'bench', version: '1' };
const YEAR = { timeout: 2 ** 31 - 1 };
/** The SDK brings no transport for ports: this is the least that its interface asks for. */
const transport = (port) => ({
  async start() {
    port.onmessage = ({ data }) => this.onmessage?.(data);
  },
  send: async (message) => port.postMessage(message),
  async close() {
    port.close();
    this.onclose?.();
  },
});

export async function host({ port }) {
  const client = new Client(info);
  await client.connect(transport(port));
  const call = (name, params, options) =>
    client.request(
      { method: 'tools/call', params: { name, arguments: params } },
      { ...YEAR, ...options },
    );
  return {
    echo: (params) => call('echo', params),
    size: (bytes) => call('size', { bytes }),
    wait: (signal) => call('wait', {}, { signal }).catch((error) => error),
    pend: (params) => void call('pend', params).catch(() => {}),
    close: () => client.close(),
    value: ({ structuredContent }) => structuredContent.size ?? structuredContent,
  };
}

export function app({ port }, { echo, size, wait, pend }) {
  const server = new Server(info, { capabilities: { tools: {} } });
  const tools = {
    echo,
    size: async ({ bytes }) => ({ size: await size(bytes) }),
    wait: async (_params, signal) => ({ said: await wait(signal) }),
    pend,
  };
  server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => ({
    content: [],
    structuredContent: await tools[params.name](params.arguments, mcpReq.signal),
  }));
  void server.connect(transport(port));
}
