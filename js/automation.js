/** An agent in Node, and apps in the pages of a browser that it drives with Puppeteer or Playwright. */
import { connect } from './client.js';
import { pageTransport } from './transports/page.js';

export { Client } from './client.js';
export { AbpError } from './errors.js';

/**
 * Connects to the app of a page that Puppeteer or Playwright drives: to its `window.abp`, whoever made it.
 * @param {import('./transports/page.js').PageLike} target a Page, whose main frame is meant, or a Frame
 * @param {Omit<import('./client.js').ConnectOptions, 'origin' | 'upgrade'>} options `timeout` is how long to
 *   wait for `window.abp`, and then for its answer
 * @returns {Promise<import('./client.js').Client>} rejects with an AbpError when there is no app, or it refuses
 */
export function connectPage(target, options) {
  /** @type {Promise<void> | undefined} */
  let after;
  return connect(async () => {
    const { timeout, signal } = options;
    const transport = await pageTransport(target, { timeout, signal, after });
    after = transport.ended;
    return transport;
  }, options);
}
