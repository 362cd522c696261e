/** @modelcontextprotocol/server 2.x: a tool's signal is `ctx.mcpReq.signal`. A port: HTTP. */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

function serverOf() {
  const server = new McpServer({ name: 'slow', version: '1' });
  const inputSchema = z.object({ url: z.string(), steps: z.number() });
  server.registerTool('slow', { inputSchema }, async ({ url, steps }, { mcpReq }) => {
    const { signal, notify, _meta: { progressToken } = {} } = mcpReq;
    for (let progress = 1; progress <= steps; progress++) {
      await (await fetch(url, { signal })).text();
      await sleep(250, undefined, { signal });
      const params = { progressToken, progress, total: steps };
      if (progressToken !== undefined) await notify({ method: 'notifications/progress', params });
    }
    return { content: [{ type: 'text', text: 'done' }] };
  });
  return server;
}
const port = Number(process.argv[2]);
if (port) createServer(toNodeHandler(createMcpHandler(serverOf))).listen(port, '127.0.0.1');
else serveStdio(serverOf);
