/**
 * The entry `@abp-bridge/rpc`: JSON-RPC peers whose requests can be cancelled, and channels to the
 * other side.
 *
 * How it is made. A peer (peer.js) has a table of calls in C (src/rpc.c): the calls in flight,
 * their ids, deadlines, cancels and outcomes, and the outcomes of ended calls. rpc-core.js gives it
 * inputs; the machine of the shim takes its actions and performs them. JavaScript holds objects
 * alone: the promise and signal of a call made here (made-call.js), the handler, signal and answer
 * of a received one (received-call.js), both in the machine, under the slot of the call.
 *
 * One call: `request` makes a MadeCall and passes it to the core, which returns the action to send
 * it. The other side reads it (message.js), looks for a handler and informs its core, which decides
 * when to start it. The core gets the handler's result or error, and its action RESULT sends the
 * answer; the caller's core then settles the MadeCall. A signal that fires is an input of the core,
 * which decides whether a cancel is sent, and finally the outcome of the work.
 *
 * dialects.js has the payloads of ACP, LSP and MCP, which never reach the core; their decisions are
 * rows in C. Beside the peer: task-progress.js (tasks of MCP go on after their answer),
 * request-stream.js and partial-results.js (results in parts, read and made).
 *
 * Channels are transports: between windows (window-channel.js, which moves to a port if both ends
 * are of this library), over ports (port-channel.js, in frames), and over streams of bytes
 * (byte-streams.js, framed by framing.js). adapters/ passes any of them to foreign SDKs, whose
 * cancels and ends observed.js corrects.
 */
export { transfer } from 'abp-bridge/driver';
export { portTransport } from 'abp-bridge/driver';
export * from './byte-streams.js';
export { RpcError, saysCancelled } from './errors.js';
export { createPeer } from './peer.js';
export * from './port-channel.js';
export { RPC_CANCELLED, RPC_CLOSED } from './rpc-boundary.js';
export { AppChannel, hostChannel, windowChannel } from './window-channel.js';

/**
 * Types of the interface.
 * @typedef {import('abp-bridge/driver').Transport} ChannelTransport
 * @typedef {import('./received-call.js').Handler} Handler
 * @typedef {import('./received-call.js').ReceivedCall} IncomingRequest
 * @typedef {import('./made-call.js').Answer} Answer
 * @typedef {import('./peer.js').Listener} Listener
 * @typedef {import('./peer.js').Peer} Peer
 * @typedef {import('./peer.js').PeerOptions} PeerOptions
 * @typedef {import('./peer.js').RequestOptions} RequestOptions
 * @typedef {import('./peer.js').TraceEvent} TraceEvent
 * @typedef {import('./request-stream.js').RequestStream} RequestStream
 * @typedef {import('./rpc-boundary.js').RpcError} RpcErrorNumber
 * @typedef {import('./rpc-core.js').Limits} Limits
 * @typedef {import('./window-channel.js').AppOptions} AppOptions
 * @typedef {import('./window-channel.js').HostOptions} HostOptions
 */
