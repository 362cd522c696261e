/**
 * A page that Puppeteer or Playwright drives. This end exchanges messages with an object in the
 * page by `evaluate`, and waits there for the next message. No function is exposed to the page: it
 * would be visible in every frame, of any origin, and would outlive the document. An `evaluate`
 * ends with its document.
 */
import { MAX_MESSAGES_PER_TURN, Receiver, inAnotherTurn, safely, unless } from 'abp-bridge/driver';
import { fromText, toText } from './clone-codec.js';

/** Characters of one fetch at most: the drivers' connections have limits, too. */
export const MAX_FETCH_CHARACTERS = 2 ** 22;

/**
 * Characters of the longest message; longer ones are dropped. Every engine limits the length of a
 * string.
 */
const MAX_MESSAGE_CHARACTERS = 2 ** 28;

/**
 * The object in the page. It reads one stream of lines and writes another; each line is a message.
 * @typedef {object} PageEnd
 * @property {(from: number, text: string) => void} take takes messages: a piece of the stream, and
 *   the offset in characters at which it begins
 * @property {(received: number) => string | Promise<string>} next returns the text after a number
 *   of characters; waits a while for it
 * @property {(reason?: string) => Promise<void>} end called when nothing more will be written or
 *   read
 */

/**
 * The used part of a driver's handle of an object in the page.
 * @template There
 * @typedef {object} Handle
 * @property {<A, R>(question: (object: There, argument: A) => R, argument: A)
 *   => Promise<Awaited<R>>} evaluate calls the function in the page
 * @property {() => Promise<unknown>} dispose
 */

/**
 * Two streams of lines, each line a message. Each side reports how much has arrived, so that a
 * piece can be repeated.
 */
export class PageTransport extends Receiver {
  /**
   * No liveness checks: the driver reports when a page is gone.
   * @type {readonly import('abp-bridge/driver').Feature[]}
   */
  carries = ['streams'];
  #handle;
  #gone;
  #outgoing = '';
  #posted = 0;
  /** @type {Promise<void> | undefined} */
  #sending;
  #receiving = false;
  #hasEnded = () => {};
  /** Settles when the object in the page has ended, too. @type {Promise<void>} */
  ended = new Promise((resolve) => (this.#hasEnded = resolve));

  /**
   * @param {Handle<PageEnd>} handle
   * @param {AbortSignal} gone fires when the page is gone
   */
  constructor(handle, gone) {
    super();
    this.#handle = handle;
    this.#gone = gone;
  }

  /** @param {unknown} message */
  post(message) {
    if (this.stopped) return;
    this.#outgoing += `${toText(message, true)}\n`;
    const failed = (/** @type {unknown} */ cause) => this.lose(cause);
    this.#sending ??= this.#send().catch(failed);
    if (!this.#receiving) this.#receive().catch(failed);
  }

  /** @override */
  end() {
    this.#leave().then(this.#hasEnded, this.#hasEnded);
  }

  async #leave() {
    await this.#sending;
    await this.#ask((page) => page.end(), undefined);
    await this.#handle.dispose();
  }

  /**
   * Calls the object in the page. Puppeteer gives up an evaluation that takes long; the page may
   * still be fine then.
   * @template A, R
   * @param {(page: PageEnd, argument: A) => R} question
   * @param {A} argument
   * @returns {Promise<Awaited<R>>}
   */
  async #ask(question, argument) {
    for (;;) {
      try {
        return await unless(this.#gone, this.#handle.evaluate(question, argument));
      } catch (error) {
        const { message } = /** @type {Error} */ (error);
        if (this.stopped || !/timed out/i.test(message)) throw error;
      }
    }
  }

  async #send() {
    while (this.#outgoing) {
      const text = this.#outgoing.slice(0, MAX_FETCH_CHARACTERS);
      const piece = /** @type {const} */ ([this.#posted, text]);
      await this.#ask((page, [at, text]) => page.take(at, text), piece);
      this.#posted += text.length;
      this.#outgoing = this.#outgoing.slice(text.length);
    }
    this.#sending = undefined;
  }

  async #receive() {
    this.#receiving = true;
    let received = 0;
    let partial = '';
    while (!this.stopped) {
      const text = await this.#ask((page, received) => page.next(received), received);
      if (typeof text !== 'string') throw new TypeError('The page sent a message that is not text');
      if (text.length > MAX_FETCH_CHARACTERS)
        throw new RangeError('The page sent more at once than the limit allows');
      received += text.length;
      let from = 0;
      for (let end, lines = 0; (end = text.indexOf('\n', from)) >= 0; from = end + 1) {
        const line = partial + text.slice(from, end);
        partial = '';
        // Blank lines are not messages.
        if (line) this.receive(safely(() => fromText(line), null));
        if (++lines % MAX_MESSAGES_PER_TURN === 0)
          await new Promise((done) => inAnotherTurn(() => done(0)));
        if (this.stopped) return;
      }
      partial += text.slice(from);
      if (partial.length > MAX_MESSAGE_CHARACTERS) throw new RangeError('A message is too long');
    }
  }
}
