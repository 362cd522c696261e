/**
 * JSON-RPC peers against the SDKs of ACP, LSP and MCP, each pair over the same kind of transport in
 * one process: the SDK's own streams, ports or in-memory transport. Ratios of adjacent runs, ours
 * to theirs; less is better.
 *
 *   npm run bench:rpc
 */
import { agent, client } from '@agentclientprotocol/sdk';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { CallToolRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { PortMessageReader, PortMessageWriter, createMessageConnection } from 'vscode-jsonrpc/node';
import { createPeer } from '../src/index.js';
import { portTransport } from 'abp-bridge/driver';

const ROUNDS = 9;
const as = (params) => params;

/** Object streams, as the ACP SDK has them, both ways. */
function streams() {
  const [there, back] = [new TransformStream(), new TransformStream()];
  return [
    { readable: back.readable, writable: there.writable },
    { readable: there.readable, writable: back.writable },
  ];
}

function streamTransport({ readable, writable }) {
  const writer = writable.getWriter();
  const reader = readable.getReader();
  const transport = {
    post: (message) => void writer.write(message),
    onMessage() {},
    close: () => void writer.close().catch(() => {}),
  };
  const read = async () => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      transport.onMessage(next.value, []);
    }
  };
  queueMicrotask(read);
  return transport;
}

function linkedTransport(linked) {
  const transport = {
    post: (message) => void linked.send(message),
    onMessage() {},
    close: () => void linked.close(),
  };
  linked.onmessage = (message) => transport.onMessage(message, []);
  return transport;
}

/** Two of our peers; the function calls one from the other. */
function ours(dialect, a, b, method) {
  const caller = createPeer(a, { dialect });
  const callee = createPeer(b, { dialect });
  callee.handle(method, as);
  const close = () => [caller, callee].forEach((peer) => peer.close());
  return { call: (params) => caller.request(method, params), close };
}

const PAIRS = {
  async acp() {
    const [left, right] = streams();
    const callee = agent()
      .onRequest('initialize', () => ({ protocolVersion: 1, agentCapabilities: {} }))
      .onRequest('echo', as, ({ params }) => params)
      .connect(right);
    const caller = client().connect(left);
    await caller.agent.request('initialize', { protocolVersion: 1, clientCapabilities: {} });
    return {
      ours: ours('acp', ...streams().map(streamTransport), 'echo'),
      theirs: {
        call: (params) => caller.agent.request('echo', params),
        close: () => [caller, callee].forEach((end) => end.close()),
      },
    };
  },
  async lsp() {
    const [a, b] = [new MessageChannel(), new MessageChannel()];
    const [caller, callee] = [a.port1, a.port2].map((port) => {
      const end = createMessageConnection(new PortMessageReader(port), new PortMessageWriter(port));
      return end;
    });
    callee.onRequest('echo', as);
    caller.listen();
    callee.listen();
    return {
      ours: ours('lsp', portTransport(b.port1), portTransport(b.port2), 'echo'),
      theirs: {
        call: (params) => caller.sendRequest('echo', params),
        close() {
          caller.dispose();
          callee.dispose();
          a.port1.close();
        },
      },
    };
  },
  async mcp() {
    const [left, right] = InMemoryTransport.createLinkedPair();
    const server = new Server({ name: 'b', version: '1' }, { capabilities: { tools: {} } });
    server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
      content: [],
      structuredContent: params.arguments,
    }));
    await server.connect(right);
    const caller = new Client({ name: 'a', version: '1' });
    await caller.connect(left);
    const params = (value) => ({ name: 'echo', arguments: value });
    const own = ours(
      'mcp',
      ...InMemoryTransport.createLinkedPair().map(linkedTransport),
      'tools/call',
    );
    return {
      ours: { ...own, call: (value) => own.call(params(value)) },
      theirs: { call: (value) => caller.callTool(params(value)), close: () => caller.close() },
    };
  },
};

/** ms for a number of calls, one after the other. */
async function oneAtATime({ call }, count) {
  const began = performance.now();
  for (let i = 0; i < count; i++) await call({ i });
  return performance.now() - began;
}

/** ms for a number of calls at once. */
async function inFlight({ call }, count) {
  const began = performance.now();
  await Promise.all(Array.from({ length: count }, (_, i) => call({ i })));
  return performance.now() - began;
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];

console.log('ours / theirs           one at a time      1,000 in flight');
for (const [dialect, open] of Object.entries(PAIRS)) {
  const pair = await open();
  const row = [];
  for (const measure of [oneAtATime, inFlight]) {
    const ratios = [];
    // The first rounds warm both up.
    for (let round = -2; round < ROUNDS; round++) {
      const [mine, other] = [await measure(pair.ours, 1000), await measure(pair.theirs, 1000)];
      if (round >= 0) ratios.push(mine / other);
    }
    const [low, high] = [Math.min(...ratios), Math.max(...ratios)].map((n) => n.toFixed(2));
    row.push(`${median(ratios).toFixed(2)} (${low} to ${high})`.padEnd(19));
  }
  console.log(`${dialect.padEnd(24)}${row.join('')}`);
  pair.ours.close();
  pair.theirs.close();
}
