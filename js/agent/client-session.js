/** A session of a client: the endpoint, its handshake, and what is watched as long as it lasts. */
import { watchIframe, watchPage } from '../transports/iframe-watcher.js';

/** @import { AbpError } from '../common/errors.js' */
/** @import { Endpoint } from '../session/endpoint.js' */

export class ClientSession {
  /** Ends the handshake, while it is under way. @type {undefined | ((problem: AbpError | undefined) => void)} */
  settle;
  /** Whether this side has ended it. */
  closed = false;

  /**
   * @param {Endpoint} endpoint
   * @param {HTMLIFrameElement | undefined} iframe in which the app is, if it is in one
   */
  constructor(endpoint, iframe) {
    this.endpoint = endpoint;
    /** Stops watching. */
    this.unwatch = iframe ? watchIframe(iframe, endpoint) : watchPage(endpoint);
  }

  /**
   * Makes the handshake.
   * @param {Record<string, unknown>} hello what the agent says of itself
   * @param {number} limit ms, 0 for none
   * @returns {Promise<void>} rejects if there is no session
   */
  async connect(hello, limit) {
    const { endpoint } = this;
    try {
      for (const name in hello) endpoint.core.describe(name, hello[name]);
      await new Promise((resolve, reject) => {
        this.settle = (problem) => (problem ? reject(problem) : resolve(undefined));
        endpoint.connect(limit);
      });
    } catch (error) {
      this.dispose();
      throw error;
    } finally {
      this.settle = undefined;
    }
  }

  /** Ends it, and says so to the app. */
  close() {
    this.closed = true;
    this.unwatch();
    this.endpoint.close();
  }

  /** It has ended. */
  dispose() {
    this.unwatch();
    this.endpoint.dispose();
  }
}
