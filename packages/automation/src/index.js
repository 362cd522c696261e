/** An agent in Node, and apps in the pages of a browser that it drives with Puppeteer or Playwright. */
import { connect } from '../../../js/agent/client.js';
import { parts } from '../../../js/common/parts.js';
import { REPORTERS } from '../../page/src/reporters.js';
import { keepPlaces } from './page-agent.js';
import { connectToPage } from './page.js';
import { TOOLS } from './tools-way.js';

export { Client } from '../../../js/agent/client.js';
export { AbpError } from '../../../js/common/errors.js';

parts.trace = () => import('../../inspector/src/trace.js');

/** @typedef {import('./page.js').PageLike} PageLike */

/**
 * Installs the functions that apps call to report, before their page loads. Only apps that look for these functions once,
 * early, need this; most look for them each time they report.
 * @param {{ evaluateOnNewDocument?: (script: any) => Promise<unknown>, addInitScript?: (script: any) => Promise<unknown> }} page
 *   a Page of Puppeteer or Playwright, or a context of the latter, before the app's page is opened in it
 * @returns {Promise<void>} resolves when documents that are opened from now on have them
 */
export async function preparePage(page) {
  const script = `(${keepPlaces})(${JSON.stringify(Object.values(REPORTERS).flat())})`;
  if (page.evaluateOnNewDocument) await page.evaluateOnNewDocument(script);
  else await page.addInitScript?.(script);
}

/**
 * @typedef {Omit<import('../../../js/agent/client.js').ConnectOptions, 'origin' | 'upgrade'> & { webmcp?: boolean }} PageOptions
 *   `timeout` is how long to wait for `window.abp`, and then for its answer. `webmcp` takes the page's WebMCP tools where
 *   it has no `window.abp` (false): see docs/webmcp.md
 */

/**
 * Connects to the app of a page that Puppeteer or Playwright drives: to its `window.abp`, whichever library made it.
 * @template [App=any] what the client knows of the app; see `connect`
 * @param {import('./page.js').PageLike} target a Page, whose main frame is meant, or a Frame
 * @param {PageOptions} options
 * @returns {Promise<import('../../../js/agent/client.js').Client<App>>} rejects with an AbpError when there is no app, or it refuses
 */
export function connectPage(target, options) {
  /** @type {Promise<void> | undefined} */
  let after;
  const { webmcp, ...rest } = options ?? {};
  return connect(async () => {
    const { timeout, signal, limits } = rest;
    const tools = webmcp ? TOOLS : undefined;
    const connection = await connectToPage(target, { timeout, signal, limits, after, tools });
    after = connection.ended;
    return connection.transport;
  }, rest);
}
