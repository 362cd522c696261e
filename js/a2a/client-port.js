/** The client's side of A2A over a Transport (a port, a window, a socket). frames.js lists the messages. */
import { requireBounded } from '../common/bounds.js';
import { AbpError } from '../common/errors.js';
import { getOwn } from '../common/values.js';
import { CARD, END, LEAVE, REQUEST, RESULT, readUris } from './frames.js';
import { within } from './client-http.js';

/** @import { Connection, Frames } from './client-http.js' */
/** @import { Dialect } from './dialects.js' */
/** @import { Transport } from '../transports/transport.js' */

/** @implements {Connection} */
export class PortConnection {
  /** Open streams, by name. @type {Map<unknown, PortFrames>} */
  #streams = new Map();
  #transport;
  #extensions;
  #onExtensions;
  #limits;
  #named = 0;
  #lost = false;

  /**
   * @param {Transport} transport used by nobody else from now on
   * @param {{ extensions: string[], onExtensions: (extensions: string[]) => void }} options
   * @param {{ queue: number, body: number }} limits
   */
  constructor(transport, { extensions, onExtensions }, limits) {
    this.#transport = transport;
    this.#extensions = extensions;
    this.#onExtensions = onExtensions;
    this.#limits = limits;
    transport.onMessage = (message) => this.#receive(message);
    transport.onClose = () => this.#end();
  }

  close() {
    this.#transport.close();
    this.#end();
  }

  #end() {
    this.#lost = true;
    for (const frames of this.#streams.values()) frames.end();
    this.#streams.clear();
  }

  /** @param {number} timeout ms */
  card(timeout) {
    return within(timeout, this.#send({ type: CARD, version: '1.0' }));
  }

  /**
   * @param {Dialect} dialect
   * @param {object} request
   */
  open(dialect, request) {
    // A cancel is sent even under back-pressure.
    const kind = getOwn(request, 'method') === dialect.methods.cancel ? undefined : 'request';
    const extensions = this.#extensions;
    const declared = extensions.length ? { extensions } : {};
    const { header: version } = dialect;
    return this.#send({ type: REQUEST, version, request, ...declared }, kind);
  }

  /**
   * @param {{ type: string, version?: string, request?: object }} message
   * @param {import('../transports/transport.js').MessageKind} [kind]
   */
  #send(message, kind) {
    const stream = `${++this.#named}`;
    const frames = new PortFrames(this.#limits.queue, () => {
      if (this.#streams.delete(stream)) this.#transport.post({ type: LEAVE, stream });
    });
    if (this.#lost) {
      frames.end();
      return frames;
    }
    this.#transport.post({ ...message, stream }, undefined, kind);
    this.#streams.set(stream, frames);
    return frames;
  }

  /** @param {PortFrames} frames @param {unknown} frame */
  #push(frames, frame) {
    try {
      requireBounded(frame, { maxCharacters: this.#limits.body });
      frames.push(frame);
    } catch (error) {
      frames.fail(new AbpError('TOO_LARGE', /** @type {Error} */ (error).message));
    }
  }

  /** @param {unknown} message */
  #receive(message) {
    const stream = getOwn(message, 'stream');
    const frames = this.#streams.get(stream);
    switch (getOwn(message, 'type')) {
      case RESULT:
        if (!frames) return;
        this.#onExtensions(readUris(getOwn(message, 'extensions')));
        this.#push(frames, getOwn(message, 'result'));
        break;
      case END:
        this.#streams.delete(stream);
        frames?.end();
    }
  }
}

/** @implements {Frames} */
class PortFrames {
  /** @type {unknown[]} */
  #ready = [];
  /** Resolves the promise of a waiting `next`. */
  #wake = () => {};
  #over = false;
  /** Why reading fails once the frames before it are read. @type {AbpError | undefined} */
  #failure;
  #limit;
  #leave;

  /**
   * @param {number} limit frames that wait to be read
   * @param {() => void} leave
   */
  constructor(limit, leave) {
    this.#limit = limit;
    this.#leave = leave;
  }

  /** @param {unknown} frame */
  push(frame) {
    if (this.#over) return;
    if (this.#ready.length < this.#limit) this.#ready.push(frame);
    else this.close();
    this.#wake();
  }

  end() {
    this.#over = true;
    this.#wake();
  }

  close() {
    this.end();
    this.#leave();
  }

  /** @param {AbpError} error */
  fail(error) {
    this.#failure ??= error;
    this.close();
  }

  async next() {
    while (!this.#ready.length && !this.#over) {
      await new Promise((resolve) => (this.#wake = () => resolve(undefined)));
    }
    if (!this.#ready.length && this.#failure) throw this.#failure;
    return this.#ready.shift();
  }
}
