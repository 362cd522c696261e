/** @modelcontextprotocol/sdk 1.x: a tool has `extra.signal`. A port: HTTP, with sessions. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createMcpExpressApp } from '@modelcontextprotocol/sdk/server/express.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

function serverOf() {
  const server = new McpServer({ name: 'slow', version: '1' });
  const inputSchema = { url: z.string(), steps: z.number() };
  server.registerTool('slow', { inputSchema }, async ({ url, steps }, extra) => {
    const { signal, sendNotification, _meta: { progressToken } = {} } = extra;
    for (let progress = 1; progress <= steps; progress++) {
      await (await fetch(url, { signal })).text();
      await sleep(250, undefined, { signal });
      const params = { progressToken, progress, total: steps };
      if (progressToken !== undefined)
        await sendNotification({ method: 'notifications/progress', params });
    }
    return { content: [{ type: 'text', text: 'done' }] };
  });
  return server;
}
const port = Number(process.argv[2]);
if (port) {
  const transports = new Map();
  const app = createMcpExpressApp();
  app.all('/mcp', async (req, res) => {
    let transport = transports.get(req.headers['mcp-session-id']);
    if (!transport) {
      const onsessioninitialized = (id) => void transports.set(id, transport);
      const options = { sessionIdGenerator: randomUUID, onsessioninitialized };
      transport = new StreamableHTTPServerTransport(options);
      await serverOf().connect(transport);
    }
    await transport.handleRequest(req, res, req.body);
  });
  app.listen(port, '127.0.0.1');
} else await serverOf().connect(new StdioServerTransport());
