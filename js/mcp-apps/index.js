/** What `abp-bridge/mcp-apps` exports: views of MCP Apps, and hosts that show them. */
export { AbpError } from '../common/errors.js';
export { RpcError } from '../rpc/errors.js';
export { createHost } from './host.js';
export { toolsOf } from './tools.js';
export { applyStyles, createView } from './view.js';
