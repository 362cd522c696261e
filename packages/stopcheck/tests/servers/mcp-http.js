/**
 * An MCP server over streamable HTTP, by the SDK 2.x, of both revisions: in 2026-07-28 the end of a
 * stream is the stop. It prints its address. It is `honest`, or `deaf`.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Readable, pipeline } from 'node:stream';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { work } from './work.js';

const isDeaf = process.argv[2] === 'deaf';

function serverOf() {
  const server = new McpServer({ name: 'slow', version: '1' });
  const inputSchema = z.looseObject({});
  server.registerTool('slow', { description: 'works', inputSchema }, async (args, { mcpReq }) => {
    const never = new AbortController();
    await work(args, isDeaf ? never.signal : mcpReq.signal);
    return { content: [{ type: 'text', text: 'done' }] };
  });
  return server;
}

const handler = createMcpHandler(serverOf);
const server = createServer(async (incoming, outgoing) => {
  const stop = new AbortController();
  outgoing.once('close', () => stop.abort());
  const { method, headers } = incoming;
  const isPost = method === 'POST';
  const response = await handler.fetch(
    new Request(`${address}/mcp`, {
      method,
      headers,
      signal: stop.signal,
      ...(isPost && { body: Readable.toWeb(incoming), duplex: 'half' }),
    }),
  );
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body) pipeline(Readable.fromWeb(response.body), outgoing, () => {});
  else outgoing.end();
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const address = `http://127.0.0.1:${server.address().port}`;
console.log(`${address}/mcp`);
