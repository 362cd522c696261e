/** An app, however it is reached: opened with the first need, and opened again when it was lost. */
import { AbpError, connect } from 'abp-bridge';
import { webSocketTransport } from 'abp-bridge/websocket';
import { WebSocket } from 'ws';
import { UserError, log, seconds, usageError } from './errors.js';
import { DEFAULT_TIMEOUT, PageWay } from './page-way.js';
import { takeProfile } from './profile-socket.js';
import { BorrowedApp, cancelled, shareApp } from './shared-app.js';
import { chunkText } from './texts.js';
import { unlessAborted } from './waiting.js';

/**
 * @typedef {import('./commands.js').Values} Values
 * @typedef {import('abp-bridge').Client} Client
 * @typedef {Awaited<ReturnType<Client['call']>>} Response The protocol's answer to a call.
 * @typedef {NonNullable<NonNullable<Parameters<Client['call']>[2]>['onProgress']>} OnProgress
 * @typedef {Awaited<ReturnType<Client['listCapabilities']>>[number]} Capability
 * @typedef {{ method: string, params?: any, timeout?: number }} Question
 * @typedef {(question: Question, over: AbortSignal) => unknown} Ask Answers a question of the app: returns the data or the
 *   protocol's response, throws to decline. `over` aborts when the question is over.
 *
 * @typedef {object} CallOptions
 * @property {AbortSignal} [signal]
 * @property {object} [owner] who calls: questions are put to nobody else
 * @property {number} [timeout] ms
 * @property {OnProgress} [onProgress]
 * @property {(text: string, count: number) => void} [onChunk] is shown each chunk that the handler streams
 * @property {Ask} [ask] absent: whoever calls can be asked nothing
 *
 * @typedef {Response & { isTool?: boolean, chunks?: unknown[], downloads?: object[] }} Result `isTool`: a page's WebMCP
 *   tool returned it; `chunks`: what was streamed before the data (where the handler returned nothing, they are the data);
 *   `downloads`: what the page downloaded meanwhile, as the protocol's BinaryData
 */

/**
 * Bytes in which an app may say what it can do. It says so twice, in one message, and the page is bounded
 * elsewhere: what a client sees of it is little.
 */
const MAX_SAID = 8 << 20;
/** Bytes of the longest message of a socket: the transport's own limit, before it is in memory. */
const MAX_PAYLOAD = 32 << 20;
/** Chunks of a call that are kept, and what they may be together, in characters and bytes, as far as that shows. */
const MAX_CHUNKS = 2 ** 16;
const MAX_SIZE = 2 ** 26;
/** What anything but text and bytes counts for: those who send it have bounded it. */
const SOME = 1024;

/** @param {string} text @returns {URL} @throws {UserError} */
export function appUrl(text) {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url && /^(https?|wss?):$/.test(url.protocol)) return url;
  throw usageError(
    `${JSON.stringify(text)} is not the address of an app: give https://app.example/ or wss://app.example/abp`,
  );
}

/**
 * The app of an address, by the options that all commands share.
 * @param {string} address
 * @param {Values} values of the options
 * @param {{ version: string }} context
 */
export const appOf = (address, values, { version }) =>
  new App(appUrl(address), { agent: { name: 'abp-bridge-gateway', version }, values });

export class App {
  /** Hear that the app can do something else than before. @type {Set<() => void>} */
  watchers = new Set();
  /** @type {Client | BorrowedApp | undefined} */
  #client;
  /** Listens for other gateways that want the profile, while it is ours. @type {import('node:net').Server | undefined} */
  #server;
  /** Those that use the app. @type {Set<ReturnType<typeof shareApp>>} */
  #shares = new Set();
  /** @type {Promise<Client | BorrowedApp> | undefined} */
  #opening;
  /** The way to an app that is a page; there is another to those behind a socket. @type {PageWay | undefined} */
  #page;
  #agent;
  #timeout;
  #closed = false;
  /**
   * Calls under way and what they have downloaded, the latest last: a question of the app's names no call, nor does a
   * download.
   * @type {Map<CallOptions, import('./unattended.js').Download[]>}
   */
  #calls = new Map();

  /** @param {URL} url @param {{ agent: { name: string, version: string }, values?: Values }} options */
  constructor(url, { agent, values = {} }) {
    this.url = url;
    this.#agent = agent;
    this.#timeout = seconds(values['connect-timeout'], 'connect-timeout');
    if (/^http/.test(url.protocol))
      this.#page = new PageWay(url, values, (download) => this.#take(download));
  }

  /** The folder of its profile, if that stays. */
  get profile() {
    return this.#page?.profile;
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
    this.#requireOpen();
    try {
      const client = (await this.#borrow()) ?? (await this.#connect());
      this.#requireOpen(client);
      this.#client = client;
      queueMicrotask(this.#announce);
      return client;
    } catch (error) {
      if (error instanceof UserError) throw error;
      const { code, message, details } =
        /** @type {AbpError & { details?: { unread?: unknown } }} */ (error);
      const hint = details?.unread
        ? `. An app's description of itself may have at most ${MAX_SAID} bytes: shorten its descriptions and schemas`
        : '';
      throw new UserError(`${this.url.href} has no app that answered (${code}: ${message})${hint}`);
    }
  }

  /** @param {...({ close(): void } | undefined)} made that is not wanted any more once the gateway closes */
  #requireOpen(...made) {
    if (!this.#closed) return;
    for (const each of made) each?.close();
    throw new UserError('The gateway is closing');
  }

  /** @returns {Promise<Client>} */
  async #connect() {
    /** @type {Parameters<typeof connect>[1]} */
    const options = {
      agent: this.#agent,
      limits: { maxControlLength: MAX_SAID },
      onElicitation: (question, { signal }) => this.#ask(question, signal),
      onCapabilitiesChanged: this.#announce,
    };
    if (this.#page) return this.#page.connect(options);
    const dial = () => {
      const socket = new WebSocket(this.url, { maxPayload: MAX_PAYLOAD });
      return webSocketTransport(/** @type {import('abp-bridge/websocket').Socket} */ (socket));
    };
    return connect(dial, { ...options, timeout: this.#timeout ?? DEFAULT_TIMEOUT });
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
    if (!this.profile || this.#server) return undefined;
    const { server, channel } = await takeProfile(this.profile, (other) => {
      const share = shareApp(other, this);
      this.#shares.add(share);
      void share.closed.then(() => this.#shares.delete(share));
    });
    this.#requireOpen(server, channel);
    this.#server = server;
    if (!channel) return undefined;
    const borrowed = new BorrowedApp(channel);
    borrowed.onCapabilitiesChanged = this.#announce;
    const pid = await borrowed.open(this.url.href);
    log(`uses the browser of the gateway with process id ${pid}`);
    return borrowed;
  }

  /**
   * Lets go of the profile and its browser, until the app is needed again.
   * @returns {Promise<string | undefined>} why not, if it does not
   */
  async release() {
    await this.#opening?.catch(() => {});
    if (this.#calls.size)
      return `The gateway with process id ${process.pid} uses the profile and is running a call: try again when it has ended`;
    this.#client?.close();
    await this.#page?.release();
    this.#server?.close();
    this.#server = undefined;
    return undefined;
  }

  /** What the app says it can do. @returns {Promise<Capability[]>} */
  async listCapabilities() {
    return (await this.open()).listCapabilities();
  }

  /** What is known without asking: nothing while there is no session. @returns {Promise<Capability[] | undefined>} */
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
    if (client instanceof BorrowedApp) return client.call(name, params, options);
    /** @type {import('./unattended.js').Download[]} */
    const downloads = [];
    this.#calls.set(options, downloads);
    try {
      const response = await callStreamed(client, name, params, options);
      if (response.cancelled && this.#page && !(await this.#page.responds()))
        return abandoned(response);
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

  /** @param {Question} question @param {AbortSignal} signal */
  #ask(question, signal) {
    const calls = this.#callsOfOne();
    const call = calls?.find(({ ask }) => ask);
    if (call?.ask) return call.ask(question, signal);
    const why = calls
      ? 'The caller does not support elicitation'
      : 'Several clients call this app, and the question does not say which of them to ask';
    throw new AbpError('NOT_SUPPORTED', why);
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

  /** @param {import('./unattended.js').Download} download */
  #take(download) {
    const [latest] = this.#callsOfOne() ?? [];
    if (latest) this.#calls.get(latest)?.push(download);
    return latest !== undefined;
  }

  /**
   * @param {import('./unattended.js').Download[]} downloads of a call that has succeeded; it may still grow
   * @param {AbortSignal} [signal] aborts the wait
   */
  async #filesOf(downloads, signal) {
    await this.#page?.settle();
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
    await this.#page?.close();
    this.#server?.close();
  }

  /** Ends the browser at once, when there is no time for more. */
  kill() {
    this.#page?.kill();
  }
}

/** @param {any} chunk */
const sizeOf = (chunk) => chunk?.length ?? chunk?.byteLength ?? chunk?.size ?? SOME;

/**
 * Makes a call and reads what its handler streams.
 * @param {Client} client
 * @param {string} name
 * @param {unknown} params
 * @param {CallOptions} options
 * @returns {Promise<Result>}
 */
async function callStreamed(client, name, params, { signal, timeout, onProgress, onChunk }) {
  const options = { signal, timeout, onProgress };
  if (!client.features.streams) return client.call(name, params, options);
  const stream = client.stream(name, params, options);
  /** @type {unknown[]} */
  const chunks = [];
  let size = 0;
  let isFull = false;
  try {
    for await (const chunk of stream) {
      size += sizeOf(chunk);
      isFull = chunks.length === MAX_CHUNKS || size > MAX_SIZE;
      // Leaving the loop cancels the call.
      if (isFull) break;
      chunks.push(chunk);
      onChunk?.(chunkText(chunk), chunks.length);
    }
  } catch {
    // Its response says what became of it.
  }
  const response = await stream.response;
  if (isFull) {
    const message = `The app streamed more than the gateway keeps: ${chunks.length} chunks`;
    const error = { code: 'OPERATION_FAILED', message, retryable: false };
    // The call was cancelled for that, and says what became of it, unless it was at its end.
    const outcome = response.success ? 'finished' : response.metadata?.outcome;
    return { success: false, error, metadata: { ...response.metadata, outcome } };
  }
  if (!chunks.length) return response;
  if (!response.success || response.data !== undefined) return { ...response, chunks };
  return { ...response, data: chunks };
}

/**
 * The response to a cancelled call whose page does nothing any more: nobody has said that the call has stopped.
 * @param {Response} response
 * @returns {Response}
 */
const abandoned = ({ error }) => ({
  success: false,
  cancelled: true,
  error: {
    code: error?.code ?? 'CANCELLED',
    message: `${error?.message ?? 'cancelled'}. The page did not answer, and was closed`,
    retryable: false,
  },
  metadata: { outcome: 'unknown' },
});

/** Whether the app has stopped the call. Of a page's WebMCP tools nobody knows. @param {Response} response */
export const hasStopped = ({ cancelled, metadata }) =>
  cancelled === true && metadata?.outcome !== 'unknown' && metadata?.outcome !== 'running';
