// What a TypeScript user sees: this file must compile against the package, and each marked line
// must not.
import { AbpError, connect, expose, transfer, type Client } from 'abp-bridge';
import { createTaskServer } from '@abp-bridge/a2a';
import { memoryBackend, taskStore, type Backend } from '@abp-bridge/a2a-store';
import { memoryBackend as ownBackend } from '@abp-bridge/a2a/store';
import { createRequestHandler } from '@abp-bridge/a2a/adapters/a2a-sdk';
import { acpStream } from '@abp-bridge/rpc/adapters/acp';
import { mcpTransport } from '@abp-bridge/rpc/adapters/mcp';
import { connectPage } from '@abp-bridge/automation';
import { discover, manifestOf } from 'abp-bridge/discover';
import { connect as connectInPage } from 'abp-bridge/page';
import { AbpInspector } from '@abp-bridge/inspector';
import { CoreModule, portTransport, type Transport } from 'abp-bridge/driver';
import { indexedDBKeys, sqliteKeys } from 'abp-bridge/keys';
import { connect as connectInOneFile } from 'abp-bridge/page/bundle';
import { pool, serve } from 'abp-bridge/pool';
import { createHost, createView, toolsOf } from '@abp-bridge/mcp-apps';
import { createView as createSingleView } from '@abp-bridge/mcp-apps/app';
import { serveSandbox } from '@abp-bridge/mcp-apps/sandbox';
import { applyStyles } from '@abp-bridge/mcp-apps/view';
import { useCall, useConnection } from 'abp-bridge/react';
import { RpcError, createPeer, portChannel } from '@abp-bridge/rpc';
import { createRecorder, type Recorder } from '@abp-bridge/inspector/recorder';
import { calls, connection } from 'abp-bridge/svelte';
import { useCall as useVueCall, useConnection as useVueConnection } from 'abp-bridge/vue';
import { shallowRef } from 'vue';
import { callsTool, settled } from '@abp-bridge/webmcp/settled';
import { Tasks, ready as tasksReady } from '@abp-bridge/a2a/tasks';
import { abpBridge } from 'abp-bridge/vite';
import { connectTools, webmcp } from '@abp-bridge/webmcp';
import {
  extensionTransport,
  fromOrigins,
  servePorts,
  webSocketTransport,
  windowTransport,
  type ExtensionPort,
} from 'abp-bridge/transports';
import { pageTools } from '@abp-bridge/webmcp/page-tools';

const exposed = expose(
  {
    app: { id: 'a.b', name: 'A', version: '1' },
    capabilities: {
      'text.echo': async (params, { signal, progress, elicit, call, callId, input }) => {
        if (input) for await (const value of input) progress({ progress: Number(value) });
        signal.throwIfAborted();
        progress({ progress: 1, total: 2 });
        const answer = await elicit({ method: 'elicitation/confirm', params: { message: callId } });
        if (!answer.success) throw new AbpError('USER_CANCELLED', 'declined', { retryable: true });
        return (await call('other', params, { timeout: 5 })).data;
      },
      other: { handler: () => transfer({ a: 1 }, []), inputSchema: { type: 'object' } },
      // A handler may say what its params are.
      typed: ({ text }: { text: string }) => text,
    },
  },
  { origins: ['https://host.example'], limits: { maxConcurrent: 2 } },
);
exposed.notify('event', 1);
expose(
  {
    app: { id: 'a.b', name: 'A', version: '1' },
    capabilities: {
      rows: async (_params, { breathe, progressToken, ...context }) => {
        await breathe();
        context.progress({ progress: 1, stage: `${progressToken}` });
        return { success: true, data: 1 };
      },
    },
  },
  {
    origins: [],
    onSession: ({ agent, origin, allowedRequests }) =>
      console.log(agent.name, origin, allowedRequests?.length),
    onSessionEnd: ({ features }) => console.log(features.progress),
  },
);
expose((window as unknown as { abp: { initialize(): void; call(): void } }).abp, { origins: [] });

const allowed = fromOrigins(['https://agent.example']);
export function served(socket: WebSocket, request: { headers: { origin?: string } }) {
  if (!allowed(request)) return;
  const transport = webSocketTransport(socket, {
    maxLength: 1000,
    store: async ({ content, mimeType }, { signal }) => {
      const body = new Blob([content], { type: mimeType });
      const { url } = await fetch('https://files.example', { method: 'PUT', body, signal });
      return { downloadUrl: url, expiresAt: Date.now() + 3_600_000 };
    },
  });
  exposed.accept(transport);
  exposed.accept({ ...transport, prepare: (data, { signal }) => (signal.aborted ? null : data) });
  // @ts-expect-error what prepares results is a function
  exposed.accept({ ...transport, prepare: true });
  // @ts-expect-error what was stored has an address
  webSocketTransport(socket, { store: () => ({ size: 1 }) });
  return connect(() => webSocketTransport('wss://app.example/abp'), {
    agent: { name: 'x', version: '1' },
  });
}
const executor = { execute: async () => {}, cancelTask: async (id: string) => console.log(id) };
const behind = createRequestHandler({ name: 'x' }, executor, { grace: 1000 });
void behind.getAgentCard().then(() => behind.server.drain({ ms: 1000 }));
// @ts-expect-error an executor of the SDK can be cancelled
createRequestHandler({ name: 'x' }, { execute: async () => {} });
const workers = pool(() => new Worker('worker.js'), { size: 2, grace: 500 });
exposed.set('image.blur', workers.run('blur'));
exposed.delete('image.blur');
serve({
  blur: async (params, { token, signal, progress }) => {
    token.throwIfCancelled();
    progress({ progress: 1 });
    return token.cancelled || signal.aborted ? undefined : params;
  },
});
// @ts-expect-error a pool's worker is made by a function
pool(new Worker('worker.js'));

const recorder: Recorder = createRecorder({ maxLength: 1000, payloads: true });
console.log(recorder.text.length, recorder.truncated);
export async function agent(iframe: HTMLIFrameElement): Promise<Client> {
  const client = await connect(iframe, {
    origin: 'https://app.example',
    agent: { name: 'x', version: '1' },
    onDisconnect: (error) => console.log(error.code, error.retryable),
    reconnect: { attempts: 5, delay: 100, maxDelay: 1000 },
    onReconnect: (error) => console.log(error ?? 'again'),
    onNotification: (event, data) => console.log(event.length, data),
    onCapabilitiesChanged: ({ added, removed, changed }) =>
      console.log([...added, ...removed, ...changed].join()),
    trace: ({ type, callId, outcome }) => console.log(type, callId, outcome === 'completed'),
    debug: true,
    recorder,
  });
  const response = await client.call('text.echo', 1, {
    signal: AbortSignal.timeout(5),
    onProgress: ({ percentage }) => console.log(percentage?.toFixed(1)),
    retry: true,
  });
  if (response.cancelled) console.log(response.error?.code);
  await client.call('text.echo', 1, { input: new ReadableStream<string>() });
  const inspector = document.querySelector('abp-inspector') as AbpInspector;
  await inspector.attach(client);
  await inspector.attach(exposed);
  inspector.open(recorder.text);
  inspector.detach(client);
  console.log(abpBridge().name, abpBridge({ schemas: true }).apply === 'build');
  const stop = await client.observe(({ error }) => console.log(error?.code));
  stop();
  const { cancelled, reason } = await client.cancel('id', 'why');
  console.log(cancelled, reason?.length);

  // @ts-expect-error an agent must say who it is
  await connect(iframe, { origin: 'https://app.example' });
  // @ts-expect-error a timeout is a number of milliseconds
  await client.call('x', {}, { timeout: '5' });
  // @ts-expect-error a list is not streamed
  await client.call('x', {}, { input: [1] });
  // @ts-expect-error patience is a number of attempts, and delays
  await client.call('x', {}, { retry: 3 });
  // @ts-expect-error an app needs capabilities
  expose({ app: { id: 'a', name: 'b', version: '1' } }, { origins: [] });
  return client;
}

export async function automation(page: { evaluateHandle(script: string): Promise<unknown> }) {
  const client: Client = await connectPage(page, { agent: { name: 'x', version: '1' } });
  // @ts-expect-error what is no page has no apps
  await connectPage({}, { agent: { name: 'x', version: '1' } });
  return client;
}
const tasks = createTaskServer(
  {
    card: { name: 'x' },
    async execute(ctx) {
      ctx.signal.throwIfAborted();
    },
  },
  { grace: 5, limits: { maxTasks: 2 } },
);
createTaskServer({
  card: { name: 'x' },
  execute(ctx) {
    const told: boolean = ctx.emitStatus('working', { parts: [{ text: ctx.message.messageId }] });
    ctx.emitArtifact({ parts: [{ data: told }] }, { append: true });
    // @ts-expect-error a state is one of the protocol's
    ctx.emitStatus('busy');
    // @ts-expect-error an artifact has parts
    ctx.emitArtifact({ artifactId: 'x' });
  },
});
void tasks.fetch(new Request('http://x')).then((response) => response.body);
// @ts-expect-error an agent has an executor
createTaskServer({ card: { name: 'x' } });

const peer = createPeer(
  { post() {}, onMessage() {}, close() {} },
  { dialect: 'acp', limits: { grace: 100 }, onRequest: (_, { method }) => method },
);
peer.handle('session/prompt', async (params, { signal, request, progress, id }) => {
  signal.throwIfAborted();
  progress({ progress: 1 });
  if (id === null) throw new RpcError(-32602, 'no', { params });
  return request('ask', params, { signal, timeout: 5, wait: false });
});
peer.handle('typed', ({ text }: { text: string }) => text);
peer.onNotification('*', (params, { method }) => console.log(params, method));
export const rpc: Promise<unknown> = peer.request(
  'x',
  {},
  { onProgress: (info) => console.log(info) },
);
const tracing = createPeer(
  { post() {}, onMessage() {}, close() {} },
  {
    dialect: 'mcp',
    start: false,
    trace: ({ type, message, error }) => console.log(type, message, error),
  },
);
tracing.removeHandler('x').removeListener('*').start();
void tracing.closed.then(({ code, data, cause }) => console.log(code, data, cause));
// @ts-expect-error there are three dialects
createPeer({ post() {}, onMessage() {}, close() {} }, { dialect: 'soap' });

export async function discovery(signal: AbortSignal) {
  const found = await discover('https://app.example', { signal, timeout: 5, allowPrivate: true });
  if (!found.supported) return `${found.code}: ${found.reason}`;
  // @ts-expect-error what is supported has no reason why not
  console.log(found.reason);
  return [found.manifest.app.name, found.manifestUrl, ...found.warnings].join();
}
manifestOf({ app: { id: 'a.b', name: 'A', version: '1' }, capabilities: { x: () => 1 } });
// @ts-expect-error a manifest names the app
manifestOf({ capabilities: {} });

export async function tools(frame: HTMLIFrameElement) {
  const agent = { name: 'a', version: '1' };
  const app = { id: 'a.b', name: 'A', version: '1' };
  const origin = 'https://app.example';
  const client = await connectTools(frame, { origin, agent, timeout: 5 });
  expose({ app, capabilities: {} }, { origins: [origin], webmcp: webmcp({ origins: [origin] }) });
  // @ts-expect-error the option takes what webmcp() returns
  expose({ app, capabilities: {} }, { origins: [origin], webmcp: true });
  return (await client.call('x')).success && (await connectTools(document, { agent })).connected;
}

export async function wrapped() {
  const tool = settled({
    name: 'count',
    title: 'Counts',
    async execute({ to }: { to: number }, { signal, report }) {
      for (let i = 0; i < to; i++) {
        signal.throwIfAborted();
        report({ applied: i, remaining: to - i });
      }
    },
  });
  // @ts-expect-error it is JSON
  settled({ name: 'x', execute: (_input, { report }) => report(5) });
  return [tool.title, await tool.execute({ to: 3 }), callsTool({ name: 'calls' }).name];
}

export function adapted(port: MessagePort) {
  return [acpStream(portChannel(port)), mcpTransport(portChannel(port))];
}
// @ts-expect-error an adapter takes a transport
mcpTransport({});
export const sameInPage: typeof connect = connectInPage;
export const sameInOneFile: typeof connect = connectInOneFile;

export async function mcpApps(iframe: HTMLIFrameElement, signal: AbortSignal) {
  const view = await createView({
    app: { name: 'View', version: '1' },
    tools: toolsOf(exposed),
    displayModes: ['inline', 'fullscreen'],
    onToolInput: ({ arguments: args }) => console.log(args),
    onTeardown: async ({ reason }) => console.log(reason),
  });
  applyStyles(view.context);
  const { content } = await view.callTool('search', { q: 1 }, { signal, timeout: 5 });
  const mode: 'inline' | 'fullscreen' | 'pip' = await view.requestDisplayMode('fullscreen');
  // @ts-expect-error there are three modes
  await view.requestDisplayMode('huge');
  const host = await createHost(iframe, {
    host: { name: 'Host', version: '1' },
    sandbox: 'https://sandbox.example/',
    resource: { text: '<p>' },
    server: (method, params, { signal, progress }) => [method, params, signal.aborted, progress],
    onOpenLink: (url) => void open(url),
    onDisplayMode: (mode) => mode,
  });
  const client = await connect(() => host.transport(), { agent: { name: 'a', version: '1' } });
  await host.close({ reason: 'done', timeout: 5 });
  serveSandbox({ hosts: ['https://host.example'] });
  // @ts-expect-error a sandbox names its hosts
  serveSandbox({});
  return [content, mode, client.app?.name, createSingleView === createView];
}
// @ts-expect-error a host has a sandbox
void createHost(document.createElement('iframe'), { host: { name: 'x', version: '1' } });

export function frameworks(iframe: { current: HTMLIFrameElement | null }) {
  const options = { origin: 'https://app.example', agent: { name: 'x', version: '1' } };
  const { client, status } = useConnection(iframe, options);
  const { call, cancel, pending, progress, response } = useCall(client, 'export.pdf');
  void call({ title: 'x' }, { timeout: 5 }).then(({ success }) => console.log(success));
  cancel('enough');
  console.log(status === 'connected', pending, progress?.percentage, response?.error?.code);
  // @ts-expect-error there is no such status
  console.log(status === 'open');

  const inVue = useVueConnection(shallowRef(iframe.current), options);
  const vueCall = useVueCall(inVue.client, () => 'export.pdf');
  console.log(inVue.status.value === 'failed', vueCall.response.value?.data);

  const writer = connection(options);
  const pdf = calls(writer, 'export.pdf');
  writer.subscribe((state) => console.log(state.client?.app?.name));
  pdf.subscribe(({ pending }) => console.log(pending));
  return pdf.call();
}

export async function tableOfTasks() {
  await tasksReady();
  const tasks = new Tasks<{ name: string; onAbort(): void; onState(): void }>({ maxTasks: 8 });
  const task = tasks.begin('id', { name: 'x', onAbort() {}, onState() {} });
  task?.says('input-required');
  task?.lease(1000);
  // @ts-expect-error there is no such state
  task?.says('input_required');
  return [task?.state === 'working', tasks.find('id')?.name.length];
}

export function stored(backend: Backend) {
  const execute = async ({
    attempt,
    flushed,
  }: {
    attempt: number;
    flushed: () => Promise<void>;
  }) => {
    if (attempt > 1) await flushed();
  };
  const store = taskStore({
    backend,
    onOrphan: 'rerun',
    saveRequest: ({ metadata }) => ({ metadata }),
  });
  // @ts-expect-error a store has a backend
  taskStore({});
  return [createTaskServer({ card: { name: 'x' }, execute }, { store }), memoryBackend().maxRecord];
}

/** As `@types/chrome` has it. */
interface ChromeEvent<T extends (...args: any) => void> {
  addListener(callback: T): void;
  removeListener(callback: T): void;
}
interface ChromePort {
  postMessage: (message: any) => void;
  disconnect: () => void;
  sender?: { id?: string; origin?: string } | undefined;
  onDisconnect: ChromeEvent<(port: ChromePort) => void>;
  onMessage: ChromeEvent<(message: any, port: ChromePort) => void>;
  name: string;
}
export function extension(port: ChromePort, popup: Window | null) {
  const agent = { name: 'a', version: '1' };
  const known: ExtensionPort = port;
  const stop: () => void = servePorts(exposed, { origins: ['https://a.example'], name: 'mine' });
  // @ts-expect-error the origins are a list
  servePorts(exposed, { origins: 'https://a.example' });
  // @ts-expect-error a window needs an origin
  windowTransport(popup, {});
  return [
    stop,
    connect(() => extensionTransport(known, { maxLength: 5 }), { agent }),
    connect<typeof exposed>(() => windowTransport(popup, { origin: 'https://a.example' }), {
      agent,
    }),
  ];
}

export const own: Transport = portTransport(new MessageChannel().port1);
export const forPackages = [ownBackend(), CoreModule, pageTools({ patience: 1 }).found];
