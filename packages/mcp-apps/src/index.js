/**
 * What `@abp-bridge/mcp-apps` exports: views of MCP Apps, and hosts that show them.
 *
 * How it is made. Both sides are a JSON-RPC peer (packages/rpc) with the words of protocol.js.
 *
 *   view.js     a view: the handshake, what it asks of its host, what it is told
 *   host.js     a host: serves what the view asks, asks the server, and says what the view's call
 *               came to. A view may begin again, so each of its sessions has a peer of its own
 *   frame.js    where it shows the view: an iframe with the page of sandbox.js, under the policy of
 *               policy.js
 *   calls.js    calls of tools in either direction, and what became of those that were cancelled
 *   tools.js    an app's capabilities as the tools of its view: a client of the app, both of whose
 *               ends are in the view's page
 *   relay.js    and back: a view's tools as an app of others' making, for agents of this library;
 *               results.js translates both ways
 *
 * A call of a view's tool by an agent: `connect` speaks to relay.js, whose connection has a core of
 * its own (ABP) and calls `host.callTool`, a `tools/call` of the host's peer. At the view, tools.js
 * makes it a call of the app, whose core runs the handler.
 *
 * A cancel goes the same way as MCP's notification. MCP does not answer it, so the caller asks by
 * the request's id. The core of the peer that has run the call says what became of it, as long as
 * it remembers the request, and the caller's core how long it is waited for. Held here: the
 * handshakes, what a view is told again when it begins again, and the lists of tools. No states, no
 * clocks.
 */
export { AbpError } from 'abp-bridge/driver';
export { RpcError } from '@abp-bridge/rpc';
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
