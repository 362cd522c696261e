// The contract of transports in a page: the ways between two ends, which live in this page and in a
// frame of its own origin.
import { portTransport } from '/js/transports/port.js';
import { hostChannel, windowChannel } from '/packages/rpc/src/index.js';
import { CONTRACT } from '/tests/contracts/transports.js';

const origin = location.origin;
/** In the frame, which is another realm: its end. */
window.appEnd = (upgrade) => hostChannel({ origins: [origin], upgrade });

async function framed(upgrade) {
  const iframe = document.createElement('iframe');
  iframe.src = new URL('blank.html', import.meta.url);
  const loaded = (target) => new Promise((resolve) => (target.onload = resolve));
  document.body.append(iframe);
  await loaded(iframe);
  const script = iframe.contentDocument.createElement('script');
  Object.assign(script, { type: 'module', src: import.meta.url });
  iframe.contentDocument.head.append(script);
  await loaded(script);
  // The last word on the window, if there is to be a port.
  const moved = new Promise((resolve) => {
    if (upgrade === 'none') resolve();
    addEventListener('message', ({ data }) => data?.['abp-bridge'] === 'moved' && resolve());
  });
  const host = windowChannel(iframe, { origin, upgrade, loaded: true });
  const app = iframe.contentWindow.appEnd(upgrade);
  await moved;
  // What is reported by the second one is reported in this realm.
  return [app, host];
}

const TRANSPORT_PAIRS = {
  MessageChannel: () => {
    const { port1, port2 } = new MessageChannel();
    return [port1, port2].map((port) => portTransport(port));
  },
  'an iframe’s window': () => framed('none'),
  'a port of an iframe’s document': () => framed('frames'),
};

/**
 * @param {string} way
 * @param {string} rule
 */
window.hold = async (way, rule) => {
  const ends = await TRANSPORT_PAIRS[way]();
  await CONTRACT[rule](...ends);
  for (const end of ends) end.close();
};
