// The host's page: shows a view by this library's host or by ext-apps' AppBridge, in one form. What
// happens is noted in window.log, by the server's handlers here and by the view's there.
import { AppBridge, PostMessageTransport } from '@modelcontextprotocol/ext-apps/app-bridge';
import { connect } from '../../../../../parts/main/index.js';
import { createPeer, portChannel } from '../../../../rpc/src/index.js';
import { createHost } from '../../../src/index.js';

// ext-apps reports every message there.
console.debug = () => {};
window.warned = [];
const { warn } = console;
console.warn = (...said) => {
  window.warned.push(said.join(' '));
  warn(...said);
};

window.log = [];
const note = (line) => void window.log.push(line);
/** Window messages that arrived, by origin. */
window.heard = {};
/**
 * Answers of the view to the test's own messages, which are no JSON-RPC and are relayed as all
 * others.
 */
const asked = new Map();
addEventListener('message', ({ origin, data, source }) => {
  window.heard[origin] = (window.heard[origin] ?? 0) + 1;
  if (source !== window.iframe?.contentWindow) return;
  if (typeof data?.note === 'string') note(data.note);
  asked.get(data?.answer)?.(data);
});

/** Has the view do something. */
window.view = (command, ...args) =>
  new Promise((resolve) => {
    const id = asked.size + 1;
    asked.set(id, ({ value, error }) => resolve(error ? { error } : { value }));
    window.iframe.contentWindow.postMessage({ command, args, id }, '*');
  });

const text = (value) => ({ content: [{ type: 'text', text: JSON.stringify(value) }] });
/** The server behind the host. */
const tools = {
  echo: (args) => ({ ...text(args), structuredContent: args }),
  hang(_args, { signal, progress }) {
    note('server started');
    progress?.({ progress: 1, total: 2, message: 'half' });
    return new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => {
        note(`server aborted: ${signal.reason.message ?? signal.reason}`);
        reject(signal.reason);
      }),
    );
  },
  save: () => (note('server saved'), text('saved')),
  // Ends well in spite of a cancel.
  late(_args, { signal }) {
    note('late started');
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve(text('late'))));
  },
};
const server = (method, params, context) => {
  if (method === 'tools/call') return tools[params.name](params.arguments, context);
  return { contents: [{ uri: params.uri, text: 'read' }] };
};

/** A server that says which of its tools are for views. */
const listed = {
  request: async (method, params) =>
    method === 'tools/list'
      ? {
          tools: [
            { name: 'both' },
            { name: 'model.only', _meta: { ui: { visibility: ['model'] } } },
          ],
        }
      : { content: [], structuredContent: params.arguments },
};

/** The same tools behind a server of MCP. */
async function mcpServer() {
  const { port1, port2 } = new MessageChannel();
  const [near, far] = [port1, port2].map((port) =>
    createPeer(portChannel(port), { dialect: 'mcp' }),
  );
  far.handle('tools/list', () => ({
    tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: 'object' } })),
  }));
  far.handle('tools/call', (params, context) => server('tools/call', params, context));
  return near;
}

/** Refuses or does what a view asks. */
const does = (what) => (value) => {
  note(`${what} ${JSON.stringify(value)}`);
  if (JSON.stringify(value).includes('refuse')) throw new Error('no');
};
const context = { theme: 'dark', displayMode: 'inline' };

const HOSTS = {
  async ours({ iframe, sandbox, html, ui, byList, byServer, own, ...more }) {
    const resource = { mimeType: 'text/html;profile=mcp-app', text: html, _meta: { ui } };
    const host = await createHost(iframe, {
      host: { name: 'host', version: '1' },
      sandbox: own ? () => sandbox : sandbox,
      resource,
      server: byServer ? await mcpServer() : byList ? listed : server,
      context,
      onOpenLink: does('open'),
      onMessage: does('message'),
      onModelContext: does('context'),
      onDownloadFile: does('download'),
      onDisplayMode: (mode) => (note(`mode ${mode}`), mode),
      onLog: does('log'),
      onSize: ({ height }) => (window.height = height),
      onRequestTeardown: () => note('wants to go'),
      onClose: () => note('closed'),
      ...more,
    });
    const client = await connect(() => host.transport(), {
      agent: { name: 'agent', version: '1' },
      onCapabilitiesChanged: (changes) => note(`changed ${JSON.stringify(changes)}`),
      onDisconnect: () => note('disconnected'),
    });
    window.host = host;
    window.client = client;
    window.connectView = () =>
      connect(() => host.transport(), { agent: { name: 'another', version: '1' } });
    return {
      call: (name, args, options) => client.call(name, args, options),
      input: (args) => host.toolInput(args),
      result: (result) => host.toolResult(result),
      cancelled: (reason) => host.toolCancelled(reason),
      context: (changes) => host.setContext(changes),
      teardown: () => host.request('ui/resource-teardown', { reason: 'enough' }),
      close: () => host.close({ reason: 'enough' }),
    };
  },
  async theirs({ iframe, sandbox, html, src }) {
    const bridge = new AppBridge(
      null,
      { name: 'host', version: '1' },
      { serverTools: {}, serverResources: {}, openLinks: {}, message: { text: {} }, logging: {} },
      { hostContext: context },
    );
    const done = (what) => async (params) => {
      try {
        does(what)(params.url ?? params.content ?? params.contents);
        return {};
      } catch {
        return { isError: true };
      }
    };
    bridge.oncalltool = (params, { mcpReq }) =>
      tools[params.name](params.arguments, {
        signal: mcpReq.signal,
        progress: (info) =>
          mcpReq.notify({
            method: 'notifications/progress',
            params: { progressToken: params._meta?.progressToken, ...info },
          }),
      });
    bridge.onreadresource = ({ uri }) => ({ contents: [{ uri, text: 'read' }] });
    bridge.onopenlink = done('open');
    bridge.onmessage = done('message');
    bridge.ondownloadfile = done('download');
    bridge.onupdatemodelcontext = async ({ content, structuredContent }) => {
      does('context')({ content, structuredContent });
      return {};
    };
    bridge.onrequestdisplaymode = ({ mode }) => (note(`mode ${mode}`), { mode });
    bridge.onloggingmessage = does('log');
    bridge.onsizechange = ({ height }) => (window.height = height);
    bridge.onrequestteardown = () => note('wants to go');
    bridge.onerror = (error) => note(`error ${error.message}`);
    bridge.addEventListener('sandboxready', () => void bridge.sendSandboxResourceReady({ html }));
    const begun = new Promise((resolve) => (bridge.oninitialized = resolve));
    iframe.sandbox = 'allow-scripts allow-same-origin allow-forms';
    await bridge.connect(new PostMessageTransport(iframe.contentWindow, iframe.contentWindow));
    iframe.src = src ?? sandbox;
    await begun;
    window.bridge = bridge;
    return {
      async call(name, args, { signal, onProgress } = {}) {
        const result = await bridge.callTool(
          { name, arguments: args },
          { signal, onprogress: onProgress },
        );
        const { isError, structuredContent } = result;
        return { success: !isError, data: structuredContent, content: result.content };
      },
      list: () => bridge.listTools({}),
      input: (args) => bridge.sendToolInput({ arguments: args }),
      result: (result) => bridge.sendToolResult(result),
      cancelled: (reason) => bridge.sendToolCancelled({ reason }),
      context: (changes) => bridge.setHostContext({ ...context, ...changes }),
      teardown: () => bridge.teardownResource({}),
      close: () => bridge.close(),
    };
  },
};

/** A host that says what a test gives it to say, and keeps what it is told. */
HOSTS.raw = async ({ iframe, sandbox, html }) => {
  window.got = [];
  const origin = new URL(sandbox).origin;
  window.post = (...messages) => {
    for (const message of messages) iframe.contentWindow.postMessage(message, origin);
  };
  const hear = ({ source, data }) => {
    if (source !== iframe.contentWindow || data?.jsonrpc !== '2.0') return;
    window.got.push(data);
    if (data.method === 'ui/notifications/sandbox-proxy-ready') {
      const method = 'ui/notifications/sandbox-resource-ready';
      window.post({ jsonrpc: '2.0', method, params: { html } });
    }
  };
  addEventListener('message', hear);
  iframe.src = sandbox;
  return { close: () => removeEventListener('message', hear) };
};

/** Shows a view. */
window.show = async ({ host, within, ...options }) => {
  window.iframe?.remove();
  // What the last one still says is not of this one.
  await window.host?.closed;
  window.log.length = 0;
  window.iframe = document.createElement('iframe');
  const around = document.createElement('div');
  document.body.append(around);
  const tree = within && around.attachShadow({ mode: within });
  (tree ?? around).append(window.iframe);
  window.takeAway = () => (tree.innerHTML = '');
  window.end = await HOSTS[host]({ iframe: window.iframe, ...options });
};

/**
 * Shows another view beside it, of a server that answers everything with its name. The server is
 * the same for the same name.
 */
const others = new Map();
window.beside = async ({ server: name, html, sandbox, origin }) => {
  if (!others.has(name)) others.set(name, () => ({ content: [], structuredContent: { name } }));
  const iframe = document.createElement('iframe');
  document.body.append(iframe);
  window.besides = [...(window.besides ?? []), iframe];
  const host = await createHost(iframe, {
    host: { name: 'host', version: '1' },
    sandbox: origin ? () => sandbox : sandbox,
    resource: { text: html },
    server: others.get(name),
  });
  return window.hosts?.push(host) ?? (window.hosts = [host]).length;
};

/** Calls by name, of which a test looks at the outcome. */
window.calls = {};
window.call = (key, name, args, more = {}) => {
  const controller = new AbortController();
  const progress = [];
  const onProgress = ({ operationId: _id, ...info }) => progress.push(info);
  const options = { signal: controller.signal, onProgress, ...more };
  const outcome = window.end.call(name, args, options).then(
    (value) => ({ value }),
    ({ name, message, code }) => ({ error: { name, message, code } }),
  );
  window.calls[key] = { controller, outcome, progress };
};
window.isReady = true;
