/** The agent's side of A2A over a Transport. packages/a2a/src/port-messages.js lists the messages. */
import { requireBounded } from '../../untrusted/src/bounds.js';
import { safely } from '../../../js/common/errors.js';
import { getOwn } from '../../../js/common/values.js';
import { CARD, END, LEAVE, REQUEST, RESULT, readUris } from './port-messages.js';
import { refuse, versionOf } from './requests.js';

/** @import { Reply } from './reply.js' */
/** @import { TaskServer } from './server.js' */
/** @import { Transport } from '../../../js/transports/transport.js' */

/** At most so many streams and requests of one peer are open at once. */
const MAX_STREAMS = 4096;
/** Characters of a stream's name, which is stored while the stream is open. */
const MAX_NAME_LENGTH = 256;

/** @implements {Reply} */
class PortReply {
  left = false;
  /** @type {string[]} */
  extensions = [];
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

  /** @param {object} head @param {import('./reply.js').Printed} body @param {boolean} [failed] */
  event(head, { object }, failed) {
    this.#post(RESULT, { ...head, [failed ? 'error' : 'result']: object });
  }

  end() {
    try {
      this.#post(END);
    } finally {
      this.#done();
    }
  }
}

/**
 * @param {TaskServer} server
 * @param {Transport} transport
 * @param {unknown} user who is at its other end
 * @returns {() => void} stops
 */
export function serveTransport(server, transport, user) {
  /** @type {Map<unknown, PortReply>} */
  const replies = new Map();
  const leaveAll = () => {
    for (const reply of replies.values()) reply.leave();
    replies.clear();
  };
  /** What cannot be sent is lost, and nobody else hears of it. @param {object} message */
  const post = (message) => safely(() => transport.post(message), undefined);
  transport.onMessage = (message) => {
    const stream = getOwn(message, 'stream');
    const given = getOwn(message, 'version');
    const version = typeof given === 'string' ? given : undefined;
    const named = typeof stream === 'string' && stream.length <= MAX_NAME_LENGTH;
    if (!named && typeof stream !== 'number') return;
    switch (getOwn(message, 'type')) {
      case LEAVE:
        replies.get(stream)?.leave();
        replies.delete(stream);
        return;
      case CARD: {
        const card = server.card(versionOf(version), '');
        post({ type: RESULT, stream, result: card });
        post({ type: END, stream });
        return;
      }
      case REQUEST: {
        const reply = new PortReply(
          (type, result) => {
            // Nothing is sent to a reader that has left.
            if (replies.get(stream) !== reply) return;
            const { extensions } = reply;
            const told = result && { result, ...(extensions.length && { extensions }) };
            transport.post({ type, stream, ...told });
          },
          () => replies.get(stream) === reply && replies.delete(stream),
        );
        if (replies.has(stream) || replies.size >= MAX_STREAMS) {
          post({ type: END, stream });
          return;
        }
        replies.set(stream, reply);
        const text = textOf(getOwn(message, 'request'), server.maxRequest);
        if (typeof text !== 'string') refuse(reply, version, ...text);
        else {
          const extensions = readUris(getOwn(message, 'extensions'));
          void server.receive(text, { version, headers: {}, user, extensions }, reply);
        }
      }
    }
  };
  transport.onClose = leaveAll;
  return () => {
    for (const reply of [...replies.values()]) {
      safely(() => reply.end(), undefined);
      reply.leave();
    }
    transport.onMessage = () => {};
  };
}

/**
 * A request as text, or why it cannot be one: structured clone carries more than JSON does.
 * @param {unknown} request
 * @param {number} longest characters of it
 * @returns {string | [reason: string, message: string]}
 */
function textOf(request, longest) {
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
