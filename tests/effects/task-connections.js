/** The ways on which a call is a task: A2A, and the gateway, of which an MCP client is told. */
import { once } from 'node:events';
import { WebSocketServer } from 'ws';
import { expose } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { webSocketTransport } from '../../parts/transports/index.js';
import { createTaskClient } from '../../packages/a2a/src/index.js';
import { serve } from '../../packages/a2a/tests/support/a2a.js';
import { App } from '../../packages/gateway/src/app.js';
import { Gateway } from '../../packages/gateway/src/gateway.js';
import { McpServer } from '../../packages/gateway/src/mcp-server.js';
import { sentenceOf } from '../../packages/gateway/src/outcomes.js';
import { createPeer } from '../../packages/rpc/src/index.js';
import { AGENT, APP, answersBy, onAbort } from './calls.js';
import { streams, turn, withChecks } from './work.js';

/** What clients wait for a task: longer than any agent waits for its executors. */
const LONG = 3_600_000;

/**
 * Executors of A2A, over HTTP, whose connections break: the client opens its streams again.
 * @type {import('./stops.js').Connection}
 */
export const a2a = {
  costs: 5,
  slow: true,
  lacks: ['chunks', 'input', 'questions', 'inner calls', 'checks', 'cancel'],
  async open(handlers, { grace }) {
    const run = ({ message, signal }) => {
      const { name, params } = message.parts[0].data;
      return { name, made: handlers[name](params, { signal }) };
    };
    const execute = (context) => {
      const { name, made } = run(context);
      return streams(name) ? made : made.then(() => {});
    };
    const limits = { grace: LONG, timeout: LONG, outage: LONG, retry: 1 };
    const open = async (execute) => {
      const agent = await serve(execute, { grace });
      const client = createTaskClient(agent.url, { limits });
      await client.card();
      return { agent, client };
    };
    const functions = await open(execute);
    // Until its first chunk is taken, no line of such an executor runs.
    const generators = await open(async function* (context) {
      return yield* run(context).made;
    });
    const both = [functions, generators];
    return {
      async call(name, params, { signal }) {
        const { client } = name === 'async_generator' ? generators : functions;
        const stream = client.subscribe({ parts: [{ data: { name, params } }] }, { signal });
        try {
          for await (const event of stream) void event;
        } catch (error) {
          // Nothing is sent after the signal.
          const outcome = error === signal.reason ? 'unstarted' : 'unknown';
          return { success: false, outcome };
        }
        const { state, message } = stream.task.status;
        const { outcome } = message?.metadata ?? {};
        return { success: state === 'completed', outcome: outcome ?? state };
      },
      pace: () => fetch(new URL('/.well-known/agent-card.json', functions.agent.url)),
      trouble: () => both.forEach(({ agent }) => agent.http.closeAllConnections()),
      async close() {
        for (const { client } of both) client.close();
        for (const { agent } of both) await agent.close();
      },
    };
  },
};

/**
 * What the gateway's program gives its clients of the SDK: an end of a port.
 * @param {MessagePort} port
 */
function serverEnd(port) {
  const end = {
    onmessage: undefined,
    onclose: undefined,
    start: async () => {
      port.onmessage = ({ data }) => end.onmessage(data);
    },
    send: async (message) => port.postMessage(message),
    close: async () => {
      port.close();
      end.onclose?.();
    },
  };
  return end;
}

/**
 * What the result of a tool tells, and whether it says in its sentence what it says in its word.
 */
function outcomeOfResult({ isError, content, _meta }) {
  if (!isError) return { success: true };
  const { outcome, report } = _meta['abp-bridge/outcome'] ?? { outcome: 'failed' };
  // A stage of the work is in the sentence alone.
  const text = content[0].text.replace(/ \([^()]*\)/g, '');
  const sentence = sentenceOf({ outcome, report });
  return {
    success: false,
    outcome: text.includes(sentence) ? outcome : `${outcome}, in other words: ${text}`,
    report,
  };
}

/**
 * An app behind a socket, of which a client of MCP is told.
 * @param {number} patience of the gateway, in ms
 * @param {(client: any, tool: string, params: object, signal: AbortSignal) => Promise<any>} use
 *   calls a tool, and resolves with its result
 * @returns {import('./stops.js').Connection}
 */
const gateway = (patience, use) => ({
  costs: 5,
  slow: true,
  reports: true,
  untimed: true,
  // What its program gives an app, as every agent of this library does.
  callerGrace: 5000,
  lacks: ['chunks', 'input', 'cancel'],
  troubles: ['the line is cut', 'the app closes'],
  async open(handlers, { grace, room, caller, trouble }) {
    const exposed = expose(
      { app: APP, capabilities: withChecks(handlers) },
      { limits: { grace, maxConcurrent: room }, origins: [] },
    );
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
    server.on('connection', (socket) => exposed.accept(webSocketTransport(socket)));
    await once(server, 'listening');
    const url = `ws://127.0.0.1:${server.address().port}/`;
    const target = { app: new App(url, {}, AGENT), prefix: '' };
    const gateway = new Gateway([target], { ...AGENT, patience, log() {} });
    const { port1, port2 } = new MessageChannel();
    await new McpServer(gateway, 'legacy', { owner: 'session' }).connect(serverEnd(port2));
    const client = createPeer(portTransport(port1), { dialect: 'mcp', limits: { grace: LONG } });
    const capabilities = { elicitation: {} };
    const hello = { protocolVersion: '2025-11-25', clientInfo: AGENT, capabilities };
    await client.request('initialize', hello);
    client.notify('notifications/initialized');
    const answer = answersBy(caller);
    client.handle('elicitation/create', async ({ message }) => ({
      action: 'accept',
      content: await answer(message),
    }));
    // Until then there are no names of tools.
    await client.request('tools/list', {});
    return {
      call: async (name, params, { signal }) =>
        outcomeOfResult(await use(client, name, params, signal)),
      pace: () => client.request('ping', {}),
      trouble() {
        if (trouble === 'the app closes') exposed.close();
        else for (const socket of server.clients) socket.terminate();
      },
      async close() {
        await gateway.close('the test has ended');
        client.close();
        exposed.close();
        server.close();
      },
    };
  },
});

/** Tools that are called as tasks, which are cancelled as such. */
export const gatewayTasks = gateway(Infinity, async (client, name, params, signal) => {
  const { task } = await client.request('tools/call', { name, arguments: params, task: {} });
  const { taskId } = task;
  // It may have ended: then that is refused.
  onAbort(signal, () => void client.request('tasks/cancel', { taskId }).catch(() => {}));
  const result = await client.request('tasks/result', { taskId });
  const shown = await client.request('tasks/get', { taskId });
  const [one, other] = [result, shown].map(({ _meta }) => _meta?.['abp-bridge/outcome']?.outcome);
  if (one === other) return result;
  throw new Error(`the result says ${one}, its task ${other}`);
});

/** Tools that take long for a gateway without patience, and are cancelled by their handles. */
export const gatewayHandles = gateway(0, async (client, name, params, signal) => {
  const tool = (name, args) => client.request('tools/call', { name, arguments: args });
  const handleOf = ({ _meta }) => _meta?.['abp-bridge/call']?.handle;
  let result = await tool(name, params);
  const handle = handleOf(result);
  if (handle) onAbort(signal, () => void tool('call_cancel', { handle }).catch(() => {}));
  for (; handleOf(result); await turn()) result = await tool('call_wait', { handle });
  return result;
});
