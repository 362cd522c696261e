/**
 * The entry `@abp-bridge/mcp-apps`: views of MCP Apps, and hosts that show them.
 *
 * How it is made. Both sides are a JSON-RPC peer (packages/rpc) with the methods in protocol.js.
 *
 *   view.js     a view: the handshake, its requests to the host, the host's notifications
 *   host.js     a host: serves the view's requests, sends requests to the server, and the result of
 *               the view's call to the view. A view may begin again, so each of its sessions has a
 *               peer of its own
 *   frame.js    the iframe that shows the view: it has the page of sandbox.js, under the policy of
 *               policy.js
 *   calls.js    calls of tools in either direction, and the outcomes of cancelled ones
 *   tools.js    an app's capabilities as the tools of its view: a client of the app, both of whose
 *               ends are in the view's page
 *   relay.js    the reverse: a view's tools as a foreign app, for agents of this library;
 *               results.js translates both ways
 *
 * A call of a view's tool by an agent: `connect` speaks to relay.js, whose connection has a core of
 * its own (ABP) and calls `host.callTool`, a `tools/call` of the host's peer. In the view, tools.js
 * turns it into a call of the app, whose core runs the handler.
 *
 * A cancel takes the same path, as MCP's notification. MCP does not answer it, so the caller asks
 * by the request's id. The core of the peer that has run the call returns the outcome, as long as
 * it remembers the request, and the caller's core limits the wait. JavaScript holds the handshakes,
 * the notifications to repeat for a view that begins again, and the lists of tools; it has no
 * states and no clocks.
 */
export { AbpError } from 'abp-bridge/driver';
export { RpcError } from '@abp-bridge/rpc';
export { createHost } from './host.js';
export { registerAppResource, registerAppTool } from './server.js';
export { toolsOf } from './tools.js';
export { applyStyles, createView } from './view.js';

/**
 * Types of the interface.
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
