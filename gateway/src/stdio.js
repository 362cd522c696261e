/** MCP over stdin and stdout. Whoever reads stdout expects messages, so nothing else is written there. */
import { StdioServerTransport, serveStdio as serve } from '@modelcontextprotocol/server/stdio';
import { log } from './options.js';
import { createServer } from './mcp-server.js';
import { lineOf } from './texts.js';

/**
 * @param {import('./gateway.js').Gateway} gateway
 * @returns {{ ended: Promise<string>, close: () => Promise<void> }} `ended` resolves when the client is gone
 */
export function serveStdio(gateway) {
  console.log = console.info = console.debug = console.error;
  /** @type {import('@modelcontextprotocol/server').Server | undefined} */
  let server;
  gateway.listeners.add(() => void server?.sendToolListChanged().catch(() => {}));
  const transport = new StdioServerTransport();
  const ended = new Promise((resolve) => {
    const gone = () => resolve('the client is gone');
    process.stdin.once('end', gone);
    process.stdin.once('close', gone);
    process.stdout.once('error', gone);
  });
  const served = serve(({ era }) => (server = createServer(gateway, era)), {
    transport,
    onerror: (error) => log(lineOf(error.message)),
  });
  return { ended, close: () => served.close() };
}
