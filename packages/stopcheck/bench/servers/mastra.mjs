/**
 * @mastra/core: a tool's signal is `context.abortSignal`. Arguments: the ports of it, and of a
 * model.
 */
import { serve } from '@hono/node-server';
import { Mastra } from '@mastra/core';
import { Agent } from '@mastra/core/agent';
import { createTool } from '@mastra/core/tools';
import { MastraServer } from '@mastra/hono';
import { InMemoryTaskStore } from '@mastra/server/a2a/store';
import { Hono } from 'hono';
import { z } from 'zod';

const [port, modelPort] = process.argv.slice(2).map(Number);
const webfetch = createTool({
  id: 'webfetch',
  description: 'fetches url 8 times',
  inputSchema: z.object({ url: z.string() }),
  async execute({ url }, { abortSignal: signal }) {
    for (let done = 0; done < 8; done++) {
      signal?.throwIfAborted();
      await (await fetch(url, { signal })).text();
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    return { done: true };
  },
});
const model = { id: 'fake/fake', url: `http://127.0.0.1:${modelPort}/v1`, apiKey: 'none' };
const given = { id: 'slow', name: 'slow', instructions: 'x' };
const mastra = new Mastra({
  agents: { slow: new Agent({ ...given, tools: { webfetch }, model }) },
  logger: false,
});
const app = new Hono();
await new MastraServer({ app, mastra, taskStore: new InMemoryTaskStore() }).init();
// Clients look for the card at the root of the host.
const card = '/api/.well-known/slow/agent-card.json';
app.get('/.well-known/agent-card.json', (c) => c.redirect(card));
serve({ fetch: app.fetch, port, hostname: '127.0.0.1' });
