/** An app, however it is reached: opened with the first need, and opened again when it was lost. */
import { AbpError } from 'abp-bridge';
import { UserError } from './errors.js';
import { PageWay } from './page-way.js';
import { SocketWay } from './socket-way.js';

/**
 * @typedef {import('abp-bridge').Client} Client
 * @typedef {Awaited<ReturnType<Client['call']>>} Response The protocol's answer to a call.
 * @typedef {NonNullable<NonNullable<Parameters<Client['call']>[2]>['onProgress']>} OnProgress
 * @typedef {{ method: string, params?: any, timeout?: number }} Question
 */

/**
 * Answers a question of the app: returns the data or the protocol's response, throws to decline.
 * @callback Ask
 * @param {Question} question
 * @param {AbortSignal} signal aborts when the question is over
 * @returns {any}
 */

/**
 * @typedef {object} CallOptions
 * @property {AbortSignal} [signal]
 * @property {number} [timeout] ms
 * @property {OnProgress} [onProgress]
 * @property {Ask} [ask] absent: whoever calls can be asked nothing
 */

/**
 * Bytes in which an app may say what it can do. It says so twice, in one message, and the page is bounded
 * elsewhere: what a client sees of it is little.
 */
const MAX_SAID = 8 << 20;

/**
 * @param {string} text
 * @returns {URL}
 * @throws {UserError}
 */
export function appUrl(text) {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url && /^(https?|wss?):$/.test(url.protocol)) return url;
  throw new UserError(
    `${JSON.stringify(text)} is no address of an app: say https://app.example/ or wss://app.example/abp`,
    2,
  );
}

export class App {
  /** @type {Client | undefined} */
  #client;
  /** @type {Promise<Client> | undefined} */
  #opening;
  #way;
  #agent;
  #closed = false;
  /** Calls under way, the latest last: a question of the app's names no call. @type {Set<CallOptions>} */
  #calls = new Set();

  /**
   * @param {URL} url
   * @param {object} options
   * @param {{ name: string, version: string }} options.agent
   * @param {import('./page-way.js').PageOptions} [options.page]
   */
  constructor(url, { agent, page = {} }) {
    this.url = url;
    this.#agent = agent;
    this.#way = /^ws/.test(url.protocol) ? new SocketWay(url, page) : new PageWay(url, page);
    /** Hears that the app can do something else than before. @type {() => void} */
    this.onCapabilitiesChanged = () => {};
  }

  /** Whether there is a session now. */
  get connected() {
    return this.#client?.connected ?? false;
  }

  /**
   * The session with the app: the one that there is, or a new one.
   * @returns {Promise<Client>}
   * @throws {UserError} when there is no way to the app
   */
  async open() {
    if (this.#client?.connected) return this.#client;
    this.#opening ??= this.#begin().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  async #begin() {
    if (this.#closed) throw new UserError('The gateway is closing');
    try {
      const client = await this.#way.connect({
        agent: this.#agent,
        limits: { maxControlLength: MAX_SAID },
        onElicitation: (question, { signal }) => this.#ask(question, signal),
        onCapabilitiesChanged: () => this.onCapabilitiesChanged(),
      });
      if (this.#closed) {
        client.close();
        throw new UserError('The gateway is closing');
      }
      this.#client = client;
      queueMicrotask(() => this.onCapabilitiesChanged());
      return client;
    } catch (error) {
      if (error instanceof UserError) throw error;
      const { code, message, details } = /** @type {any} */ (error);
      const hint = details?.unread
        ? `. What an app says of itself may have ${MAX_SAID} bytes: shorten its descriptions and schemas`
        : '';
      throw new UserError(`${this.url.href} has no app that answers: ${code}: ${message}${hint}`);
    }
  }

  /** What the app says it can do. @returns {Promise<any[]>} */
  async listCapabilities() {
    return (await this.open()).listCapabilities();
  }

  /**
   * What is known without asking: nothing while there is no session.
   * @returns {Promise<any[] | undefined>}
   */
  async knownCapabilities() {
    return this.#client?.listCapabilities();
  }

  /**
   * Calls a capability, and never rejects for what becomes of that.
   * @param {string} name
   * @param {any} params
   * @param {CallOptions} options
   * @returns {Promise<Response>}
   */
  async call(name, params, options) {
    const { signal } = options;
    let client;
    try {
      client = await unlessAborted(this.open(), signal);
    } catch (error) {
      if (signal?.aborted) return cancelled(signal.reason);
      const { message } = /** @type {Error} */ (error);
      return { success: false, error: { code: 'DISCONNECTED', message, retryable: true } };
    }
    this.#calls.add(options);
    try {
      const { timeout, onProgress } = options;
      return await client.call(name, params, { signal, timeout, onProgress });
    } finally {
      this.#calls.delete(options);
    }
  }

  /**
   * @param {Question} question
   * @param {AbortSignal} signal
   */
  #ask(question, signal) {
    // The protocol does not say which call asks. Mostly there is one; else it is the latest whose caller can be asked.
    const call = [...this.#calls].reverse().find(({ ask }) => ask);
    if (call?.ask) return call.ask(question, signal);
    throw new AbpError('NOT_SUPPORTED', 'Whoever calls this app can be asked nothing');
  }

  /** Ends the session and the browser. What is pending settles as cancelled. */
  async close() {
    this.#closed = true;
    this.#client?.close();
    await this.#way.close();
  }

  /** Ends the browser at once, when there is no time for more. */
  kill() {
    this.#way.kill();
  }
}

/**
 * Whether the app has stopped the call. Of a page's WebMCP tools nobody knows.
 * @param {{ cancelled?: boolean, error?: { details?: any } }} response
 */
export const hasStopped = ({ cancelled, error }) =>
  cancelled === true && error?.details?.outcome !== 'unknown';

/** @param {any} reason @returns {Response} */
const cancelled = (reason) => ({
  success: false,
  cancelled: true,
  error: { code: 'CANCELLED', message: String(reason?.message ?? reason), retryable: false },
});

/**
 * @template T
 * @param {Promise<T>} promise
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>} rejects with the signal's reason if that is first
 */
export function unlessAborted(promise, signal) {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
