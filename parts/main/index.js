/**
 * The main entry: the shim's two sides, and the parts that they use.
 *
 * `connect.js` is the agent's entry and `expose.js` the app's. Both start to load the core. The
 * shim imports no parts, so `parts.js` passes it functions that make or load them; parts that only
 * some pages need are loaded on demand. Otherwise this folder has only types: `./types/exposed.ts`
 * describes the types that `expose` infers, and `./types/index.ts` those of the entry.
 *
 * The path of a call: `client.call` (js/agent/client.js) makes a record (js/session/call.js) and
 * passes the call to the core, which returns actions, such as sending a message. A transport
 * (js/transports) carries the message, or a frame of several. At the app the endpoint
 * (js/session/endpoint.js) passes the message to its core; the core starts the call; the connection
 * (js/app/connection.js) runs the handler that the registry has under this name. The result takes
 * the same path back, and a cancel takes the path of the call.
 *
 * The core makes all decisions: the states of sessions and calls, limits and times, whether a
 * result or a cancel was first, the outcome of a call. JavaScript holds promises, signals, handlers
 * and values.
 */
export { Client, connect } from './connect.js';
export { AbpError } from '../../js/common/errors.js';
export { Exposed, expose } from './expose.js';
export { transfer } from '../../js/common/transfer.js';
