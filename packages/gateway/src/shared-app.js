/**
 * One browser for several gateways of a user: the first has the profile, and the others call the app in its browser. They are peers of
 * JSON-RPC, so requests, questions and the end of either side are the core's; here is what they ask of each other:
 *
 *     open { url }                  the app, what it can do, and whose browser it is
 *     call { id, name, … }          an app's result; progress and chunks are the request's progress
 *     cancel { id, reason }         tells a call's handler why; the result says what became of it
 *     ask { id, question }          the other way: an answer to the app
 *     settled { id, became }        the other way: more is known of what became of a call
 *     capabilities { capabilities } the other way: they have changed
 *     release                       to let go of the profile
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { AbpError } from 'abp-bridge';
import { RpcError, createPeer } from 'abp-bridge/rpc';
import { UserError } from './errors.js';
import { toPlain } from './plain.js';

/** How long calls of others may take to stop when this gateway ends, in ms. */
const CLOSING = 3000;
/** The code of an error that says why, in words for the user. */
const REFUSED = -32000;
const ENDED = 'The gateway that had the browser has ended';

/**
 * @typedef {import('./app.js').CallOptions} CallOptions
 * @typedef {import('./app.js').Result} Result
 * @typedef {import('./profile-socket.js').Channel} Channel
 */

/** @param {Channel} channel @param {() => never} [onRequest] */
const peerOf = (channel, onRequest) => createPeer(channel, { dialect: 'lsp', onRequest });

/** @param {string} message @param {unknown} [data] @returns {never} */
function refuseWith(message, data) {
  throw new RpcError(REFUSED, message, data);
}

// --- Whoever has the browser -----------------------------------------------------------------------

/** @param {Channel} channel to the gateway that wants the app @param {import('./app.js').App} app */
export function shareApp(channel, app) {
  const peer = peerOf(channel);
  /** @type {Map<number, { stop: AbortController, ended: Promise<Result> }>} */
  const calls = new Map();
  /** Whose calls they are, as the other side numbers its clients. @type {Map<number, object>} */
  const owners = new Map();
  const abortAll = (/** @type {string} */ reason) => {
    for (const { stop } of calls.values()) stop.abort(reason);
  };
  const watcher = () =>
    void app
      .knownCapabilities()
      ?.then((capabilities) => peer.notify('capabilities', { capabilities }))
      .catch(() => {});
  app.watchers.add(watcher);
  const closed = peer.closed.then(() => {
    app.watchers.delete(watcher);
    abortAll('the client disconnected');
  });

  peer.handle('open', async ({ url }) => {
    if (url !== app.url.href) {
      refuseWith(
        `The gateway with process id ${process.pid} has this profile open for ${app.url.href}: give that address, another profile with --profile, or a throwaway one with --temporary`,
      );
    }
    const client = await app.open().catch(({ message }) => refuseWith(message));
    return { app: client.app, capabilities: await client.listCapabilities(), pid: process.pid };
  });
  peer.handle('call', async ({ id, name, params, owner, asks, ...more }, { progress, request }) => {
    if (!owners.has(owner)) owners.set(owner, {});
    const stop = new AbortController();
    const ended = app.call(name, params, {
      ...more,
      signal: stop.signal,
      owner: owners.get(owner),
      onProgress: (info) => progress({ info }),
      onChunk: (text, count) => progress({ text, count }),
      ...(asks && {
        ask: (question, signal) =>
          request('ask', { id, question }, { signal }).catch(({ message, data }) => {
            throw new AbpError(data?.code ?? 'OPERATION_FAILED', message);
          }),
      }),
    });
    calls.set(id, { stop, ended });
    const { settled, ...response } = /** @type {Result & { settled?: Promise<unknown> }} */ (
      await ended
    );
    calls.delete(id);
    void settled?.then((became) => peer.notify('settled', { id, became }));
    const result = { ...response, ...(settled && { isOpen: true }) };
    // Blobs cannot be sent; their bytes can.
    return toPlain(result, ({ bytes, ...found }, rest) => ({ ...rest, ...found, content: bytes }));
  });
  peer.onNotification('cancel', ({ id, reason }) => calls.get(id)?.stop.abort(reason));
  peer.handle('release', async () => {
    const problem = await app.release();
    if (problem) refuseWith(problem);
  });
  return {
    closed,
    /** Cancels the calls, and ends. */
    async close() {
      abortAll('the gateway that has the browser ends');
      const ended = Promise.all([...calls.values()].map((each) => each.ended));
      await Promise.race([ended, sleep(CLOSING, undefined, { ref: false })]);
      // What was answered just now is still to be sent.
      await new Promise((resolve) => setImmediate(resolve));
      peer.close();
    },
  };
}

/** Refuses the profile to whoever wants it. @param {Channel} channel @param {string} message */
export const refuse = (channel, message) => void peerOf(channel, () => refuseWith(message));

// --- Whoever uses it -------------------------------------------------------------------------------

/** Asks a gateway to let go of its profile. @param {Channel} channel @throws {UserError} if it does not */
export async function askToRelease(channel) {
  const peer = peerOf(channel);
  try {
    await peer.request('release');
  } catch (error) {
    const { code, message } = /** @type {RpcError} */ (error);
    // One that has ended has let go.
    if (code === REFUSED) throw new UserError(message);
  } finally {
    peer.close();
  }
}

/** An app in the browser of another gateway. */
export class BorrowedApp {
  #peer;
  /** @type {import('./app.js').Capability[]} */
  #capabilities = [];
  /** What the calls under way were given, by number. @type {Map<number, CallOptions>} */
  #calls = new Map();
  /** Hear what became of calls, when that is known. @type {Map<number, (became: unknown) => void>} */
  #open = new Map();
  /** Clients, by number. @type {WeakMap<object, number>} */
  #owners = new WeakMap();
  #last = 0;
  connected = true;
  /** What the app says it is. @type {import('./app.js').Client['app'] | undefined} */
  app;

  /** @param {Channel} channel @param {() => void} onChange hears that the app can do something else than before */
  constructor(channel, onChange) {
    const peer = (this.#peer = peerOf(channel));
    void peer.closed.then(() => (this.connected = false));
    peer.onNotification('capabilities', ({ capabilities }) => {
      this.#capabilities = capabilities;
      onChange();
    });
    peer.onNotification('settled', ({ id, became }) => {
      this.#open.get(id)?.(became);
      this.#open.delete(id);
    });
    peer.handle('ask', async ({ id, question }, { signal }) => {
      try {
        const ask = this.#calls.get(id)?.ask;
        if (ask) return await ask(question, signal);
        throw new AbpError('NOT_SUPPORTED', 'The caller does not support elicitation');
      } catch (error) {
        const { code, message } = /** @type {AbpError} */ (error);
        refuseWith(message, { code });
      }
    });
  }

  /**
   * @param {string} url
   * @returns {Promise<number>} the process that has the browser
   * @throws {UserError} if the other gateway does not serve it
   */
  async open(url) {
    try {
      const { app, capabilities, pid } = await this.#peer.request('open', { url });
      this.app = app;
      this.#capabilities = capabilities;
      return pid;
    } catch (error) {
      const { code, message } = /** @type {RpcError} */ (error);
      this.close();
      throw new UserError(code === REFUSED ? message : ENDED);
    }
  }

  async listCapabilities() {
    return this.#capabilities;
  }

  close() {
    this.connected = false;
    this.#peer.close();
  }

  /** @param {string} name @param {unknown} params @param {CallOptions} options @returns {Promise<Result>} never rejects */
  async call(name, params, options) {
    const { signal, timeout, owner, idempotencyKey, memory, onProgress, onChunk, ask } = options;
    const id = ++this.#last;
    this.#calls.set(id, options);
    const cancel = () => {
      const reason = String(signal?.reason?.message ?? signal?.reason);
      if (this.connected) this.#peer.notify('cancel', { id, reason });
    };
    signal?.addEventListener('abort', cancel);
    if (owner && !this.#owners.has(owner)) this.#owners.set(owner, id);
    const number = owner ? this.#owners.get(owner) : 0;
    const key = { idempotencyKey, memory };
    const about = { id, name, params, timeout, owner: number, asks: Boolean(ask), ...key };
    const settled = new Promise((resolve) => this.#open.set(id, resolve));
    try {
      const { isOpen, ...result } = await this.#peer.request('call', about, {
        onProgress: ({ info, text, count }) => (info ? onProgress?.(info) : onChunk?.(text, count)),
      });
      if (isOpen) return { ...result, settled };
      this.#open.delete(id);
      return result;
    } catch (error) {
      this.#open.delete(id);
      const { data, message } = /** @type {RpcError & { data?: any }} */ (error);
      return data?.closedBy
        ? failed('DISCONNECTED', ENDED, { retryable: true })
        : failed('OPERATION_FAILED', message);
    } finally {
      this.#calls.delete(id);
      signal?.removeEventListener('abort', cancel);
    }
  }
}

/**
 * The response to a call that has failed here, not in the app.
 * @param {string} code @param {string} message
 * @param {{ retryable?: boolean, cancelled?: boolean, metadata?: import('./app.js').Response['metadata'] }} [more]
 * @returns {Result}
 */
export const failed = (code, message, { retryable = false, ...more } = {}) => ({
  success: false,
  error: { code, message, retryable },
  ...more,
});
