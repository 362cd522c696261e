/** Window messages between a host page and its iframe; what js/transports/window.js says of them holds here, too. */
import { safely } from '../common/errors.js';
import { UPGRADABLE } from './port.js';
import { Receiver } from './receiver.js';

/** The origin of a sandboxed frame, and the value of the `origin` option that means it. */
export const OPAQUE = 'null';

/**
 * The origin of a window's document, if this page may see it.
 * @param {Window | null} target
 * @returns {string | undefined}
 */
const visibleOrigin = (target) =>
  safely(() => /** @type {{ origin?: string } | undefined} */ (target)?.origin, undefined);

/**
 * From a host page to its iframe.
 * @param {HTMLIFrameElement} iframe where the app is
 * @param {string} origin exact, or OPAQUE: then only greetings are sent
 * @returns {import('./transport.js').Transport & { stranger?: string }}
 */
export const iframeTransport = (iframe, origin) => new IframeTransport(iframe, origin);

class IframeTransport extends Receiver {
  carries = UPGRADABLE;
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
