import { firstOf } from '../../../js/common/values.js';

/**
 * The messages of A2A over a Transport (js/transports/transport.js): a port, a window, a socket. Over HTTP the connection
 * tells which answers belong to which request. Here the client gives each request a stream with a name of its own.
 *
 *   client  { type: REQUEST, stream, version, request, extensions? }
 *                                                         a JSON-RPC request; version is its `A2A-Version`, extensions
 *                                                         the URIs of its `A2A-Extensions`
 *           { type: CARD, stream, version }               asks for the agent card
 *           { type: LEAVE, stream }                       stops reading the stream; its task goes on
 *   agent   { type: RESULT, stream, result, extensions? } a JSON-RPC response, or the card; may be repeated
 *           { type: END, stream }                         ends the stream
 */
export const REQUEST = 'a2a/request';
export const CARD = 'a2a/card';
export const LEAVE = 'a2a/leave';
export const RESULT = 'a2a/result';
export const END = 'a2a/end';

/** At most so many extensions of a message or a card are read. */
export const MAX_EXTENSIONS = 64;

/** @param {unknown} extensions of a message @returns {string[]} */
export const readUris = (extensions) =>
  firstOf(/** @type {unknown} */ (extensions), MAX_EXTENSIONS).filter(
    (uri) => typeof uri === 'string',
  );
