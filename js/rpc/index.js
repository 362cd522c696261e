/** What `abp-bridge/rpc` exports: JSON-RPC peers whose requests can be cancelled, and ways to the other side. */
export { transfer } from '../common/transfer.js';
export { portTransport } from '../transports/port.js';
export { headerTransport, lineTransport } from '../transports/streams.js';
export { hostChannel, portChannel, windowChannel } from './channels.js';
export { RpcError } from './errors.js';
export { createPeer } from './peer.js';
