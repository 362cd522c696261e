/** Messages between gateways of one user, over a local socket: whatever `v8.serialize` can say, each behind its length. */
import { deserialize, serialize } from 'node:v8';

/** Bytes of a message. */
const MAX_MESSAGE = 256 << 20;
/** Bytes of its length. */
const HEAD = 4;

/**
 * What one gateway says to another. Which members there are, the kind says.
 * @typedef {object} Message
 * @property {string} kind
 * @property {number} id of a call, or of a question
 * @property {number} call that a question belongs to
 * @property {string} url
 * @property {number} pid
 * @property {string} message why something is refused
 * @property {import('./app.js').Client['app']} app
 * @property {import('./app.js').Capability[]} capabilities
 * @property {string} name of the capability that is called
 * @property {unknown} params
 * @property {number} [timeout] ms
 * @property {number} owner the client that calls, by number
 * @property {boolean} asks whether that client can be asked
 * @property {boolean} streams whether it is shown chunks
 * @property {string} reason of a cancel
 * @property {Parameters<import('./app.js').OnProgress>[0]} info
 * @property {unknown} chunk
 * @property {number} count of the chunks so far
 * @property {import('./app.js').Question} question
 * @property {unknown} [value] an answer
 * @property {{ code: string, message: string }} [error] in place of one
 * @property {import('./app.js').Result} result
 */

export class Channel {
  #socket;
  /** @type {Buffer[]} */
  #parts = [];
  #length = 0;
  /** Hears what the other side sends. @type {(message: Message) => void} */
  onMessage = () => {};
  /** Hears, once, that nothing more will come. @type {() => void} */
  onClose = () => {};

  /** @param {import('node:net').Socket} socket */
  constructor(socket) {
    this.#socket = socket;
    socket.on('data', (part) => this.#take(/** @type {Buffer} */ (part)));
    // What went wrong is the end all the same.
    socket.on('error', () => {});
    socket.on('close', () => this.onClose());
  }

  get isOpen() {
    return this.#socket.writable;
  }

  /**
   * @param {unknown} message
   * @throws {Error} if it cannot be said
   */
  send(message) {
    if (!this.isOpen) return;
    const body = serialize(message);
    const head = Buffer.alloc(HEAD);
    head.writeUInt32BE(body.length);
    this.#socket.write(head);
    this.#socket.write(body);
  }

  /** Sends what is left, and ends. */
  close() {
    this.#socket.destroySoon();
  }

  /** @param {Buffer} part */
  #take(part) {
    this.#parts.push(part);
    this.#length += part.length;
    for (;;) {
      if (this.#length < HEAD) return;
      if (this.#parts[0].length < HEAD) this.#parts = [Buffer.concat(this.#parts)];
      const length = this.#parts[0].readUInt32BE();
      if (length > MAX_MESSAGE) return void this.#socket.destroy();
      if (this.#length < HEAD + length) return;
      const all = Buffer.concat(this.#parts);
      this.#parts = [all.subarray(HEAD + length)];
      this.#length -= HEAD + length;
      let message;
      try {
        message = deserialize(all.subarray(HEAD, HEAD + length));
      } catch {
        return void this.#socket.destroy();
      }
      this.onMessage(message);
    }
  }
}
