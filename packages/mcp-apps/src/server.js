/**
 * Helpers for a server of MCP whose tools have views: they call `registerTool` and
 * `registerResource` of its SDK.
 */
import { AbpError } from 'abp-bridge/driver';
import { MIME_TYPE, defined } from './protocol.js';

/**
 * The used part of a server of the official SDK (`McpServer`).
 * @typedef {{ registerTool: (name: string, config: any, handler: any) => any,
 *   registerResource: (name: string, uri: any, config: any, read: any) => any }} AppServer
 */

/**
 * Registers a tool that has a view.
 * @param {AppServer} server
 * @param {string} name
 * @param {Record<string, unknown> & { resourceUri: string, visibility?: ('model' | 'app')[],
 *   _meta?: Record<string, unknown> }} config the SDK's, `resourceUri` of the view (`ui://…`), and
 *   `visibility`, the callers of the tool: the model, views, or both (both)
 * @param {Function} handler as in the SDK
 * @returns {any} the SDK's result
 * @throws {AbpError} INVALID_PARAMS if the address is not that of a view
 */
export function registerAppTool(server, name, config, handler) {
  const { resourceUri, visibility, _meta, ...given } = config;
  requireViewUri(resourceUri);
  const ui = { resourceUri, ...(visibility && { visibility }) };
  // Hosts before 2026 read the second.
  const meta = { ..._meta, ui, 'ui/resourceUri': resourceUri };
  return server.registerTool(name, { ...given, _meta: meta }, handler);
}

/**
 * Registers a view.
 * @param {AppServer} server
 * @param {string} name
 * @param {string} uri `ui://…`
 * @param {Record<string, unknown> & { html: string | (() => string | Promise<string>),
 *   csp?: object, permissions?: object,
 *   prefersBorder?: boolean, domain?: string, _meta?: Record<string, unknown> }} config the SDK's,
 *   the document or what returns it, and what it needs: `csp` has lists of sources, `permissions`
 *   the names of what it may use
 * @returns {any} the SDK's result
 * @throws {AbpError} INVALID_PARAMS if the address is not that of a view
 */
export function registerAppResource(server, name, uri, { html, ...given }) {
  requireViewUri(uri);
  const { csp, permissions, prefersBorder, domain, _meta, ...config } = given;
  const ui = defined({ csp, permissions, prefersBorder, domain });
  const described = { ...config, mimeType: MIME_TYPE, _meta: { ..._meta, ui } };
  return server.registerResource(name, uri, described, async () => {
    const text = typeof html === 'function' ? await html() : html;
    return { contents: [{ uri, mimeType: MIME_TYPE, text, _meta: described._meta }] };
  });
}

/** @param {unknown} uri */
function requireViewUri(uri) {
  if (typeof uri === 'string' && uri.startsWith('ui://')) return;
  throw new AbpError('INVALID_PARAMS', "A view's address begins with ui://");
}
