/**
 * An MCP server. The work of its tool `slow` is requests to a URL, or lines in a file; of `shell`
 * a process; of `read` the answer to a request. The first argument is its temper:
 *
 * - `honest` stops, and says nothing, as MCP has it
 * - `deaf` works on
 * - `liar` answers that it was stopped, and works on
 * - `boaster` stops, and answers that it has finished
 * - `killer` ends its other calls, too
 * - `doubler` does its work once more when it is stopped
 * - `quitter` ends the session
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { effect, hear, holdOf, work } from './work.js';

const temper = process.argv[2] ?? 'honest';
const server = new Server({ name: 'slow', version: '1' }, { capabilities: { tools: {} } });
/** @type {Set<AbortController>} */
const running = new Set();

/** The tools, by name. @type {Record<string, (...given: any[]) => Promise<unknown>>} */
const TOOLS = {
  slow: work,
  async shell({ command }, signal) {
    const held = holdOf();
    const stdio = ['pipe', 'ignore', 'ignore'];
    const child = spawn('bash', ['-c', `read; ${command}`], { detached: true, stdio });
    signal.addEventListener('abort', () => process.kill(-child.pid));
    const exit = once(child, 'close');
    child.stdin.on('error', () => {});
    void held().then(() => child.stdin.end('\n'));
    const [code] = await exit;
    if (code !== 0) throw new Error('stopped');
  },
  read: async ({ url }, signal) => (await fetch(url, { signal })).text(),
};

server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: Object.keys(TOOLS).map((name) => ({ name, inputSchema: { type: 'object' } })),
}));

server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
  const { signal, requestId, _meta: meta, sendNotification } = extra;
  const stop = new AbortController();
  running.add(stop);
  const answer = (result) => server.transport.send({ jsonrpc: '2.0', id: requestId, result });
  const said = (text) => ({ content: [{ type: 'text', text }], isError: text !== 'done' });
  const onStop = () => {
    hear();
    if (temper === 'deaf') return;
    if (temper === 'quitter') process.exit();
    if (temper === 'liar') return void answer(said('the call was cancelled'));
    if (temper === 'boaster') void answer(said('done'));
    if (temper === 'killer') for (const each of running) each.abort();
    stop.abort();
  };
  // A stop that has overtaken its call may be there already.
  if (signal.aborted) onStop();
  else signal.addEventListener('abort', onStop);
  const onStep = async (progress, total) => {
    if (params.arguments.asks && progress === 3) {
      const question = { message: 'Go on?', requestedSchema: { type: 'object', properties: {} } };
      const request = { method: 'elicitation/create', params: question };
      await extra.sendRequest(request, z.any(), { signal });
    }
    const progressToken = meta?.progressToken;
    if (progressToken === undefined) return;
    await sendNotification({
      method: 'notifications/progress',
      params: { progressToken, progress, total },
    });
  };
  try {
    await TOOLS[params.name](params.arguments, stop.signal, onStep);
    return said('done');
  } catch {
    if (temper === 'doubler') for (let i = 0; i < 10; i++) await effect(params.arguments);
    return said('stopped');
  } finally {
    running.delete(stop);
  }
});

// The SDK's transport does not notice that its client has gone.
process.stdin.on('end', () => process.exit());
await server.connect(new StdioServerTransport());
