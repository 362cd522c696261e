// A view of this library, in one file.
import { createView, expose, toolsOf } from '../../../../src/app.js';
import { ready } from '../../../../../rpc/src/rpc-core.js';
import { calling, control, hang, note, policy } from './control.js';

const say = (what) => (params) => note(`${what} ${JSON.stringify(params)}`);
let deaf;
const app = expose(
  {
    app: { id: 'view.app', name: 'View', version: '1' },
    capabilities: {
      'text.echo': {
        description: 'Says it again',
        inputSchema: {
          type: 'object',
          properties: { text: { type: 'string' } },
          required: ['text'],
        },
        handler: (params) => params,
      },
      hang: (_params, { signal }) => hang(signal),
      steps(_params, { progress }) {
        for (let i = 1; i <= 3; i++) progress({ progress: i, total: 3, stage: `step ${i}` });
        return 'done';
      },
      bytes: () => ({ content: new Uint8Array([1, 2, 3]).buffer, mimeType: 'image/png' }),
      nothing() {},
      fails() {
        throw new Error('disk full');
      },
      // Ignores its signal until a command lets it go.
      deaf: () => (note('deaf started'), new Promise((resolve) => (deaf = resolve))),
    },
  },
  { origins: [] },
);
let saves = true;
const view = await createView({
  app: { name: 'View', version: '1' },
  tools: toolsOf(app),
  displayModes: ['inline', 'fullscreen'],
  onToolInput: say('input'),
  onToolResult: say('result'),
  onToolCancelled: say('cancelled'),
  onContextChange: say('context'),
  async onTeardown() {
    note('teardown');
    if (saves) await view.callTool('save').catch(() => {});
  },
  onNotification: (method) => note(method),
});
control({
  policy,
  ...calling((name, args, signal, onProgress) => view.callTool(name, args, { signal, onProgress })),
  saveNothing: () => void (saves = false),
  about: async () => ({
    host: view.hostInfo,
    can: view.hostCapabilities,
    context: view.context,
    core: await ready(),
  }),
  read: (uri) => view.readResource(uri),
  message: (content) => view.sendMessage(content),
  open: (url) => view.openLink(url),
  download: (contents) => view.downloadFile(contents),
  know: (context) => view.updateModelContext(context),
  mode: (mode) => view.requestDisplayMode(mode),
  write: (data) => view.log('info', data),
  leave: () => view.requestTeardown(),
  save: (state) => view.saveState(state),
  load: () => view.loadState(),
  free: () => deaf(),
  set: (name) => app.set(name, () => name),
  remove: (name) => app.delete(name),
  grow(height) {
    document.body.style.cssText = `margin:0;height:${height}px`;
  },
  reload: () => void setTimeout(() => location.reload()),
  takeOut: () => void setTimeout(() => frameElement.remove()),
  away: (url) => void setTimeout(() => (location.href = url)),
  // As somebody else would say it: the view itself, and a window in its own.
  echo: (message) => window.postMessage(message, '*'),
  beside: (message) =>
    new Promise((resolve) => {
      const frame = document.createElement('iframe');
      frame.onload = () => resolve();
      // This script stands in a document itself.
      const said = `parent.postMessage(${JSON.stringify(message)}, '*')`;
      frame.srcdoc = `[script]${said}[/script]`.replace(
        /\[(.*?)\]/g,
        (_, tag) => `${String.fromCharCode(60)}${tag}>`,
      );
      document.body.append(frame);
    }),
  counters: () => ({ view: view.counters, app: app.counters }),
});
note('begun');
