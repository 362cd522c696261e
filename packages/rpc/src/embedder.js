/**
 * From a page to the one that embeds it, whoever that is. As long as this page lives, that window has the same document: a
 * page dies with the one that embeds it. So the window tells who speaks. Its origin is where messages are posted to as soon
 * as it is known: from the browser, or from the first message that comes.
 */
import { safely } from '../../../js/common/errors.js';
import { Receiver } from '../../../js/transports/receiver.js';
import { OPAQUE } from '../../../js/transports/iframe.js';

/**
 * The origin of the page that embeds this one; undefined if the browser does not say. A page of the same origin can be
 * asked, and some browsers list the origins of the others.
 * @param {Window} embedder
 * @returns {string | undefined}
 */
const originOf = (embedder) =>
  safely(() => /** @type {{ origin?: string }} */ (embedder).origin, undefined) ??
  /** @type {Partial<Location>} */ (location).ancestorOrigins?.[0];

export class EmbedderTransport extends Receiver {
  #embedder;
  #origin;

  /** @param {Window} embedder */
  constructor(embedder) {
    super();
    this.#embedder = embedder;
    this.#origin = originOf(embedder);
    addEventListener('message', this.#hear);
  }

  /**
   * @param {unknown} message
   * @param {Transferable[]} [transfer]
   */
  post(message, transfer) {
    if (this.stopped) return;
    // No target names an opaque origin. Until the origin is known, nothing is posted but what may be read by anybody.
    const targetOrigin = this.#origin === OPAQUE ? '*' : (this.#origin ?? '*');
    this.#embedder.postMessage(message, { targetOrigin, transfer });
  }

  /** @override */
  end() {
    removeEventListener('message', this.#hear);
  }

  #hear = (/** @type {MessageEvent} */ event) => {
    const { origin } = event;
    if (!event.isTrusted || event.source !== this.#embedder) return;
    this.#origin ??= origin;
    if (origin !== this.#origin) return;
    this.receive(event.data, event.ports);
  };
}
