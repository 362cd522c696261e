/** What `abp-bridge/mcp-apps` exports: views of MCP Apps, and hosts that show them. */
export { AbpError } from '../common/errors.js';
export { RpcError } from '../rpc/errors.js';
export { createHost } from './host.js';
export { toolsOf } from './tools.js';
export { applyStyles, createView } from './view.js';

/**
 * The types that are met on the way.
 * @typedef {import('./host.js').Host} Host
 * @typedef {import('./host.js').HostOptions} HostOptions
 * @typedef {import('./host.js').Resource} Resource
 * @typedef {import('./host.js').Server} Server
 * @typedef {import('./host.js').ServerContext} ServerContext
 * @typedef {import('./outcome.js').ToolOptions} ToolOptions
 * @typedef {import('./tools.js').ToolContext} ToolContext
 * @typedef {import('./tools.js').Tools} Tools
 * @typedef {import('./view.js').View} View
 * @typedef {import('./view.js').ViewOptions} ViewOptions
 */
