/** Messages between gateways of one user, over a local socket: whatever `v8.serialize` can say, each behind its length. */
import { deserialize, serialize } from 'node:v8';

/** Bytes of a message. */
const MAX_MESSAGE = 256 << 20;
/** Bytes of its length. */
const HEAD = 4;

/** A transport, as `abp-bridge/rpc` takes it. What has come before `onMessage` is set waits in the socket. */
export class Channel {
  #socket;
  /** @type {Buffer[]} */
  #parts = [];
  #length = 0;
  /** @type {(message: any, ports: readonly any[]) => void} */
  #onMessage = () => {};
  /** @type {() => void} */
  onClose = () => {};

  /** @param {import('node:net').Socket} socket */
  constructor(socket) {
    this.#socket = socket;
    // What went wrong is the end all the same.
    socket.on('error', () => {});
    socket.on('close', () => this.onClose());
  }

  get onMessage() {
    return this.#onMessage;
  }

  set onMessage(listener) {
    this.#onMessage = listener;
    this.#socket.removeAllListeners('data');
    this.#socket.on('data', (part) => this.#take(/** @type {Buffer} */ (part)));
  }

  /** @param {unknown} message @throws {Error} if it cannot be said */
  post(message) {
    if (!this.#socket.writable) return;
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
    while (this.#length >= HEAD) {
      if (this.#parts[0].length < HEAD) this.#parts = [Buffer.concat(this.#parts)];
      const length = this.#parts[0].readUInt32BE();
      if (length > MAX_MESSAGE) return void this.#socket.destroy();
      if (this.#length < HEAD + length) return;
      const all = Buffer.concat(this.#parts);
      this.#parts = [all.subarray(HEAD + length)];
      this.#length -= HEAD + length;
      try {
        this.#onMessage(deserialize(all.subarray(HEAD, HEAD + length)), []);
      } catch {
        return void this.#socket.destroy();
      }
    }
  }
}
