/**
 * @voltagent/a2a-server: a tool's signal is in its options. Arguments: the ports of it, and of a
 * model.
 */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { A2AServer } from '@voltagent/a2a-server';
import { Agent, VoltAgent, createTool } from '@voltagent/core';
import { honoServer } from '@voltagent/server-hono';
import { z } from 'zod';

const [port, modelPort] = process.argv.slice(2).map(Number);
const webfetch = createTool({
  name: 'webfetch',
  description: 'fetches url 8 times',
  parameters: z.object({ url: z.string() }),
  async execute({ url }, { toolContext, abortController }) {
    const signal = toolContext?.abortSignal ?? abortController?.signal;
    for (let done = 0; done < 8; done++) {
      signal?.throwIfAborted();
      await (await fetch(url, { signal })).text();
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    return 'done';
  },
});
const baseURL = `http://127.0.0.1:${modelPort}/v1`;
const model = createOpenAICompatible({ name: 'fake', baseURL, apiKey: 'none' })('fake');
const given = { name: 'slow', id: 'slow', instructions: 'x', memory: false };
const slow = new Agent({ ...given, model, tools: [webfetch] });
// Clients look for the card at the root of the host.
const configureApp = (app) =>
  app.get('/.well-known/agent-card.json', (c) => c.redirect('/.well-known/slow/agent-card.json'));
const server = honoServer({ port, hostname: '127.0.0.1', configureApp });
const a2aServers = { slow: new A2AServer({ name: 'slow', version: '1.0.0' }) };
new VoltAgent({ agents: { slow }, a2aServers, server });
