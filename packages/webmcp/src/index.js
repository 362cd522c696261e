/**
 * The entry `@abp-bridge/webmcp`: an app's capabilities as WebMCP tools, and a client of the tools
 * of a page.
 *
 * How it is made. The rarely needed parts are loaded if a browser, or a polyfill, has
 * `document.modelContext`, or with the first call.
 *
 *   tools.js          the tools of an app. All their callers are one agent of the app: a client at
 *                     the other end of a port
 *   call-log.js       the latest calls, for agents that ask by the tool `abp.calls`
 *   settled.js        the same for foreign tools (a separate entry, without a core)
 *   connect-tools.js  the reverse: the tools of a page as a foreign app (packages/automation)
 *
 * A call of a tool: the browser calls `execute` (tools.js), which makes a call of the client. The
 * app's core runs it as any other, and decides its outcome. WebMCP drops the answer to a call that
 * was aborted, so an agent asks `abp.calls`; that asks the app's core by the call's id, as long as
 * it remembers. JavaScript holds the registered tools, and the values of the last calls (names,
 * times, errors). No states.
 */
import { exactOrigin, reportError, requireOptions } from 'abp-bridge/driver';
import { modelContext } from './model-context.js';
export { AbpError } from 'abp-bridge/driver';

/** @typedef {import('abp-bridge/driver').WebMcp} WebMcp */
/** @typedef {import('./call-log.js').State} CallState */
/** @typedef {import('abp-bridge/driver').ServedApp} ExposedApp */
/**
 * @typedef {import('abp-bridge/driver').Registry} Registry The capabilities of an exposed
 *   app.
 */

/**
 * @typedef {object} WebMcpOptions Options of an app's tools.
 * @property {string[]} [origins] the exact origins of pages whose scripts may see and call the
 *   tools, in frames around or in this one (those of `expose`). Scripts of this page's own origin,
 *   the browser's agent and programs that drive the browser always may
 */

/** @type {import('abp-bridge/driver').Kinds<WebMcpOptions>} */
const OPTIONS = { origins: 'an object' };

/**
 * Makes an app's capabilities WebMCP tools: `expose(definition, { origins, webmcp: webmcp() })`.
 * Each is a tool as long as it is available. Nothing happens, and nothing more is loaded, if there
 * is no `document.modelContext` once the app is ready.
 * @param {WebMcpOptions} [options]
 * @returns {WebMcp}
 * @throws {AbpError} INVALID_PARAMS if an origin is not exact
 */
export function webmcp(options = {}) {
  requireOptions('webmcp', options, OPTIONS);
  const exposedTo = options.origins?.map((origin) => exactOrigin(origin));
  return (app) => {
    /** @type {import('./tools.js').Tools | undefined} */
    let tools;
    let isClosed = false;
    const begin = async () => {
      await app.exposed.ready;
      const context = modelContext();
      if (!context || isClosed) return;
      const { Tools } = await import('./tools.js');
      if (!isClosed) tools = new Tools(context, app, exposedTo ?? app.origins);
    };
    // An app that does not get ready reports that itself.
    begin().catch((error) => isClosed || reportError(error));
    return {
      changed: () => tools?.update(),
      close() {
        isClosed = true;
        tools?.close();
      },
    };
  };
}

/**
 * Connects to the WebMCP tools of this document, or of the one in an iframe, as if they were the
 * capabilities of an app. The page need not know this library. If the page is an app of this
 * protocol, `connect` is better: WebMCP reports neither progress nor the outcome of a cancelled
 * call.
 * @param {Document | HTMLIFrameElement} target this page's `document`, or an iframe in it with
 *   `allow="tools"`, whose tools are exposed to this page's origin
 * @param {Omit<import('abp-bridge/driver').ConnectOptions, 'upgrade'>} options `origin` is the
 *   iframe's exact origin; `timeout` is the ms to wait for the first tool (10000)
 * @returns {Promise<import('abp-bridge/driver').Client>} rejects with an AbpError: `NOT_SUPPORTED`
 *   if the browser has no WebMCP, `PERMISSION_DENIED` if this document may not use it, `TIMEOUT` if
 *   there are no tools
 */
export async function connectTools(target, options) {
  const tools = await import('./connect-tools.js');
  return tools.connectTools(target, options, isLoaded);
}

// --- Iframes that have fired `load` --------------------------------------------------------------
// Only `load` itself shows whether that of a document of another site is still to come. So this
// listens from the start.

/** The address that each had then. @type {WeakMap<EventTarget, string>} */
const loaded = new WeakMap();

/** @param {any} target */
const hasLoaded = (target) => {
  if (target?.localName === 'iframe') loaded.set(target, target.src);
};

/** @param {HTMLIFrameElement} iframe */
const isLoaded = (iframe) =>
  loaded.get(iframe) === iframe.src ||
  // `load` does not leave a shadow tree. There the browser's performance entries help: it makes
  // them with the `load` of another site's document.
  (iframe.getRootNode() !== document &&
    performance
      .getEntriesByName(iframe.src)
      .some((entry) => 'initiatorType' in entry && entry.initiatorType === 'iframe'));

if (globalThis.document) {
  // `load` does not bubble, but it can be captured.
  document.addEventListener('load', ({ target }) => hasLoaded(target), true);
  // A page is loaded when its iframes are, except those that load lazily.
  const early = [...document.querySelectorAll('iframe')].filter(
    ({ loading }) => loading !== 'lazy',
  );
  const all = () => early.forEach(hasLoaded);
  if (document.readyState === 'complete') all();
  else addEventListener('load', all, { once: true });
}
