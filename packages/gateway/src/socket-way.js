/** The way to an app behind a WebSocket. */
import { connect } from 'abp-bridge';
import { webSocketTransport } from 'abp-bridge/websocket';
import { WebSocket } from 'ws';

/** Bytes of the longest message: the same as the transport's own limit, before it is in memory. */
const MAX_PAYLOAD = 32 << 20;
/** How long the app may take to answer, in ms. */
const DEFAULT_TIMEOUT = 30_000;

export class SocketWay {
  #url;
  #timeout;

  /**
   * @param {URL} url
   * @param {{ timeout?: number }} [options]
   */
  constructor(url, { timeout = DEFAULT_TIMEOUT } = {}) {
    this.#url = url;
    this.#timeout = timeout;
  }

  /**
   * @param {Parameters<typeof connect>[1]} options all but the timeout, which is the way's own
   * @returns {Promise<import('abp-bridge').Client>}
   */
  connect(options) {
    const open = () =>
      webSocketTransport(
        /** @type {Parameters<typeof webSocketTransport>[0]} */ (
          new WebSocket(this.#url, { maxPayload: MAX_PAYLOAD })
        ),
      );
    return connect(open, { ...options, timeout: this.#timeout });
  }

  /** A connection that is silent is noticed by its session. */
  async responds() {
    return true;
  }

  /** There is none. @type {undefined} */
  profile = undefined;

  /** It downloads nothing. */
  async settle() {}

  async release() {}
  async close() {}
  kill() {}
}
