/** mcp-use: a tool's signal is `ctx.signal`. HTTP. */
import { setTimeout as sleep } from 'node:timers/promises';
import { MCPServer } from 'mcp-use';
import { z } from 'zod';

const server = new MCPServer({ name: 'slow', title: 'slow', version: '1.0.0' });
const inputSchema = z.object({ url: z.string(), steps: z.number() });
const slow = { name: 'slow', description: 'fetches url, steps times', inputSchema };
server.tool(slow, async ({ url, steps }, { signal }) => {
  for (let done = 1; done <= steps; done++) {
    await (await fetch(url, { signal })).text();
    await sleep(250, undefined, { signal });
  }
  return { content: [{ type: 'text', text: 'done' }] };
});
await server.listen(Number(process.argv[2]));
