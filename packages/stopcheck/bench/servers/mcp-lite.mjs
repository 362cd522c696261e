/** mcp-lite: its documentation and types name no signal for a tool. HTTP. */
import { setTimeout as sleep } from 'node:timers/promises';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { InMemorySessionAdapter, McpServer, StreamableHttpTransport } from 'mcp-lite';
import { z } from 'zod';

const schemaAdapter = (schema) => z.toJSONSchema(schema);
const mcp = new McpServer({ name: 'slow', version: '1.0.0', schemaAdapter });
mcp.tool('slow', {
  inputSchema: z.object({ url: z.string(), steps: z.number() }),
  async handler({ url, steps }, ctx) {
    for (let progress = 1; progress <= steps; progress++) {
      await (await fetch(url)).text();
      await sleep(250);
      await ctx.progress?.({ progress, total: steps });
    }
    return { content: [{ type: 'text', text: 'done' }] };
  },
});
const sessionAdapter = new InMemorySessionAdapter({ maxEventBufferSize: 1024 });
const answer = new StreamableHttpTransport({ sessionAdapter }).bind(mcp);
const app = new Hono();
app.all('/mcp', ({ req }) => answer(req.raw));
serve({ fetch: app.fetch, port: Number(process.argv[2]), hostname: '127.0.0.1' });
