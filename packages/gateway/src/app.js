/**
 * An app, in a page or behind a socket: opened at the first need, and opened again when it was
 * lost.
 */
import { AbpError, connect } from 'abp-bridge';
import { webSocketTransport } from 'abp-bridge/transports';
import { WebSocket } from 'ws';
import { UserError, log, seconds, usageError } from './errors.js';
import { PageWay } from './page-way.js';
import { takeProfile } from './profile-socket.js';
import { borrowApp, failed, shareApp } from './shared-app.js';
import { chunkText } from './texts.js';
import { unlessAborted } from './waiting.js';

/**
 * @typedef {import('./commands.js').Values} Values
 * @typedef {import('abp-bridge').Client} Client
 * @typedef {import('./shared-app.js').BorrowedApp} BorrowedApp
 * @typedef {Awaited<ReturnType<Client['call']>>} Response The protocol's answer to a call.
 * @typedef {NonNullable<NonNullable<Parameters<Client['call']>[2]>['onProgress']>} OnProgress
 * @typedef {Awaited<ReturnType<Client['listCapabilities']>>[number]} Capability
 * @typedef {{ method: string, params?: any, timeout?: number }} Question
 * @typedef {(question: Question, over: AbortSignal) => unknown} Ask Answers a question of the app:
 *   returns the data or the protocol's response, throws to decline. `over` aborts when the question
 *   is over.
 *
 * @typedef {object} CallOptions
 * @property {AbortSignal} [signal]
 * @property {string} [owner] the caller: only it is asked questions
 * @property {number} [timeout] ms
 * @property {OnProgress} [onProgress]
 * @property {(text: string, count: number) => void} [onChunk] called with each chunk that the
 *   handler streams
 * @property {string} [idempotencyKey] names the work: the app does not run it again for a repeated
 *   key
 * @property {string | null} [memory] the memory that must know the key; null if none can
 * @property {Ask} [ask] absent if the caller cannot be asked
 *
 * @typedef {Response & { isTool?: boolean, chunks?: unknown[], downloads?: object[],
 *   memory?: string,
 *   settled?: Promise<import('./outcomes.js').Became> }} Result `isTool`: a page's WebMCP tool
 *   returned it; `memory`: the memory for keys; `chunks`: streamed before the data (they are the
 *   data if the handler returned nothing); `downloads`: of the page meanwhile, as the protocol's
 *   BinaryData
 */

/** Ms that a page may take to load, and an app to answer. */
const DEFAULT_TIMEOUT = 30_000;
/**
 * Bytes of an app's self-description, which may be twice in one message. Pages have another limit:
 * little of it reaches a client.
 */
const MAX_SAID = 8 << 20;
/** Bytes of the longest message of a socket: the transport's own limit, before it is in memory. */
const MAX_PAYLOAD = 32 << 20;
/**
 * Chunks of a call that are kept, and their total size, in characters and bytes, as far as it is
 * known.
 */
const MAX_CHUNKS = 2 ** 16;
const MAX_SIZE = 2 ** 26;
/** The assumed size of other values, which their senders have limited. */
const SOME = 1024;

/**
 * @param {string} text
 * @returns {URL}
 * @throws {UserError}
 */
export function appUrl(text) {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url && /^(https?|wss?):$/.test(url.protocol)) return url;
  throw usageError(
    `${JSON.stringify(text)} is not the address of an app: give https://app.example/ or wss://app.example/abp`,
  );
}

export class App {
  /** Called when the app's capabilities have changed. @type {Set<() => void>} */
  watchers = new Set();
  /** @type {Client | BorrowedApp | undefined} */
  #client;
  /**
   * Serves other gateways that want the profile, while it is ours.
   * @type {import('node:net').Server | undefined}
   */
  #server;
  /** The users of the app. @type {Set<ReturnType<typeof shareApp>>} */
  #shares = new Set();
  /** @type {Promise<Client | BorrowedApp> | undefined} */
  #opening;
  /**
   * The connection to an app in a page; undefined for one behind a socket.
   * @type {PageWay | undefined}
   */
  #page;
  #agent;
  #timeout;
  #closed = false;
  /**
   * Calls in progress and their downloads, the latest last: neither a question of the app nor a
   * download names its call.
   * @type {Map<CallOptions, import('./unattended.js').Download[]>}
   */
  #calls = new Map();

  /**
   * @param {string} address
   * @param {Values} values of the options
   * @param {{ version: string }} context
   */
  constructor(address, values, { version }) {
    const url = (this.url = appUrl(address));
    this.#agent = { name: 'abp-bridge-gateway', version };
    this.#timeout = seconds(values['connect-timeout'], 'connect-timeout') ?? DEFAULT_TIMEOUT;
    if (/^http/.test(url.protocol))
      this.#page = new PageWay(url, values, (download) => this.#take(download));
  }

  /** The folder of its profile, if that is kept. */
  get profile() {
    return this.#page?.profile;
  }

  /**
   * The session with the app: the present one, or a new one.
   * @returns {Promise<Client | BorrowedApp>}
   * @throws {UserError} if the app cannot be reached
   */
  async open() {
    if (this.#client?.connected) return this.#client;
    this.#opening ??= this.#begin().finally(() => (this.#opening = undefined));
    return this.#opening;
  }

  async #begin() {
    try {
      if (!this.#closed) {
        const client = (await this.#borrow()) ?? (await this.#connect());
        this.#client = client;
        queueMicrotask(this.#announce);
        if (!this.#closed) return client;
      }
      throw new UserError('The gateway is closing');
    } catch (error) {
      if (error instanceof UserError) throw error;
      const { code, message, details } =
        /** @type {AbpError & { details?: { unread?: unknown } }} */ (error);
      const hint = details?.unread
        ? `. An app's description of itself may have at most ${MAX_SAID} bytes: shorten its descriptions and schemas`
        : '';
      throw new UserError(`${this.url.href} has no app that answered (${code}: ${message})${hint}`);
    } finally {
      // The app was closed meanwhile.
      if (this.#closed) this.#leave();
    }
  }

  #leave() {
    this.#client?.close();
    this.#server?.close();
    this.#server = undefined;
  }

  /** @returns {Promise<Client>} */
  async #connect() {
    /** @type {import('../../../parts/main/types/index.js').ConnectOptions} */
    const options = {
      agent: this.#agent,
      limits: { maxControlLength: MAX_SAID },
      timeout: this.#timeout,
      onElicitation: (question, { signal }) => this.#ask(question, signal),
      onCapabilitiesChanged: this.#announce,
    };
    if (this.#page) return this.#page.connect(options);
    const before = this.#client;
    if (before && !('pid' in before)) {
      // The same agent, so it may request the outcomes of its calls.
      await before.reconnect();
      return before;
    }
    const dial = () => {
      const socket = new WebSocket(this.url, { maxPayload: MAX_PAYLOAD });
      return webSocketTransport(/** @type {import('abp-bridge/transports').Socket} */ (socket));
    };
    return connect(dial, options);
  }

  #announce = () => {
    for (const watcher of this.watchers) watcher();
  };

  /**
   * The app in the browser of another gateway, if that has the profile. Otherwise this gateway
   * takes it, and others borrow the app.
   */
  async #borrow() {
    if (!this.profile || this.#server) return undefined;
    const { server, channel } = await takeProfile(this.profile, (other) => {
      const share = shareApp(other, this);
      this.#shares.add(share);
      void share.closed.then(() => this.#shares.delete(share));
    });
    this.#server = server;
    if (this.#closed) {
      channel?.close();
      throw new UserError('The gateway is closing');
    }
    if (!channel) return undefined;
    const borrowed = await borrowApp(channel, this.url.href, this.#announce);
    log(`uses the browser of the gateway with process id ${borrowed.pid}`);
    return borrowed;
  }

  /**
   * Releases the profile and its browser, until the app is needed again.
   * @returns {Promise<string | undefined>} the reason, if it cannot
   */
  async release() {
    await this.#opening?.catch(() => {});
    if (this.#calls.size)
      return `The gateway with process id ${process.pid} uses the profile and is running a call: try again when it has ended`;
    this.#client?.close();
    await this.#page?.release();
    this.#leave();
  }

  /** The app's description of itself and its capabilities. */
  async describe() {
    const client = await this.open();
    return { app: client.app, capabilities: await client.listCapabilities() };
  }

  /** @returns {Promise<Capability[]>} */
  async listCapabilities() {
    return (await this.describe()).capabilities;
  }

  /** The same without opening it: undefined before the first session. */
  knownCapabilities() {
    return this.#client?.listCapabilities();
  }

  /**
   * Calls a capability. Never rejects because of the call's result.
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
      const { message } = AbpError.from(/** @type {any} */ (error));
      return failed(signal?.aborted ? 'CANCELLED' : 'DISCONNECTED', message, {
        retryable: true,
        ...(signal?.aborted && { cancelled: true }),
        metadata: { outcome: 'unstarted' },
      });
    }
    if ('pid' in client) return client.call(name, params, options);
    const memory = client.memory?.id;
    if (options.memory !== undefined && options.memory !== memory)
      return failed('DISCONNECTED', 'The app no longer knows this key: it was loaded again', {
        metadata: { outcome: 'unknown' },
      });
    /** @type {import('./unattended.js').Download[]} */
    const downloads = [];
    this.#calls.set(options, downloads);
    try {
      const response = await callStreamed(client, name, params, options);
      if (response.cancelled && this.#page && !(await this.#page.responds())) {
        // It is not known that the call has stopped.
        const { code = 'CANCELLED', message = 'cancelled' } = response.error ?? {};
        const why = `${message}. The page did not answer, and was closed`;
        return failed(code, why, { cancelled: true, metadata: { outcome: 'unknown' } });
      }
      // Results of WebMCP tools have MCP's form.
      const isTool = /** @type {{ webmcp?: unknown } | undefined} */ (client.app)?.webmcp === true;
      const files = response.success ? await this.#filesOf(downloads, signal) : [];
      return {
        ...response,
        ...(memory && { memory }),
        // Reading it asks the app, which may know more later.
        ...(!response.success && response.settled && { settled: response.settled }),
        ...(isTool && { isTool }),
        ...(files.length && { downloads: files }),
      };
    } finally {
      for (const { cancel } of downloads) cancel();
      this.#calls.delete(options);
    }
  }

  /**
   * @param {Question} question
   * @param {AbortSignal} signal
   */
  #ask(question, signal) {
    const calls = this.#callsOfOne();
    const ask = calls?.find((call) => call.ask)?.ask;
    if (ask) return ask(question, signal);
    const why = calls
      ? 'The caller does not support elicitation'
      : 'Several clients call this app, and the question does not say which of them to ask';
    throw new AbpError('NOT_SUPPORTED', why);
  }

  /**
   * The calls that may be meant by a question or a download of the app, the latest first. It names
   * no call, so all must have the same caller (else undefined): one caller must not answer for
   * another. Cancelled calls are excluded.
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
   * @param {import('./unattended.js').Download[]} downloads that may still gain more
   * @param {AbortSignal} [signal]
   */
  async #filesOf(downloads, signal) {
    await this.#page?.settle();
    const files = [];
    for (const { file } of downloads) {
      files.push(await unlessAborted(file, signal).catch(() => undefined));
    }
    return files.filter((file) => file !== undefined);
  }

  /** Ends the session and the browser. Pending calls settle as cancelled. */
  async close() {
    this.#closed = true;
    await Promise.all([...this.#shares].map((share) => share.close()));
    this.#client?.close();
    await this.#page?.close();
    this.#leave();
  }

  /**
   * Kills its browser if that does not answer.
   * @param {number} limit ms
   */
  probe(limit) {
    void this.#page?.probe(limit);
  }
}

/**
 * Makes a call and reads the handler's stream.
 * @param {Client} client
 * @param {string} name
 * @param {unknown} params
 * @param {CallOptions} options
 * @returns {Promise<Result>}
 */
async function callStreamed(client, name, params, { onChunk, ...given }) {
  const { signal, timeout, onProgress, idempotencyKey } = given;
  const options = { signal, timeout, onProgress };
  // A stream has no key.
  if (idempotencyKey) return client.call(name, params, { ...options, idempotencyKey });
  if (!client.features.streams) return client.call(name, params, options);
  const stream = client.stream(name, params, options);
  /** @type {unknown[]} */
  const chunks = [];
  let size = 0;
  let isFull = false;
  try {
    for await (const chunk of /** @type {AsyncIterable<any>} */ (stream)) {
      size += chunk?.length ?? chunk?.byteLength ?? chunk?.size ?? SOME;
      isFull = chunks.length === MAX_CHUNKS || size > MAX_SIZE;
      // Leaving the loop cancels the call.
      if (isFull) break;
      chunks.push(chunk);
      onChunk?.(chunkText(chunk), chunks.length);
    }
  } catch {
    // Its response has the outcome.
  }
  const response = await stream.response;
  if (isFull) {
    const message = `The app streamed more than the gateway keeps: ${chunks.length} chunks`;
    // The call was cancelled for that, and has its outcome, unless it had ended.
    const outcome = response.success ? 'finished' : response.metadata?.outcome;
    return failed('OPERATION_FAILED', message, { metadata: { ...response.metadata, outcome } });
  }
  if (!chunks.length) return response;
  if (!response.success || response.data !== undefined) return { ...response, chunks };
  return { ...response, data: chunks };
}

/**
 * True if the app has stopped the call. For a page's WebMCP tools this is unknown.
 * @param {Response} response
 */
export const hasStopped = ({ cancelled, metadata }) =>
  cancelled === true && metadata?.outcome !== 'unknown' && metadata?.outcome !== 'running';
