/** The agent's side: connects to an app and calls its capabilities. */
import * as abp from '../dist/abp-constants.js';
import { ready } from './core.js';
import { Endpoint, carried } from './endpoint.js';
import { AbpError, requireTexts } from './errors.js';
import { own } from './messages.js';
import { exactOrigin } from './origins.js';
import { listen, unlisten } from './signals.js';
import { supportOf } from './support.js';
import { portTransport } from './transports/port.js';
import { OPAQUE, iframeTransport } from './transports/window.js';
import { transportTo } from './transports/worker.js';
import { watchFrame, watchPage } from './watch.js';

/** What of the features beyond the published protocol is asked for. */
const UPGRADES = { frames: ~0, port: ~abp.FRAMES, none: 0 };
/** @param {string} why */
const wrong = (why) => Promise.reject(new TypeError(why));
const LIST_CHANGED = 'notifications/capabilities/list_changed';

/**
 * @typedef {object} ConnectOptions
 * @property {string} [origin] the app's exact origin; required for an iframe. `'null'` is a sandboxed
 *   iframe, which must run this library too: only what it says through its own port is believed
 * @property {{ name: string, version: string }} agent who calls
 * @property {number} [timeout] ms until the handshake is given up (10000)
 * @property {AbortSignal} [signal] gives the first handshake up
 * @property {string[]} [requestedCapabilities] a hint to the app
 * @property {string[]} [allowedRequests] the elicitation methods that the app may use (all)
 * @property {'frames' | 'port' | 'none'} [upgrade] how far to leave the published protocol when the app
 *   agrees: `'none'` is window messages only, readable in the browser's tools (`'frames'`)
 * @property {import('./core.js').Limits} [limits]
 * @property {(event: string, data: any) => void} [onNotification]
 * @property {(info: any) => void} [onProgress] progress that no call here asked for
 * @property {(request: { method: string, params: any, timeout?: number }, context: { signal: AbortSignal }) => any} [onElicitation]
 *   answers the app's questions: return the data, or the protocol's response `{ success, data?, error?, cancelled? }`;
 *   throw to decline (an `AbortError` says cancelled)
 * @property {(changes: { added: string[], removed: string[], changed: string[] }) => void} [onCapabilitiesChanged]
 * @property {(error: AbpError) => void} [onDisconnect] the app is gone, or has ended the session
 */

/**
 * @typedef {object} CallOptions
 * @property {AbortSignal} [signal] cancels the call; the app's word decides how it ended
 * @property {number} [timeout] ms after which the call cancels itself; 0 or absent is never
 * @property {(info: ProgressInfo) => void} [onProgress]
 * @property {string} [callId] names the call, for `cancel`; minted when absent
 * @property {Transferable[]} [transfer] what of the params is moved instead of copied
 */

/**
 * @typedef {object} ProgressInfo
 * @property {string} operationId the callId
 * @property {number} progress
 * @property {number} [total]
 * @property {number} [percentage] 0 to 100
 * @property {string} [status]
 * @property {string} [stage]
 * @property {number} [estimatedRemaining] ms
 */

/**
 * @typedef {object} Response The protocol's answer to a call.
 * @property {boolean} success
 * @property {any} [data]
 * @property {import('./errors.js').ErrorObject} [error]
 * @property {boolean} [cancelled]
 * @property {{ duration?: number, cached?: boolean }} [metadata]
 */

/**
 * @typedef {object} CancelResponse
 * @property {string} callId
 * @property {boolean} cancelled whether the app stopped the call
 * @property {string} [reason] why not
 * @property {import('./errors.js').ErrorObject} [error]
 */

/**
 * A worker, of a page's or of Node's.
 * @typedef {{ postMessage(message: any, transfer?: any): void, terminate(): any }} AnyWorker
 */

/**
 * Takes messages to an app: a port or a worker, or a transport of another kind.
 * @typedef {MessagePort | AnyWorker | SharedWorker | import('./endpoint.js').Transport} Way
 */

/**
 * Begins a way to the app; called once for each session, and closed with it: a worker is ended.
 * @callback Opener
 * @returns {Way | Promise<Way>}
 */

/**
 * Connects to an app: in an iframe, at the other end of a MessagePort, in a worker, or over whatever a
 * function opens.
 * @param {HTMLIFrameElement | Way | Opener} target
 * @param {ConnectOptions} options
 * @returns {Promise<Client>} rejects with an AbpError when the app does not answer or refuses
 */
export async function connect(target, options) {
  const client = new Client(target, options);
  await client.reconnect(options.signal);
  return client;
}

export class Client {
  /** @type {Endpoint | undefined} */
  #endpoint;
  /** @type {Map<string, any>} */
  #capabilities = new Map();
  /** @type {HTMLIFrameElement | undefined} */
  #iframe;
  #target;
  #options;
  /** The app's, if it is in an iframe. @type {string} */
  #origin = '';
  /** @type {undefined | (() => void)} */
  #unwatch;
  /** Ends the handshake under way. @type {undefined | ((problem: AbpError | undefined) => void)} */
  #handshake;
  #closing = false;
  /** Changes when what is being opened is wanted no more. */
  #attempt = 0;

  /**
   * Use {@link connect}.
   * @param {HTMLIFrameElement | Way | Opener} target
   * @param {ConnectOptions} options
   */
  constructor(target, options) {
    requireTexts('connect needs agent', options?.agent, 'name', 'version');
    const forms = ['contentWindow', 'postMessage', 'port', 'post'];
    const isWay = typeof target === 'object' && forms.some((key) => key in (target ?? {}));
    if (!isWay && typeof target !== 'function') {
      throw new AbpError(
        'INVALID_PARAMS',
        'connect needs an iframe, a port, a worker or a function that opens a transport',
      );
    }
    if ('contentWindow' in target) {
      this.#iframe = target;
      this.#origin = options.origin === OPAQUE ? OPAQUE : exactOrigin(options.origin);
    }
    this.#target = target;
    this.#options = options;
    /** Who answered. @type {{ id: string, name: string, version: string, description?: string } | undefined} */
    this.app = undefined;
    /** @type {string | undefined} */
    this.sessionId = undefined;
    this.onNotification = options.onNotification;
    this.onProgress = options.onProgress;
    this.onElicitation = options.onElicitation;
    this.onCapabilitiesChanged = options.onCapabilitiesChanged;
    this.onDisconnect = options.onDisconnect;
  }

  /** Whether there is a session. */
  get connected() {
    return this.#endpoint?.ready ?? false;
  }

  /** What both sides agreed on. */
  get features() {
    const has = (/** @type {number} */ feature) => this.#endpoint?.has(feature) ?? false;
    return {
      notifications: has(abp.NOTIFICATIONS),
      progress: has(abp.PROGRESS),
      elicitation: has(abp.ELICITATION),
      dynamicCapabilities: has(abp.DYNAMIC_CAPABILITIES),
      port: has(abp.PORT),
      frames: has(abp.FRAMES),
      liveness: has(abp.LIVENESS),
    };
  }

  /** What is in flight, and what was dropped and why; for people who debug. */
  get counters() {
    return this.#endpoint?.counters ?? {};
  }

  /**
   * Begins a new session, after the old one was lost or closed; one that lasts is closed first. Nothing of
   * an older session is taken over. A port serves one session only.
   * @param {AbortSignal} [signal] gives the handshake up
   * @returns {Promise<void>}
   */
  async reconnect(signal) {
    const { agent, timeout, requestedCapabilities, allowedRequests } = this.#options;
    const { upgrade = 'frames', limits } = this.#options;
    const attempt = ++this.#attempt;
    await ready;
    signal?.throwIfAborted();
    this.#end();
    const transport = await this.#open();
    if (attempt !== this.#attempt || signal?.aborted) {
      transport.close();
      throw signal?.reason ?? new AbpError('CANCELLED', 'The client was closed while it connected');
    }
    const endpoint = new Endpoint({
      role: abp.AGENT,
      features:
        abp.NOTIFICATIONS |
        abp.PROGRESS |
        (this.onElicitation ? abp.ELICITATION : 0) |
        (carried(transport) & UPGRADES[upgrade]),
      limits,
      transport,
      callee: this.#callee,
      side: this.#side,
    });
    endpoint.core.describe('agent', agent);
    endpoint.core.describe('requestedCapabilities', requestedCapabilities);
    endpoint.core.describe('agentCapabilities', allowedRequests && { allowedRequests });
    this.#endpoint = endpoint;
    this.#unwatch = this.#iframe
      ? watchFrame(this.#iframe, endpoint, () => this.connected)
      : watchPage(endpoint);
    const abandon = { handleEvent: () => this.close() };
    listen(signal, abandon);
    try {
      await new Promise((resolve, reject) => {
        this.#handshake = (problem) => (problem ? reject(problem) : resolve(undefined));
        endpoint.connect(timeout ?? 10000);
      });
    } catch (error) {
      endpoint.dispose();
      this.#unwatch?.();
      throw signal?.aborted ? signal.reason : error;
    } finally {
      this.#handshake = undefined;
      unlisten(signal, abandon);
    }
  }

  async #open() {
    if (this.#iframe) {
      if (this.#iframe.contentWindow) return iframeTransport(this.#iframe, this.#origin);
      throw new AbpError('INVALID_PARAMS', 'The iframe is in no document: append it first');
    }
    if (typeof this.#target === 'function') return transportTo(await this.#target(), true);
    if (this.#endpoint && this.#target instanceof MessagePort) {
      throw new AbpError(
        'TRANSPORT_ERROR',
        'This port has been closed with its session: connect to a new one, or by a function that opens one',
      );
    }
    return transportTo(this.#target, false);
  }

  /**
   * Calls a capability.
   * @param {string} name
   * @param {any} [params]
   * @param {CallOptions} [options]
   * @returns {Promise<Response>} never rejects for what happens to the call: see `success`, `cancelled`, `error`
   */
  call(name, params = {}, options = {}) {
    if (typeof name !== 'string') return wrong('call needs the name of a capability');
    const { signal, onProgress } = options ?? {};
    if (signal && typeof signal.addEventListener !== 'function') {
      return wrong('signal must be an AbortSignal');
    }
    if (onProgress && typeof onProgress !== 'function') {
      return wrong('onProgress must be a function');
    }
    return /** @type {Endpoint} */ (this.#endpoint).request(name, params, options ?? {});
  }

  /**
   * Cancels a call by its id, which may be one that this client did not make.
   * @param {string} callId
   * @param {string} [reason]
   * @returns {Promise<CancelResponse>} the app's word on it
   */
  cancel(callId, reason) {
    return /** @type {Endpoint} */ (this.#endpoint).cancelById(callId, reason);
  }

  /** @returns {Promise<any[]>} what the app said it can do, kept current by its notifications */
  async listCapabilities() {
    return [...this.#capabilities.values()];
  }

  /**
   * @param {string} name
   * @returns {Promise<any>} the capability, or null
   */
  async describeCapability(name) {
    return this.#capabilities.get(name) ?? null;
  }

  /**
   * @param {string} name
   * @returns {Promise<{ supported: boolean, available: boolean, reason?: string, requirements?: any[], features?: Record<string, boolean>, alternatives?: string[] }>}
   */
  async supports(name) {
    return supportOf(this.#capabilities.get(name));
  }

  /** Ends the session. What is pending settles as cancelled, and the app aborts what it still runs. */
  close() {
    this.#attempt++;
    this.#end();
  }

  #end() {
    this.#unwatch?.();
    this.#closing = true;
    this.#endpoint?.close();
    this.#closing = false;
  }

  // --- What the endpoint asks ----------------------------------------------------------------------

  /** The app's questions. @type {import('./endpoint.js').Callee} */
  #callee = {
    fault: ({ name }) => {
      const { allowedRequests } = this.#options;
      const allowed = !allowedRequests || allowedRequests.includes(methodOf(name));
      const able = this.onElicitation && this.#endpoint?.has(abp.ELICITATION);
      return able && allowed ? 0 : abp.NOT_SUPPORTED;
    },
    run: ({ name, params, timeout }, { signal }) =>
      this.onElicitation?.(
        { method: methodOf(name), params, ...(timeout && { timeout }) },
        { signal },
      ),
  };

  /** @type {import('./endpoint.js').Side} */
  #side = {
    onSession: (state, message) => this.#onSession(state, message),
    onProgress: (info) => this.onProgress?.(info),
    onNotification: (event, data) => {
      if (event === LIST_CHANGED) this.#merge(data);
      this.onNotification?.(event, data);
    },
  };

  /**
   * @param {number} state
   * @param {any} message
   */
  #onSession(state, message) {
    if (state === abp.SESSION_READY) {
      const problem = this.#accept(own(message, 'payload'));
      this.#handshake?.(problem);
      if (problem) this.close();
      return;
    }
    const endpoint = /** @type {Endpoint} */ (this.#endpoint);
    const error =
      state === abp.SESSION_FAILED
        ? failedHandshake(message)
        : AbpError.from(endpoint.failure(abp.DISCONNECTED_ERROR).error);
    if (endpoint.cause !== undefined) error.cause = endpoint.cause;
    this.#unwatch?.();
    endpoint.dispose();
    if (this.#handshake) this.#handshake(error);
    else if (!this.#closing) this.onDisconnect?.(error);
  }

  /**
   * @param {any} payload of the `initialize-result`
   * @returns {AbpError | undefined}
   */
  #accept(payload) {
    const endpoint = /** @type {Endpoint} */ (this.#endpoint);
    const { ports } = endpoint;
    const offered = endpoint.has(abp.PORT);
    if (offered && ports.length === 1) {
      endpoint.transport.close();
      endpoint.upgrade(portTransport(ports[0]));
    } else {
      for (const port of ports) port.close();
      if (offered) return new AbpError('TRANSPORT_ERROR', 'The app agreed on a port but sent none');
      if (this.#origin === OPAQUE) {
        return new AbpError(
          'NOT_SUPPORTED',
          'A sandboxed app must offer a port: nothing else tells its document from another',
        );
      }
    }
    this.app = own(payload, 'app');
    this.sessionId = own(payload, 'sessionId');
    this.#capabilities = new Map();
    this.#put(own(payload, 'capabilities'));
    return undefined;
  }

  /** @param {any} list */
  #put(list) {
    if (!Array.isArray(list)) return;
    for (const capability of list) {
      const name = own(capability, 'name');
      if (typeof name === 'string') this.#capabilities.set(name, capability);
    }
  }

  /** @param {any} data */
  #merge(data) {
    const names = (/** @type {string} */ key) => {
      const list = own(data, key);
      return Array.isArray(list) ? list.filter((name) => typeof name === 'string') : [];
    };
    const changes = { added: names('added'), removed: names('removed'), changed: names('changed') };
    for (const name of changes.removed) this.#capabilities.delete(name);
    for (const name of changes.added) {
      if (!this.#capabilities.has(name)) this.#capabilities.set(name, { name, available: true });
    }
    // Ours say what the new ones are; the published notification has only names.
    this.#put(own(data, 'capabilities'));
    this.onCapabilitiesChanged?.(changes);
  }
}

/**
 * An elicitation's method, by its standard name.
 * @param {unknown} name
 */
const methodOf = (name) => (name === 'elicitation/text' ? 'elicitation/input' : String(name));

/**
 * Why there is no session.
 * @param {any} message the app's refusal; none if time ran out
 */
function failedHandshake(message) {
  const said = own(own(message, 'payload'), 'error');
  if (said) return AbpError.from(said);
  if (message) {
    return new AbpError('SESSION_INVALID', 'The app answered initialize without a sessionId');
  }
  return new AbpError(
    'TIMEOUT',
    'The app did not answer with a session: does it run abp, allow this origin, and serve no other agent?',
    { retryable: true },
  );
}
