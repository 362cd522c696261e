/**
 * Real SDKs on our transports, by our adapters, in one form: `open(role, transport, handle)` makes
 * a client or a server of it, which calls the other side by `call(name, params, signal)` and serves
 * it by `handle(name, params, signal)`. They run in Node and, bundled, in pages.
 */
import { agent, client as acpClient } from '@agentclientprotocol/sdk';
import { Client as Client2 } from '@modelcontextprotocol/client';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { Server as Server1 } from '@modelcontextprotocol/sdk/server/index.js';
import { Server as Server2 } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { acpStream } from '../../src/adapters/acp.js';
import { mcpTransport } from '../../src/adapters/mcp.js';

const info = { name: 'test', version: '1' };
const Call = z.object({
  method: z.literal('test/call'),
  params: z.looseObject({ name: z.string(), params: z.any() }),
});
const Result = z.looseObject({});

async function mcp1(role, transport, handle) {
  const side =
    role === 'client' ? new Client1(info) : new Server1(info, { capabilities: { tools: {} } });
  side.setRequestHandler(Call, async ({ params: { name, params } }, { signal }) => ({
    value: await handle(name, params, signal),
  }));
  const errors = [];
  side.onerror = (error) => errors.push(error.message);
  await side.connect(mcpTransport(transport));
  return {
    errors,
    call: async (name, params, signal) =>
      (await side.request({ method: 'test/call', params: { name, params } }, Result, { signal }))
        .value,
    close: () => side.close(),
  };
}

async function mcp2(role, transport, handle) {
  const errors = [];
  const side =
    role === 'client' ? new Client2(info) : new Server2(info, { capabilities: { tools: {} } });
  side.onerror = (error) => errors.push(error.message);
  if (role === 'server') {
    side.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => ({
      content: [],
      structuredContent: {
        value: await handle(params.name, params.arguments.params, mcpReq.signal),
      },
    }));
  }
  await side.connect(mcpTransport(transport));
  return {
    errors,
    call: async (name, params, signal) => {
      const request = { method: 'tools/call', params: { name, arguments: { params } } };
      return (await side.request(request, { signal })).structuredContent.value;
    },
    close: () => side.close(),
  };
}

async function acp(role, transport, handle) {
  const app = role === 'client' ? acpClient(info) : agent(info);
  app.onRequest(
    '_call',
    (params) => params,
    async ({ params: { name, params }, signal }) => ({ value: await handle(name, params, signal) }),
  );
  if (role === 'server') {
    app.onRequest('initialize', () => ({ protocolVersion: 1, agentCapabilities: {} }));
  }
  const connection = app.connect(acpStream(transport));
  const peer = connection.agent ?? connection.client;
  if (role === 'client') await peer.request('initialize', { protocolVersion: 1 });
  return {
    errors: [],
    call: async (name, params, signal) =>
      (await peer.request('_call', { name, params }, { cancellationSignal: signal })).value,
    close: () => connection.close(),
  };
}

/** Whether the server calls the client, too. */
export const SDKS = {
  'MCP SDK 1.x': { open: mcp1, both: true },
  'MCP SDK 2.x': { open: mcp2, both: false },
  'ACP SDK': { open: acp, both: true },
};

/** What a side serves in the tests. `log` hears of handlers that start and of signals that fire. */
export const handlers = (log) => (name, params, signal) => {
  switch (name) {
    case 'echo':
      return params;
    case 'hang':
      log('started');
      return new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => {
          log('aborted');
          reject(Object.assign(new Error('stopped'), { name: 'AbortError' }));
        }),
      );
    case 'unsendable':
      return { f() {} };
    default:
      throw new Error(`no ${name} here`);
  }
};
