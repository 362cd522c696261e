/**
 * A2A over a Transport (js/endpoint.js): a port, a window, a socket. Over HTTP a connection says which answers
 * belong to which request; here each request has a stream of its own, whose name the client chooses.
 *
 *   client  { type: REQUEST, stream, version, request }   a JSON-RPC request; version is its `A2A-Version`
 *           { type: CARD, stream, version }               the agent card is asked for
 *           { type: LEAVE, stream }                       nobody reads the stream any more; its task goes on
 *   agent   { type: RESULT, stream, result }              a JSON-RPC response, or the card; any number of them
 *           { type: END, stream }                         there is nothing more to come
 */
export const REQUEST = 'a2a/request';
export const CARD = 'a2a/card';
export const LEAVE = 'a2a/leave';
export const RESULT = 'a2a/result';
export const END = 'a2a/end';
