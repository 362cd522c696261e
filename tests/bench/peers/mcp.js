import { Client } from '@modelcontextprotocol/client';
import { Server } from '@modelcontextprotocol/server';

const info = { name: 'bench', version: '1' };
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
const YEAR = { timeout: 2 ** 31 - 1 };

export async function host({ port }) {
  const client = new Client(info);
  await client.connect(transport(port));
  const call = (name, params, options) =>
    client.request(
      { method: 'tools/call', params: { name, arguments: params } },
      { ...YEAR, ...options },
    );
  return {
    echo: async (params) => (await call('echo', params)).structuredContent,
    wait: (signal) => call('wait', {}, { signal }).catch((error) => error),
    pend: () => void call('wait', {}).catch(() => {}),
    close: () => client.close(),
  };
}
export function app({ port }, { echo, wait }) {
  const server = new Server(info, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
    if (params.name === 'wait') await wait(mcpReq.signal);
    return { content: [], structuredContent: echo(params.arguments) };
  });
  void server.connect(transport(port));
}
