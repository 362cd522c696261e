/**
 * The way to a view, which may begin more than once: React mounts components twice in development, a component comes and
 * goes, a page has two copies of a library. Each beginning is a session, with a peer of its own; the sessions before it
 * are over.
 */
import { getOwn } from '../../../js/common/values.js';
import { Receiver } from '../../../js/transports/receiver.js';
import { windowChannel } from '../../rpc/src/channels.js';
import { createPeer } from '../../rpc/src/peer.js';
import { VIEW_REPLACED } from './protocol.js';

/** @import { Transport } from '../../../js/transports/transport.js' */
/** @import { Peer } from '../../rpc/src/peer.js' */

/**
 * @typedef {object} ConversationOptions
 * @property {string} origin of the sandbox, exact
 * @property {'frames' | 'none'} [upgrade]
 * @property {import('../../rpc/src/rpc-core.js').Limits} [limits]
 * @property {(peer: Peer) => void} onSession called for each peer, before it hears anything
 * @property {Transport} [transport] in place of the iframe's window
 * @property {() => boolean} isBegun whether the session has begun, so that another beginning ends it
 */

/** What one session has of the transport. */
class SessionTransport extends Receiver {
  #transport;
  #left;

  /**
   * @param {Transport} transport
   * @param {(session: SessionTransport) => void} left called when nothing more is sent or received
   */
  constructor(transport, left) {
    super();
    this.#transport = transport;
    this.#left = left;
  }

  /** @type {Transport['post']} */
  post(message, transfer, kind) {
    if (!this.stopped) this.#transport.post(message, transfer, kind);
  }

  /** @override */
  end() {
    this.#left(this);
  }
}

export class Conversation {
  #iframe;
  #window;
  #options;
  #transport;
  /** @type {SessionTransport} */
  #session;
  #resolveClosed = (/** @type {Error} */ _why) => {};
  /** Resolves when nothing is sent or heard any more, with why. @type {Promise<Error>} */
  closed = new Promise((resolve) => (this.#resolveClosed = resolve));

  /** @param {HTMLIFrameElement | undefined} iframe none where a transport is given @param {ConversationOptions} options */
  constructor(iframe, options) {
    this.#iframe = iframe;
    this.#window = iframe?.contentWindow ?? null;
    this.#options = options;
    this.#transport = this.#openTransport(false);
    this.#session = this.#openSession();
    this.peer = this.#openPeer();
    if (!iframe) return;
    addEventListener('message', this.#hear);
    void this.closed.then(() => removeEventListener('message', this.#hear));
  }

  /** What the sandbox says of the view's document counts also while the view speaks by a port. */
  #hear = (/** @type {MessageEvent} */ { isTrusted, origin, source, data }) => {
    if (!isTrusted || origin !== this.#options.origin || source !== this.#window) return;
    if (getOwn(data, 'method') === VIEW_REPLACED) this.peer.close();
  };

  /** @param {boolean} loaded whether the sandbox is there */
  #openTransport(loaded) {
    const { origin, upgrade, transport } = this.#options;
    const iframe = /** @type {HTMLIFrameElement} */ (this.#iframe);
    const opened = transport ?? windowChannel(iframe, { origin, upgrade, loaded });
    opened.onMessage = (message) => {
      // One that has not begun is asked nothing, so there is nothing to end.
      if (getOwn(message, 'method') === 'ui/initialize' && this.#options.isBegun()) this.#renew();
      this.#session.receive(message);
    };
    opened.onUnreadable = (error) => this.#session.receiveUnreadable(error);
    opened.onClose = (cause) => this.#lost(cause);
    return opened;
  }

  #openSession() {
    return new SessionTransport(this.#transport, (session) => {
      if (session === this.#session) this.#transport.close();
    });
  }

  #openPeer() {
    const { limits, onSession } = this.#options;
    const peer = createPeer(this.#session, { dialect: 'mcp', limits });
    void peer.closed.then((why) => peer === this.peer && this.#resolveClosed(why));
    onSession(peer);
    return peer;
  }

  /** @param {unknown} [cause] why the session ends */
  #renew(cause) {
    const before = this.#session;
    this.#session = this.#openSession();
    this.peer = this.#openPeer();
    before.lose(cause);
    before.stop();
  }

  /** @param {unknown} cause none where the view has ended its session in an orderly way */
  #lost(cause) {
    const isThere = this.#window !== null && this.#iframe?.contentWindow === this.#window;
    if (isThere && !getOwn(this.#transport, 'isReplaced')) {
      // The view has closed its end, or another has spoken in its document. It may begin again.
      this.#transport = this.#openTransport(true);
      this.#renew(cause);
      return;
    }
    this.#session.lose(cause);
    this.#session.stop();
  }
}
