/** An app of others' making in a page that is driven: asks what runs there (page-agent.js). */
import { AbpError, reportError } from '../../../js/common/errors.js';
import { reasonUnsent } from '../../../js/wire/unsent.js';

/** @import { CallOptions, ForeignApp, Hear } from './foreign/foreign-app.js' */

/** @typedef {{ resolve: (value: any) => void, reject: (thrown: unknown) => void }} Asked */

/** @implements {ForeignApp} */
export class RemoteApp {
  #transport;
  #read;
  /** What waits for an answer, by number. @type {Map<number, Asked>} */
  #asked = new Map();
  #last = 0;
  /** @type {Hear} */
  #hear = () => {};
  /** Why the page is gone. @type {{ cause: unknown } | undefined} */
  #gone;

  /**
   * @param {import('./page-transport.js').PageTransport} transport to the page
   * @param {object} options
   * @param {(answer: unknown) => unknown} [options.read] makes a response of the answer to a call
   * @param {(cause: unknown) => void} options.lost called when the page is gone
   */
  constructor(transport, { read = (answer) => answer, lost }) {
    this.#transport = transport;
    this.#read = read;
    transport.onClose = (cause) => {
      this.#gone = { cause };
      for (const { reject } of this.#asked.values()) reject(cause);
      this.#asked.clear();
      lost(cause);
    };
    // A page may say anything: it costs nobody but itself.
    transport.onMessage = (line) => void this.#take(line).catch(reportError);
  }

  /** @param {any} line a LineFromApp, if the page says the truth */
  async #take(line) {
    if (typeof line !== 'object' || line === null) return;
    if (line.report) {
      const value = await this.#hear(line.report, line.data);
      if (line.question) this.#transport.post({ reply: line.question, value });
      return;
    }
    const asked = this.#asked.get(line.answer);
    this.#asked.delete(line.answer);
    if ('thrown' in line) asked?.reject(line.thrown);
    else asked?.resolve(line.value);
  }

  /**
   * @param {keyof ForeignApp} method
   * @param {unknown[]} args
   * @returns {Promise<any>} rejects with what was thrown there
   * @throws if the arguments cannot be sent
   */
  #ask(method, ...args) {
    if (this.#gone) return Promise.reject(this.#gone.cause);
    const ask = ++this.#last;
    // Text has no word for what is absent.
    while (args.length && args.at(-1) === undefined) args.pop();
    this.#transport.post({ ask, method, args });
    return new Promise((resolve, reject) => this.#asked.set(ask, { resolve, reject }));
  }

  /** @param {Record<string, unknown>} params @param {Hear} hear @param {number} patience ms */
  async open(params, hear, patience) {
    this.#hear = hear;
    return this.#ask('open', params, patience);
  }

  /** @param {string} name @param {unknown} params @param {CallOptions} options */
  async call(name, params, options) {
    let answer;
    try {
      answer = this.#ask('call', name, params, options);
    } catch (error) {
      const why = await reasonUnsent('parameters', 'params', params, error);
      throw new AbpError('INVALID_PARAMS', why);
    }
    return this.#read(await answer);
  }

  /** @param {string} callId @param {string} [reason] */
  async cancel(callId, reason) {
    return this.#ask('cancel', callId, reason);
  }

  /** @param {string} [reason] */
  async close(reason) {
    try {
      await this.#ask('close', reason);
    } catch {
      // The page is gone, and its app with it.
    }
  }
}
