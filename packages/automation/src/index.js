/**
 * An agent in Node, and apps in the pages of a browser that it drives with Puppeteer or Playwright.
 *
 * How it is made. `connectPage` injects one object into the page (in-page.js, which the build makes
 * one text of, with all that it imports), and exposes nothing. A `PageTransport` here asks that
 * object for the next lines and gives it ours, by `evaluate`; values are made text of by
 * clone-codec.js. What is at the other end is one of these:
 *   - An app of this library: the lines are the protocol's messages, between its endpoint there and
 *     the client here.
 *   - An app that is not ours. js/foreign/foreign-app.js, in the page, gives it one form: apps
 *     differ in how they report, list and cancel. The lines ask it, and say what it reports
 *     (`remoteApp` in page.js).
 *   - WebMCP tools, if they are wanted: `pageTools` of `@abp-bridge/webmcp` shows them in the form
 *     of `window.abp`, and they go the same way.
 *
 * An app that is not ours has its endpoint on this side: js/foreign/relay-transport.js joins the
 * client to a connection of an app, whose registry is foreign-capabilities.js. A call goes
 * from the client through the core to `run` there, by lines to `call` of the app, and its response
 * the same way back. A cancel is the core's `onStop`: the app is asked, and its word is an input of
 * the core (`cancel_answered`), which decides what the call came to. Held here are the contexts of
 * the calls that run, by the ids that the app has for them, and the questions that wait for their
 * answers; in the page, the functions that were put there. `expose` uses the same for an app in its
 * own page, and packages/mcp-apps for the tools of a view.
 */
import { connect } from 'abp-bridge';
import { REPORTERS } from 'abp-bridge/driver';
import { keepPlaces } from './page-agent.js';
import { connectToPage } from './page.js';

export { AbpError, Client } from 'abp-bridge';

/** @typedef {import('./page.js').PageLike} PageLike */

/**
 * Installs the functions that apps call to report, before their page loads. Only apps that look for
 * these functions once, early, need this; most look for them each time they report.
 * @param {{ evaluateOnNewDocument?: (script: any) => Promise<unknown>,
 *   addInitScript?: (script: any) => Promise<unknown> }} page a Page of Puppeteer or Playwright, or
 *   a context of the latter, before the app's page is opened in it
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
 * Connects to the app of a page that Puppeteer or Playwright drives: to its `window.abp`, whichever
 * library made it.
 * @template [App=any] what the client knows of the app; see `connect`
 * @param {import('./page.js').PageLike} target a Page, whose main frame is meant, or a Frame
 * @param {PageOptions} options
 * @returns {Promise<import('abp-bridge').Client<App>>} rejects with an AbpError
 *   when there is no app, or it refuses
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
