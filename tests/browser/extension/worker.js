// An app in the worker of an extension, for the extension's own pages and those of one site; and an
// agent of the apps in pages. Without WebAssembly, which the policy of this extension forbids.
import { connect, expose } from 'abp-bridge';
import { extensionTransport, servePorts } from 'abp-bridge/transports';

globalThis.sessions = [];
const app = expose(
  {
    app: { id: 'test.extension', name: 'Test', version: '1' },
    capabilities: {
      echo: (params) => params,
      hang: () => new Promise(() => {}),
      blob: () => ({ content: new Blob(['é']), mimeType: 'text/plain' }),
      count: async function* ({ to }) {
        for (let i = 0; i < to; i++) yield i;
      },
    },
  },
  { onSession: ({ origin }) => globalThis.sessions.push(origin) },
);
servePorts(app, { origins: [location.origin, globalThis.HOST] });

globalThis.askPage = async (id) => {
  const client = await connect(
    () => extensionTransport(chrome.tabs.connect(id, { name: 'abp-bridge' })),
    { agent: { name: 'worker', version: '1' } },
  );
  const { data } = await client.call('where');
  client.close();
  return data;
};
