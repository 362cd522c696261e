// In each page: an app for the extension, and an agent of the extension's app, whose outcome the
// page can read.
import { connect, expose } from 'abp-bridge';
import { extensionTransport, servePorts } from 'abp-bridge/transports';

const sessions = [];
const app = expose(
  {
    app: { id: 'test.page', name: 'Page', version: '1' },
    capabilities: { where: () => ({ href: location.href, sessions }) },
  },
  { origins: [], onSession: ({ origin }) => sessions.push(origin) },
);
servePorts(app);

connect(() => extensionTransport(chrome.runtime.connect({ name: 'abp-bridge' })), {
  agent: { name: 'content', version: '1' },
}).then(
  async (client) => {
    const { data } = await client.call('echo', { text: 'é' });
    document.documentElement.dataset.told = data.text;
  },
  ({ code, message }) => (document.documentElement.dataset.told = `${code} ${message}`),
);
