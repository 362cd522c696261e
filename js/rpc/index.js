/** What `abp-bridge/rpc` exports: JSON-RPC peers whose requests can be cancelled. */
export { transfer } from '../transfer.js';
export { RpcError } from './errors.js';
export { createPeer } from './peer.js';
