/**
 * Push notifications: an agent sends each state of a task to a client's address. They are sent in
 * order, at least once if possible, with a limited number of attempts and growing pauses.
 */
import {
  HOW_TO_ALLOW,
  AbpError,
  fromBase64,
  isObject,
  isPublic,
  reportError,
  requestChecked,
  textOf,
  toBase64,
} from 'abp-bridge/driver';
import { DIALECTS, getField } from '../dialects.js';
import { invalid } from '../requests.js';
import { newId } from '../ids.js';
import { requireExactly } from '../exact-options.js';

/** @import { Dialect, Status, Task } from '../dialects.js' */
/** @import { Entry } from '../shown-tasks.js' */

/** Addresses of one task. */
const MAX_CONFIGS = 16;
/** Notifications of one task that may wait. */
const MAX_WAITING = 100;
/** Maximum ms between two attempts. */
const MAX_PAUSE = 60_000;
const TOKEN_HEADER = 'x-a2a-notification-token';
const ID_HEADER = 'x-a2a-notification-id';

const encoder = new TextEncoder();

/**
 * @typedef {object} PushOptions options of push notifications
 * @property {boolean} [allowPrivate] whether loopback, private and link-local addresses are allowed
 *   (false)
 * @property {string} [secret] encrypts the clients' tokens and credentials in a store; without it,
 *   configurations that have some are rejected if there is a store
 * @property {(body: string, about: { url: string, taskId: string }) => Record<string, string> |
 *   Promise<Record<string, string>>} [sign] returns headers that prove to the receiver that a
 *   notification is the agent's, such as a signed JWT
 * @property {number} [attempts] of one notification (10)
 * @property {number} [retry] ms before the second attempt; doubles each time, up to 60 s (1000)
 * @property {number} [timeout] ms for the receiver to answer (10000)
 */

/** @type {import('abp-bridge/driver').Kinds<PushOptions>} */
const OPTIONS = {
  allowPrivate: 'a boolean',
  attempts: 'a number',
  retry: 'a number',
  secret: 'a string',
  sign: 'a function',
  timeout: 'a number',
};

/**
 * The destination of a task's states. `sealed` has the token and the credentials.
 * @typedef {object} PushConfig
 * @property {string} id
 * @property {string} url
 * @property {Dialect['name']} version
 * @property {string} [scheme]
 * @property {string} [sealed]
 * @property {Secrets} [secrets]
 * @typedef {{ token?: string, credentials?: string }} Secrets
 */

/**
 * Sends push notifications for an agent: the option `push` of `createTaskServer`.
 * @typedef {object} Push
 * @property {(stored: never) => unknown} attach called by the agent
 */

/**
 * Push notifications, for the option `push` of `createTaskServer`. In Node.
 * @param {PushOptions} [options]
 * @returns {Push}
 */
export function pushNotifications(options = {}) {
  requireExactly('pushNotifications', options, OPTIONS);
  return { attach: (/** @type {boolean} */ stored) => new Pushes({ ...options, stored }) };
}

export class Pushes {
  #options;
  #stop = new AbortController();
  /** Notifications in progress, by task, in order. @type {WeakMap<Entry, Promise<boolean>[]>} */
  #sending = new WeakMap();

  /**
   * @param {PushOptions & { stored: boolean }} options `stored` if a store keeps the configurations
   */
  constructor(options) {
    this.#options = options;
  }

  /** Ends all attempts. */
  close() {
    this.#stop.abort();
  }

  // --- Configurations ----------------------------------------------------------------------------

  /**
   * Reads a configuration, of any version.
   * @param {unknown} given
   * @param {Dialect} dialect
   * @param {string} fallback its id, if it has none
   * @returns {Promise<PushConfig>}
   */
  async read(given, dialect, fallback) {
    if (!isObject(given)) throw invalid('pushNotificationConfig', 'must be an object');
    const url = textOf(getField(given, 'url')) ?? '';
    const address = URL.canParse(url) ? new URL(url) : undefined;
    if (!address || !/^https?:$/.test(address.protocol) || address.username)
      throw invalid('url', 'must be an address of http or https');
    if (!this.#options.allowPrivate && !isPublic(address.hostname))
      throw invalid('url', `must be a public address (${HOW_TO_ALLOW})`);
    const authentication = getField(given, 'authentication');
    const schemes = getField(authentication, 'schemes');
    const scheme = textOf(getField(authentication, 'scheme')) ?? textOf(schemes?.[0]);
    const token = textOf(getField(given, 'token')) || undefined;
    const credentials = textOf(getField(authentication, 'credentials')) || undefined;
    const id = textOf(getField(given, 'id')) || fallback;
    /** @type {PushConfig} */
    const config = { id, url, version: dialect.name, scheme };
    for (const text of [url, id, scheme, token, credentials])
      if (text && (text.length > 4096 || /[\r\n\0]/.test(text)))
        throw invalid('pushNotificationConfig', 'has a text that is too long, or of several lines');
    if (!token && !credentials) return config;
    if (!this.#options.stored) return { ...config, secrets: { token, credentials } };
    return { ...config, sealed: await this.#seal({ token, credentials }) };
  }

  /**
   * @param {Map<string, PushConfig>} configs
   * @param {PushConfig} config
   */
  requireRoom(configs, { id }) {
    if (configs.size >= MAX_CONFIGS && !configs.has(id))
      throw new AbpError('RATE_LIMITED', `A task has at most ${MAX_CONFIGS} push notifications`);
  }

  /**
   * A configuration as a client sees it, without credentials.
   * @param {PushConfig} config
   * @param {string} taskId
   */
  async print({ id, url, version, scheme, ...hidden }, taskId) {
    const { token = '' } = await this.#secretsOf(hidden).catch(() => ({ token: '' }));
    if (version === '1.0')
      return { id, taskId, url, token, ...(scheme && { authentication: { scheme } }) };
    const authentication = scheme && { authentication: { schemes: [scheme] } };
    return {
      taskId,
      pushNotificationConfig: { id, url, ...(token && { token }), ...authentication },
    };
  }

  // --- Secrets -----------------------------------------------------------------------------------

  async #key() {
    const { secret } = this.#options;
    if (!secret)
      throw invalid(
        'pushNotificationConfig',
        'must have no token and no credentials: the agent cannot keep them',
      );
    const digest = await crypto.subtle.digest('SHA-256', encoder.encode(secret));
    return crypto.subtle.importKey('raw', digest, 'AES-GCM', false, ['encrypt', 'decrypt']);
  }

  /** @param {Secrets} secrets */
  async #seal(secrets) {
    const iv = crypto.getRandomValues(new Uint8Array(12));
    const text = encoder.encode(JSON.stringify(secrets));
    const sealed = await crypto.subtle.encrypt({ name: 'AES-GCM', iv }, await this.#key(), text);
    return `${toBase64(iv)}.${toBase64(new Uint8Array(sealed))}`;
  }

  /**
   * @param {Pick<PushConfig, 'sealed' | 'secrets'>} config
   * @returns {Promise<Secrets>}
   */
  async #secretsOf({ sealed, secrets }) {
    if (!sealed) return secrets ?? {};
    const [iv, data] = sealed.split('.').map((text) => new Uint8Array(fromBase64(text)));
    const opened = await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, await this.#key(), data);
    return JSON.parse(new TextDecoder().decode(opened));
  }

  // --- Notifications -----------------------------------------------------------------------------

  /**
   * Sends a state of a task to all addresses of the task.
   * @param {Entry} entry
   * @param {Status} status
   */
  notify(entry, status) {
    const configs = [...entry.pushes.values()];
    if (configs.length === 0) return;
    const { id, contextId, artifacts, history } = entry.task;
    /** @type {Task} */
    const task = { id, contextId, status, artifacts: [...artifacts], history: [...history] };
    const waiting = this.#sending.get(entry) ?? [];
    const before = waiting.at(-1) ?? Promise.resolve(true);
    const number = newId();
    const all = before.then(async (sent) => {
      const each = await Promise.all(configs.map((config) => this.#send(config, task, number)));
      return sent && each.every(Boolean);
    });
    this.#sending.set(entry, waiting);
    waiting.push(all);
    // The last one is kept: its result is that of the delivery.
    void all.then(() => waiting.length > 1 && waiting.shift());
  }

  /**
   * Throws if the task has too many waiting notifications.
   * @param {Entry} entry
   */
  requireTurn(entry) {
    if ((this.#sending.get(entry)?.length ?? 0) <= MAX_WAITING) return;
    const message = `${MAX_WAITING} push notifications of the task wait: await ctx.flushed()`;
    throw new AbpError('RATE_LIMITED', message, { retryable: true });
  }

  /**
   * Resolves when another notification may be added.
   * @param {Entry} entry
   */
  async turn(entry) {
    const waiting = this.#sending.get(entry) ?? [];
    while (waiting.length > MAX_WAITING) await waiting[0];
  }

  /**
   * Resolves when all were sent or given up; with false if this process is closing before that.
   * @param {Entry} entry
   */
  async delivered(entry) {
    return this.#sending.get(entry)?.at(-1) ?? true;
  }

  /**
   * @param {PushConfig} config
   * @param {Task} task
   * @param {string} number of the notification
   */
  async #send(config, task, number) {
    const { attempts = 10, retry = 1000, sign } = this.#options;
    const { url, version, scheme } = config;
    const { id: taskId, contextId, status } = task;
    const dialect = DIALECTS[version];
    const body = JSON.stringify(
      version === '1.0'
        ? dialect.event({ kind: 'status', taskId, contextId, status })
        : dialect.task(task),
    );
    for (let attempt = 1, pause = retry; ; attempt++, pause = Math.min(2 * pause, MAX_PAUSE)) {
      if (this.#stop.signal.aborted) return false;
      try {
        const { token, credentials } = await this.#secretsOf(config);
        const answered = await this.#post(url, body, {
          'content-type': version === '1.0' ? 'application/a2a+json' : 'application/json',
          [ID_HEADER]: number,
          ...(token && { [TOKEN_HEADER]: token }),
          ...(credentials && { authorization: `${scheme ?? 'Bearer'} ${credentials}` }),
          ...(await sign?.(body, { url, taskId })),
        });
        // A receiver that is gone or rejects it will do so again.
        const final = answered >= 400 && answered < 500 && answered !== 408 && answered !== 429;
        if ((answered >= 200 && answered < 300) || final) return true;
      } catch (error) {
        if (/** @type {AbpError} */ (error).code === 'BLOCKED') {
          reportError(error);
          return true;
        }
      }
      if (attempt >= attempts) return true;
      await this.#pause(pause);
    }
  }

  /** @param {number} ms */
  #pause(ms) {
    const { signal } = this.#stop;
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      const end = () => resolve(clearTimeout(timer));
      signal.addEventListener('abort', end, { once: true });
    });
  }

  /**
   * @param {string} url
   * @param {string} text
   * @param {Record<string, string>} headers
   * @returns {Promise<number>} the status of the answer; redirections are not followed
   */
  async #post(url, text, headers) {
    const { allowPrivate, timeout = 10_000 } = this.#options;
    const address = new URL(url);
    if (!allowPrivate && !isPublic(address.hostname))
      throw new AbpError('BLOCKED', `${address.hostname} is not a public address: ${HOW_TO_ALLOW}`);
    const body = encoder.encode(text);
    const options = {
      method: 'POST',
      headers: { ...headers, 'content-length': body.length },
      signal: AbortSignal.any([AbortSignal.timeout(timeout), this.#stop.signal]),
    };
    const incoming = await requestChecked(address, options, { allowPrivate, body });
    incoming.resume();
    return incoming.statusCode;
  }
}
