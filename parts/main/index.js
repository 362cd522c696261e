/**
 * The main entry: the shim's two sides, and what leads from them to the parts that stand on it.
 *
 * How it is made. `connect.js` is the agent's door and `expose.js` the app's. Each has the core
 * begin to load. The shim names no package, so `parts.js` tells it where the parts are that a side
 * may need; those that only some pages need are loaded when they are. Else there are only types
 * here: `./types/exposed.ts` says what `expose` infers of an app, and `./types/index.ts` what the
 * entry has.
 *
 * One call passes so: `client.call` (js/agent/client.js) makes a record (js/session/call.js) and
 * asks the core, which answers with actions: send this, remember that. A transport (js/transports)
 * carries the message, or a frame of several. At the app its endpoint (js/session/endpoint.js)
 * tells the core what came; the core has the call start; the connection (js/app/connection.js) runs
 * the handler that the registry has under this name. What it returns goes back the same way, and a
 * cancel goes the way of the call.
 *
 * The core's are all decisions: the states of sessions and calls, limits and times, which of a
 * result and a cancel was first, what became of a call. Held here are things: promises, signals,
 * handlers and values.
 */
export { Client, connect } from './connect.js';
export { AbpError } from '../../js/common/errors.js';
export { Exposed, expose } from './expose.js';
export { transfer } from '../../js/common/transfer.js';
