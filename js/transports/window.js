/**
 * Window messages. A message counts only if the browser made the event, the origin is exactly right, and it comes from
 * the right window. Read `event.origin` before `event.data`: in the other order, Chromium takes milliseconds for large
 * messages from other sites.
 */
import { safely } from '../common/errors.js';
import { Receiver } from './receiver.js';

/** `port`: the app's document can offer a port, which is better than the window. @type {readonly import('./transport.js').Feature[]} */
const carries = ['port', 'frames', 'liveness', 'streams'];

/** The origin of a sandboxed frame, and the value of the `origin` option that means it. */
export const OPAQUE = 'null';

/**
 * The origin of a window's document, if this page may see it.
 * @param {Window | null} target
 * @returns {string | undefined}
 */
export const visibleOrigin = (target) =>
  safely(() => /** @type {any} */ (target)?.origin, undefined);

/**
 * From a host page to its iframe.
 * @param {HTMLIFrameElement} iframe where the app is
 * @param {string} origin exact, or OPAQUE: then only greetings are sent
 * @returns {import('./transport.js').Transport & { stranger?: string }}
 */
export const iframeTransport = (iframe, origin) => new IframeTransport(iframe, origin);

class IframeTransport extends Receiver {
  carries = carries;
  /** Another origin from which a document in the frame spoke. @type {string | undefined} */
  stranger = undefined;
  #iframe;
  #origin;

  /**
   * @param {HTMLIFrameElement} iframe
   * @param {string} origin
   */
  constructor(iframe, origin) {
    super();
    this.#iframe = iframe;
    this.#origin = origin;
    addEventListener('message', this.#hear);
  }

  /**
   * @param {unknown} message
   * @param {Transferable[]} [transfer]
   * @param {import('./transport.js').MessageKind} [kind]
   */
  post(message, transfer, kind) {
    // No target origin names an opaque origin. Only a greeting may go to an unknown document; the rest waits for the
    // port that the frame's own document offers.
    const opaque = this.#origin === OPAQUE;
    if (this.stopped || (opaque && kind !== 'greeting')) return;
    const targetOrigin = opaque ? '*' : this.#origin;
    const target = this.#iframe.contentWindow;
    // A frame that has begun to load still shows an empty document of our own origin. Browsers log what it is not meant for.
    if (kind === 'greeting' && !opaque && (visibleOrigin(target) ?? targetOrigin) !== targetOrigin)
      return;
    target?.postMessage(message, { targetOrigin, transfer });
  }

  /** @override */
  end() {
    removeEventListener('message', this.#hear);
  }

  #hear = (/** @type {MessageEvent} */ event) => {
    if (!event.isTrusted || !event.source) return;
    if (event.origin !== this.#origin) {
      if (event.source === this.#iframe.contentWindow) this.stranger = event.origin;
      return;
    }
    if (event.source !== this.#iframe.contentWindow) return;
    this.receive(event.data, event.ports);
  };
}

/**
 * From an app to the window that embeds or opened it. Messages from that window arrive through `listenToWindow`.
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
    carries,
  };
}

/**
 * Listens to windows of the given origins.
 * @param {ReadonlySet<string>} origins exact ones
 * @param {(source: MessageEventSource, origin: string, data: unknown, ports: readonly MessagePort[]) => void} heard called for each message
 * @param {(origin: string, event: MessageEvent) => void} [refused] called for messages from other origins
 * @returns {() => void} stops it
 */
export function listenToWindow(origins, heard, refused) {
  const receive = (/** @type {MessageEvent} */ event) => {
    const { origin } = event;
    // Messages from our own window are an echo or a forgery: we send nothing to ourselves.
    if (!event.isTrusted || !event.source || event.source === globalThis.window) return;
    if (!origins.has(origin)) return refused?.(origin, event);
    heard(event.source, origin, event.data, event.ports);
  };
  addEventListener('message', receive);
  return () => removeEventListener('message', receive);
}
