/**
 * A2A over a Transport (js/transports/transport.js): a port, a window, a socket. Over HTTP the
 * connection matches answers to requests; here the client names a stream for each request.
 *
 * The client sends:
 * - `{ type: REQUEST, stream, version, request, extensions? }`: a JSON-RPC request; `version` is
 *   its `A2A-Version`, `extensions` the URIs of its `A2A-Extensions`
 * - `{ type: CARD, stream, version }`: requests the agent card
 * - `{ type: LEAVE, stream }`: stops reading the stream; its task goes on
 *
 * The agent sends:
 * - `{ type: RESULT, stream, result, extensions? }`: a JSON-RPC response, or the card; may be
 *   repeated
 * - `{ type: END, stream }`: ends the stream
 */
import { AbpError, firstOf, getOwn, requireBounded, safely, textOf } from 'abp-bridge/driver';
import { answerWithin } from './client-http.js';
import { refuse, versionOf } from './requests.js';

/** @import { Binding } from './client-http.js' */
/** @import { Dialect } from './dialects.js' */
/** @import { Reply } from './reply.js' */
/** @import { Transport } from 'abp-bridge/driver' */

const REQUEST = 'a2a/request';
const CARD = 'a2a/card';
const LEAVE = 'a2a/leave';
const RESULT = 'a2a/result';
const END = 'a2a/end';

/** Extensions of a message or a card that are read at most. */
export const MAX_EXTENSIONS = 64;
/** Streams and requests of one peer that may be open at once. */
const MAX_STREAMS = 4096;
/** Characters of a stream's name, which is stored while the stream is open. */
const MAX_NAME_LENGTH = 256;

/**
 * @param {unknown} message
 * @returns {string[]} the URIs of its extensions
 */
const urisOf = (message) =>
  firstOf(getOwn(message, 'extensions'), MAX_EXTENSIONS).filter((uri) => typeof uri === 'string');

// --- The client's side ---------------------------------------------------------------------------

/**
 * @param {Transport} transport reserved for this connection from now on
 * @param {{ queue: number, body: number }} limits
 * @returns {Binding}
 */
export function portConnection(transport, limits) {
  /** Open streams, by name. @type {Map<unknown, QueuedResponses>} */
  const streams = new Map();
  let named = 0;
  let lost = false;

  const end = () => {
    lost = true;
    for (const responses of streams.values()) responses.end();
    streams.clear();
  };

  /**
   * @param {object} message
   * @param {import('abp-bridge/driver').MessageKind} [kind]
   */
  const send = (message, kind) => {
    if (lost) throw new AbpError('DISCONNECTED', 'The transport is closed');
    const stream = `${++named}`;
    const responses = queueResponses(limits.queue, () => {
      if (streams.delete(stream)) transport.post({ type: LEAVE, stream });
    });
    transport.post({ ...message, stream }, undefined, kind);
    streams.set(stream, responses);
    return responses;
  };

  /** @type {Binding} */
  const connection = {
    declared: [],
    used: [],

    async card(timeout) {
      return answerWithin(timeout, send({ type: CARD, version: '1.0' }));
    },

    open({ header: version, methods }, request) {
      const extensions = connection.declared;
      const message = { type: REQUEST, version, request, ...(extensions.length && { extensions }) };
      // A cancel is sent even under back-pressure.
      const isCancel = getOwn(request, 'method') === methods.cancel;
      return send(message, isCancel ? undefined : 'request');
    },

    close() {
      transport.close();
      end();
    },
  };
  transport.onMessage = (message) => {
    const [type, stream] = [getOwn(message, 'type'), getOwn(message, 'stream')];
    const responses = streams.get(stream);
    if (type === END && streams.delete(stream)) responses?.end();
    if (type !== RESULT || !responses) return;
    connection.used = urisOf(message);
    const response = getOwn(message, 'result');
    try {
      requireBounded(response, { maxCharacters: limits.body });
      responses.push(response);
    } catch (error) {
      responses.fail(new AbpError('TOO_LARGE', /** @type {Error} */ (error).message));
    }
  };
  transport.onClose = end;
  return connection;
}

/** @typedef {ReturnType<typeof queueResponses>} QueuedResponses that wait to be read */

/**
 * A queue of responses that are pushed by their source.
 * @param {number} limit of unread responses: beyond it, the queue is closed
 * @param {() => void} leave
 */
export function queueResponses(limit, leave) {
  /** Unread responses: each function returns one, or throws. @type {(() => unknown)[]} */
  const ready = [];
  /** Resolves the promise of a waiting `next`. */
  let wake = () => {};
  let over = false;
  const end = () => {
    over = true;
    wake();
  };
  const close = () => {
    end();
    leave();
  };
  return {
    end,
    close,
    push(/** @type {unknown} */ response) {
      if (over) return;
      if (ready.length >= limit) return close();
      ready.push(() => response);
      wake();
    },
    /**
     * Reading fails after the queued responses are read.
     * @param {AbpError} error
     */
    fail(error) {
      if (!over) ready.push(() => Promise.reject(error));
      close();
    },
    async next() {
      while (!ready.length && !over)
        await new Promise((resolve) => (wake = () => resolve(undefined)));
      return ready.shift()?.();
    },
  };
}

// --- The agent's side ----------------------------------------------------------------------------

/** @typedef {Reply & { leave: () => void }} PortReply `leave` is called when the reader has gone */

/**
 * @param {Transport} transport
 * @param {Map<unknown, PortReply>} replies the open ones
 * @param {string | number} stream
 */
function openReply(transport, replies, stream) {
  // Nothing is sent to a reader that has left.
  const isOpen = () => replies.get(stream) === reply;
  /** @param {object} result */
  const send = (result) => {
    if (!isOpen()) return;
    const { extensions } = reply;
    const about = extensions.length ? { result, extensions } : { result };
    transport.post({ type: RESULT, stream, ...about });
  };
  /** @type {PortReply} */
  const reply = {
    left: false,
    extensions: [],
    onLeave: undefined,
    answer(response) {
      send(response);
      reply.end();
    },
    open() {},
    event: (head, { object }, failed) => send({ ...head, [failed ? 'error' : 'result']: object }),
    end() {
      if (!isOpen()) return;
      replies.delete(stream);
      transport.post({ type: END, stream });
    },
    leave() {
      reply.left = true;
      replies.delete(stream);
      reply.onLeave?.();
    },
  };
  replies.set(stream, reply);
  return reply;
}

/**
 * @param {import('./server.js').TaskServer} server
 * @param {Transport} transport
 * @param {unknown} user the user at the other end
 * @returns {() => void} stops
 */
export function serveTransport(server, transport, user) {
  /** @type {Map<unknown, PortReply>} */
  const replies = new Map();
  transport.onMessage = (message) => {
    const [type, stream] = [getOwn(message, 'type'), getOwn(message, 'stream')];
    const version = textOf(getOwn(message, 'version'));
    const named = typeof stream === 'string' && stream.length <= MAX_NAME_LENGTH;
    if (!named && typeof stream !== 'number') return;
    if (type === LEAVE) replies.get(stream)?.leave();
    if (type !== CARD && type !== REQUEST) return;
    // A message that cannot be sent is lost; other streams are not affected.
    if (replies.has(stream) || replies.size >= MAX_STREAMS)
      return void safely(() => transport.post({ type: END, stream }));
    const reply = openReply(transport, replies, stream);
    if (type === CARD) {
      const card = server.card(versionOf(version), '');
      safely(() => reply.answer(card));
      return void safely(() => reply.end());
    }
    const text = readRequest(getOwn(message, 'request'), server.maxRequest);
    if (typeof text !== 'string') return refuse(reply, version, ...text);
    const caller = { version, headers: {}, user, extensions: urisOf(message) };
    void server.receive(text, caller, reply);
  };
  transport.onClose = () => {
    for (const reply of [...replies.values()]) reply.leave();
  };
  return () => {
    for (const reply of [...replies.values()]) {
      safely(() => reply.end());
      reply.leave();
    }
    transport.onMessage = () => {};
  };
}

/**
 * A request as text, or the reason why it is not valid: structured clone carries more than JSON.
 * @param {unknown} request
 * @param {number} longest in characters
 * @returns {string | [reason: string, message: string]}
 */
function readRequest(request, longest) {
  try {
    requireBounded(request, { maxCharacters: longest });
    const text = JSON.stringify(request);
    if (text.length <= longest) return text;
    return ['INVALID_REQUEST', `The request is longer than ${longest} characters`];
  } catch (error) {
    return error instanceof RangeError
      ? ['INVALID_REQUEST', error.message]
      : ['PARSE_ERROR', 'Invalid JSON payload.'];
  }
}
