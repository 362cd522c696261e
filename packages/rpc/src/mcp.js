/**
 * MCP in its two eras, over a peer of the dialect `mcp`. Up to 2025-11-25 a connection begins with `initialize`, and
 * either side asks the other. From 2026-07-28 on there is no handshake: every request says its version and what its
 * client can do, only the client asks, and a server that needs something answers so (`input_required`), upon which
 * the client makes the request again with what was asked for.
 *
 * Handlers are written once, for either era: what a handler returns as `input_required` becomes requests where the
 * client is of the first, and what a server of the second needs is asked of the handlers that serve the first.
 */
export { connectMcp } from './mcp-client.js';
export { serveMcp } from './mcp-server.js';

/**
 * The types that are met on the way.
 * @typedef {import('./mcp-client.js').Changes} Changes
 * @typedef {import('./mcp-client.js').ClientOptions} ClientOptions
 * @typedef {import('./mcp-client.js').InputContext} InputContext
 * @typedef {import('./mcp-client.js').InputHandler} InputHandler
 * @typedef {import('./mcp-client.js').McpClient} McpClient
 * @typedef {import('./mcp-client.js').Subscription} Subscription
 * @typedef {import('./mcp-server.js').McpCaller} McpCaller
 * @typedef {import('./mcp-server.js').McpHandler} McpHandler
 * @typedef {import('./mcp-server.js').McpServer} McpServer
 * @typedef {import('./mcp-server.js').ServerOptions} ServerOptions
 */
