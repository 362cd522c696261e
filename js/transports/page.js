/**
 * A page under Puppeteer or Playwright. An object in the page does the protocol's work there, and this end
 * exchanges messages with it by `evaluate`, which waits for what comes next. Nothing is exposed to the page: an exposed
 * function would reach every frame, whoever's, and outlive the document, while this ends with it at once.
 */
import { bytesOf, fromBase64, toBase64 } from '../binary.js';
import { fromMarked, fromText, markedText, toText } from '../clone.js';
import { AbpError, callOut, saysCancelled, toErrorObject } from '../errors.js';
import { CALL, milliseconds, own } from '../messages.js';
import { PIECE, pageAgent } from './page-agent.js';

/**
 * What both libraries' pages and frames have in common, and all that is used of them.
 * @typedef {object} PageLike
 * @property {(script: string) => Promise<any>} evaluateHandle of the result: `evaluate(function, argument)`, with
 *   the object itself as the function's first argument, and `dispose()`
 * @property {() => PageLike} [page] a frame's page
 * @property {() => boolean} [isClosed]
 * @property {(event: any, listener: (...args: any[]) => void) => any} [on]
 * @property {(event: any, listener: (...args: any[]) => void) => any} [off]
 */

/** How a page says that it is gone: `crash` is Playwright's word, `error` is Puppeteer's. */
const GONE = ['close', 'crash', 'error'];

const CANCEL_RESULT = 'capabilities/cancel-result';

/** A message longer than this is none, and nothing is kept of it. Text has a limit in every engine. */
const LONGEST = 2 ** 28;

const SCRIPT = `(() => {
'use strict';
${[bytesOf, fromBase64, toBase64, fromMarked, fromText, markedText, toText, pageAgent].join('\n')}
return ${pageAgent.name}(${PIECE});
})()`;

/**
 * @param {AbortSignal} signal
 * @param {Promise<any>} promise
 * @returns {Promise<any>} the same, unless the signal is first
 */
function unless(signal, promise) {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/**
 * Opens the way to the `window.abp` of a page, when there is one.
 * @param {PageLike} target a Page, whose main frame is meant, or a Frame
 * @param {object} options
 * @param {number} [options.timeout] ms to wait for `window.abp` (10000)
 * @param {AbortSignal} [options.signal] gives that up
 * @param {Promise<void>} [options.after] what must have ended first
 * @returns {Promise<PageTransport>}
 */
export async function pageTransport(target, { timeout = 10_000, signal, after }) {
  const page = target.page?.() ?? target;
  const stop = new AbortController();
  const gone = () =>
    stop.abort(new AbpError('DISCONNECTED', 'The page is gone', { retryable: true }));
  const given = () => stop.abort(signal?.reason);
  const release = () => GONE.forEach((event) => page.off?.(event, gone));
  for (const event of GONE) page.on?.(event, gone);
  signal?.addEventListener('abort', given);
  if (page.isClosed?.()) gone();
  try {
    const agent = await agentIn(target, stop, milliseconds(timeout), after);
    return new PageTransport(agent, stop.signal, release);
  } catch (error) {
    release();
    throw error;
  } finally {
    signal?.removeEventListener('abort', given);
  }
}

/**
 * Puts the object into the page, where it waits for `window.abp`. A page on its way elsewhere takes it along,
 * and gets another.
 * @param {PageLike} target
 * @param {AbortController} stop
 * @param {number} timeout ms
 * @param {Promise<void>} [after]
 * @returns {Promise<any>} its handle
 */
async function agentIn(target, stop, timeout, after) {
  const { signal } = stop;
  let found = 'none';
  /** @type {any} */
  let cause;
  const late = () =>
    stop.abort(
      found === 'other'
        ? new AbpError('NOT_SUPPORTED', 'window.abp has no initialize and call: it is not of ABP')
        : new AbpError('TIMEOUT', 'The page has shown no window.abp in time', {
            retryable: true,
            cause,
          }),
    );
  const timer = timeout ? setTimeout(late, timeout) : undefined;
  try {
    await unless(signal, Promise.resolve(after));
    for (;;) {
      try {
        const agent = await unless(signal, target.evaluateHandle(SCRIPT));
        for (let ms = 0; found !== 'ready'; ms = 1000) {
          const question = (/** @type {any} */ there, /** @type {number} */ ms) => there.find(ms);
          found = await unless(signal, agent.evaluate(question, ms));
        }
        return agent;
      } catch (error) {
        signal.throwIfAborted();
        cause = error;
        await unless(signal, new Promise((resolve) => setTimeout(resolve, 50)));
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Two streams of lines, each a message; what arrived of them is told, so that a piece may be asked for again. */
class PageTransport {
  #agent;
  #gone;
  #release;
  #closed = false;
  #outgoing = '';
  #posted = 0;
  #sending = Promise.resolve();
  #busy = false;
  #receiving = false;
  #hasEnded = () => {};
  carries = 0;
  /** Settles when the page's part has ended, too. @type {Promise<void>} */
  ended = new Promise((resolve) => (this.#hasEnded = resolve));
  /** @type {(message: unknown, ports: readonly MessagePort[]) => void} */
  onMessage = () => {};
  /** @type {undefined | (() => void)} */
  onClose = undefined;

  /**
   * @param {any} agent
   * @param {AbortSignal} gone
   * @param {() => void} release
   */
  constructor(agent, gone, release) {
    this.#agent = agent;
    this.#gone = gone;
    this.#release = release;
  }

  /** @param {unknown} message */
  post(message) {
    this.#outgoing += `${toText(message, true)}\n`;
    if (!this.#busy) this.#sending = this.#send().catch(this.#lost);
    if (!this.#receiving) void this.#receive().catch(this.#lost);
  }

  close() {
    if (this.#closed) return;
    this.#closed = true;
    const ended = () => (this.#release(), this.#hasEnded());
    this.#end().then(ended, ended);
  }

  async #end() {
    await this.#sending;
    await this.#ask((there) => there.end(), undefined);
    await this.#agent.dispose();
  }

  #lost = () => {
    if (!this.#closed) this.onClose?.();
  };

  /**
   * Asks the object in the page. Puppeteer gives up what takes long, which says nothing of the page.
   * @param {(there: import('./page-agent.js').PageAgent, argument: any) => any} question
   * @param {any} argument
   */
  async #ask(question, argument) {
    for (;;) {
      try {
        return await unless(this.#gone, this.#agent.evaluate(question, argument));
      } catch (error) {
        const { message } = /** @type {any} */ (error);
        if (this.#closed || !/timed out/i.test(message)) throw error;
      }
    }
  }

  async #send() {
    this.#busy = true;
    while (this.#outgoing) {
      const text = this.#outgoing.slice(0, PIECE);
      await this.#ask((there, [at, text]) => there.take(at, text), [this.#posted, text]);
      this.#posted += text.length;
      this.#outgoing = this.#outgoing.slice(text.length);
    }
    this.#busy = false;
  }

  async #receive() {
    this.#receiving = true;
    let received = 0;
    let partial = '';
    while (!this.#closed) {
      const text = await this.#ask((there, received) => there.next(received), received);
      if (typeof text !== 'string') throw new TypeError('The page speaks another language');
      received += text.length;
      const lines = text.split('\n');
      lines[0] = partial + lines[0];
      partial = /** @type {string} */ (lines.pop());
      if (partial.length > LONGEST) throw new RangeError('A message is too long');
      for (const line of lines) if (!this.#closed) callOut(this.onMessage, readMessage(line), []);
    }
  }
}

/**
 * A message of the page, in the protocol's words: what an app threw there was put into none.
 * @param {string} line
 * @returns {any} null if it is unreadable
 */
function readMessage(line) {
  let message;
  try {
    message = fromText(line);
  } catch {
    return null;
  }
  if (typeof message !== 'object' || message === null) return null;
  const { type, payload } = message;
  if (Object.hasOwn(message, 'thrown')) {
    const { thrown } = message;
    const error = toErrorObject(thrown);
    if (type === CANCEL_RESULT) {
      message.payload = { cancelled: false, reason: error.message, error };
    } else if (saysCancelled(thrown)) {
      message.payload = { success: false, cancelled: true, error: { ...error, code: 'CANCELLED' } };
    } else message.payload = { success: false, error };
  } else if (type === CALL.response && typeof own(payload, 'success') !== 'boolean') {
    const why = 'The app answered with no response of ABP: { success, data, error }';
    message.payload = {
      success: false,
      ...(own(payload, 'cancelled') === true && { cancelled: true }),
      error: { code: 'OPERATION_FAILED', message: why, retryable: false, details: payload },
    };
  }
  return message;
}
