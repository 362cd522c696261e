/** fastmcp: a tool's signal is `context.signal` ("Cancelling Long Tool Calls"). A port: HTTP. */
import { setTimeout as sleep } from 'node:timers/promises';
import { FastMCP } from 'fastmcp';
import { z } from 'zod';

const server = new FastMCP({ name: 'slow', version: '1.0.0' });
server.addTool({
  name: 'slow',
  description: 'fetches url, steps times',
  parameters: z.object({ url: z.string(), steps: z.number() }),
  async execute({ url, steps }, { signal, reportProgress }) {
    for (let progress = 1; progress <= steps; progress++) {
      await (await fetch(url, { signal })).text();
      await sleep(250, undefined, { signal });
      await reportProgress({ progress, total: steps });
    }
    return 'done';
  },
});
const port = Number(process.argv[2]);
const httpStream = { port, host: '127.0.0.1' };
await server.start(port ? { transportType: 'httpStream', httpStream } : { transportType: 'stdio' });
