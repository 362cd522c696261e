// The host's page: does nothing until a test asks.
import { mcpTransport } from '../../../src/adapters/mcp.js';
import { portChannel, windowChannel } from '../../../src/index.js';
import { SDKS, handlers } from '../../support/sdks.js';
import { note } from './common.js';
import { HOSTS } from './mcp-apps.js';

/** Replaces whatever iframe there is. */
function embed(src, attributes = {}) {
  window.iframe?.remove();
  const iframe = document.createElement('iframe');
  for (const [name, value] of Object.entries(attributes)) iframe.setAttribute(name, value);
  iframe.src = src;
  window.iframe = iframe;
  document.body.append(iframe);
  return iframe;
}

/** Opens an app, and speaks with it by an SDK on our channel. */
window.open_ = async ({ sdk, role = 'client', src, origin, upgrade, attributes, popup }) => {
  window.log.length = 0;
  const target = popup ? window.open(src) : embed(src, attributes);
  const channel = windowChannel(target, { origin, upgrade });
  window.end = await SDKS[sdk].open(role, channel, handlers(note));
};

/** Speaks with the same document anew. */
window.again = async ({ sdk, origin }) => {
  window.end = await SDKS[sdk].open(
    'client',
    windowChannel(window.iframe, { origin }),
    handlers(note),
  );
};

/** Speaks with a worker. */
window.openWorker = async () => {
  const worker = new Worker('/packages/rpc/tests/browser/pages/worker.js', { type: 'module' });
  const channel = portChannel(worker, () => worker.terminate());
  window.end = await SDKS['ACP SDK'].open('client', channel, handlers(note));
};

/** Opens a view of MCP Apps. */
window.openView = async ({ host, src, origin, upgrade, attributes }) => {
  window.log.length = 0;
  const iframe = embed(src, attributes);
  const channel = () => windowChannel(iframe, { origin, upgrade });
  window.end = await HOSTS[host]({ iframe, channel, mcpTransport });
};
Object.assign(window, { embed, windowChannel, isReady: true });
