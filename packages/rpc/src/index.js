/**
 * What `@abp-bridge/rpc` exports: JSON-RPC peers whose requests can be cancelled, and ways to the
 * other side.
 *
 * How it is made. A peer (peer.js) has a table of calls in C (src/rpc.c): which are in flight,
 * their ids, deadlines, cancels and outcomes, and what became of those that ended. rpc-core.js
 * gives it inputs; the machine of the shim takes its actions and performs them. Held here are
 * things alone: of a call made here its promise and signal (made-call.js), of a received one its
 * handler, signal and answer (received-call.js), both in the machine, under the slot of the call.
 *
 * One call: `request` makes a MadeCall and tells the core, which answers with the action to send
 * it. The other side reads it (message.js), looks for a handler and tells its core; the core says
 * when to start it. What the handler returns or throws is told to the core, and its action RESULT
 * has the answer sent; there it settles the MadeCall. A signal that fires is told to the core,
 * which says whether a cancel is sent, and in the end what became of the work.
 *
 * dialects.js has the words of ACP, LSP and MCP for payloads, which never reach the core; their
 * decisions are rows in C. Beside the peer: task-progress.js (tasks of MCP go on after their
 * answer), request-stream.js and partial-results.js (results in parts, read and made).
 *
 * The ways are transports: between windows (window-channel.js, which moves to a port where both
 * ends are ours), over ports (port-channel.js, in frames), and over streams of bytes
 * (byte-streams.js, framed by framing.js). adapters/ gives any of them to other people's SDKs,
 * whose cancels and ends observed.js sets right.
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
 * The types that are met on the way.
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
 * @typedef {import('./rpc-core.js').Limits} Limits
 * @typedef {import('./window-channel.js').AppOptions} AppOptions
 * @typedef {import('./window-channel.js').HostOptions} HostOptions
 */
