/**
 * What a consumer brings, in the order of its stream. Under load, a consumer of nats-server 2.9.10
 * leaves messages out and counts on as if it had not. So a gap in the stream's own sequence is
 * filled: what is missing is asked for, and what came after it waits.
 */
import { pause } from '@abp-bridge/a2a/store';

/** Messages that are asked for at once. */
const BATCH = 64;
/** Ms before what failed is tried again. */
export const RETRY = 250;

/** @typedef {{ get: (name: string) => string }} Headers */
/**
 * @typedef {object} Message a consumer's, or one that was asked for
 * @property {number} seq
 * @property {string} subject
 * @property {Uint8Array} data
 * @property {Headers} [headers]
 * @property {Headers} [header]
 */

export class Feed {
  /** Those that have come, and were not given. @type {Message[]} */
  #come = [];
  #stopped = false;
  #fetch;
  #give;
  /** Whether it waits for something that was left out. */
  filling = false;

  /**
   * @param {number} received the number of the latest message that is not wanted
   * @param {(seq: number) => Promise<Message | null>} fetch null for a message that was deleted
   * @param {(message: Message) => void} give is called with each message, once and in order
   */
  constructor(received, fetch, give) {
    this.received = received;
    this.#fetch = fetch;
    this.#give = give;
  }

  /** @param {Message} message that the consumer brings */
  take(message) {
    this.#come.push(message);
    if (!this.filling) void this.#giveAll();
  }

  stop() {
    this.#stopped = true;
  }

  async #giveAll() {
    this.filling = true;
    while (!this.#stopped && this.#come.length > 0) {
      const { seq } = this.#come[0];
      if (seq > this.received + 1) await this.#fill(seq);
      else {
        const message = /** @type {Message} */ (this.#come.shift());
        if (seq === this.received + 1) this.#next(message);
      }
    }
    this.filling = false;
  }

  /** @param {Message} message */
  #next(message) {
    this.received = message.seq;
    this.#give(message);
  }

  /** @param {number} to a message that is there */
  async #fill(to) {
    const count = Math.min(to - this.received - 1, BATCH);
    const missing = Array.from({ length: count }, (_, i) => this.received + 1 + i);
    try {
      const found = await Promise.all(missing.map((seq) => this.#fetch(seq)));
      if (this.#stopped) return;
      for (const message of found) if (message) this.#next(message);
      this.received = missing[count - 1];
    } catch {
      await pause(RETRY);
    }
  }
}
