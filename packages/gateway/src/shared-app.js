/** An app that other gateways of this user use in this one's browser. */
import { setTimeout as sleep } from 'node:timers/promises';
import { AbpError } from 'abp-bridge';
import { deferred } from './waiting.js';
import { toPlain } from './plain.js';

/** How long their calls may take to stop when this gateway ends, in ms. */
const CLOSING = 3000;

/**
 * @param {import('./channel.js').Channel} channel to the one that uses it
 * @param {import('./app.js').App} app
 * @returns {{ close: () => Promise<void> }} cancels its calls, and ends
 */
export function shareApp(channel, app) {
  /** @type {Map<number, { stop: AbortController, ended: Promise<void> }>} */
  const calls = new Map();
  /** Whose calls they are, as the other side numbers its clients. @type {Map<number, object>} */
  const owners = new Map();
  /** @type {Map<number, ReturnType<typeof deferred<unknown>>>} */
  const questions = new Map();
  let asked = 0;

  const abortAll = (/** @type {string} */ reason) => {
    for (const { stop } of calls.values()) stop.abort(reason);
  };
  const tellCapabilities = () => {
    void app.knownCapabilities().then((capabilities) => {
      if (capabilities) channel.send({ kind: 'capabilities', capabilities });
    });
  };
  app.watchers.add(tellCapabilities);
  channel.onClose = () => {
    app.watchers.delete(tellCapabilities);
    abortAll('the client disconnected');
    for (const { resolve } of questions.values()) resolve(declined('The client disconnected'));
  };

  /** @param {string} url */
  async function open(url) {
    if (url !== app.url.href) {
      const message = `The gateway with process id ${process.pid} has this profile open for ${app.url.href}: give that address, another profile with --profile, or a throwaway one with --temporary`;
      return channel.send({ kind: 'refused', message });
    }
    try {
      const client = await app.open();
      const capabilities = await client.listCapabilities();
      channel.send({ kind: 'opened', app: client.app, capabilities, pid: process.pid });
    } catch (error) {
      channel.send({ kind: 'refused', message: /** @type {Error} */ (error).message });
    }
  }

  /** @param {import('./channel.js').Message} message @param {AbortController} stop */
  async function call({ id, name, params, timeout, owner, asks, streams }, stop) {
    if (!owners.has(owner)) owners.set(owner, {});
    const result = await app.call(name, params, {
      signal: stop.signal,
      timeout,
      owner: owners.get(owner),
      onProgress: (info) => channel.send({ kind: 'progress', id, info }),
      ...(streams && {
        onChunk: (chunk, count) => channel.send({ kind: 'chunk', id, chunk, count }),
      }),
      ...(asks && { ask: (question, signal) => ask(id, question, signal) }),
    });
    try {
      channel.send({ kind: 'result', id, result });
    } catch {
      // Blobs cannot be sent; their bytes can.
      const whole = await toPlain(result, ({ bytes, mimeType, filename }, rest) => ({
        ...rest,
        content: bytes,
        mimeType,
        filename,
      }));
      channel.send({ kind: 'result', id, result: whole });
    }
  }

  /**
   * @param {number} call
   * @param {import('./app.js').Question} question
   * @param {AbortSignal} signal
   */
  async function ask(call, question, signal) {
    const id = ++asked;
    const answered = deferred();
    questions.set(id, answered);
    const withdraw = () => channel.send({ kind: 'withdrawn', id });
    signal.addEventListener('abort', withdraw, { once: true });
    channel.send({ kind: 'question', id, call, question });
    try {
      return await answered.promise;
    } finally {
      questions.delete(id);
      signal.removeEventListener('abort', withdraw);
    }
  }

  channel.onMessage = (message) => {
    const { kind, id } = message;
    if (kind === 'open') void open(message.url);
    else if (kind === 'call') {
      const stop = new AbortController();
      const ended = call(message, stop).finally(() => calls.delete(id));
      calls.set(id, { stop, ended });
    } else if (kind === 'cancel') calls.get(id)?.stop.abort(message.reason);
    else if (kind === 'answer') {
      const { value, error } = message;
      questions.get(id)?.resolve(error ? declined(error.message, error.code) : value);
    } else if (kind === 'release') void app.release().then((why) => channel.send(why));
  };
  return {
    async close() {
      abortAll('the gateway that has the browser ends');
      const ended = Promise.all([...calls.values()].map((each) => each.ended));
      await Promise.race([ended, sleep(CLOSING, undefined, { ref: false })]);
      channel.close();
    },
  };
}

/** @param {string} message @param {string} [code] */
const declined = (message, code = 'OPERATION_FAILED') =>
  Promise.reject(new AbpError(code, message));

/**
 * @param {string} code
 * @param {string} message
 * @returns {import('./app.js').Result}
 */
export const failure = (code, message) => ({
  success: false,
  error: { code, message, retryable: code === 'DISCONNECTED' },
});

/** The response to a call that was cancelled before the app was called. @param {any} reason @returns {import('./app.js').Result} */
export const cancelled = (reason) => ({
  success: false,
  cancelled: true,
  error: { code: 'CANCELLED', message: String(reason?.message ?? reason), retryable: true },
  metadata: { outcome: 'unstarted' },
});
