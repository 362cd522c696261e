/**
 * Delivers a consumer's messages in the order of its stream. Under load, a consumer of nats-server
 * 2.9.10 skips messages and goes on counting as if it had not. So a gap in the stream's own
 * sequence is filled: the missing messages are requested, and later ones wait.
 */
import { pause } from '@abp-bridge/a2a/store';

/** Messages that are requested at once. */
const BATCH = 64;
/** Ms before a failed request is repeated. */
export const RETRY = 250;

/** @typedef {{ get: (name: string) => string }} Headers */
/**
 * @typedef {object} Message from a consumer, or from a request
 * @property {number} seq
 * @property {string} subject
 * @property {Uint8Array} data
 * @property {Headers} [headers]
 * @property {Headers} [header]
 */

export class Feed {
  /** Messages that have arrived, but were not delivered. @type {Message[]} */
  #pending = [];
  #stopped = false;
  #fetch;
  #give;
  /** True while it waits for a skipped message. */
  filling = false;

  /**
   * @param {number} received the number of the latest message that is not needed
   * @param {(seq: number) => Promise<Message | null>} fetch returns null for a deleted message
   * @param {(message: Message) => void} give called with each message, once and in order
   */
  constructor(received, fetch, give) {
    this.received = received;
    this.#fetch = fetch;
    this.#give = give;
  }

  /** @param {Message} message from the consumer */
  take(message) {
    this.#pending.push(message);
    if (!this.filling) void this.#giveAll();
  }

  stop() {
    this.#stopped = true;
  }

  async #giveAll() {
    this.filling = true;
    while (!this.#stopped && this.#pending.length > 0) {
      const { seq } = this.#pending[0];
      if (seq > this.received + 1) await this.#fill(seq);
      else {
        const message = /** @type {Message} */ (this.#pending.shift());
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

  /** @param {number} to the number of an existing message */
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
