/**
 * A peer that a test plays by hand: messages wait until the test asks for them. Subclasses say how
 * to send.
 */
export class Peer {
  #queue = [];
  #waiting = [];
  arrived(message) {
    this.#queue.push(message);
    this.#waiting.shift()?.();
  }
  /** The next message, in order. */
  async next() {
    while (!this.#queue.length) await new Promise((resolve) => this.#waiting.push(resolve));
    return this.#queue.shift();
  }
  async ask(type, id, payload) {
    this.send(type, id, payload);
    return this.next();
  }
}

/** One end of a channel. */
export class Raw extends Peer {
  #hello;
  constructor(port) {
    super();
    this.port = port;
    port.onmessage = ({ data }) => {
      // It is sent again until it is answered.
      if (data.type === 'initialize' && data.id === this.#hello) return;
      if (data.type === 'initialize') this.#hello = data.id;
      this.arrived(data);
    };
  }
  send(type, id, payload, more) {
    this.port.postMessage({ type, id, payload, ...more });
  }
}
