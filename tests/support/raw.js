/** One end of a channel, by hand. */
export class Raw {
  #queue = [];
  #waiting = [];
  #hello;
  constructor(port) {
    this.port = port;
    port.onmessage = ({ data }) => {
      // It is sent again until it is answered.
      if (data.type === 'initialize' && data.id === this.#hello) return;
      if (data.type === 'initialize') this.#hello = data.id;
      this.#queue.push(data);
      this.#waiting.shift()?.();
    };
  }
  send(type, id, payload, more) {
    this.port.postMessage({ type, id, payload, ...more });
  }
  /** The next message, in order. */
  async next() {
    if (!this.#queue.length) await new Promise((resolve) => this.#waiting.push(resolve));
    return this.#queue.shift();
  }
  async ask(type, id, payload) {
    this.send(type, id, payload);
    return this.next();
  }
}
