/** What `abp-bridge/rpc` exports: JSON-RPC peers whose requests can be cancelled, and ways to the other side. */
export { transfer } from '../../../js/common/transfer.js';
export { portTransport } from '../../../js/transports/port.js';
export { headerTransport, lineTransport } from './byte-streams.js';
export { hostChannel, portChannel, windowChannel } from './channels.js';
export { RpcError } from './errors.js';
export { createPeer } from './peer.js';

/**
 * The types that are met on the way.
 * @typedef {import('./channels.js').NodeWorker} NodeWorker
 * @typedef {import('./channels.js').Transport} ChannelTransport
 * @typedef {import('./dialects.js').Dialect} Dialect
 * @typedef {import('./rpc-boundary.js').Dialect} DialectNumber the core's number of a dialect
 * @typedef {import('./rpc-boundary.js').RpcError} RpcErrorNumber the core's number of an error
 * @typedef {import('./dialects.js').Explain} Explain
 * @typedef {import('./dialects.js').Kind} Kind
 * @typedef {import('./dialects.js').Progress} Progress
 * @typedef {import('./dialects.js').Reported} Reported
 * @typedef {import('./task-progress.js').TaskWords} TaskWords
 * @typedef {import('./received-call.js').Handler} Handler
 * @typedef {import('./received-call.js').ReceivedCall} IncomingRequest
 * @typedef {import('./peer.js').Peer} Peer
 * @typedef {import('./peer.js').PeerOptions} PeerOptions
 * @typedef {import('./peer.js').RequestOptions} RequestOptions
 * @typedef {import('./peer.js').TraceEvent} TraceEvent
 * @typedef {import('./request-stream.js').RequestStream} RequestStream
 * @typedef {import('./rpc-core.js').Limits} Limits
 * @typedef {import('./byte-streams.js').NodeReadable} NodeReadable
 * @typedef {import('./byte-streams.js').NodeWritable} NodeWritable
 * @typedef {import('./byte-streams.js').StreamOptions} StreamOptions
 * @typedef {import('./byte-streams.js').Streams} Streams
 * @typedef {import('./window-channel.js').AppOptions} AppOptions
 * @typedef {import('./window-channel.js').HostOptions} HostOptions
 */
