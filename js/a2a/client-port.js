/** A2A over a Transport (a port, a window, a socket), the client's side: frames.js says what is sent. */
import { own } from '../messages.js';
import { CARD, END, LEAVE, REQUEST, RESULT } from './frames.js';
import { within } from './client-http.js';

/** @import { Connection, Frames } from './client-http.js' */
/** @import { Dialect } from './dialects.js' */
/** @import { Transport } from '../endpoint.js' */

/** @implements {Connection} */
export class PortConnection {
  /** Open streams, by name. @type {Map<unknown, PortFrames>} */
  #streams = new Map();
  #transport;
  #limits;
  #named = 0;
  #lost = false;

  /**
   * @param {Transport} transport which this takes over
   * @param {{ queue: number }} limits
   */
  constructor(transport, limits) {
    this.#transport = transport;
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
    return this.#send({ type: REQUEST, version: dialect.header, request });
  }

  /** @param {{ type: string, version?: string, request?: object }} message */
  #send(message) {
    const stream = `${++this.#named}`;
    const frames = new PortFrames(this.#limits.queue, () => {
      if (this.#streams.delete(stream)) this.#transport.post({ type: LEAVE, stream });
    });
    if (this.#lost) {
      frames.end();
      return frames;
    }
    this.#streams.set(stream, frames);
    this.#transport.post({ ...message, stream });
    return frames;
  }

  /** @param {any} message */
  #receive(message) {
    const stream = own(message, 'stream');
    const frames = this.#streams.get(stream);
    switch (own(message, 'type')) {
      case RESULT:
        frames?.push(own(message, 'result'));
        break;
      case END:
        this.#streams.delete(stream);
        frames?.end();
    }
  }
}

/** @implements {Frames} */
class PortFrames {
  /** @type {any[]} */
  #ready = [];
  /** Wakes whoever reads. */
  #wake = () => {};
  #over = false;
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

  /** @param {any} frame */
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

  async next() {
    while (!this.#ready.length && !this.#over) {
      await new Promise((resolve) => (this.#wake = () => resolve(undefined)));
    }
    return this.#ready.shift();
  }
}
