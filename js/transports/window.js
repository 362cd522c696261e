/** Window messages, from an app to the window that embeds or opened it. */
import { UPGRADABLE } from './port.js';

/**
 * Makes a transport to a window. What comes from there the app listens to itself
 * (js/app/listen.js).
 * @param {MessageEventSource} source that window
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
