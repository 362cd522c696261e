/**
 * Messages that have been taken. A client that got no answer sends its message again, and is
 * answered as if it had asked once; another message under the same id is refused. The extension
 * says so in the card, and in the requests of those clients that rely on it. Others may give all of
 * their messages one id: theirs are recognised where the agent's option `repeats` says so.
 */
import { digestOf, hashOf, safely } from 'abp-bridge/driver';
import { invalid } from './requests.js';

/** @import { Message } from './dialects.js' */
/** @import { RequestInfo } from './task.js' */

/**
 * What became of a message: the id of its task, or the message that answered it.
 * @typedef {string | Message} Taken
 */

/**
 * What tells a message from others, the same in every process: digests of who sent it under which
 * id, and of what it says.
 * @typedef {{ name: string, digest: string }} Mark
 */

/** Messages that are recognised, the latest ones, and characters of what is kept of them. */
const MAX_MESSAGES = 8192;
const MAX_SIZE = 1 << 24;

/**
 * Reads a message as it came: later it is given a task and a context.
 * @param {Message} message
 * @param {RequestInfo} info of its request
 * @returns {Promise<Mark | undefined>} undefined if its sender has no name, that is, a user who
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
 * Some clients write what they leave out as empty.
 * @param {object} content
 */
const withoutEmpty = (content) =>
  Object.fromEntries(
    Object.entries(content).filter(([, one]) => one !== '' && !(Array.isArray(one) && !one.length)),
  );

/** The error for a message whose id was that of another. */
export const reused = () =>
  invalid('message.messageId', 'was used for another message: each needs an id of its own');

/**
 * What no log says of messages: what becomes of those that are on their way, what those were
 * answered that have no task, and that one was taken whose task is forgotten.
 */
export class Repeats {
  /**
   * By their names, the earliest first.
   * @type {Map<string, { taken: Promise<Taken>, digest: string, size: number }>}
   */
  #messages = new Map();
  #size = 0;

  /**
   * What became of a message, if it has come before. Throws if another has come under its id.
   * @param {Mark} mark
   */
  get({ name, digest }) {
    const before = this.#messages.get(name);
    if (before && before.digest !== digest) throw reused();
    return before?.taken;
  }

  /**
   * @param {Mark} mark
   * @param {Promise<Taken>} taken rejects if the message is refused, which is not remembered
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
