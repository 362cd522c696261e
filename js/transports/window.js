/**
 * Window messages. A message counts only if the browser made the event, the origin is exactly
 * right, and it comes from the right window. Read `event.origin` before `event.data`: in the other
 * order, Chromium takes milliseconds for large messages from other sites.
 */
import { listen } from './listen.js';
import { UPGRADABLE } from './port.js';

/**
 * From an app to the window that embeds or opened it. Messages from that window arrive through
 * `listenToWindow`.
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

/**
 * Listens to windows of the given origins.
 * @param {ReadonlySet<string>} origins exact ones
 * @param {(source: MessageEventSource, origin: string, data: unknown) => void} heard called for
 *   each message. Ports that come along are left to others: an agent in this page may be offered
 *   one
 * @param {(origin: string, event: MessageEvent) => void} [refused] called for messages from other
 *   origins
 * @returns {() => void} stops it
 */
export function listenToWindow(origins, heard, refused) {
  const receive = (/** @type {MessageEvent} */ event) => {
    const { origin, source } = event;
    // Messages from our own window are an echo or a forgery: we send nothing to ourselves.
    if (!event.isTrusted || !source || source === globalThis.window) return;
    if (!origins.has(origin)) refused?.(origin, event);
    else heard(source, origin, event.data);
  };
  return listen([[globalThis, 'message', receive]]);
}
