/**
 * One browser for several gateways of a user: the first has the profile, and the others call the
 * app in its browser. They are peers of JSON-RPC, so the core handles requests, questions and the
 * end of either side. Their messages:
 *
 *     open { url }                  the app, its capabilities, and the process with the browser
 *     call { id, name, … }          an app's result; chunks are parts of it
 *     cancel { id, reason }         gives a call's handler the reason; the result has the outcome
 *     settled { id }                the outcome of a call, once more is known than its result has
 *     ask { id, question }          the other way: an answer to the app
 *     capabilities { capabilities } the other way: they have changed
 *     release                       releases the profile
 */
import { randomUUID } from 'node:crypto';
import { createPeer } from '@abp-bridge/rpc';
import { UserError } from './errors.js';
import { toPlain } from './plain.js';
import { within } from './waiting.js';

/** Ms that other gateways' calls may take to stop when this one ends. */
const CLOSING = 3000;
/**
 * Ms that another gateway may take to open the app, or to release its profile: it may have to
 * start, or to kill, its browser.
 */
const OPENING = 120_000;
/**
 * Ms that another gateway may take to report the outcome of a cancelled call. Then it is left.
 */
const CANCELLING = 30_000;
const ENDED = 'The gateway that had the browser has ended, or does not answer';
/** JSON-RPC's error for requests that still run when a gateway ends. */
const REQUEST_CANCELLED = -32800;

/**
 * @typedef {import('./app.js').CallOptions} CallOptions
 * @typedef {import('./app.js').Result} Result
 * @typedef {import('@abp-bridge/rpc').ChannelTransport} Transport
 */

/**
 * @param {Transport} channel
 * @param {() => unknown} [onRequest]
 */
const peerOf = (channel, onRequest) => createPeer(channel, { dialect: 'lsp', onRequest });

// --- The gateway that has the browser ------------------------------------------------------------

/**
 * @param {Transport} channel to the gateway that wants the app
 * @param {import('./app.js').App} app
 */
export function shareApp(channel, app) {
  const peer = peerOf(channel);
  /** The owner of calls that name none. */
  const other = randomUUID();
  /**
   * Calls whose outcome may become known later.
   * @type {Map<number, { stop: AbortController, ended: Promise<Result> }>}
   */
  const calls = new Map();
  const abortAll = (/** @type {string} */ reason) => {
    for (const { stop } of calls.values()) stop.abort(reason);
  };
  const watcher = () =>
    void app
      .knownCapabilities()
      ?.then((capabilities) => peer.tell('capabilities', { capabilities }))
      .catch(() => {});
  app.watchers.add(watcher);
  const closed = peer.closed.then(() => {
    app.watchers.delete(watcher);
    abortAll('the client disconnected');
  });

  peer.handle('open', async ({ url }) => {
    if (url !== app.url.href) {
      const problem = `The gateway with process id ${process.pid} has this profile open for ${app.url.href}: give that address, another profile with --profile, or a throwaway one with --temporary`;
      return { problem };
    }
    try {
      return { ...(await app.describe()), pid: process.pid };
    } catch (error) {
      return { problem: /** @type {Error} */ (error).message };
    }
  });
  peer.handle('call', async ({ id, name, params, owner = other, asks, ...more }, context) => {
    const { progress, partialResult, request } = context;
    const stop = new AbortController();
    const ended = app.call(name, params, {
      ...more,
      signal: stop.signal,
      owner,
      onProgress: progress,
      onChunk: (text, count) => partialResult({ text, count }),
      ...(asks && { ask: (question, signal) => request('ask', { id, question }, { signal }) }),
    });
    calls.set(id, { stop, ended });
    const { settled, ...response } = await ended;
    if (!settled) calls.delete(id);
    const result = { ...response, ...(settled && { isOpen: true }) };
    // Blobs cannot be sent; their bytes can.
    return toPlain(result, ({ bytes, ...found }, rest) => ({ ...rest, ...found, content: bytes }));
  });
  peer.onNotification('cancel', ({ id, reason }) => calls.get(id)?.stop.abort(reason));
  peer.handle('settled', async ({ id }) => {
    const { settled } = (await calls.get(id)?.ended) ?? {};
    calls.delete(id);
    return settled;
  });
  peer.handle('release', async () => ({ problem: await app.release() }));
  return {
    closed,
    /** Cancels the calls, and ends. */
    async close() {
      abortAll('the gateway that has the browser ends');
      const ended = Promise.all([...calls.values()].map((each) => each.ended));
      await within(CLOSING, ended).catch(() => {});
      // The latest answers are still being sent.
      await new Promise((resolve) => setImmediate(resolve));
      peer.close();
    },
  };
}

/**
 * Refuses the profile to another gateway.
 * @param {Transport} channel
 * @param {string} problem
 */
export const refuse = (channel, problem) => void peerOf(channel, () => ({ problem }));

// --- A gateway that uses it ----------------------------------------------------------------------

/**
 * Requests a gateway to release its profile.
 * @param {Transport} channel
 * @throws {UserError} if it does not
 */
export async function askToRelease(channel) {
  const peer = peerOf(channel);
  // A gateway that has ended has released it.
  const { problem } = await peer
    .request('release', {}, { timeout: OPENING })
    .catch(({ data }) => ({ problem: data?.timeout && ENDED }));
  peer.close();
  if (problem) throw new UserError(problem);
}

/** @typedef {Awaited<ReturnType<typeof borrowApp>>} BorrowedApp */

/**
 * The app in the browser of another gateway.
 * @param {Transport} channel
 * @param {string} url
 * @param {() => void} onChange called when the app's capabilities have changed
 * @throws {UserError} if the other gateway does not serve it
 */
export async function borrowApp(channel, url, onChange) {
  const peer = peerOf(channel);
  /** The options of the calls in progress, by number. @type {Map<number, CallOptions>} */
  const calls = new Map();
  let last = 0;
  /** @type {import('./app.js').Capability[] | undefined} */
  let capabilities;
  peer.onNotification('capabilities', (news) => {
    capabilities = news.capabilities;
    onChange();
  });
  peer.handle('ask', async ({ id, question }, { signal }) => {
    try {
      return await calls.get(id)?.ask?.(question, signal);
    } catch (error) {
      const { code = 'OPERATION_FAILED', message } = /** @type {import('abp-bridge').AbpError} */ (
        error
      );
      return failed(code, message);
    }
  });
  const { problem, app, pid, ...known } = await peer
    .request('open', { url }, { timeout: OPENING })
    .catch(() => ({ problem: ENDED }));
  if (problem) {
    peer.close();
    throw new UserError(problem);
  }
  return {
    /** The app's description of itself. @type {import('./app.js').Client['app']} */
    app,
    /** The process that has the browser. @type {number} */
    pid,
    get connected() {
      return !peer.isClosed;
    },
    /** @returns {Promise<import('./app.js').Capability[]>} */
    listCapabilities: async () => capabilities ?? known.capabilities,
    close: () => peer.close(),
    /**
     * @param {string} name
     * @param {unknown} params
     * @param {CallOptions} options
     * @returns {Promise<Result>} never rejects
     */
    async call(name, params, options) {
      const { signal, onProgress, onChunk, ask, ...more } = options;
      const id = ++last;
      calls.set(id, options);
      /** @type {ReturnType<typeof setTimeout> | undefined} */
      let silent;
      const cancel = () => {
        peer.tell('cancel', { id, reason: String(signal?.reason?.message ?? signal?.reason) });
        silent = setTimeout(() => peer.close(), CANCELLING);
      };
      signal?.addEventListener('abort', cancel);
      try {
        const about = { ...more, id, name, params, asks: Boolean(ask) };
        const { isOpen, ...result } = await peer.request('call', about, {
          onProgress,
          onPartialResult: ({ text, count }) => onChunk?.(text, count),
        });
        if (!isOpen) return result;
        const unknown = () => ({ outcome: 'unknown' });
        return { ...result, settled: peer.request('settled', { id }).catch(unknown) };
      } catch (error) {
        const { code, data, message } =
          /** @type {import('@abp-bridge/rpc').RpcError & { data?: any }} */ (error);
        if (!data?.closedBy && code !== REQUEST_CANCELLED)
          return failed('OPERATION_FAILED', message);
        // Its calls end with the browser, and cannot be queried any more.
        const told = data?.outcome ?? 'unknown';
        const outcome = told === 'running' ? 'unknown' : told;
        return failed('DISCONNECTED', ENDED, { retryable: true, metadata: { outcome } });
      } finally {
        calls.delete(id);
        clearTimeout(silent);
        signal?.removeEventListener('abort', cancel);
      }
    },
  };
}

/**
 * The response to a call that has failed here, not in the app.
 * @param {string} code
 * @param {string} message
 * @param {{ retryable?: boolean, cancelled?: boolean,
 *   metadata?: import('./app.js').Response['metadata'] }} [more]
 * @returns {Result}
 */
export const failed = (code, message, { retryable = false, ...more } = {}) => ({
  success: false,
  error: { code, message, retryable },
  ...more,
});
