/** Window messages, from an app to the window that embeds or opened it. */
import { UPGRADABLE } from './port.js';

/**
 * Makes a transport to a window. The app itself listens to messages from there (js/app/listen.js).
 * @param {MessageEventSource} source the window
 * @param {string} origin exact
 * @returns {import('./transport.js').Transport}
 */
export function peerTransport(source, origin) {
  return {
    target: source,
    origin,
    post: (message, transfer) =>
      /** @type {Window} */ (source).postMessage(message, { targetOrigin: origin, transfer }),
    onMessage() {},
    close() {},
    carries: UPGRADABLE,
  };
}
