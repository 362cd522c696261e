/** What `abp-bridge/mcp-apps` exports: views of MCP Apps, and hosts that show them. */
export { AbpError } from '../../../js/common/errors.js';
export { RpcError } from '../../rpc/src/errors.js';
export { createHost } from './host.js';
export { registerAppResource, registerAppTool } from './server.js';
export { toolsOf } from './tools.js';
export { applyStyles, createView } from './view.js';

/**
 * The types that are met on the way.
 * @typedef {import('./host.js').Host} Host
 * @typedef {import('./protocol.js').DisplayMode} DisplayMode
 * @typedef {import('./protocol.js').HostContext} HostContext
 * @typedef {import('./protocol.js').KnownContext} KnownContext
 * @typedef {import('./protocol.js').Params} Params
 * @typedef {import('./host.js').HostOptions} HostOptions
 * @typedef {import('./host.js').FrameOptions} FrameOptions
 * @typedef {import('./host.js').Resource} Resource
 * @typedef {import('./host.js').Server} Server
 * @typedef {import('./host.js').ServerContext} ServerContext
 * @typedef {import('./calls.js').ToolOptions} ToolOptions
 * @typedef {import('./server.js').AppServer} AppServer
 * @typedef {import('./tools.js').ToolContext} ToolContext
 * @typedef {import('./tools.js').Tools} Tools
 * @typedef {import('./view.js').Listeners} Listeners
 * @typedef {import('./view.js').View} View
 * @typedef {import('./view.js').ViewOptions} ViewOptions
 */
