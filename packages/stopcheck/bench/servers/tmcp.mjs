/** tmcp: a tool's signal is `server.ctx.signal`, where the transport has one. A port: HTTP. */
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRequestListener } from '@remix-run/node-fetch-server';
import { ZodJsonSchemaAdapter } from '@tmcp/adapter-zod';
import { HttpTransport } from '@tmcp/transport-http';
import { StdioTransport } from '@tmcp/transport-stdio';
import { McpServer } from 'tmcp';
import { z } from 'zod';

const options = { adapter: new ZodJsonSchemaAdapter(), capabilities: { tools: {} } };
const server = new McpServer({ name: 'slow', version: '1', description: 'slow' }, options);
const schema = z.object({ url: z.string(), steps: z.number() });
server.tool({ name: 'slow', description: 'fetches url', schema }, async ({ url, steps }) => {
  const { signal } = server.ctx;
  for (let done = 1; done <= steps; done++) {
    await (await fetch(url, { signal })).text();
    await sleep(250, undefined, { signal });
    server.progress(done, steps);
  }
  return { content: [{ type: 'text', text: 'done' }] };
});
const port = Number(process.argv[2]);
if (port) {
  const http = new HttpTransport(server, { path: '/mcp' });
  const answer = async (request) =>
    (await http.respond(request)) ?? new Response('', { status: 404 });
  createServer(createRequestListener(answer)).listen(port, '127.0.0.1');
} else new StdioTransport(server).listen();
