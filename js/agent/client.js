/** The agent's side: connects to an app and calls its capabilities. */
import * as abp from '../core/abp-boundary.js';
import { ready } from '../core/abp-core.js';
import { Endpoint, carried } from '../session/endpoint.js';
import { Observers } from '../session/observers.js';
import {
  AbpError,
  invokeReportingErrors,
  requireFunctions,
  requireTexts,
  requireTimeout,
  safely,
} from '../common/errors.js';
import { getOwn, milliseconds } from '../common/values.js';
import { exactOrigin } from '../common/origins.js';
import { onAbort, offAbort } from '../common/signals.js';
import { CallStream } from './call-stream.js';
import { CapabilityList } from './capability-list.js';
import { Input } from './input.js';
import { rejectionOf } from './rejection.js';
import { INPUT, elicitationMethod, readError } from '../wire/messages.js';
import { supportOf } from '../session/capability-support.js';
import { isStream } from '../common/transfer.js';
import { portTransport } from '../transports/port.js';
import { OPAQUE, iframeTransport } from '../transports/window.js';
import { transportTo } from '../transports/worker.js';
import { forgetDocument, watchFrame, watchPage } from '../transports/frame-watcher.js';

/** The features beyond the published protocol that each `upgrade` asks for. */
const UPGRADES = { frames: ~0, port: ~abp.FRAMES, none: 0 };
/** @param {string} why */
const wrong = (why) => Promise.reject(new TypeError(why));
const CALLBACKS = [
  ...['trace', 'onNotification', 'onProgress', 'onElicitation', 'onCapabilitiesChanged'],
  ...['onDisconnect', 'onReconnect'],
];
/** Whether a value is a window, of whatever origin: little else can be read of another origin's. @param {any} target */
const isWindow = (target) => safely(() => target.window === target, false);
const LIST_CHANGED = 'notifications/capabilities/list_changed';

/** @typedef {AgentOptions & import('../session/observers.js').ObserverOptions} ConnectOptions */

/**
 * @typedef {object} AgentOptions
 * @property {string} [origin] the app's exact origin; required for an iframe. `'null'` is a sandboxed
 *   iframe, which must run this library too: only what it says through its own port is believed
 * @property {{ name: string, version: string }} agent who calls
 * @property {number} [timeout] ms after which the handshake fails with TIMEOUT (10000); 0 is never
 * @property {AbortSignal} [signal] cancels the first handshake
 * @property {string[]} [requestedCapabilities] a hint to the app
 * @property {string[]} [allowedRequests] the elicitation methods that the app may use (all)
 * @property {'frames' | 'port' | 'none'} [upgrade] how far to go beyond the published protocol when the
 *   app agrees: `'none'` is window messages only, readable in the browser's tools (`'frames'`)
 * @property {import('../core/abp-core.js').Limits} [limits]
 * @property {(event: string, data: any) => void} [onNotification]
 * @property {(info: any) => void} [onProgress] progress that no call here asked for
 * @property {(request: { method: string, params: any, timeout?: number }, context: { signal: AbortSignal }) => unknown} [onElicitation]
 *   answers the app's questions: return the data, or the protocol's response `{ success, data?, error?, cancelled? }`;
 *   throw to decline (an `AbortError` says cancelled)
 * @property {(changes: { added: string[], removed: string[], changed: string[] }) => void} [onCapabilitiesChanged]
 * @property {(error: AbpError) => void} [onDisconnect] the app is gone, or has ended the session
 * @property {boolean | import('./again.js').Patience} [reconnect] whether a new session is begun by itself after one was
 *   lost (false). Calls that were pending settle all the same
 * @property {(error?: unknown) => void} [onReconnect] a new session has begun by itself; with an error, none will
 */

/**
 * @typedef {object} CallOptions
 * @property {AbortSignal} [signal] cancels the call; the app decides how it ended
 * @property {number} [timeout] ms after which the call cancels itself; 0 or absent is never
 * @property {(info: ProgressInfo) => void} [onProgress]
 * @property {string} [callId] names the call, for `cancel`; minted when absent
 * @property {string | number} [progressToken] the token that the app reports progress with (the callId)
 * @property {AsyncIterable<any> | ReadableStream} [input] is streamed to the handler, which reads it as `input` of its
 *   context. It ends with the call
 * @property {Transferable[]} [transfer] objects in the params that are moved instead of copied
 * @property {boolean | import('./again.js').Patience} [retry] whether it is made again if its error is `retryable`, after
 *   `retryAfter` if the app says so (false). `timeout` and `signal` are for all attempts together. Only for calls that
 *   may run twice: of a call that ended with DISCONNECTED nobody knows whether it ran
 */

/**
 * @typedef {object} ProgressInfo
 * @property {string | number} operationId the `progressToken`
 * @property {number} progress
 * @property {number} [total]
 * @property {number} [percentage] 0 to 100
 * @property {string} [status]
 * @property {string} [stage]
 * @property {number} [estimatedRemaining] ms
 */

/**
 * @template [Data=any]
 * @typedef {object} Success
 * @property {true} success
 * @property {Data} data
 * @property {undefined} [error]
 * @property {false} [cancelled]
 * @property {Metadata} [metadata]
 */

/**
 * @template {string} [Code=never] the app's own error codes, where they are known
 * @typedef {object} Failure
 * @property {false} success
 * @property {undefined} [data]
 * @property {import('../common/errors.js').ErrorObject<Code>} error
 * @property {boolean} [cancelled] whether it was cancelled, which a timeout is, too
 * @property {Metadata} [metadata]
 */

/**
 * @typedef {object} Metadata
 * @property {number} [duration] ms
 * @property {boolean} [cached]
 * @property {boolean} [collected] the data are the chunks of a stream, in a list
 */

/**
 * The protocol's answer to a call.
 * @template [Data=any]
 * @template {string} [Code=never] the app's own error codes, where they are known
 * @typedef {Success<Data> | Failure<Code>} Response
 */

/**
 * @typedef {object} CancelResponse
 * @property {string} callId
 * @property {boolean} cancelled whether the app stopped the call
 * @property {string} [reason] why not
 * @property {import('../common/errors.js').ErrorObject} [error]
 */

/**
 * A worker, of a page's or of Node's.
 * @typedef {{ postMessage(message: any, transfer?: any): void, terminate(): any }} AnyWorker
 */

/**
 * What leads to an app: a port, a worker, or a transport of another kind.
 * @typedef {MessagePort | AnyWorker | SharedWorker | import('../transports/transport.js').Transport} ConnectTarget
 */

/**
 * Opens a connection to the app. It is called once for each session; the connection is closed with the session, and a
 * worker is terminated.
 * @callback Opener
 * @returns {ConnectTarget | Promise<ConnectTarget>}
 */

/**
 * Connects to an app: in an iframe, at the other end of a MessagePort, in a worker, or over whatever a
 * function opens.
 * @template [App=any] what the client knows of the app: `typeof app`, where `app` is what `expose` returned, or an object
 *   type with a function for each capability. Nothing is checked at run time
 * @param {HTMLIFrameElement | ConnectTarget | Opener} target
 * @param {ConnectOptions} options
 * @returns {Promise<Client<App>>} rejects with an AbpError when the app does not answer or refuses
 */
export async function connect(target, options) {
  const client = new Client(target, options);
  await client.reconnect(options.signal);
  return client;
}

/**
 * An agent's connection to an app.
 * @template [App=any] what it knows of the app; see {@link connect}
 */
export class Client {
  /** @type {Endpoint | undefined} */
  #endpoint;
  #capabilities = new CapabilityList();
  /** Listeners for progress whose token the caller chose. @type {Map<unknown, (info: any) => void>} */
  #onProgress = new Map();
  /** @type {HTMLIFrameElement | undefined} */
  #iframe;
  #target;
  #options;
  #observers;
  /** The app's, if it is in an iframe. @type {string} */
  #origin = '';
  /** @type {undefined | (() => void)} */
  #unwatch;
  /** Settles the current handshake. @type {undefined | ((problem: AbpError | undefined) => void)} */
  #handshake;
  #closing = false;
  /** Whether it was closed since it connected last. */
  #closed = false;
  /** Stops opening the connection. @type {undefined | (() => void)} */
  #abandonOpening;
  /** Ends what reconnects by itself. @type {AbortController | undefined} */
  #restoring;
  /** Whether that has led to a session, once it is known. @type {Promise<boolean> | undefined} */
  #restored;
  #history = { failures: 0, since: -Infinity };
  /** Changes when a connection that is being opened is not wanted any more. */
  #attempt = 0;

  /**
   * Use {@link connect}.
   * @param {HTMLIFrameElement | ConnectTarget | Opener} target
   * @param {ConnectOptions} options
   */
  constructor(target, options) {
    requireTexts('connect needs agent', options?.agent, 'name', 'version');
    requireTimeout('connect', options.timeout);
    requireFunctions('connect', options, ...CALLBACKS);
    if (isWindow(target)) {
      throw new AbpError(
        'INVALID_PARAMS',
        'connect needs the iframe itself, not its contentWindow or another window',
      );
    }
    const forms = ['contentWindow', 'postMessage', 'port', 'post'];
    const isTarget = typeof target === 'object' && forms.some((key) => key in (target ?? {}));
    if (!isTarget && typeof target !== 'function') {
      throw new AbpError(
        'INVALID_PARAMS',
        'connect needs an iframe, a port, a worker or a function that opens a transport',
      );
    }
    if ('contentWindow' in target) {
      this.#iframe = target;
      this.#origin = options.origin === OPAQUE ? OPAQUE : exactOrigin(options.origin, target.src);
    }
    this.#target = target;
    this.#options = options;
    this.#observers = new Observers(options, () => (this.#endpoint ? [this.#endpoint] : []));
    /** The app that answered. @type {{ id: string, name: string, version: string, description?: string } | undefined} */
    this.app = undefined;
    /** @type {string | undefined} */
    this.sessionId = undefined;
    this.onNotification = options.onNotification;
    this.onProgress = options.onProgress;
    this.onElicitation = options.onElicitation;
    this.onCapabilitiesChanged = options.onCapabilitiesChanged;
    this.onDisconnect = options.onDisconnect;
    this.onReconnect = options.onReconnect;
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
      streams: has(abp.STREAMS),
    };
  }

  /** Counts of what is in flight and what was dropped, for debugging. */
  get counters() {
    return this.#endpoint?.counters ?? {};
  }

  /**
   * Calls a listener with each event from now on, as the option `trace` does from the start.
   * @param {import('../session/trace.js').TraceListener} listener
   * @returns {Promise<() => void>} what ends it
   */
  observe(listener) {
    return this.#observers.add(listener);
  }

  /**
   * Begins a new session, after the old one was lost or closed; one that lasts is closed first. Nothing of
   * an older session is taken over. A port serves one session only.
   * @param {AbortSignal} [signal] cancels the handshake
   * @returns {Promise<void>}
   */
  reconnect(signal) {
    this.#stopRestoring();
    return this.#begin(signal);
  }

  /** @param {AbortSignal} [signal] */
  async #begin(signal) {
    const { agent, requestedCapabilities, allowedRequests } = this.#options;
    const { upgrade = 'frames', limits } = this.#options;
    const attempt = ++this.#attempt;
    const limit = this.#limit;
    signal?.throwIfAborted();
    this.#abandonOpening?.();
    this.#end();
    // At once: what a worker reports while the core loads, such as that its script is missing, is not missed.
    const opening = this.#openWithin(limit, signal);
    const [transport] = await Promise.all([opening, ready, this.#observers.ready]).catch(
      (error) => {
        opening.then(
          (transport) => transport.close(),
          () => {},
        );
        throw error;
      },
    );
    if (attempt !== this.#attempt || signal?.aborted) {
      transport.close();
      throw signal?.reason ?? abandoned();
    }
    this.#closed = false;
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
      observers: this.#observers,
    });
    this.#endpoint = endpoint;
    this.#unwatch = this.#iframe
      ? watchFrame(this.#iframe, endpoint, () => this.connected)
      : watchPage(endpoint);
    const abandon = { handleEvent: () => this.close() };
    onAbort(signal, abandon);
    try {
      endpoint.core.describe('agent', agent);
      endpoint.core.describe('requestedCapabilities', requestedCapabilities);
      endpoint.core.describe('agentCapabilities', allowedRequests && { allowedRequests });
      await new Promise((resolve, reject) => {
        this.#handshake = (problem) => (problem ? reject(problem) : resolve(undefined));
        endpoint.connect(limit);
      });
    } catch (error) {
      endpoint.dispose();
      this.#unwatch?.();
      throw signal?.aborted ? signal.reason : error;
    } finally {
      // Another one may have begun in the meantime.
      if (this.#endpoint === endpoint) this.#handshake = undefined;
      offAbort(signal, abandon);
    }
  }

  /** ms that a handshake may take; 0 for no limit. */
  get #limit() {
    return milliseconds(this.#options.timeout ?? 10_000);
  }

  /**
   * The error of a handshake that had no answer.
   * @param {Endpoint} endpoint
   * @returns {Promise<AbpError>}
   */
  #unanswered({ transport, heard, counters }) {
    const { stranger } = /** @type {{ stranger?: string }} */ (transport);
    const limit = this.#limit;
    const unread = counters.malformed;
    const known = { iframe: this.#iframe, origin: this.#origin, stranger, heard, unread, limit };
    // Loaded on demand: it says a lot, and few pages need it.
    return import('./diagnosis.js').then(
      ({ errorOf }) => errorOf(known),
      () => late('The app did not answer with a session'),
    );
  }

  /**
   * Opens the connection to the app, unless time runs out or the signal fires. If it opens later, it is closed.
   * @param {number} limit ms, 0 for none
   * @param {AbortSignal | undefined} signal
   * @returns {Promise<import('../transports/transport.js').Transport>}
   */
  #openWithin(limit, signal) {
    const opening = this.#open();
    return new Promise((resolve, reject) => {
      let done = false;
      const end = (/** @type {() => void} */ act) => {
        if (done) return;
        done = true;
        this.#abandonOpening = undefined;
        clearTimeout(timer);
        offAbort(signal, abort);
        act();
      };
      const stop = () =>
        end(() =>
          reject(late(`The function given to connect has opened nothing within ${limit} ms`)),
        );
      const timer = limit ? setTimeout(stop, limit) : undefined;
      const abort = { handleEvent: () => end(() => reject(signal?.reason)) };
      onAbort(signal, abort);
      this.#abandonOpening = () => end(() => reject(abandoned()));
      opening.then(
        (transport) => {
          if (done) transport.close();
          end(() => resolve(transport));
        },
        (error) => end(() => reject(error)),
      );
    });
  }

  async #open() {
    if (this.#iframe) {
      if (!this.#iframe.contentWindow) {
        throw new AbpError('INVALID_PARAMS', 'The iframe is in no document: append it first');
      }
      // Such a frame never answers.
      const sandbox = this.#iframe.getAttribute?.('sandbox') ?? 'allow-scripts allow-same-origin';
      if (!sandbox.includes('allow-scripts')) throw await sandboxed('allow-scripts');
      if (this.#origin !== OPAQUE && !sandbox.includes('allow-same-origin')) {
        throw await sandboxed('allow-same-origin');
      }
      return iframeTransport(this.#iframe, this.#origin);
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
   * @template {import('../types/app.js').NameOf<App>} Name
   * @param {Name} name
   * @param {import('../types/app.js').CallArguments<App, Name>} rest its params ({}), and {@link CallOptions}
   * @returns {Promise<import('../types/app.js').ResponseOf<App, Name>>} never rejects for what happens to the call: see
   *   `success`, `cancelled`, `error`
   */
  call(name, ...rest) {
    const [params = {}, options = {}] = /** @type {[unknown?, CallOptions?]} */ (rest);
    return this.#checked(name, params, options);
  }

  /**
   * Calls a capability whose handler streams: `for await (const chunk of client.stream(name, params))`. The call begins at
   * once. Leaving the loop cancels it; `response` says how it ended. A capability that does not stream has no chunks, and
   * its data is the response's.
   * @template {import('../types/app.js').NameOf<App>} Name
   * @param {Name} name
   * @param {import('../types/app.js').CallArguments<App, Name>} rest its params ({}), and {@link CallOptions}
   * @returns {CallStream<import('../types/app.js').ChunkOf<App, Name>, import('../types/app.js').ResponseOf<App, Name>>}
   */
  stream(name, ...rest) {
    const [params = {}, options = {}] = /** @type {[unknown?, CallOptions?]} */ (rest);
    return new CallStream((stream) => this.#checked(name, params, options, stream));
  }

  /**
   * @param {string} name
   * @param {unknown} params
   * @param {CallOptions} options
   * @param {CallStream} [stream]
   * @returns {Promise<any>}
   */
  #checked(name, params, options, stream) {
    if (typeof name !== 'string') return wrong('call needs the name of a capability');
    const { signal, onProgress, timeout, retry, transfer, input } = options ?? {};
    if (signal && typeof signal.addEventListener !== 'function') {
      return wrong('signal must be an AbortSignal');
    }
    if (onProgress && typeof onProgress !== 'function') {
      return wrong('onProgress must be a function');
    }
    if (timeout !== undefined && timeout !== null && typeof timeout !== 'number') {
      return wrong('timeout must be a number of milliseconds');
    }
    if (input !== undefined && !isStream(input)) {
      return wrong('input must be an async iterable or a ReadableStream');
    }
    if (input && !retry) return this.#callWithInput(name, params, options, stream);
    if (!retry) return this.#call(name, params, options ?? {}, stream);
    if (input) return wrong('a call with input cannot be retried: some of it may have been read');
    if (stream) return wrong('a stream cannot be retried: its chunks may have been read');
    if (transfer) return wrong('a call with transfer cannot be retried: its params are moved');
    const deadline = performance.now() + (milliseconds(timeout) || Infinity);
    return this.#call(name, params, options).then((response) => {
      if (response.success) return response;
      const again = (/** @type {number | undefined} */ timeout) =>
        this.#call(name, params, { ...options, timeout });
      const ready = async () => this.connected || (this.#restored ?? false);
      return import('./again.js').then(
        (loaded) => loaded.retry(response, { again, ready, patience: retry, signal, deadline }),
        () => response,
      );
    });
  }

  /**
   * @param {string} name
   * @param {unknown} params
   * @param {CallOptions} options
   * @param {CallStream} [stream]
   * @returns {Promise<Response>} rejects if the input is read by somebody else
   */
  async #callWithInput(name, params, options, stream) {
    const input = new Input(options.input);
    try {
      return await this.#call(name, params, options, stream, input);
    } finally {
      input.close();
    }
  }

  /**
   * @param {string} name
   * @param {unknown} params
   * @param {CallOptions} options
   * @param {CallStream} [stream]
   * @param {Input} [input]
   * @returns {Promise<Response>}
   */
  #call(name, params, options, stream, input) {
    if (this.#closed) return Promise.resolve({ success: false, error: closedError() });
    const endpoint = /** @type {Endpoint} */ (this.#endpoint);
    const response = endpoint.request(name, params, options, 0, stream, input);
    const { progressToken, onProgress } = options;
    if (progressToken === undefined || !onProgress) return response;
    this.#onProgress.set(progressToken, onProgress);
    return response.finally(() => {
      if (this.#onProgress.get(progressToken) === onProgress)
        this.#onProgress.delete(progressToken);
    });
  }

  /**
   * Calls a capability, for those who live by exceptions.
   * @template {import('../types/app.js').NameOf<App>} Name
   * @param {Name} name
   * @param {import('../types/app.js').CallArguments<App, Name>} rest its params ({}), and {@link CallOptions}
   * @returns {Promise<import('../types/app.js').DataOf<App, Name>>} the data itself. Rejects with an {@link AbpError} when the
   *   call fails; when it was cancelled, that is an `AbortError` by its `name`, whose `cause` is the signal's reason
   */
  async invoke(name, ...rest) {
    const response = await this.call(name, ...rest);
    if (response.success) return response.data;
    throw rejectionOf(response, rest[1]?.signal);
  }

  /**
   * Cancels a call by its id, which may be one that this client did not make.
   * @param {string} callId
   * @param {string} [reason]
   * @returns {Promise<CancelResponse>} the app's answer
   */
  cancel(callId, reason) {
    if (this.#closed) {
      const error = closedError();
      return Promise.resolve({ callId, cancelled: false, reason: error.message, error });
    }
    return /** @type {Endpoint} */ (this.#endpoint).cancelById(callId, reason);
  }

  /** @returns {Promise<import('./capability-list.js').CapabilityInfo[]>} the app's capabilities, kept up to date by its notifications */
  async listCapabilities() {
    return this.#capabilities.list();
  }

  /**
   * @param {string} name
   * @returns {Promise<import('./capability-list.js').CapabilityInfo | null>} the capability, or null
   */
  async describeCapability(name) {
    return this.#capabilities.get(name);
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
    this.#stopRestoring();
    this.#attempt++;
    this.#closed = true;
    this.#abandonOpening?.();
    this.#end();
  }

  #stopRestoring() {
    const restoring = this.#restoring;
    this.#restoring = this.#restored = undefined;
    restoring?.abort(abandoned());
  }

  /** Begins a new session in place of the one that was lost. */
  #restore() {
    const { signal } = (this.#restoring = new AbortController());
    const { reconnect = true } = this.#options;
    this.#restored = import('./again.js')
      .then(({ restore }) => restore(() => this.#begin(signal), reconnect, this.#history, signal))
      .then(
        () => undefined,
        (error) => error,
      )
      .then((error) => {
        if (!signal.aborted) invokeReportingErrors(this.onReconnect, error);
        return !error;
      });
  }

  #end() {
    this.#unwatch?.();
    this.#closing = true;
    this.#endpoint?.close();
    this.#closing = false;
  }

  // --- What the endpoint asks ----------------------------------------------------------------------

  /** The app's questions, and its reading of input. @type {import('../session/endpoint.js').Callee} */
  #callee = {
    rejectionFor: ({ name, params }) => {
      if (name === INPUT) return this.#inputOf(params)?.taken === false ? 0 : abp.INVALID_PARAMS;
      const { allowedRequests } = this.#options;
      const allowed = !allowedRequests || allowedRequests.includes(elicitationMethod(name));
      const able = this.onElicitation && this.#endpoint?.has(abp.ELICITATION);
      return able && allowed ? 0 : abp.NOT_SUPPORTED;
    },
    run: ({ name, params, timeout }, { signal }) => {
      if (name === INPUT) return this.#inputOf(params);
      return this.onElicitation?.(
        { method: elicitationMethod(name), params, ...(timeout && { timeout }) },
        { signal },
      );
    },
  };

  /** The input of a call that is pending. @param {unknown} params as the app says them */
  #inputOf(params) {
    return this.#endpoint?.withInput(getOwn(params, 'callId'))?.input;
  }

  /** @type {import('../session/endpoint.js').EndpointDelegate} */
  #side = {
    onSession: (state, message) => this.#onSession(state, message),
    onExpired: (error) => this.#expired(error),
    onProgress: (info) => (this.#onProgress.get(info.operationId) ?? this.onProgress)?.(info),
    onNotification: (event, data) => {
      if (event === LIST_CHANGED) {
        invokeReportingErrors(this.onCapabilitiesChanged, this.#capabilities.merge(data));
      }
      return this.onNotification?.(event, data);
    },
  };

  /**
   * The app says that it has no session any more: ends this side's, and whatever the app may still have of it.
   * @param {import('../common/errors.js').ErrorObject} error
   */
  #expired(error) {
    const endpoint = /** @type {Endpoint} */ (this.#endpoint);
    const payload = { reason: error.message };
    safely(() => endpoint.post({ type: 'shutdown', timestamp: Date.now(), payload }), undefined);
    endpoint.lost(AbpError.from(error));
  }

  /**
   * @param {number} state
   * @param {unknown} message
   */
  #onSession(state, message) {
    if (state === abp.SESSION_READY) {
      const problem = this.#accept(getOwn(message, 'payload'));
      this.#handshake?.(problem);
      if (problem) this.close();
      return;
    }
    const endpoint = /** @type {Endpoint} */ (this.#endpoint);
    const failed = state === abp.SESSION_FAILED;
    const error = failed
      ? refusedHandshake(message)
      : AbpError.from(endpoint.failure(abp.DISCONNECTED_ERROR).error);
    if (endpoint.cause !== undefined) error.cause = endpoint.cause;
    if (this.#iframe && state === abp.SESSION_LOST) forgetDocument(this.#iframe);
    this.#unwatch?.();
    endpoint.dispose();
    if (failed && !message) void this.#unanswered(endpoint).then(this.#handshake);
    else if (this.#handshake) this.#handshake(error);
    else if (!this.#closing) {
      const attempt = this.#attempt;
      invokeReportingErrors(() => this.onDisconnect?.(error));
      // The listener may have closed it, or begun a session.
      if (this.#options.reconnect && attempt === this.#attempt) this.#restore();
    }
  }

  /**
   * @param {unknown} payload of the `initialize-result`
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
    this.app = /** @type {typeof this.app} */ (getOwn(payload, 'app'));
    this.sessionId = /** @type {string} */ (getOwn(payload, 'sessionId'));
    this.#capabilities = new CapabilityList();
    this.#capabilities.put(getOwn(payload, 'capabilities'));
    return undefined;
  }
}

const abandoned = () => new AbpError('CANCELLED', 'The client was closed while it connected');

/** @param {string} lacking what the iframe's sandbox does not allow */
const sandboxed = async (lacking) => (await import('./diagnosis.js')).sandboxError(lacking);

/** The error of a request to a closed client. Trying again does not help; `reconnect()` does. */
const closedError = () => ({
  code: 'DISCONNECTED',
  message: 'The client was closed: reconnect() begins a new session',
  retryable: false,
});

/** @param {string} what has not happened in time */
const late = (what) =>
  new AbpError('TIMEOUT', `${what} (docs/errors.md#no-answer)`, { retryable: true });

/**
 * The error of a handshake that the app refused.
 * @param {unknown} message what the app said
 */
function refusedHandshake(message) {
  const said = getOwn(getOwn(message, 'payload'), 'error');
  return said
    ? AbpError.from(readError(said))
    : new AbpError('SESSION_INVALID', 'The app answered initialize without a sessionId');
}
