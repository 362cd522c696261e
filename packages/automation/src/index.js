/**
 * An agent in Node, and apps in the pages of a browser that it drives with Puppeteer or Playwright.
 *
 * How it is made. `connectPage` injects one object into the page (in-page.js, which the build makes
 * into one text with all its imports), and exposes nothing. A `PageTransport` here requests the
 * next lines from that object and sends it ours, by `evaluate`; clone-codec.js turns values into
 * text. At the other end is one of these:
 *   - An app of this library: the lines are the protocol's messages, between its endpoint there and
 *     the client here.
 * - A foreign app. js/foreign/foreign-app.js, in the page, gives it one form: apps differ in how
 *   they report, list and cancel. The lines are requests to it, and its reports (`remoteApp` in
 *   page.js).
 * - WebMCP tools, on request: `pageTools` of `@abp-bridge/webmcp` shows them in the form of
 *   `window.abp`, and they are treated like a foreign app.
 *
 * A foreign app has its endpoint on this side: js/foreign/relay-transport.js joins the client to a
 * connection of an app, whose registry is foreign-capabilities.js. A call goes from the client
 * through the core to `run` there, by lines to `call` of the app, and its response the same way
 * back. A cancel is the core's `onStop`: the app is asked, and its answer is an input of the core
 * (`cancel_answered`), which decides the call's end. JavaScript holds the contexts of the running
 * calls, by the ids that the app has for them, and the questions that wait for answers; in the
 * page, the functions that were installed there. `expose` uses the same for an app in its own page,
 * and packages/mcp-apps for the tools of a view.
 */
import { connect } from 'abp-bridge';
import { REPORTERS } from 'abp-bridge/driver';
import { keepPlaces } from './page-agent.js';
import { connectToPage } from './page.js';

export { AbpError, Client } from 'abp-bridge';

/** @typedef {import('./page.js').PageLike} PageLike */

/**
 * Installs the functions that apps call to report, before their page loads. Only apps that look for
 * these functions once, early, need this; most look for them at each report.
 * @param {{ evaluateOnNewDocument?: (script: any) => Promise<unknown>, addInitScript?: (script:
 *   any) => Promise<unknown> }} page a Page of Puppeteer or Playwright, or a context of the latter,
 *   before the app's page is opened in it
 * @returns {Promise<void>} resolves when documents that are opened from now on have them
 */
export async function preparePage(page) {
  const script = `(${keepPlaces})(${JSON.stringify(Object.values(REPORTERS).flat())})`;
  if (page.evaluateOnNewDocument) await page.evaluateOnNewDocument(script);
  else await page.addInitScript?.(script);
}

/**
 * @typedef {Omit<import('abp-bridge').ConnectOptions, 'origin' | 'upgrade'>
 *   & { webmcp?: boolean }} PageOptions `timeout` is how long to wait for `window.abp`, and then
 *   for its answer. `webmcp` takes the page's WebMCP tools where it has no `window.abp` (false):
 *   see docs/webmcp.md of @abp-bridge/webmcp
 */

/**
 * Connects to the app of a page that Puppeteer or Playwright drives: to its `window.abp`, of any
 * library.
 * @template [App=any] the client's knowledge of the app; see `connect`
 * @param {import('./page.js').PageLike} target a Frame, or a Page, which stands for its main frame
 * @param {PageOptions} options
 * @returns {Promise<import('abp-bridge').Client<App>>} rejects with an AbpError if there is no app,
 *   or it refuses
 */
export function connectPage(target, options) {
  /** @type {Promise<void> | undefined} */
  let after;
  const { webmcp, ...rest } = options ?? {};
  return connect(async () => {
    const connection = await connectToPage(target, { ...rest, webmcp }, after);
    after = connection.ended;
    return connection.transport;
  }, rest);
}
