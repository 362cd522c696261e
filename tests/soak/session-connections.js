/**
 * Every way to an app or a peer that runs in Node: how a session over it is opened, used and
 * broken.
 */
import { Worker } from 'node:worker_threads';
import { AbpError, connect, expose } from '../../parts/main/index.js';
import { portTransport } from '../../js/transports/port.js';
import { createTaskClient, createTaskServer } from '../../packages/a2a/src/index.js';
import { connectPage } from '../../packages/automation/src/index.js';
import { drivenPage } from '../../packages/automation/tests/support/driven-page.js';
import { createHost, createView, toolsOf } from '../../packages/mcp-apps/src/index.js';
import { createPeer } from '../../packages/rpc/src/index.js';
import { TRANSPORTS } from '../contracts/channels.js';
import { AGENT, APP } from '../support/pair.js';
import { HANDLERS, untilAborted } from './session-app.js';
import { pageListeners } from './held.js';
import { collect } from './memory.js';

/**
 * @typedef {object} Given `signal` stops what would last; without it, it lasts until the session
 *   ends
 * @property {AbortSignal} [signal]
 * @property {string} id
 * @typedef {Record<string, (given: Given) => Promise<string>>} Uses each resolves with how it ended
 *
 * @typedef {object} Session
 * @property {Uses} uses
 * @property {Record<string, () => unknown>} breaks each ends it, with whatever is under way
 * @property {Record<string, () => unknown>} [disturbs] each ends nothing
 * @property {() => unknown} close ends what is left of it
 *
 * @typedef {object} Group Sessions that have something in common, such as their app.
 * @property {() => Promise<Session>} open
 * @property {() => unknown} [breakAll] ends all of its sessions
 * @property {() => unknown} close ends what is left
 *
 * @typedef {object} Connection
 * @property {string[]} ends how calls end by it, beside 'completed'
 * @property {number} [costs] so many times more than others: there are fewer sessions
 * @property {() => Promise<Group>} begin
 */

/** @param {any} response of the protocol */
const endOf = ({ success, error }) => (success ? 'completed' : error.code);

/**
 * Reads a stream, or so many chunks of it.
 * @param {any} stream
 * @param {number} [count]
 */
async function read(stream, count) {
  try {
    for await (const chunk of stream) if (chunk + 1 === count) break;
  } catch {
    // The response says the same.
  }
  return endOf(await stream.response);
}

/** How calls of apps end. */
const OF_APPS = [
  'OPERATION_FAILED',
  'UNKNOWN_CAPABILITY',
  'CANCELLED',
  'TIMEOUT',
  'DISCONNECTED',
  'NOT_SUPPORTED',
  'NOT_INITIALIZED',
];
/** How those of peers do: unknown, failed, cancelled, closed. */
const OF_PEERS = ['AbortError', 'TimeoutError', '-32601', '-32603', '-32800', '-32097', '-32000'];
/** How tasks do, and their clients. */
const OF_TASKS = [
  'working',
  'canceled',
  'failed',
  'no task',
  'TASK_NOT_FOUND',
  'AbortError',
  'DISCONNECTED',
  'INTERNAL_ERROR',
];

/**
 * What an agent does with an app.
 * @param {any} client
 * @returns {Uses}
 */
export const usesOf = (client) => ({
  echo: async () => endOf(await client.call('echo', { text: 'some text' })),
  fails: async () => endOf(await client.call('fails')),
  'is unknown': async () => endOf(await client.call('nothing')),
  lasts: async ({ signal }) => endOf(await client.call('lasts', {}, { signal })),
  'has a call of its own': async ({ signal }) => endOf(await client.call('nested', {}, { signal })),
  'is timed out': async () => endOf(await client.call('lasts', {}, { timeout: 1 })),
  'is cancelled': async ({ id: callId }) => {
    const call = client.call('lasts', {}, { callId });
    void client.cancel(callId, 'changed my mind');
    return endOf(await call);
  },
  'is stopped before it begins': async () =>
    endOf(await client.call('lasts', {}, { signal: AbortSignal.abort() })),
  'is tried again': async ({ signal }) =>
    endOf(await client.call('fails', {}, { retry: { attempts: 2, delay: 1 }, signal })),
  reports: async () => endOf(await client.call('reports', {}, { onProgress() {} })),
  asks: async () => endOf(await client.call('asks')),
  'is read': () => read(client.stream('counts', { rows: 5 })),
  'is left': () => read(client.stream('counts', { rows: 500 }), 3),
  'is read by nobody': async ({ signal }) =>
    endOf(await client.stream('counts', { rows: 500 }, { signal }).response),
  'has input': async () =>
    endOf(await client.call('sums', {}, { input: ReadableStream.from([1, 2, 3]) })),
});

/** The agent's options. Its grace and the app's are longer than any test: nobody is given up. */
const OPTIONS = {
  agent: AGENT,
  onElicitation: () => 'me',
  onProgress() {},
  onNotification() {},
};

const appOf = (options = {}) =>
  expose({ app: APP, capabilities: HANDLERS }, { origins: [], ...options });

/** A foreign app, with the same handlers. */
function foreignApp() {
  /** @type {Map<string, AbortController>} */
  const running = new Map();
  const call = async (
    /** @type {string} */ name,
    /** @type {any} */ params,
    /** @type {any} */ { signal },
  ) => {
    try {
      return { success: true, data: await HANDLERS[name]?.(params, { call, signal }) };
    } catch (error) {
      return { success: false, cancelled: signal.aborted || undefined, error };
    }
  };
  return {
    app: APP,
    initialize: () => ({ sessionId: 's', app: APP }),
    listCapabilities: () => Object.keys(HANDLERS).map((name) => ({ name, available: true })),
    call(/** @type {string} */ name, /** @type {any} */ params, /** @type {any} */ { callId }) {
      const controller = new AbortController();
      running.set(callId, controller);
      return call(name, params, controller).finally(() => running.delete(callId));
    },
    cancel(/** @type {string} */ callId, /** @type {string} */ reason) {
      const controller = running.get(callId);
      controller?.abort(reason);
      return { callId, cancelled: controller !== undefined };
    },
  };
}

/**
 * @param {any} client
 * @returns {Session['breaks']}
 */
const agentBreaks = (client) => ({ 'the agent closes': () => client.close() });

/**
 * Over a transport of which both ends are here. Its agents may come again.
 * @param {() => Promise<import('../contracts/channels.js').End[]>} ends
 * @param {object} [options] of both sides
 * @param {() => any} [app] makes a foreign app, instead of ours
 * @returns {Connection}
 */
const over = (ends, options, app) => ({
  ends: OF_APPS,
  async begin() {
    const exposed = app ? expose(app(), { origins: [], ...options }) : appOf(options);
    return {
      async open() {
        /** @type {import('../contracts/channels.js').End[]} */
        const opened = [];
        const dial = async () => {
          const [agentEnd, appEnd] = await ends();
          opened.push(agentEnd, appEnd);
          exposed.accept(appEnd.transport());
          return agentEnd.transport();
        };
        const client = await connect(dial, { ...OPTIONS, ...options });
        return {
          uses: usesOf(client),
          breaks: {
            ...agentBreaks(client),
            "the agent's end is cut off": () => opened[0].close(),
            "the app's end is cut off": () => opened[1].close(),
            'the agent connects anew': () => client.reconnect(),
          },
          close() {
            client.close();
            for (const end of opened) end.close();
          },
        };
      },
      breakAll: () => exposed.close(),
      close: () => exposed.close(),
    };
  },
});

const HOST = 'https://agent.example';
const SHOWN = 'https://app.example';

/**
 * A window: what is posted to it is heard by this page, which stands for both.
 * @param {() => object} from
 */
const windowOf = (from) => ({
  postMessage(/** @type {any} */ message, /** @type {any} */ { transfer = [] }) {
    const ports = transfer.filter((/** @type {unknown} */ part) => part instanceof MessagePort);
    const sent = structuredClone({ data: message, ports }, { transfer });
    setImmediate(() => {
      const event = { ...sent, isTrusted: true, ...from() };
      for (const hear of [...(pageListeners.get('message') ?? [])]) hear(event);
    });
  },
});

/** Iframes are watched by what is told of changes. @type {Set<() => void>} */
const observers = new Set();
globalThis.MutationObserver = /** @type {any} */ (
  class {
    /** @param {() => void} changed */
    constructor(changed) {
      this.changed = changed;
    }
    observe() {
      observers.add(this.changed);
    }
    disconnect() {
      observers.delete(this.changed);
    }
  }
);

/**
 * Window messages, as between a page and its iframe.
 * @param {object} options of both sides
 * @returns {Connection}
 */
const inWindow = (options) => ({
  ends: OF_APPS,
  async begin() {
    const exposed = appOf({ ...options, origins: [HOST] });
    return {
      async open() {
        const host = windowOf(() => ({ origin: SHOWN, source: shown }));
        const shown = windowOf(() => ({ origin: HOST, source: host }));
        const iframe = Object.assign(new EventTarget(), {
          contentWindow: /** @type {any} */ (shown),
          ownerDocument: {},
          getRootNode: () => ({}),
          src: SHOWN,
          getAttribute: () => null,
        });
        const client = await connect(/** @type {any} */ (iframe), {
          ...OPTIONS,
          ...options,
          origin: SHOWN,
        });
        const connection = exposed.sessions.find(({ transport }) => transport.target === host);
        return {
          uses: usesOf(client),
          breaks: {
            ...agentBreaks(client),
            'the iframe is removed'() {
              iframe.contentWindow = null;
              for (const changed of [...observers]) changed();
            },
            // The published protocol has no word for it.
            ...(options.upgrade !== 'none' && {
              "the app's page goes away": () => connection?.endpoint.leave(false),
            }),
          },
          disturbs: { 'its document goes back': () => iframe.dispatchEvent(new Event('load')) },
          close: () => client.close(),
        };
      },
      breakAll: () => exposed.close(),
      close: () => exposed.close(),
    };
  },
});

/** @type {Connection} */
const driven = {
  ends: OF_APPS,
  async begin() {
    const exposed = appOf();
    return {
      async open() {
        let leave = () => {};
        const gone = new Promise((_resolve, reject) => {
          leave = () => reject(new Error('Execution context was destroyed'));
        });
        gone.catch(() => {});
        const page = drivenPage({ abp: exposed.abp });
        const target = {
          async evaluateHandle(/** @type {string} */ script) {
            const handle = await page.evaluateHandle(script);
            const evaluate = (/** @type {any[]} */ ...given) =>
              Promise.race([gone, handle.evaluate(...given)]);
            return { ...handle, evaluate };
          },
        };
        const client = await connectPage(/** @type {any} */ (target), OPTIONS);
        return {
          uses: usesOf(client),
          breaks: { ...agentBreaks(client), 'the page goes away': leave },
          close() {
            client.close();
            leave();
          },
        };
      },
      close: () => exposed.close(),
    };
  },
};

/** The tools of an MCP App's view, which its host calls as an app. @type {Connection} */
const view = {
  ends: OF_APPS,
  costs: 2,
  async begin() {
    return {
      async open() {
        const exposed = appOf();
        const { port1, port2 } = new MessageChannel();
        const [host, shown] = await Promise.all([
          createHost(portTransport(port1), { host: AGENT }),
          createView({ transport: portTransport(port2), app: APP, tools: toolsOf(exposed) }),
        ]);
        const client = await connect(() => host.transport(), OPTIONS);
        return {
          uses: usesOf(client),
          breaks: {
            ...agentBreaks(client),
            'the host closes': () => void host.close(),
            'the view closes': () => shown.close(),
            'the port is cut off': () => port1.close(),
          },
          async close() {
            client.close();
            exposed.close();
            shown.close();
            await host.close();
          },
        };
      },
      close() {},
    };
  },
};

/** Sessions of one worker before it may be terminated. */
const OF_ONE_WORKER = 20;

/**
 * Sessions that begin in one worker thread, one after the other, until it is terminated.
 * @type {Connection}
 */
const inThread = {
  ends: OF_APPS,
  costs: 5,
  async begin() {
    /** @type {Worker | undefined} */
    let worker;
    let served = 0;
    let last = Promise.resolve();
    const end = async () => {
      const ended = worker;
      worker = undefined;
      served = 0;
      await ended?.terminate();
    };
    return {
      async open() {
        // A worker has one owner at a time.
        const before = last;
        let ended = () => {};
        last = new Promise((resolve) => (ended = () => resolve()));
        await before;
        worker ??= new Worker(new URL('session-thread.js', import.meta.url));
        const client = await connect(worker, OPTIONS);
        return {
          uses: usesOf(client),
          breaks: {
            ...agentBreaks(client),
            'the agent connects anew': () => client.reconnect(),
            ...(++served > OF_ONE_WORKER && { 'the worker is terminated': end }),
          },
          close() {
            client.close();
            ended();
          },
        };
      },
      close: end,
    };
  },
};

/**
 * @param {'acp' | 'lsp' | 'mcp'} dialect
 * @returns {Connection}
 */
const peers = (dialect) => ({
  ends: OF_PEERS,
  async begin() {
    return {
      async open() {
        const { port1, port2 } = new MessageChannel();
        const [caller, callee] = [port1, port2].map((port) =>
          createPeer(portTransport(port), { dialect }),
        );
        for (const [name, handler] of Object.entries(HANDLERS)) callee.handle(name, handler);
        caller.handle('who', () => 'me');
        callee.handle('asks back', (_params, { request }) => request('who', {}));
        const ended = (/** @type {Promise<unknown>} */ request) =>
          request.then(
            () => 'completed',
            ({ name, code }) => (name === 'RpcError' ? `${code}` : name),
          );
        return {
          uses: {
            echo: () => ended(caller.request('echo', { text: 'some text' })),
            fails: () => ended(caller.request('fails')),
            'is unknown': () => ended(caller.request('nothing')),
            lasts: ({ signal }) => ended(caller.request('lasts', {}, { signal })),
            'is timed out': () => ended(caller.request('lasts', {}, { timeout: 1 })),
            reports: () => ended(caller.request('reports', {}, { onProgress() {} })),
            'asks back': () => ended(caller.request('asks back', {})),
            'is left': async () => {
              const stream = caller.stream('counts', { rows: 50 });
              await stream.next().catch(() => {});
              await stream.return();
              return ended(stream.result);
            },
          },
          breaks: {
            'the caller closes': () => caller.close(),
            'the callee closes': () => callee.close(),
            "the caller's port is closed": () => port1.close(),
            "the callee's port is closed": () => port2.close(),
          },
          close() {
            caller.close();
            callee.close();
          },
        };
      },
      close() {},
    };
  },
});

/**
 * What an A2A agent does with a message: its text says which.
 * @param {any} context
 */
async function execute({ message, signal, emitArtifact }) {
  const [{ text }] = message.parts;
  if (text === 'fails') throw new AbpError('OPERATION_FAILED', 'no');
  for (let n = 0; n < 3; n++) emitArtifact({ artifactId: `${n}`, parts: [{ text: 'part' }] });
  if (text === 'lasts') await untilAborted(signal);
}

/**
 * @param {any} client
 * @returns {Uses}
 */
const tasksOf = (client) => {
  const run = async (/** @type {string} */ text, /** @type {any} */ options, leaves = false) => {
    const stream = client.subscribe(text, options);
    try {
      for await (const event of stream) if (leaves && event.kind === 'artifact') break;
      return stream.task?.status.state ?? 'no task';
    } catch ({ name, code }) {
      return typeof code === 'string' ? code : name;
    }
  };
  return {
    echo: () => run('echo', {}),
    fails: () => run('fails', {}),
    lasts: ({ signal }) => run('lasts', { signal }),
    'is left': () => run('echo', {}, true),
    'is stopped before it begins': () => run('lasts', { signal: AbortSignal.abort() }),
    'is asked for': () =>
      client.get('nobody').then(
        () => 'completed',
        ({ name, code }) => code ?? name,
      ),
  };
};

const CARD = { name: 'Agent' };
/** So few are remembered that the first sessions have them all. */
const REMEMBERED = { limits: { maxTasks: 64 } };

/** @type {Connection} */
const tasks = {
  ends: OF_TASKS,
  costs: 2,
  async begin() {
    const server = createTaskServer({ card: CARD, execute }, REMEMBERED);
    return {
      async open() {
        const { port1, port2 } = new MessageChannel();
        const stop = server.serve(portTransport(port2));
        const client = createTaskClient(portTransport(port1), { limits: { retry: 1, outage: 1 } });
        return {
          uses: tasksOf(client),
          breaks: {
            'the client closes': () => client.close(),
            'the agent leaves': () => (stop(), port2.close()),
            "the client's port is closed": () => port1.close(),
            "the agent's port is closed": () => port2.close(),
          },
          close() {
            client.close();
            stop();
          },
        };
      },
      breakAll: () => server.close(),
      // The tables of agents and clients are given back when they are collected, which the engine
      // does when it likes.
      close() {
        server.close();
        return collect();
      },
    };
  },
};

/** @type {Record<string, Connection>} */
export const CONNECTIONS = {
  ...Object.fromEntries(TRANSPORTS.map(({ name, ends }) => [name, over(ends)])),
  'MessageChannel, messages': over(TRANSPORTS[0].ends, { upgrade: 'none' }),
  'window, then a port': inWindow({}),
  'window messages': inWindow({ upgrade: 'none' }),
  'an app of others': over(TRANSPORTS[0].ends, undefined, foreignApp),
  'page that is driven': driven,
  'view of an MCP App': view,
  'worker thread': inThread,
  ACP: peers('acp'),
  LSP: peers('lsp'),
  MCP: peers('mcp'),
  'A2A over a port': tasks,
};
