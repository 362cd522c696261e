// A view of ext-apps.
import { App } from '@modelcontextprotocol/ext-apps';
import { calling, control, hang, note, policy } from './control.js';

console.debug = () => {};
const say = (what) => (params) => note(`${what} ${JSON.stringify(params)}`);
const app = new App(
  { name: 'View', version: '1' },
  {
    tools: { listChanged: true },
    availableDisplayModes: ['inline', 'fullscreen'],
  },
);
const tools = ['text.echo', 'hang'].map((name) => ({ name, inputSchema: { type: 'object' } }));
app.onlisttools = () => ({ tools });
app.oncalltool = ({ name, arguments: args }, { mcpReq }) => {
  if (name === 'hang') return hang(mcpReq.signal);
  return { content: [], structuredContent: args };
};
app.ontoolinput = say('input');
app.ontoolresult = say('result');
app.ontoolcancelled = say('cancelled');
app.onhostcontextchanged = say('context');
app.onteardown = () => (note('teardown'), {});
app.onerror = (error) => note(`error ${error.message}`);
await app.connect();
control({
  policy,
  ...calling((name, args, signal, onprogress) =>
    app.callServerTool({ name, arguments: args }, { signal, onprogress }),
  ),
  about: () => ({ host: app.getHostVersion(), context: app.getHostContext() }),
  read: (uri) => app.readServerResource({ uri }),
  message: async (text) => {
    await app.sendMessage({ role: 'user', content: [{ type: 'text', text }] });
  },
  open: async (url) => void (await app.openLink({ url })),
  know: async (context) => void (await app.updateModelContext(context)),
  mode: async (mode) => (await app.requestDisplayMode({ mode })).mode,
  write: (data) => app.sendLog({ level: 'info', data }),
  leave: () => app.requestTeardown(),
  reload: () => void setTimeout(() => location.reload()),
  away: (url) => void setTimeout(() => (location.href = url)),
  grow(height) {
    document.body.style.cssText = `margin:0;height:${height}px`;
  },
});
note('begun');
