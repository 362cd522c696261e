/** mcp-framework: a tool's signal is `this.abortSignal`. A port: HTTP. Tools are in dist/tools. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { MCPServer } from 'mcp-framework';

const tool = `import { setTimeout as sleep } from 'node:timers/promises';
import { MCPTool } from 'mcp-framework';
import { z } from 'zod';
export default class Slow extends MCPTool {
  name = 'slow';
  description = 'fetches url, steps times';
  schema = z.object({ url: z.string().describe('url'), steps: z.number().describe('steps') });
  async execute({ url, steps }) {
    const signal = this.abortSignal;
    for (let done = 1; done <= steps; done++) {
      await (await fetch(url, { signal })).text();
      await sleep(250, undefined, { signal });
      await this.reportProgress(done, steps);
    }
    return 'done';
  }
}`;
mkdirSync('dist/tools', { recursive: true });
writeFileSync('dist/tools/slow.js', tool);
const port = Number(process.argv[2]);
const http = { type: 'http-stream', options: { port, endpoint: '/mcp' } };
const given = { name: 'slow', version: '1.0.0', basePath: `${process.cwd()}/dist` };
await new MCPServer({ ...given, transport: port ? http : { type: 'stdio' } }).start();
