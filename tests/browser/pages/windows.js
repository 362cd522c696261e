// A page that opens windows, or is opened: an app for the origins in its address, and an agent of
// the app in another window.
import { connect, expose } from '/parts/main/index.js';
import { windowTransport } from '/parts/transports/index.js';
import { hostChannel, windowChannel } from '/packages/rpc/src/index.js';

const asked = new URLSearchParams(location.search);
const origins = asked.getAll('origin');
window.calls = 0;
expose(
  {
    app: { id: 'test.window', name: 'Window', version: '1' },
    capabilities: {
      echo: (params) => (window.calls++, params),
      hang: (_params, { signal }) => {
        window.calls++;
        return new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason)),
        );
      },
    },
  },
  { origins },
);
// Somebody whom nobody asked.
if (asked.has('chats')) setInterval(() => opener.postMessage('hello', '*'), 50);

window.lost = [];
/**
 * Connects to the app in a window, by the name of what leads there; the error, if that does not go.
 */
window.dial = async (target, origin, more) => {
  try {
    window.client = await connect(() => windowTransport(window[target], { origin }), {
      agent: { name: 'test', version: '1' },
      onDisconnect: (error) => window.lost.push(String(error.cause ?? error.message)),
      ...more,
    });
    return window.client.features;
  } catch ({ code, message, cause }) {
    return { code, message, why: cause?.message };
  }
};
window.CHANNELS = { hostChannel, windowChannel };
window.isReady = true;
