/** Collects the answers to a batch of requests, which are sent together. One version of MCP has batches. */

/** Messages that a batch may have. */
export const MAX_BATCH = 1024;

export class Batch {
  /** Requests that may still be answered. @type {Set<unknown>} */
  #open = new Set();
  /** @type {object[]} */
  #answers = [];
  #read = false;
  #send;

  /** @param {(answers: object[]) => void} send */
  constructor(send) {
    this.#send = send;
  }

  /** A request of the batch has come. @param {unknown} request */
  opened(request) {
    this.#open.add(request);
  }

  /** A request has an answer, or will not get one. @param {unknown} request @param {object} [answer] */
  ended(request, answer) {
    if (!this.#open.delete(request)) return;
    if (answer) this.#answers.push(answer);
    this.#sendIfComplete();
  }

  /** Something that is not a request was refused. @param {object} answer */
  refused(answer) {
    this.#answers.push(answer);
  }

  /** All messages of the batch have been read. */
  read() {
    this.#read = true;
    this.#sendIfComplete();
  }

  #sendIfComplete() {
    if (this.#read && !this.#open.size && this.#answers.length) this.#send(this.#answers.splice(0));
  }
}
