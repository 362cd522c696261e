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

  /** A request of the batch has come. @param {unknown} call */
  opened(call) {
    this.#open.add(call);
  }

  /** A request has an answer, or will not get one. @param {unknown} call @param {object} [answer] */
  ended(call, answer) {
    if (!this.#open.delete(call)) return;
    if (answer) this.#answers.push(answer);
    if (this.#read) this.read();
  }

  /** Something that is not a request was refused. @param {object} answer */
  refused(answer) {
    this.#answers.push(answer);
  }

  /** All messages of the batch have been read. */
  read() {
    this.#read = true;
    if (!this.#open.size && this.#answers.length) this.#send(this.#answers.splice(0));
  }
}
