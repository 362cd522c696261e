/** MCP over stdin and stdout. Whoever reads stdout expects messages, so nothing else is written there. */
import { StdioServerTransport, serveStdio as serve } from '@modelcontextprotocol/server/stdio';
import { log } from './errors.js';
import { createServer } from './mcp-server.js';
import { lineOf } from './texts.js';

/**
 * @param {import('./gateway.js').Gateway} gateway
 * @returns {{ ended: Promise<string>, close: () => Promise<void> }} `ended` resolves once the client has disconnected
 */
export function serveStdio(gateway) {
  console.log = console.info = console.debug = console.error;
  /** @type {import('@modelcontextprotocol/server').Server | undefined} */
  let server;
  // There is one client.
  const owner = {};
  gateway.listeners.add(() => void server?.sendToolListChanged().catch(() => {}));
  const transport = new StdioServerTransport();
  const served = serve(({ era }) => (server = createServer(gateway, era, { owner })), {
    transport,
    onerror: (error) => log(lineOf(error.message)),
  });
  // It is closed when a pipe is, and when the client sends more than it takes at once.
  const { onclose } = transport;
  const ended = new Promise((resolve) => {
    transport.onclose = () => {
      onclose?.();
      resolve('the client disconnected');
    };
  });
  return { ended, close: () => served.close() };
}
