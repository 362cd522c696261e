import { isLoaded } from './iframe-loads.js';
export { webmcp } from './webmcp.js';
export { AbpError } from '../../../js/common/errors.js';

/** @typedef {import('./webmcp.js').WebMcp} WebMcp */
/** @typedef {import('./webmcp.js').WebMcpOptions} WebMcpOptions */
/** @typedef {import('./webmcp.js').ExposedApp} ExposedApp */
/** @typedef {import('../../../js/app/registry.js').Registry} Registry The capabilities of an exposed app. */

/**
 * Connects to the WebMCP tools of this document, or of the one in an iframe, as if they were the capabilities of an app.
 * They may belong to a page that has never heard of this library. Where the page is an app of this protocol, `connect`
 * reaches it better: WebMCP tells neither progress nor what became of a cancelled call. What does this is loaded with the
 * first call.
 * @param {Document | HTMLIFrameElement} target this page's `document`, or an iframe in it with `allow="tools"`, whose
 *   tools are exposed to this page's origin
 * @param {Omit<import('../../../js/agent/client.js').ConnectOptions, 'upgrade'>} options `origin` is the iframe's exact origin;
 *   `timeout` is how long to wait for the first tool (10000 ms)
 * @returns {Promise<import('../../../js/agent/client.js').Client>} rejects with an AbpError: `NOT_SUPPORTED` where the browser has no
 *   WebMCP, `PERMISSION_DENIED` where this document may not use it, `TIMEOUT` where there are no tools
 */
export async function connectTools(target, options) {
  const tools = await import('./connect-tools.js');
  return tools.connectTools(target, options, isLoaded);
}
