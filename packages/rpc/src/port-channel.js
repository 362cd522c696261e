/** A port to another end of this library. */
import {
  AbpError,
  FrameKind,
  FrameWriter,
  Receiver,
  entriesOf,
  isFrame,
  plainOf,
  portTransport,
} from 'abp-bridge/driver';
import { answerUnsent } from './message.js';

/** @import { Feature, Transport } from 'abp-bridge/driver' */

/**
 * @typedef {object} NodeWorker The used part of `worker_threads.Worker`, and of `parentPort` in it.
 * @property {(message: any, transfer?: any) => void} postMessage
 * @property {(event: any, listener: (...args: unknown[]) => void) => unknown} on
 * @property {(event: any, listener: (...args: unknown[]) => void) => unknown} off
 */

/**
 * A channel over a port, or an object with a port's methods, to another end of this library: the
 * messages of a turn are sent together, and each side is notified when the other's document goes.
 * (Use `portTransport` for a foreign end.)
 * @param {MessagePort | Worker | NodeWorker | typeof globalThis} port in a worker, its own scope or
 *   Node's `parentPort`
 * @param {() => void} [closed] called when it closes, instead of closing the port
 * @returns {Transport}
 */
export const portChannel = (port, closed) => new PortChannel(port, closed);

/** Posted on a port when its document goes away. */
const BYE = 'bye';

class PortChannel extends Receiver {
  /** It makes frames itself. @type {readonly Feature[]} */
  carries = ['liveness', 'streams'];
  #port;
  #close;
  #writer;
  /** Made at the first `listen`. @type {Transport | undefined} */
  #transport;

  /**
   * @param {any} port
   * @param {() => void} [closed]
   */
  constructor(port, closed = () => port.close?.()) {
    super();
    this.#port = port;
    this.#close = closed;
    this.#writer = new FrameWriter(
      {
        post(frame, transfer = []) {
          try {
            port.postMessage(frame, transfer);
          } catch {
            port.postMessage(plainOf(frame), transfer);
          }
        },
      },
      ([, , , message], transfer, error) => {
        // Again, without the objects that could not be moved.
        if (transfer?.length) this.post(message);
        else answerUnsent(message, error, this);
      },
    );
    globalThis.window?.addEventListener('pagehide', this.#leave);
  }

  /** @override */
  listen() {
    if (this.#transport) return;
    const worker = this.#port.terminate && this.#port;
    this.#transport = portTransport(this.#port, this.#close, worker);
    this.#transport.onClose = (cause) => this.#gone(cause);
    this.#transport.onUnreadable = (error) => this.receiveUnreadable(error);
    this.#transport.onMessage = (data) => this.#receive(data);
  }

  /**
   * @param {unknown} message
   * @param {Transferable[]} [transfer]
   */
  post(message, transfer) {
    if (!this.stopped) this.#writer.add(FrameKind.MESSAGE, 0, undefined, message, transfer);
  }

  /**
   * Notifies the other side, if possible.
   * @override
   */
  end() {
    globalThis.window?.removeEventListener('pagehide', this.#leave);
    this.#writer.flush();
    this.#port.postMessage(BYE);
    if (this.#transport) this.#transport.close();
    else this.#close();
  }

  #leave = () => this.#gone(new AbpError('DISCONNECTED', 'The page was closed'));

  /** @param {unknown} [cause] */
  #gone(cause) {
    this.lose(cause);
    this.stop();
  }

  /** @param {unknown} data */
  #receive(data) {
    if (data === BYE) return this.#gone();
    const frame = entriesOf(data) || [];
    // It may have held anything, so no side must wait for its content.
    if (Array.isArray(data) && isFrame(data) && !frame.length)
      return this.#gone(new AbpError('PARSE_ERROR', 'A frame could not be read'));
    for (let i = 0; i < frame.length && !this.stopped; i += 4)
      if (frame[i] === FrameKind.MESSAGE) this.receive(frame[i + 3]);
  }
}
