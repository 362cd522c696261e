/**
 * Messages that have been taken. A client that got no answer sends its message again, and is answered as if it had asked
 * once. The extension says so in the card, and in the requests of those clients that rely on it: others may give all of
 * their messages one id.
 */
import { safely } from '../../../js/common/errors.js';

/** @import { Message } from './dialects.js' */
/** @import { RequestInfo } from './task.js' */

/** What became of a message: the id of its task, or the message that answered it. @typedef {string | Message} Taken */

/** Messages that are recognised, the latest ones. */
const MAX_MESSAGES = 8192;
/** Characters of all that is kept of them. */
const MAX_SIZE = 1 << 24;
/** Characters of a sender and the id of a message. */
const MAX_KEY_LENGTH = 1024;

export class Repeats {
  /** By sender and id, the earliest first. @type {Map<string, { taken: Promise<Taken>, size: number }>} */
  #messages = new Map();
  #size = 0;

  /**
   * @param {Message} message
   * @param {RequestInfo} info of its request
   * @returns {string | undefined} who sent it, and its id; undefined if that cannot be said, or not in short
   */
  keyOf({ messageId }, { tenant, user }) {
    const key = safely(() => JSON.stringify([tenant, user, messageId]), undefined);
    return key && key.length <= MAX_KEY_LENGTH ? key : undefined;
  }

  /** @param {string} key @returns {Promise<Taken> | undefined} what became of a message, if it has come before */
  get(key) {
    return this.#messages.get(key)?.taken;
  }

  /** @param {string} key @param {Promise<Taken>} taken rejects if the message is refused, which is not remembered */
  add(key, taken) {
    const entry = { taken, size: 0 };
    this.#messages.set(key, entry);
    const grow = (/** @type {number} */ size) => {
      if (this.#messages.get(key) !== entry) return;
      entry.size += size;
      this.#size += size;
      for (const [oldest] of this.#messages) {
        if (this.#messages.size <= MAX_MESSAGES && this.#size <= MAX_SIZE) return;
        this.#delete(oldest);
      }
    };
    grow(key.length);
    taken.then(
      (what) => grow(JSON.stringify(what).length),
      () => this.#messages.get(key) === entry && this.#delete(key),
    );
  }

  /** @param {string} key */
  #delete(key) {
    this.#size -= this.#messages.get(key)?.size ?? 0;
    this.#messages.delete(key);
  }
}
