/** An app in the browser of another gateway of this user, which has the profile. The other side is shared-app.js. */
import { AbpError } from 'abp-bridge';
import { deferred } from './waiting.js';
import { UserError } from './errors.js';
import { cancelled, failure } from './shared-app.js';

/** @typedef {import('./channel.js').Message} Message */

/**
 * Asks a gateway to let go of its profile.
 * @param {import('./channel.js').Channel} channel
 * @returns {Promise<void>}
 * @throws {UserError} if it does not
 */
export async function askToRelease(channel) {
  const { promise, resolve } = /** @type {ReturnType<typeof deferred<Message>>} */ (deferred());
  channel.onMessage = resolve;
  channel.onClose = () => resolve(/** @type {Message} */ ({ kind: 'released' }));
  channel.send({ kind: 'release' });
  const { kind, message } = await promise;
  channel.close();
  if (kind === 'refused') throw new UserError(message);
}

/** @typedef {import('./app.js').CallOptions} CallOptions */
/** @typedef {import('./app.js').Result} Result */

export class BorrowedApp {
  #channel;
  /** @type {import('./app.js').Capability[]} */
  #capabilities = [];
  /** @type {Map<number, { options: CallOptions, settle: (result: Result) => void }>} */
  #calls = new Map();
  /** @type {Map<number, AbortController>} */
  #questions = new Map();
  /** Clients, by number. @type {WeakMap<object, number>} */
  #owners = new WeakMap();
  #lastOwner = 0;
  #lastCall = 0;
  #opened = /** @type {ReturnType<typeof deferred<Message>>} */ (deferred());
  /** What the app says it is. @type {Message['app'] | undefined} */
  app;
  /** Hears that the app can do something else than before. @type {() => void} */
  onCapabilitiesChanged = () => {};

  /** @param {import('./channel.js').Channel} channel */
  constructor(channel) {
    this.#channel = channel;
    channel.onMessage = (message) => this.#hear(message);
    channel.onClose = () => {
      const message = 'The gateway that had the browser has ended';
      this.#opened.resolve(/** @type {Message} */ ({ kind: 'refused', message }));
      for (const question of this.#questions.values()) question.abort('the question is over');
      for (const { settle } of this.#calls.values()) settle(failure('DISCONNECTED', message));
    };
  }

  /**
   * @param {string} url
   * @returns {Promise<number>} the process that has the browser
   * @throws {UserError} if the other gateway does not serve it
   */
  async open(url) {
    this.#channel.send({ kind: 'open', url });
    const answer = await this.#opened.promise;
    if (answer.kind === 'refused') {
      this.close();
      throw new UserError(answer.message);
    }
    this.app = answer.app;
    this.#capabilities = answer.capabilities;
    return answer.pid;
  }

  get connected() {
    return this.#channel.isOpen;
  }

  async listCapabilities() {
    return this.#capabilities;
  }

  close() {
    this.#channel.close();
  }

  /**
   * @param {string} name
   * @param {unknown} params
   * @param {CallOptions} options
   * @returns {Promise<Result>} never rejects
   */
  async call(name, params, options) {
    const { signal, timeout, owner, onChunk, ask } = options;
    if (signal?.aborted) return cancelled(signal.reason);
    const id = ++this.#lastCall;
    const { promise, resolve } = /** @type {ReturnType<typeof deferred<Result>>} */ (deferred());
    this.#calls.set(id, { options, settle: resolve });
    const cancel = () => {
      const { reason } = /** @type {AbortSignal} */ (signal);
      this.#channel.send({ kind: 'cancel', id, reason: String(reason?.message ?? reason) });
    };
    const [asks, streams] = [Boolean(ask), Boolean(onChunk)];
    const about = { id, name, params, timeout, owner: this.#numberOf(owner), asks, streams };
    this.#channel.send({ kind: 'call', ...about });
    if (!this.connected)
      resolve(failure('DISCONNECTED', 'The gateway that had the browser has ended'));
    signal?.addEventListener('abort', cancel);
    try {
      return await promise;
    } finally {
      this.#calls.delete(id);
      signal?.removeEventListener('abort', cancel);
    }
  }

  /** @param {object} [owner] */
  #numberOf(owner) {
    if (!owner) return 0;
    const number = this.#owners.get(owner) ?? ++this.#lastOwner;
    this.#owners.set(owner, number);
    return number;
  }

  /** @param {Message} message */
  #hear(message) {
    const { kind, id } = message;
    const call = this.#calls.get(kind === 'question' ? message.call : id);
    if (kind === 'opened' || kind === 'refused') this.#opened.resolve(message);
    else if (kind === 'capabilities') {
      this.#capabilities = message.capabilities;
      this.onCapabilitiesChanged();
    } else if (kind === 'progress') call?.options.onProgress?.(message.info);
    else if (kind === 'chunk') call?.options.onChunk?.(message.chunk, message.count);
    else if (kind === 'question') void this.#answer(id, message.question, call?.options.ask);
    else if (kind === 'withdrawn') this.#questions.get(id)?.abort('the question is over');
    else if (kind === 'result') call?.settle(message.result);
  }

  /**
   * @param {number} id
   * @param {import('./app.js').Question} question
   * @param {import('./app.js').Ask} [ask]
   */
  async #answer(id, question, ask) {
    const over = new AbortController();
    this.#questions.set(id, over);
    try {
      if (!ask) throw new AbpError('NOT_SUPPORTED', 'The caller does not support elicitation');
      const value = await ask(question, over.signal);
      this.#channel.send({ kind: 'answer', id, value });
    } catch (error) {
      const { code, message } = /** @type {AbpError} */ (error);
      this.#channel.send({ kind: 'answer', id, error: { code, message } });
    } finally {
      this.#questions.delete(id);
    }
  }
}
