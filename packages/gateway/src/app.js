/** An app, however it is reached: opened with the first need, and opened again when it was lost. */
import { AbpError } from 'abp-bridge';
import { UserError } from './errors.js';
import { BorrowedApp } from './borrowed-app.js';
import { PageWay } from './page-way.js';
import { takeProfile } from './profile-socket.js';
import { cancelled, shareApp } from './shared-app.js';
import { SocketWay } from './socket-way.js';
import { callStreamed } from './streamed.js';
import { unlessAborted } from './waiting.js';

/**
 * @typedef {import('abp-bridge').Client} Client
 * @typedef {Awaited<ReturnType<Client['call']>>} Response The protocol's answer to a call.
 * @typedef {NonNullable<NonNullable<Parameters<Client['call']>[2]>['onProgress']>} OnProgress
 * @typedef {Awaited<ReturnType<Client['listCapabilities']>>[number]} Capability
 * @typedef {{ method: string, params?: any, timeout?: number }} Question
 */

/**
 * Answers a question of the app: returns the data or the protocol's response, throws to decline.
 * @callback Ask
 * @param {Question} question
 * @param {AbortSignal} signal aborts when the question is over
 * @returns {unknown}
 */

/**
 * @typedef {object} CallOptions
 * @property {AbortSignal} [signal]
 * @property {object} [owner] who calls: questions are put to nobody else
 * @property {number} [timeout] ms
 * @property {OnProgress} [onProgress]
 * @property {import('./streamed.js').OnChunk} [onChunk] is shown what the handler streams
 * @property {Ask} [ask] absent: whoever calls can be asked nothing
 */

/**
 * @typedef {Response & { isTool?: boolean, chunks?: unknown[], downloads?: object[] }} Result `isTool`: a page's WebMCP
 *   tool returned it; `chunks`: see streamed.js; `downloads`: what the page downloaded meanwhile, as the protocol's BinaryData
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
    `${JSON.stringify(text)} is not the address of an app: give https://app.example/ or wss://app.example/abp`,
    2,
  );
}

export class App {
  /** @type {Client | BorrowedApp | undefined} */
  #client;
  /** Listens for other gateways that want the profile, while it is ours. @type {import('node:net').Server | undefined} */
  #server;
  /** Those that use the app. @type {Set<ReturnType<typeof shareApp>>} */
  #shares = new Set();
  /** @type {Promise<Client | BorrowedApp> | undefined} */
  #opening;
  #way;
  #agent;
  #closed = false;
  #log;
  /**
   * Calls under way and what they have downloaded, the latest last: a question of the app's names no call, nor does a
   * download.
   * @type {Map<CallOptions, import('./downloads.js').Download[]>}
   */
  #calls = new Map();

  /**
   * @param {URL} url
   * @param {object} options
   * @param {{ name: string, version: string }} options.agent
   * @param {import('./page-way.js').PageOptions} [options.page]
   */
  constructor(url, { agent, page = {} }) {
    this.url = url;
    this.#agent = agent;
    this.#way = /^ws/.test(url.protocol)
      ? new SocketWay(url, page)
      : new PageWay(url, page, (download) => this.#take(download));
    this.#log = page.log ?? (() => {});
    /** Hear that the app can do something else than before. @type {Set<() => void>} */
    this.watchers = new Set();
  }

  /** The folder of its profile, if that stays. */
  get profile() {
    return this.#way.profile;
  }

  /** Whether there is a session now. */
  get connected() {
    return this.#client?.connected ?? false;
  }

  /**
   * The session with the app: the one that there is, or a new one.
   * @returns {Promise<Client | BorrowedApp>}
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
      const client =
        (await this.#borrow()) ??
        (await this.#way.connect({
          agent: this.#agent,
          limits: { maxControlLength: MAX_SAID },
          onElicitation: (question, { signal }) => this.#ask(question, signal),
          onCapabilitiesChanged: this.#announce,
        }));
      if (this.#closed) {
        client.close();
        throw new UserError('The gateway is closing');
      }
      this.#client = client;
      queueMicrotask(this.#announce);
      return client;
    } catch (error) {
      if (error instanceof UserError) throw error;
      const { code, message, details } =
        /** @type {import('abp-bridge').AbpError & { details?: { unread?: unknown } }} */ (error);
      const hint = details?.unread
        ? `. An app's description of itself may have at most ${MAX_SAID} bytes: shorten its descriptions and schemas`
        : '';
      throw new UserError(`${this.url.href} has no app that answered (${code}: ${message})${hint}`);
    }
  }

  #announce = () => {
    for (const watcher of this.watchers) watcher();
  };

  /**
   * The app in the browser of another gateway, if that has the profile. Else the profile is ours from now on, and others
   * borrow.
   * @returns {Promise<BorrowedApp | undefined>}
   */
  async #borrow() {
    const { profile } = this;
    if (!profile || this.#server) return undefined;
    const { server, channel } = await takeProfile(profile, (other) => this.#share(other));
    if (this.#closed) {
      server?.close();
      channel?.close();
      throw new UserError('The gateway is closing');
    }
    if (server) {
      this.#server = server;
      return undefined;
    }
    const borrowed = new BorrowedApp(channel);
    borrowed.onCapabilitiesChanged = this.#announce;
    const pid = await borrowed.open(this.url.href);
    this.#log(`uses the browser of the gateway with process id ${pid}`);
    return borrowed;
  }

  /** @param {import('./channel.js').Channel} channel */
  #share(channel) {
    const share = shareApp(channel, this);
    this.#shares.add(share);
    const { onClose } = channel;
    channel.onClose = () => {
      this.#shares.delete(share);
      onClose();
    };
  }

  /**
   * Lets go of the profile and its browser, until the app is needed again.
   * @returns {Promise<{ kind: 'released' } | { kind: 'refused', message: string }>}
   */
  async release() {
    await this.#opening?.catch(() => {});
    if (this.#calls.size) {
      const message = `The gateway with process id ${process.pid} uses the profile and is running a call: try again when it has ended`;
      return { kind: 'refused', message };
    }
    this.#client?.close();
    await this.#way.release();
    this.#server?.close();
    this.#server = undefined;
    return { kind: 'released' };
  }

  /** What the app says it can do. @returns {Promise<Capability[]>} */
  async listCapabilities() {
    return (await this.open()).listCapabilities();
  }

  /**
   * What is known without asking: nothing while there is no session.
   * @returns {Promise<Capability[] | undefined>}
   */
  async knownCapabilities() {
    return this.#client?.listCapabilities();
  }

  /**
   * Calls a capability, and never rejects for what becomes of that.
   * @param {string} name
   * @param {unknown} params
   * @param {CallOptions} options
   * @returns {Promise<Result>}
   */
  async call(name, params, options) {
    const { signal } = options;
    let client;
    try {
      client = await unlessAborted(this.open(), signal);
    } catch (error) {
      if (signal?.aborted) return cancelled(signal.reason);
      const { message } = /** @type {Error} */ (error);
      return {
        success: false,
        error: { code: 'DISCONNECTED', message, retryable: true },
        metadata: { outcome: 'unstarted' },
      };
    }
    /** @type {import('./downloads.js').Download[]} */
    const downloads = [];
    if (client instanceof BorrowedApp) return client.call(name, params, options);
    this.#calls.set(options, downloads);
    try {
      const { timeout, onProgress, onChunk } = options;
      const asked = { signal, timeout, onProgress };
      const response = await callStreamed(client, name, params, asked, onChunk);
      if (response.cancelled && !(await this.#way.responds())) return this.#abandoned(response);
      // What WebMCP tools return is in MCP's form.
      const isTool = /** @type {{ webmcp?: unknown } | undefined} */ (client.app)?.webmcp === true;
      const files = response.success ? await this.#filesOf(downloads, signal) : [];
      return {
        ...response,
        ...(isTool && { isTool }),
        ...(files.length && { downloads: files }),
      };
    } finally {
      for (const { cancel } of downloads) cancel();
      this.#calls.delete(options);
    }
  }

  /**
   * The response to a cancelled call whose page does nothing any more: nobody has said that the call has stopped.
   * @param {Response} response
   * @returns {Response}
   */
  #abandoned({ error }) {
    const message = `${error?.message ?? 'cancelled'}. The page did not answer, and was closed`;
    return {
      success: false,
      cancelled: true,
      error: { code: error?.code ?? 'CANCELLED', message, retryable: false },
      metadata: { outcome: 'unknown' },
    };
  }

  /**
   * @param {Question} question
   * @param {AbortSignal} signal
   */
  #ask(question, signal) {
    const calls = this.#callsOfOne();
    if (!calls) {
      const why =
        'Several clients call this app, and the question does not say which of them to ask';
      throw new AbpError('NOT_SUPPORTED', why);
    }
    const call = calls.find(({ ask }) => ask);
    if (call?.ask) return call.ask(question, signal);
    throw new AbpError('NOT_SUPPORTED', 'The caller does not support elicitation');
  }

  /**
   * The calls to which something of the app's may belong, the latest first. It does not say to which, so they must be
   * the same caller's: the word of one must not count for another. A call that is cancelled has no part in it any more.
   * @returns {CallOptions[] | undefined} undefined if they are several callers'
   */
  #callsOfOne() {
    const calls = [...this.#calls.keys()].reverse().filter(({ signal }) => !signal?.aborted);
    return calls.some(({ owner }) => owner !== calls[0]?.owner) ? undefined : calls;
  }

  /** @param {import('./downloads.js').Download} download */
  #take(download) {
    const [latest] = this.#callsOfOne() ?? [];
    if (latest) this.#calls.get(latest)?.push(download);
    return latest !== undefined;
  }

  /**
   * @param {import('./downloads.js').Download[]} downloads of a call that has succeeded; it may still grow
   * @param {AbortSignal} [signal] aborts the wait
   */
  async #filesOf(downloads, signal) {
    await this.#way.settle();
    const files = [];
    for (const { file } of downloads) {
      files.push(await unlessAborted(file, signal).catch(() => undefined));
    }
    return files.filter((file) => file !== undefined);
  }

  /** Ends the session and the browser. What is pending settles as cancelled. */
  async close() {
    this.#closed = true;
    await Promise.all([...this.#shares].map((share) => share.close()));
    this.#client?.close();
    await this.#way.close();
    this.#server?.close();
  }

  /** Ends the browser at once, when there is no time for more. */
  kill() {
    this.#way.kill();
  }
}

/**
 * Whether the app has stopped the call. Of a page's WebMCP tools nobody knows.
 * @param {Response} response
 */
export const hasStopped = ({ cancelled, metadata }) =>
  cancelled === true && metadata?.outcome !== 'unknown' && metadata?.outcome !== 'running';
