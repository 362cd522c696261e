/** The ways to an app that run in Node, each as the recorder wants it (stops.js): what a way tells of a call, in one form. */
import { Worker } from 'node:worker_threads';
import { connect, expose } from '../../js/index.js';
import { portTransport } from '../../js/transports/port.js';
import { webSocketTransport } from '../../js/transports/websocket.js';
import { createHost, createView, toolsOf } from '../../packages/mcp-apps/src/index.js';
import { createPeer } from '../../packages/rpc/src/index.js';
import { connectPage } from '../../packages/automation/src/index.js';
import { drivenPage } from '../../packages/automation/tests/support/driven-page.js';
import { callsTool, settled } from '../../packages/webmcp/src/settled.js';
import { Tools } from '../../packages/webmcp/src/tools.js';
import { socketPair } from '../contracts/channels.js';
import { toldOf } from './calls.js';
import { AGENT, APP } from '../support/pair.js';
import { a2a, gatewayHandles, gatewayTasks } from './task-ways.js';

/** What agents wait for an app: longer than any app waits for its handlers. */
const LONG = 3_600_000;

const limitsOf = ({ grace, room }) => ({ grace, maxConcurrent: room });

/** @param {any} client @param {any} more */
const session = (client, more) => ({
  call: async (name, params, options) => toldOf(await client.call(name, params, options)),
  ...more,
});

/** What an agent that asks is told. @param {any} fate */
const fateOf = ({ outcome, report }) => ({ success: false, outcome, report });

/**
 * Over a transport of which both ends are here. After a cut the agent connects again.
 * @param {() => Promise<[any, any, () => unknown]>} ends the agent's transport, the app's, and what cuts them off
 * @param {boolean} [reloads] whether that is another client then, as in a page that was reloaded: what it keeps is its `owner`
 * @returns {import('./stops.js').Way}
 */
const over = (ends, reloads) => ({
  reports: true,
  async open(capabilities, settings) {
    const exposed = expose({ app: APP, capabilities }, { limits: limitsOf(settings), origins: [] });
    let [isCut, cut] = [false, () => {}];
    const dial = async () => {
      const [agentEnd, appEnd, cutBoth] = await ends();
      cut = cutBoth;
      exposed.accept(appEnd);
      return agentEnd;
    };
    const options = {
      agent: AGENT,
      owner: `the agent of ${settings.name}`,
      limits: { grace: LONG },
    };
    let client = await connect(dial, options);
    // What remembers for agents that come back is loaded by the first who asks.
    await client.outcome('nothing');
    const connectAgain = async () => {
      if (!reloads) return client.reconnect();
      client = await connect(dial, options);
    };
    let again;
    const there = () => (isCut ? (again ??= connectAgain()) : undefined);
    return {
      async call(...given) {
        const response = await client.call(...given);
        const told = toldOf(response);
        if (told.outcome === 'running') told.later = response.settled.then(fateOf);
        return told;
      },
      async ask(callId, settled) {
        await there();
        return fateOf(await client.outcome(callId, { settled }));
      },
      async again(...given) {
        await there();
        return toldOf(await client.call(...given));
      },
      cut() {
        isCut = true;
        cut();
      },
      close() {
        client.close();
        exposed.close();
        cut();
      },
    };
  },
});

async function ports() {
  const { port1, port2 } = new MessageChannel();
  return [portTransport(port1), portTransport(port2), () => port1.close()];
}

async function sockets() {
  const [dialled, accepted] = await socketPair();
  return [
    webSocketTransport(dialled),
    webSocketTransport(accepted),
    () => (dialled.terminate(), accepted.terminate()),
  ];
}

/** A page that is driven, and goes away without a word. @returns {import('./stops.js').Way} */
const driven = {
  reports: true,
  async open(capabilities, settings) {
    const exposed = expose({ app: APP, capabilities }, { origins: [], limits: limitsOf(settings) });
    let isGone = false;
    const page = drivenPage({ abp: exposed.abp });
    const gone = () => Promise.reject(new Error('Execution context was destroyed'));
    const target = {
      async evaluateHandle(script) {
        const handle = await page.evaluateHandle(script);
        return {
          ...handle,
          // What was asked before it went is never answered.
          evaluate: async (...given) => {
            if (isGone) return gone();
            const answer = await handle.evaluate(...given);
            return isGone ? gone() : answer;
          },
        };
      },
    };
    const client = await connectPage(target, { agent: AGENT, limits: { grace: LONG } });
    const end = () => {
      isGone = true;
      exposed.close();
    };
    return session(client, {
      cut: end,
      close() {
        client.close();
        end();
      },
    });
  },
};

/** A thread that is ended in the middle of its work. @returns {import('./stops.js').Way} */
const inThread = {
  reports: true,
  costs: 10,
  async open(_capabilities, { path, grace, room, whenReleased }) {
    const { port1: control, port2 } = new MessageChannel();
    const worker = new Worker(new URL('thread.js', import.meta.url), {
      workerData: { path, limits: limitsOf({ grace, room }), control: port2 },
      transferList: [port2],
    });
    void whenReleased.then(() => control.postMessage('go on'));
    const client = await connect(worker, { agent: AGENT, limits: { grace: LONG } });
    const end = () => worker.terminate();
    return session(client, {
      dies: true,
      cut: end,
      async close() {
        client.close();
        await end();
      },
    });
  },
};

/**
 * Two peers of JSON-RPC. What a cancelled request came to is in its error's data; any other error is the handler's own.
 * @param {'acp' | 'lsp' | 'mcp'} dialect
 * @returns {import('./stops.js').Way}
 */
const peers = (dialect) => ({
  waits: true,
  // MCP answers nothing to what was cancelled.
  foreign: dialect === 'mcp',
  async open(capabilities, { room }) {
    const { port1, port2 } = new MessageChannel();
    const [caller, callee] = [port1, port2].map((port) =>
      createPeer(portTransport(port), {
        dialect,
        limits: { grace: LONG, maxConcurrent: room },
      }),
    );
    for (const [name, handler] of Object.entries(capabilities)) {
      callee.handle(name, (params, context) => handler(params, context));
    }
    const call = (name, params, options) =>
      caller.request(name, params, options).then(
        () => ({ success: true }),
        ({ data }) => ({
          success: false,
          outcome: data?.outcome ?? 'failed',
          report: data?.report,
        }),
      );
    const close = () => {
      caller.close();
      callee.close();
    };
    return { call, cut: () => port1.close(), close };
  },
});

/**
 * The tools of an MCP App's view, which its host calls as an app. Between them is a channel instead of windows.
 * @type {import('./stops.js').Way}
 */
const view = {
  reports: true,
  waits: true,
  async open(capabilities, settings) {
    const exposed = expose({ app: APP, capabilities }, { limits: limitsOf(settings), origins: [] });
    const { port1, port2 } = new MessageChannel();
    const hosting = createHost(portTransport(port1), { host: AGENT });
    const viewing = createView({
      transport: portTransport(port2),
      app: APP,
      tools: toolsOf(exposed),
    });
    const [host, shown] = await Promise.all([hosting, viewing]);
    const client = await connect(() => host.transport(), { agent: AGENT, limits: { grace: LONG } });
    return session(client, {
      cut: () => port1.close(),
      async close() {
        client.close();
        exposed.close();
        shown.close();
        await host.close();
      },
    });
  },
};

/** What the tool `abp.calls` tells of the call that an agent has just cancelled. @param {any} call */
const recorded = ({ state, outcome, report }) => ({
  success: state === 'completed',
  outcome,
  report,
});

/**
 * WebMCP tools of an app, in a browser that drops what a tool says after its caller has cancelled: only the tool that is
 * asked tells.
 * @type {import('./stops.js').Way}
 */
const webMcp = {
  reports: true,
  waits: true,
  async open(capabilities, { room }) {
    const tools = new Map();
    const modelContext = {
      async registerTool(tool) {
        tools.set(tool.name, tool);
      },
    };
    let ours;
    const webmcp = (app) => (ours = new Tools(modelContext, app, []));
    const limits = { grace: LONG, maxConcurrent: room };
    const exposed = expose({ app: APP, capabilities }, { origins: [], limits, webmcp });
    const ask = tools.get('abp.calls').execute;
    let isGone = false;
    return {
      async call(name, params, { signal }) {
        const answer = await tools.get(name).execute(params, { signal });
        const { callId } = answer.metadata;
        if (isGone) return { success: answer.success, outcome: answer.metadata.outcome };
        return recorded(ask({ callId }).data.calls[0]);
      },
      cut() {
        isGone = true;
        exposed.close();
      },
      close() {
        ours.close();
        exposed.close();
      },
    };
  },
};

/** WebMCP tools that are not ours, wrapped. @type {import('./stops.js').Way} */
const wrapped = {
  waits: true,
  reports: true,
  async open(capabilities) {
    const ask = callsTool().execute;
    return {
      async call(name, params, { signal }) {
        const before = new Set(ask().data.calls.map(({ callId }) => callId));
        const tool = settled({ name, execute: capabilities[name] });
        const answering = tool.execute(params, { signal });
        const { callId } = ask().data.calls.find(({ callId }) => !before.has(callId));
        await answering.catch(() => {});
        return recorded(ask({ callId }).data.calls[0]);
      },
      cut() {},
      close() {},
    };
  },
};

/** @type {Record<string, import('./stops.js').Way>} */
export const WAYS = {
  'a port': over(ports),
  'a WebSocket': over(sockets, true),
  'a page that is driven': driven,
  'a worker thread': inThread,
  ACP: peers('acp'),
  LSP: peers('lsp'),
  MCP: peers('mcp'),
  'the view of an MCP App': view,
  'WebMCP, an app of ours': webMcp,
  'WebMCP, tools of others': wrapped,
  A2A: a2a,
  'the gateway, tasks': gatewayTasks,
  'the gateway, handles': gatewayHandles,
};
