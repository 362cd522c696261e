/**
 * The ways to an app that run in Node, each as the recorder wants it (stops.js): what a way tells
 * of a call, in one form.
 */
import { Worker } from 'node:worker_threads';
import { connect, expose } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { webSocketTransport } from '../../parts/transports/index.js';
import { createHost, createView, toolsOf } from '../../packages/mcp-apps/src/index.js';
import { createPeer } from '../../packages/rpc/src/index.js';
import { pool } from '../../parts/workers/pool.js';
import { connectPage } from '../../packages/automation/src/index.js';
import { drivenPage } from '../../packages/automation/tests/support/driven-page.js';
import { callsTool, settled } from '../../packages/webmcp/src/settled.js';
import { webmcp } from '../../packages/webmcp/src/index.js';
import { socketPair } from '../contracts/channels.js';
import {
  AGENT,
  APP,
  answersBy,
  callsBy,
  fateOf,
  onAbort,
  onElicitationBy,
  outcomeTold,
} from './calls.js';
import { TROUBLES } from './stops.js';
import { a2a, gatewayHandles, gatewayTasks } from './task-connections.js';
import { turn, withChecks } from './work.js';

/** What agents wait for an app: longer than any app waits for its handlers. */
const LONG = 3_600_000;
/** How long an app remembers that an agent was away from for longer, in ms. */
const BRIEF = 30;
/** What a client can do that reads no chunks and answers no questions, over a way without these. */
const PLAIN = ['chunks', 'input', 'questions', 'cancel'];

const limitsOf = ({ grace, room }) => ({ grace, maxConcurrent: room });

/**
 * What clients of ours are given.
 * @param {import('./stops.js').Settings} settings
 */
const optionsOf = ({ caller, returns, name }) => ({
  agent: AGENT,
  owner: `the agent of ${name}`,
  limits: { grace: LONG },
  onElicitation: onElicitationBy(caller),
  ...(returns && { reconnect: { delay: 1, maxDelay: 10 } }),
});

/**
 * What a response tells now, and what later.
 * @param {any} response
 */
function outcomesNowAndLater(response) {
  const now = outcomeTold(response);
  return 'settled' in response
    ? { ...now, settled: async () => fateOf(await response.settled) }
    : now;
}

/**
 * @param {any} client
 * @param {any} more
 */
function session(client, more) {
  const call = callsBy(() => client);
  return { call: async (...given) => outcomeTold(await call(...given)), ...more };
}

/**
 * Over a transport of which both ends are here.
 * @param {() => Promise<[any, any, () => unknown]>} ends the agent's transport, the app's, and what
 *   cuts them off
 * @param {object} [how]
 * @param {boolean} [how.reloads] whether who begins another session by hand is another client, as
 *   in a page that was reloaded: what it keeps is its `owner`
 * @param {(handlers: any, settings: import('./stops.js').Settings) => { capabilities: any,
 *   close?: () => unknown }} [how.appOf]
 * @returns {import('./stops.js').Connection}
 */
const over = (ends, { reloads, appOf = appOfOurs } = {}) => ({
  reports: true,
  troubles: Object.keys(TROUBLES),
  async open(handlers, settings) {
    const { trouble } = settings;
    const app = appOf(handlers, settings);
    const isBrief = trouble === 'the app was away for long';
    const limits = { ...limitsOf(settings), ...(isBrief && { rememberFor: BRIEF }) };
    /** The apps so far, of which the last one answers. @type {ReturnType<typeof expose>[]} */
    const apps = [];
    const keys = TROUBLES[trouble]?.keeps && keptKeys();
    const start = () =>
      apps.push(
        expose({ app: APP, ...app }, { limits, origins: [], ...(keys && { keys: keys() }) }),
      );
    start();
    let [cut, away] = [() => {}, Promise.resolve()];
    const dial = async () => {
      await away;
      const [agentEnd, appEnd, cutBoth] = await ends();
      cut = cutBoth;
      apps.at(-1).accept(appEnd);
      return agentEnd;
    };
    const options = optionsOf(settings);
    let client = await connect(dial, options);
    // What remembers for agents that come back is loaded by the first who asks.
    await client.outcome('nothing');
    const call = callsBy(() => client);
    return {
      // What another client was told, it asks for itself.
      call: async (...given) => (reloads ? outcomeTold : outcomesNowAndLater)(await call(...given)),
      async back() {
        if (reloads) client = await connect(dial, options);
        else await client.reconnect();
      },
      async ask(callId, settled) {
        // Who asks waits for a session, which there will not be.
        const given = { settled, ...(TROUBLES[trouble]?.ends && { timeout: BRIEF }) };
        return fateOf(await client.outcome(callId, given));
      },
      ready: () => client.outcome('nothing'),
      again: async (...given) => outcomeTold(await client.call(...given)),
      trouble() {
        if (trouble === 'the app closes') return apps[0].close();
        if (trouble === 'the agent closes') return client.close();
        if (isBrief) away = new Promise((resolve) => setTimeout(resolve, 2 * BRIEF));
        cut();
        if (TROUBLES[trouble].forgets && !isBrief) start();
      },
      async close() {
        client.close();
        for (const exposed of apps) exposed.close();
        cut();
        await app.close?.();
      },
    };
  },
});

/** Keys of calls that outlive their app: makes the store of each app that begins. */
function keptKeys() {
  /** @type {Map<string, { by: object, ended?: any }>} */
  const known = new Map();
  return () => {
    const mine = {};
    return {
      open: async () => ({ id: 'kept', rememberFor: LONG }),
      async begin(key) {
        const found = known.get(key);
        if (found && !found.ended) return { state: found.by === mine ? 'running' : 'lost' };
        if (found && !found.ended.again) return { state: 'ended', ended: found.ended };
        known.set(key, { by: mine });
        return { state: 'begun', report: found?.ended.report };
      },
      async end(key, ended) {
        known.get(key).ended = ended;
      },
      close() {},
    };
  };
}

const appOfOurs = (handlers) => ({ capabilities: withChecks(handlers) });

/** An app whose handlers run in a pool. What does not stop there is terminated. */
function pooled(handlers, { path, grace, whenReleased, threadEnded, caller }) {
  const start = () => {
    const { port1: control, port2 } = new MessageChannel();
    const worker = new Worker(new URL('thread.js', import.meta.url), {
      workerData: { path, pool: Object.keys(handlers), control: port2 },
      transferList: [port2],
    });
    const { threadId } = worker;
    worker.on('exit', () => threadEnded(threadId));
    void whenReleased.then(() => control.postMessage('go on'));
    return worker;
  };
  const workers = pool(start, { size: 4, grace: grace / 2 });
  const tasks = Object.keys(handlers).map((name) => {
    const run = workers.run(name);
    const passOn = (params, context) => {
      caller.write({ key: params.key, at: 'passes' });
      return run(params, context);
    };
    return [name, passOn];
  });
  return {
    capabilities: withChecks(Object.fromEntries(tasks)),
    close: () => workers.close(),
  };
}

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

/** A page that is driven, and goes away without a word. @type {import('./stops.js').Connection} */
const driven = {
  reports: true,
  troubles: ['the line is cut', 'the app closes', 'the agent closes'],
  async open(handlers, settings) {
    const capabilities = withChecks(handlers);
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
            // It comes to its page in a task of its own.
            await turn();
            if (isGone) return gone();
            const answer = await handle.evaluate(...given);
            return isGone ? gone() : answer;
          },
        };
      },
    };
    const client = await connectPage(target, optionsOf(settings));
    return session(client, {
      trouble() {
        if (settings.trouble === 'the agent closes') return client.close();
        isGone = settings.trouble === 'the line is cut';
        exposed.close();
      },
      close() {
        client.close();
        exposed.close();
      },
    });
  },
};

/** A thread that is ended in the middle of its work. @type {import('./stops.js').Connection} */
const inThread = {
  reports: true,
  costs: 10,
  troubles: ['the line is cut', 'the agent closes'],
  async open(_handlers, settings) {
    const { port1: control, port2 } = new MessageChannel();
    const worker = new Worker(new URL('thread.js', import.meta.url), {
      workerData: { path: settings.path, limits: limitsOf(settings), control: port2 },
      transferList: [port2],
    });
    void settings.whenReleased.then(() => control.postMessage('go on'));
    const client = await connect(worker, optionsOf(settings));
    const ends = settings.trouble === 'the line is cut';
    return session(client, {
      dies: ends,
      trouble: () => (ends ? worker.terminate() : client.close()),
      async close() {
        client.close();
        await worker.terminate();
      },
    });
  },
};

/**
 * Two peers of JSON-RPC. What a cancelled request came to is in its error's data; any other error
 * is the handler's own.
 * @param {'acp' | 'lsp' | 'mcp'} dialect
 * @returns {import('./stops.js').Connection}
 */
const peers = (dialect) => ({
  lacks: ['input', 'inner calls', 'checks', 'cancel'],
  troubles: ['the line is cut', 'the app closes', 'the agent closes'],
  waits: true,
  // MCP answers nothing to what was cancelled.
  foreign: dialect === 'mcp',
  async open(handlers, { room, trouble, caller: who }) {
    const { port1, port2 } = new MessageChannel();
    const [caller, callee] = [port1, port2].map((port) =>
      createPeer(portTransport(port), {
        dialect,
        limits: { grace: LONG, maxConcurrent: room },
      }),
    );
    const answer = answersBy(who);
    caller.handle('ask', ({ message }) => answer(message));
    const contextOf = ({ signal, report, request }) => ({
      signal,
      report,
      elicit: ({ params }) =>
        request('ask', params).then(
          (data) => ({ success: true, data }),
          () => ({ success: false }),
        ),
    });
    const { async_generator: generator, ...others } = handlers;
    callee.handle('async_generator', async function* (params, context) {
      return yield* generator(params, contextOf(context));
    });
    for (const [name, handler] of Object.entries(others)) {
      callee.handle(name, (params, context) => handler(params, contextOf(context)));
    }
    const failed = ({ code, data }) => ({
      success: false,
      // MCP says no more than that the connection is closed.
      outcome: data?.outcome ?? (code === -32000 ? 'unknown' : 'failed'),
      report: data?.report,
    });
    const call = async (name, params, { signal, timeout, by, inChunks }) => {
      const options = { ...(by === 'signal' && { signal }), timeout };
      const succeeded = () => ({ success: true });
      if (!inChunks) return caller.request(name, params, options).then(succeeded, failed);
      const stream = caller.stream(name, params, options);
      if (by === 'return') onAbort(signal, () => stream.return().catch(() => {}));
      try {
        for await (const part of stream) {
          void part;
          if (by === 'break' && signal.aborted) break;
        }
      } catch {
        // Its result says how it ended.
      }
      return stream.result.then(succeeded, failed);
    };
    const close = () => {
      caller.close();
      callee.close();
    };
    return {
      call,
      trouble() {
        if (trouble === 'the app closes') callee.close();
        else if (trouble === 'the agent closes') caller.close();
        else port1.close();
      },
      close,
    };
  },
});

/**
 * The tools of an MCP App's view, which its host calls as an app. Between them is a channel instead
 * of windows.
 * @type {import('./stops.js').Connection}
 */
const view = {
  reports: true,
  waits: true,
  lacks: ['input', 'questions'],
  troubles: ['the line is cut', 'the app closes', 'the agent closes'],
  async open(handlers, settings) {
    const exposed = expose(
      { app: APP, capabilities: withChecks(handlers) },
      { limits: limitsOf(settings), origins: [] },
    );
    const { port1, port2 } = new MessageChannel();
    const hosting = createHost(portTransport(port1), { host: AGENT });
    const viewing = createView({
      transport: portTransport(port2),
      app: APP,
      tools: toolsOf(exposed),
    });
    const [host, shown] = await Promise.all([hosting, viewing]);
    const client = await connect(() => host.transport(), optionsOf(settings));
    return session(client, {
      trouble() {
        if (settings.trouble === 'the app closes') exposed.close();
        else if (settings.trouble === 'the agent closes') client.close();
        else port1.close();
      },
      async close() {
        client.close();
        exposed.close();
        shown.close();
        await host.close();
      },
    });
  },
};

/**
 * What the tool `abp.calls` tells of the call that an agent has just cancelled.
 * @param {any} call
 */
const recorded = ({ state, outcome, report }) => ({
  success: state === 'completed',
  outcome,
  report,
});

/**
 * WebMCP tools of an app, in a browser that drops what a tool says after its caller has cancelled:
 * only the tool that is asked tells.
 * @type {import('./stops.js').Connection}
 */
const webMcp = {
  reports: true,
  waits: true,
  lacks: PLAIN,
  troubles: ['the app closes'],
  async open(handlers, { room }) {
    const tools = new Map();
    const modelContext = {
      async registerTool(tool) {
        tools.set(tool.name, tool);
      },
    };
    const options = {
      origins: [],
      limits: { grace: LONG, maxConcurrent: room },
      webmcp: webmcp({ origins: [] }),
    };
    const exposed = expose({ app: APP, capabilities: withChecks(handlers) }, options);
    globalThis.document = /** @type {any} */ ({ modelContext });
    while (!tools.has('abp.calls')) await turn();
    delete globalThis.document;
    const ask = tools.get('abp.calls').execute;
    let isGone = false;
    return {
      async call(name, params, { signal }) {
        const answer = await tools.get(name).execute(params, { signal });
        const { callId } = answer.metadata;
        if (isGone) return { success: answer.success, outcome: answer.metadata.outcome };
        return recorded(ask({ callId }).data.calls[0]);
      },
      trouble() {
        isGone = true;
        exposed.close();
      },
      close() {
        exposed.close();
      },
    };
  },
};

/** WebMCP tools that are not ours, wrapped. @type {import('./stops.js').Connection} */
const wrapped = {
  waits: true,
  reports: true,
  lacks: [...PLAIN, 'streams', 'inner calls', 'checks'],
  troubles: [],
  async open(handlers) {
    const ask = callsTool().execute;
    return {
      async call(name, params, { signal }) {
        const before = new Set(ask().data.calls.map(({ callId }) => callId));
        const tool = settled({ name, execute: handlers[name] });
        const answering = tool.execute(params, { signal });
        const { callId } = ask().data.calls.find(({ callId }) => !before.has(callId));
        await answering.catch(() => {});
        return recorded(ask({ callId }).data.calls[0]);
      },
      trouble() {},
      close() {},
    };
  },
};

/** @type {Record<string, import('./stops.js').Connection>} */
export const CONNECTIONS = {
  'a port': over(ports),
  'a WebSocket': over(sockets, { reloads: true }),
  'a pool': {
    ...over(ports, { appOf: pooled }),
    lacks: ['input', 'questions', 'inner calls'],
    reports: false,
    costs: 10,
  },
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
