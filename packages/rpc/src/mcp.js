/**
 * MCP in its two eras, over a peer of the dialect `mcp`. Up to 2025-11-25 a connection begins with `initialize`, and
 * either side asks the other. From 2026-07-28 on there is no handshake: every request says its version and what its
 * client can do, only the client asks, and a server that needs something answers so (`input_required`), upon which
 * the client makes the request again with what was asked for.
 *
 * Handlers are written once, for either era: what a handler returns as `input_required` becomes requests where the
 * client is of the first, and what a server of the second needs is asked of the handlers that serve the first.
 *
 * How it is made. A client and a server are tables of handlers on a peer (peer.js), whose core has the calls, their rounds and
 * their ends; what they add is said in params and results. `connectMcp` finds out the era of its server, and has each request say
 * what that wants; of its answers the peer hands those over that need input, and asks again with what the handlers gave. `serveMcp`
 * refuses what does not belong to the era of a request before any handler, and fills in what its results must say. A subscription
 * is a call that lasts: its filter is kept with the call.
 */
export { connectMcp, serveMcp } from './mcp-sides.js';

/**
 * The types that are met on the way.
 * @typedef {import('./mcp-sides.js').Changes} Changes
 * @typedef {import('./mcp-sides.js').ClientOptions} ClientOptions
 * @typedef {import('./mcp-sides.js').InputContext} InputContext
 * @typedef {import('./mcp-sides.js').InputHandler} InputHandler
 * @typedef {import('./mcp-sides.js').McpClient} McpClient
 * @typedef {import('./mcp-sides.js').Subscription} Subscription
 * @typedef {import('./mcp-sides.js').McpCaller} McpCaller
 * @typedef {import('./mcp-sides.js').McpHandler} McpHandler
 * @typedef {import('./mcp-sides.js').McpServer} McpServer
 * @typedef {import('./mcp-sides.js').ServerOptions} ServerOptions
 */
