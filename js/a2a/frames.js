import { firstOf } from '../common/values.js';

/**
 * A2A over a Transport (js/session/endpoint.js): a port, a window, a socket. Over HTTP a connection says which answers
 * belong to which request; here each request has a stream of its own, whose name the client chooses.
 *
 *   client  { type: REQUEST, stream, version, request, extensions? }
 *                                                         a JSON-RPC request; version is its `A2A-Version`, extensions
 *                                                         the URIs of its `A2A-Extensions`
 *           { type: CARD, stream, version }               the agent card is asked for
 *           { type: LEAVE, stream }                       nobody reads the stream any more; its task goes on
 *   agent   { type: RESULT, stream, result, extensions? } a JSON-RPC response, or the card; any number of them
 *           { type: END, stream }                         there is nothing more to come
 */
export const REQUEST = 'a2a/request';
export const CARD = 'a2a/card';
export const LEAVE = 'a2a/leave';
export const RESULT = 'a2a/result';
export const END = 'a2a/end';

/** Extensions that a message may name. */
const MAX_EXTENSIONS = 64;

/** @param {unknown} extensions of a message @returns {string[]} */
export const readUris = (extensions) =>
  firstOf(/** @type {any} */ (extensions), MAX_EXTENSIONS).filter((uri) => typeof uri === 'string');
