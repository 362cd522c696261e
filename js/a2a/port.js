/** The agent's end of A2A over a Transport; js/a2a/frames.js lists the messages. */
import { own } from '../messages.js';
import { CARD, END, LEAVE, REQUEST, RESULT } from './frames.js';
import { refuse } from './requests.js';

/** @import { Reply, TaskServer } from './server.js' */
/** @import { Transport } from '../endpoint.js' */

/** Streams and requests of one peer that may be open at once. */
const MOST_STREAMS = 4096;

/** @implements {Reply} */
class PortReply {
  left = false;
  /** @type {undefined | (() => void)} */
  onLeave;
  #post;
  #done;

  /** @param {(type: string, result?: object) => void} post @param {() => void} done */
  constructor(post, done) {
    this.#post = post;
    this.#done = done;
  }

  /** @param {object} response */
  answer(response) {
    this.#post(RESULT, response);
    this.end();
  }

  leave() {
    this.left = true;
    this.onLeave?.();
  }

  open() {}

  /** @param {object} response */
  frame(response) {
    this.#post(RESULT, response);
  }

  end() {
    this.#post(END);
    this.#done();
  }
}

/**
 * @param {TaskServer} server
 * @param {Transport} transport
 * @returns {() => void} stops
 */
export function serveTransport(server, transport) {
  /** @type {Map<unknown, PortReply>} */
  const replies = new Map();
  const leaveAll = () => {
    for (const reply of replies.values()) reply.leave();
    replies.clear();
  };
  transport.onMessage = (message) => {
    const stream = own(message, 'stream');
    const version = own(message, 'version');
    if (typeof stream !== 'string' && typeof stream !== 'number') return;
    switch (own(message, 'type')) {
      case LEAVE:
        replies.get(stream)?.leave();
        replies.delete(stream);
        return;
      case CARD: {
        const card = server.card(version === '1.0' ? '1.0' : '0.3', '');
        transport.post({ type: RESULT, stream, result: card });
        transport.post({ type: END, stream });
        return;
      }
      case REQUEST: {
        const reply = new PortReply(
          (type, result) => {
            // Who has left is told nothing more.
            if (replies.get(stream) === reply)
              transport.post({ type, stream, ...(result && { result }) });
          },
          () => replies.get(stream) === reply && replies.delete(stream),
        );
        if (replies.has(stream) || replies.size >= MOST_STREAMS) {
          transport.post({ type: END, stream });
          return;
        }
        replies.set(stream, reply);
        const text = textOf(own(message, 'request'));
        if (text === undefined) refuse(reply, version, 'PARSE_ERROR', 'Invalid JSON payload.');
        else server.receive(text, typeof version === 'string' ? version : undefined, reply);
      }
    }
  };
  transport.onClose = leaveAll;
  return () => {
    for (const reply of [...replies.values()]) {
      reply.end();
      reply.leave();
    }
    transport.onMessage = () => {};
  };
}

/** A request as text, whatever structured clone let through. @param {unknown} request */
function textOf(request) {
  try {
    return JSON.stringify(request);
  } catch {
    return undefined;
  }
}
