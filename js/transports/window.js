/**
 * Window messages. Who sent one is decided by three things together: that the browser made the event, the
 * exact origin, and the very window. `event.origin` is read before `event.data`: the other way round,
 * Chromium charges milliseconds for large messages from other sites.
 */
import { FRAMES, LIVENESS, PORT } from '../../dist/abp-constants.js';
import { own } from '../messages.js';

/** The app's document can offer a port, which is better. */
const carries = PORT | FRAMES | LIVENESS;

/** The origin of a sandboxed frame, and the word by which it is asked for. */
export const OPAQUE = 'null';

/**
 * From a host page to its iframe.
 * @param {HTMLIFrameElement} iframe
 * @param {string} origin exact, or OPAQUE
 * @param {(message: unknown) => boolean} [isFirst] whether it is of the first words, which hold no secret
 * @returns {import('../endpoint.js').Transport}
 */
export function iframeTransport(
  iframe,
  origin,
  isFirst = (message) => own(message, 'type') === 'initialize',
) {
  const receive = (/** @type {MessageEvent} */ event) => {
    if (event.origin !== origin || !event.isTrusted) return;
    if (!event.source || event.source !== iframe.contentWindow) return;
    transport.onMessage(event.data, event.ports);
  };
  /** @type {import('../endpoint.js').Transport} */
  const transport = {
    post(message, transfer) {
      // No target names an opaque origin. Only the first words may go to whoever is there; all else waits for
      // the port that the frame's own document offers.
      const opaque = origin === OPAQUE;
      if (opaque && !isFirst(message)) return;
      iframe.contentWindow?.postMessage(message, { targetOrigin: opaque ? '*' : origin, transfer });
    },
    onMessage() {},
    close: () => removeEventListener('message', receive),
    carries,
  };
  addEventListener('message', receive);
  return transport;
}

/**
 * From an app to the window that embeds or opened it. What that window says comes in through `listen`.
 * @param {MessageEventSource} source
 * @param {string} origin exact
 * @returns {import('../endpoint.js').Transport}
 */
export function peerTransport(source, origin) {
  return {
    target: source,
    origin,
    post: (message, transfer) =>
      /** @type {Window} */ (source).postMessage(message, { targetOrigin: origin, transfer }),
    onMessage() {},
    close() {},
    carries,
  };
}

/**
 * Hears the windows of the given origins.
 * @param {ReadonlySet<string>} origins
 * @param {(source: MessageEventSource, origin: string, data: unknown, ports: readonly MessagePort[]) => void} heard
 * @returns {() => void} stops it
 */
export function listen(origins, heard) {
  const receive = (/** @type {MessageEvent} */ event) => {
    const { origin } = event;
    if (!origins.has(origin) || !event.isTrusted || !event.source) return;
    // Frames that look like us and our own echo come from here, and nothing of ours is sent to ourselves.
    if (event.source === globalThis.window) return;
    heard(event.source, origin, event.data, event.ports);
  };
  addEventListener('message', receive);
  return () => removeEventListener('message', receive);
}
