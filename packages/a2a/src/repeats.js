/**
 * Messages that have been taken. A client that got no answer sends its message again, and is answered as if it had asked
 * once; another message under the same id is refused. The extension says so in the card, and in the requests of those clients
 * that rely on it. Others may give all of their messages one id: theirs are recognised where the agent's option `repeats` says so.
 */
import { safely } from '../../../js/common/errors.js';
import { isObject } from '../../../js/common/values.js';
import { digestOf } from './ids.js';
import { invalid } from './validation.js';

/** @import { Message } from './dialects.js' */
/** @import { RequestInfo } from './task.js' */

/** What became of a message: the id of its task, or the message that answered it. @typedef {string | Message} Taken */

/**
 * What tells a message from others: who sent it under which id, and a digest of what it says.
 * @typedef {{ key: string, digest: Promise<string> }} Identity
 */

/** The same, as every process has it: neither says who the sender is. @typedef {{ name: string, digest: string }} Mark */

/** Messages that are recognised, the latest ones. */
const MAX_MESSAGES = 8192;
/** Characters of all that is kept of them. */
const MAX_SIZE = 1 << 24;
/** Characters of a sender and the id of a message; a longer key is replaced by its digest. */
const MAX_KEY_LENGTH = 1024;

/**
 * Reads a message as it came: later it is given a task and a context.
 * @param {Message} message
 * @param {RequestInfo} info of its request
 * @returns {Promise<Identity | undefined>} undefined if its sender has no name, that is, a user who cannot be printed
 */
export async function identityOf({ messageId, ...content }, { tenant, user, metadata }) {
  const key = safely(() => JSON.stringify([tenant, user, messageId]), undefined);
  if (!key) return undefined;
  // The executor is given the request's metadata, too.
  const digest = shorten(canonical([withoutEmpty(content), metadata]));
  // If nobody asks for it, its error is of no interest.
  digest.catch(() => {});
  return { key: key.length <= MAX_KEY_LENGTH ? key : await shorten(key), digest };
}

/** @param {Identity} identity @returns {Promise<Mark | undefined>} undefined where there are no digests: only this process knows it */
export const markOf = async ({ key, digest }) =>
  crypto.subtle && { name: await digestOf(key), digest: await digest };

/** Pages without TLS have no digests. @param {string} text */
const shorten = async (text) => (crypto.subtle ? digestOf(text) : text);

/** Some clients write what they leave out as empty. @param {object} content */
const withoutEmpty = (content) =>
  Object.fromEntries(Object.entries(content).filter(([, one]) => one !== '' && !isEmpty(one)));

/** @param {unknown} one */
const isEmpty = (one) => Array.isArray(one) && one.length === 0;

/** JSON in which the order of members does not show. @param {unknown} value */
const canonical = (value) =>
  JSON.stringify(value, (_key, one) =>
    isObject(one) && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)))
      : one,
  );

/** The error for a message whose id was that of another. */
export const reused = () =>
  invalid('message.messageId', 'was used for another message: each needs an id of its own');

export class Repeats {
  /** By their keys, the earliest first. @type {Map<string, { taken: Promise<Taken>, digest: Promise<string>, size: number }>} */
  #messages = new Map();
  #size = 0;

  /**
   * @param {Identity} identity of a message
   * @returns {Promise<Taken> | undefined} what became of it, if it has come before; rejects if another has come under its id
   */
  get({ key, digest }) {
    const before = this.#messages.get(key);
    return before && same(before, digest);
  }

  /** @param {Identity} identity @param {Promise<Taken>} taken rejects if the message is refused, which is not remembered */
  add({ key, digest }, taken) {
    const entry = { taken, digest, size: 0 };
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
    digest.then(
      ({ length }) => grow(length),
      () => {},
    );
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

/** @param {{ taken: Promise<Taken>, digest: Promise<string> }} before @param {Promise<string>} digest */
async function same(before, digest) {
  if ((await before.digest) !== (await digest)) throw reused();
  return before.taken;
}
