/**
 * Messages that were accepted. A client that got no answer may send its message again, and gets the
 * same answer; another message with the same id is rejected. An extension announces this in the
 * card, and clients that rely on it declare it in their requests. Other clients may give all their
 * messages one id: their messages are recognised only with the agent's option `repeats`.
 */
import { digestOf, hashOf, safely } from 'abp-bridge/driver';
import { invalid } from './requests.js';

/** @import { Message } from './dialects.js' */
/** @import { RequestInfo } from './task.js' */

/**
 * The result of a message: the id of its task, or the message that answered it.
 * @typedef {string | Message} Taken
 */

/**
 * The identity of a message, the same in every process: digests of its sender and id, and of its
 * content.
 * @typedef {{ name: string, digest: string }} Mark
 */

/** Number of the latest messages that are recognised, and characters stored for them. */
const MAX_MESSAGES = 8192;
const MAX_SIZE = 1 << 24;

/**
 * Reads a message as received, before it gets a task and a context.
 * @param {Message} message
 * @param {RequestInfo} info of its request
 * @returns {Promise<Mark | undefined>} undefined if its sender cannot be identified: a user that
 *   cannot be printed
 */
export async function markOf({ messageId, ...content }, { tenant, user, metadata }) {
  const sender = safely(() => JSON.stringify([tenant, user, messageId]), undefined);
  if (!sender) return undefined;
  // The executor is given the request's metadata, too.
  const said = [withoutEmpty(content), metadata];
  return { name: hashOf(sender), digest: await digestOf(said, 'message') };
}

/**
 * Some clients send omitted members as empty values.
 * @param {object} content
 */
const withoutEmpty = (content) =>
  Object.fromEntries(
    Object.entries(content).filter(([, one]) => one !== '' && !(Array.isArray(one) && !one.length)),
  );

/** The error for a message with the id of another. */
export const reused = () =>
  invalid('message.messageId', 'was used for another message: each needs an id of its own');

/**
 * Results of messages that are in no log: of those in progress, those answered by a message, and
 * those whose task is forgotten.
 */
export class Repeats {
  /**
   * By name, the earliest first.
   * @type {Map<string, { taken: Promise<Taken>, digest: string, size: number }>}
   */
  #messages = new Map();
  #size = 0;

  /**
   * The result of a message that was received before. Throws if its id belongs to another message.
   * @param {Mark} mark
   */
  get({ name, digest }) {
    const before = this.#messages.get(name);
    if (before && before.digest !== digest) throw reused();
    return before?.taken;
  }

  /**
   * @param {Mark} mark
   * @param {Promise<Taken>} taken rejects if the message is rejected; then it is not remembered
   */
  add({ name, digest }, taken) {
    const one = { taken, digest, size: 0 };
    this.#messages.set(name, one);
    taken.then(
      (what) => {
        if (this.#messages.get(name) !== one) return;
        this.#size += one.size = name.length + digest.length + JSON.stringify(what).length;
        for (const [oldest, { size }] of this.#messages) {
          if (this.#messages.size <= MAX_MESSAGES && this.#size <= MAX_SIZE) return;
          this.#messages.delete(oldest);
          this.#size -= size;
        }
      },
      () => this.#messages.get(name) === one && this.#messages.delete(name),
    );
  }
}
