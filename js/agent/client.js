/** The agent's side: connects to an app and calls its capabilities. */
import * as abp from '../driver/abp-boundary.js';
import { ready } from '../driver/abp-core.js';
import { Endpoint, carried } from '../session/endpoint.js';
import { Observers } from '../session/observers.js';
import { AbpError, invokeReportingErrors, loadPart, safely } from '../common/errors.js';
import { isHighWaterMark, misfit } from '../common/check-options.js';
import { development, tell } from '../common/development.js';
import { cloneOf } from '../common/copy.js';
import { EMPTY, MAX_TIMER, copyRecord, getOwn, isObject, milliseconds } from '../common/values.js';
import { originOf } from '../common/origins.js';
import { makeCall } from '../session/made-call.js';
import { cancelById, unanswered } from '../session/pending-cancel.js';
import { secret } from '../common/secret.js';
import { unless, whenAborted } from '../common/waiting.js';
import { CapabilityList } from './capability-list.js';
import { rejectionOf } from '../session/rejection.js';
import {
  INPUT,
  LIST_CHANGED,
  elicitationMethod,
  isOpen,
  progressInfo,
  unstarted,
} from '../wire/messages.js';
import { endUnread, isStream } from '../common/transfer.js';
import { portTransport } from '../transports/port.js';
import { OPAQUE, iframeTransport } from '../transports/iframe.js';
import { watchIframe } from '../transports/iframe-watcher.js';
import { transportTo } from '../transports/worker.js';

/** The features beyond the published protocol that each `upgrade` asks for. */
const UPGRADES = { frames: ~0, port: ~(abp.FRAMES | abp.TEXT), none: 0 };

/** Loads the part that asks for outcomes and retries. */
const loadRetry = () => loadPart(import('../../parts/retry/retry.js'));

/**
 * True if a value may be an app's iframe, or a target to connect to. Few properties of a
 * cross-origin window can be read.
 * @param {any} target
 */
const isTarget = (target) =>
  typeof target === 'function' ||
  safely(
    () =>
      target.window !== target &&
      ['contentWindow', 'postMessage', 'port', 'post'].some((key) => key in target),
    false,
  );

/** The features, in the order of their bits in `abp_feature`. */
const FEATURES = /** @type {const} */ ([
  'notifications',
  'progress',
  'elicitation',
  'dynamicCapabilities',
  'port',
  'frames',
  'liveness',
  'streams',
  'outcomes',
  'text',
]);
/** @typedef {typeof FEATURES[number]} FeatureName The features that both sides may agree on. */

/** Time without an answer, in ms, after which the console shows the reason, if that is known. */
const EARLY = 1000;

/** @type {Kinds<CallOptions, 'callId' | 'progressToken'>} */
const CALL_OPTIONS = {
  callId: 'anything',
  highWaterMark: 'a number',
  idempotencyKey: 'a string',
  input: 'an object',
  onProgress: 'a function',
  progressToken: 'anything',
  retry: 'a boolean or an object of numbers',
  signal: 'an AbortSignal',
  timeout: 'a number',
  transfer: 'an object',
};
/** @type {Kinds<ConnectOptions>} */
const OPTIONS = {
  agent: 'an object',
  allowedRequests: 'an object',
  debug: 'a boolean',
  limits: 'an object of numbers',
  onCapabilitiesChanged: 'a function',
  onDisconnect: 'a function',
  onElicitation: 'a function',
  onNotification: 'a function',
  onProgress: 'a function',
  onReconnect: 'a function',
  origin: 'a string',
  owner: 'a string',
  reconnect: 'a boolean or an object',
  recorder: 'an object',
  requestedCapabilities: 'an object',
  signal: 'an AbortSignal',
  timeout: 'a number',
  trace: 'a function',
  upgrade: '"frames", "none" or "port"',
};

/** @import { Kinds } from '../common/check-options.js' */
/** @import { CancelResponse, ProgressInfo, Response } from '../wire/messages.js' */
/** @import { MadeOptions } from '../session/call.js' */
/** @import { Patience, Reconnecting, Route } from '../../parts/retry/retry.js' */
/** @typedef {import('../common/development.js').Mistakes} Development */

/**
 * @typedef {AgentOptions & import('../session/observers.js').ObserverOptions} ConnectOptions The
 *   options of `connect`.
 */

/**
 * @typedef {object} AgentOptions An agent's description of itself, its settings, and its listeners.
 * @property {string} [origin] the app's exact origin; required for an iframe. `'null'` is a
 *   sandboxed iframe, which must also run this library: only messages through its own port are
 *   trusted
 * @property {{ name: string, version: string }} agent the agent's name and version
 * @property {number} [timeout] ms after which the handshake fails with TIMEOUT (10000); 0: never
 * @property {AbortSignal} [signal] cancels the first handshake
 * @property {string[]} [requestedCapabilities] a hint to the app
 * @property {string} [owner] a secret by which the app recognises the agent in another session and
 *   after a reload (default: a new one for each client). With it, anybody can ask for the outcomes
 *   of the agent's calls
 * @property {string[]} [allowedRequests] the elicitation methods that the app may use (all)
 * @property {'frames' | 'port' | 'none'} [upgrade] which extensions of the published protocol are
 *   used if the app agrees: `'none'` uses window messages only, which the browser's tools show
 *   (`'frames'`)
 * @property {import('../driver/abp-core.js').Limits} [limits] for calls in flight, and for the
 *   length of messages
 * @property {(event: string, data: any) => void} [onNotification] called with the app's own
 *   notifications
 * @property {(info: any) => void} [onProgress] called with progress that belongs to no call here
 * @property {(request: { method: string, params: any, timeout?: number },
 *   context: { signal: AbortSignal }) => unknown} [onElicitation] answers the app's questions:
 *   return the data, or the protocol's response `{ success, data?, error?, cancelled? }`; throw to
 *   decline (an `AbortError` means cancelled)
 * @property {(changes: { added: string[], removed: string[], changed: string[] }) => void}
 *   [onCapabilitiesChanged] called with the names when the app's capabilities have changed
 * @property {(error: AbpError) => void} [onDisconnect] called when the app is gone, or has ended
 *   the session
 * @property {boolean | Reconnecting} [reconnect] whether a new session begins automatically after
 *   one was lost (false). Pending calls settle in any case
 * @property {(error?: unknown) => void} [onReconnect] called when a new session has begun
 *   automatically; or with an error, when there are no more attempts, unless the app's iframe loads
 *   a document again
 */

/**
 * @typedef {AttemptOptions & import('../session/call.js').RequestOptions} CallOptions The options
 *   of `call` and `stream`.
 */

/**
 * @typedef {object} AttemptOptions How a call is made, beyond {@link RequestOptions}.
 * @property {number} [highWaterMark] for a stream: how many bytes may arrive ahead of its reader, a
 *   whole number from 1 (default and maximum: what `limits.streamBytes` of both sides allow). See
 *   docs/streams.md#backpressure
 * @property {AsyncIterable<any> | Generator<any> | ReadableStream} [input] a stream to the handler,
 *   which reads it as `input` of its context. It ends with the call
 * @property {boolean | Patience} [retry] whether the call is made again if its error is
 *   `retryable`, after `retryAfter` if the app sets it (false). `timeout` and `signal` apply to all
 *   attempts together. A call that may have run is made again only if its capability may run twice
 *   (`idempotent`, `readOnly`), or to the memory that knows its key (`client.memory`)
 */

/**
 * @typedef {object} OutcomeOptions How to ask for an outcome.
 * @property {boolean} [settled] whether to wait until the handler has returned, and for a session
 *   in which the app can be asked (false)
 * @property {AbortSignal} [signal] ends the waiting
 * @property {number} [timeout] the longest wait, in ms; 0 is no limit (60000 for a session, and
 *   60000 for an app that does not answer)
 */

/**
 * A worker of a page or of Node.
 * @typedef {{ postMessage(message: any, transfer?: any): void, terminate(): any }} AnyWorker
 */

/**
 * A target to connect to: a port, a worker, or another transport.
 * @typedef {MessagePort | AnyWorker | SharedWorker
 *   | import('../transports/transport.js').Transport} ConnectTarget
 */

/**
 * Opens a connection to the app. Called once for each session. The connection is closed with the
 * session, and a worker is terminated.
 * @typedef {(() => ConnectTarget | Promise<ConnectTarget>) & { iframe?: HTMLIFrameElement }} Opener
 *   `iframe` is the app's iframe, if it has one
 */

/**
 * Connects to an app that is not in an iframe, and so needs no `origin`.
 * @template [App=any] the type of the app: `typeof app`, where `app` is the result of `expose`
 * @overload
 * @param {ConnectTarget | Opener} target a port or worker, or a function that opens a transport for
 *   each session
 * @param {ConnectOptions} options at least `agent`: its name and version
 * @returns {Promise<Client<App>>} rejects with an AbpError when the app does not answer or rejects
 *   the session
 */
/**
 * Connects to an app: in an iframe, at the other end of a MessagePort, in a worker, or over a
 * transport that a function opens.
 * @template [App=any] the type of the app: `typeof app`, where `app` is the result of `expose`, or
 *   an object type with a function for each capability. Not checked at run time
 * @overload
 * @param {HTMLIFrameElement | ConnectTarget | Opener} target the app's iframe, a port or worker, or
 *   a function that opens a transport for each session
 * @param {ConnectOptions & { origin: string }} options at least `agent`, its name and version, and
 *   `origin`, the app's exact origin
 * @returns {Promise<Client<App>>} rejects with an AbpError when the app does not answer or rejects
 *   the session
 * @example
 * const client = await connect(iframe, {
 *   origin: 'https://writer.example',
 *   agent: { name: 'my-agent', version: '1.0' },
 * });
 */
/**
 * @param {HTMLIFrameElement | ConnectTarget | Opener} target
 * @param {ConnectOptions} options
 * @returns {Promise<Client>}
 */
export async function connect(target, options) {
  const { agent, origin, reconnect, limits } = options ?? {};
  const hasTarget = isTarget(target);
  if (
    !hasTarget ||
    ('contentWindow' in target && origin !== OPAQUE && !originOf(origin)) ||
    typeof agent?.name !== 'string' ||
    typeof agent.version !== 'string' ||
    misfit(options, OPTIONS) ||
    isObject(reconnect) ||
    limits
  )
    (await development()).checkConnect(target, options, OPTIONS, hasTarget);
  const client = new Client(target, options);
  await client.reconnect(options.signal);
  return client;
}

/**
 * An agent's connection to an app.
 * @template [App=any] the type of the app; see {@link connect}
 */
export class Client {
  /**
   * The connected app.
   * @type {{ id: string, name: string, version: string, description?: string } | undefined}
   */
  app = undefined;
  /** The id of the latest session. @type {string | undefined} */
  sessionId = undefined;
  /**
   * The app's memory of keys in this session: its id, which is the same wherever the app would
   * recognise a key, and for how many ms it keeps a key. undefined if the app does not report it.
   * See docs/agents.md#again-safely
   * @type {{ id: string, rememberFor: number } | undefined}
   */
  memory = undefined;
  /**
   * The endpoint of the latest session, which may have ended. Set before anybody has the client.
   * @type {Endpoint}
   */
  #endpoint = /** @type {any} */ (undefined);
  /** Stops watching the app's iframe, or this page. */
  #unwatch = () => {};
  /**
   * Ends the handshake while it is pending.
   * @type {undefined | ((problem?: AbpError | Promise<AbpError>) => void)}
   */
  #settle;
  #capabilities = new CapabilityList();
  /**
   * Listeners for progress whose token the caller chose.
   * @type {Map<unknown, (info: import('../wire/messages.js').ProgressInfo) => void>}
   */
  #onProgress = new Map();
  #options;
  #observers;
  #owner;
  /** @type {Route} */
  #route;
  /** True if it was closed since the last session began. */
  #closed = false;
  /**
   * Settles when the calls that wait for the code for streams have begun.
   * @type {Promise<unknown> | undefined}
   */
  #beginning;

  /**
   * Use {@link connect}.
   * @param {HTMLIFrameElement | ConnectTarget | Opener} target
   * @param {ConnectOptions} options
   */
  constructor(target, options) {
    const { origin, owner = secret(), timeout = 10_000, reconnect } = options;
    const iframe = 'contentWindow' in target ? target : undefined;
    this.#options = options;
    this.#owner = owner;
    this.#route = {
      target,
      iframe,
      origin: iframe && (originOf(origin) ?? OPAQUE),
      limit: milliseconds(timeout),
      patience: reconnect,
      attempt: new AbortController(),
      waiting: [],
      failures: 0,
      since: -Infinity,
    };
    this.#observers = new Observers(options, () => (this.#endpoint ? [this.#endpoint] : []));
    /** The option of this name; can be replaced at any time, as can those below. */
    this.onNotification = options.onNotification;
    /** The option of this name. */
    this.onProgress = options.onProgress;
    /** The option of this name. */
    this.onElicitation = options.onElicitation;
    /** The option of this name. */
    this.onCapabilitiesChanged = options.onCapabilitiesChanged;
    /** The option of this name. */
    this.onDisconnect = options.onDisconnect;
    /** The option of this name. */
    this.onReconnect = options.onReconnect;
  }

  /** True if there is a session. */
  get connected() {
    return this.#endpoint?.ready ?? false;
  }

  /**
   * The features that both sides agreed on.
   * @returns {Record<FeatureName, boolean>}
   */
  get features() {
    const has = (/** @type {FeatureName} */ name, /** @type {number} */ i) => [
      name,
      this.#endpoint?.has(/** @type {abp.Feature} */ (1 << i)) ?? false,
    ];
    return Object.fromEntries(FEATURES.map(has));
  }

  /** Counters of calls in flight and of dropped messages, for debugging. */
  get counters() {
    return this.#endpoint?.counters ?? {};
  }

  /**
   * Calls a listener with each event from now on, like the option `trace`, which starts with the
   * client.
   * @param {import('../types/trace.js').TraceListener} listener called with each event
   * @returns {Promise<() => void>} removes the listener
   */
  observe(listener) {
    return this.#observers.add(listener);
  }

  /**
   * Begins a new session, after the old one was lost or closed; an open one is closed first.
   * Nothing is kept from the old session. A port serves one session only.
   * @param {AbortSignal | { signal?: AbortSignal }} [signal] cancels the handshake
   * @returns {Promise<void>}
   */
  async reconnect(signal) {
    const given = /** @type {AbortSignal | undefined} */ (
      misfit({ signal }, OPTIONS) ? (await development()).signalOf(signal) : signal
    );
    given?.throwIfAborted();
    this.#end(given);
    const {
      upgrade = 'frames',
      limits,
      agent,
      requestedCapabilities,
      allowedRequests,
    } = this.#options;
    const { iframe, limit } = this.#route;
    const attempt = (this.#route.attempt = new AbortController());
    const release = whenAborted(given, () => this.close());
    // At once, so that events of a worker while the core loads are not missed, such as a missing
    // script.
    const opening = this.#open();
    // The abort reason becomes the error.
    let timer = limit && setTimeout(() => attempt.abort(unreachable('transport', limit)), limit);
    /** @type {Endpoint | undefined} */
    let endpoint;
    try {
      const opened = unless(attempt.signal, opening).finally(() => clearTimeout(timer));
      const [transport] = await Promise.all([opened, ready(), this.#observers.ready]);
      attempt.signal.throwIfAborted();
      const owner = upgrade === 'none' ? undefined : this.#owner;
      const made = new Endpoint({
        role: abp.AGENT,
        features:
          abp.NOTIFICATIONS |
          abp.PROGRESS |
          (this.onElicitation ? abp.ELICITATION : 0) |
          ((carried(transport) | abp.OUTCOMES) & UPGRADES[upgrade]),
        limits,
        transport,
        owner: this.#owns,
        capabilities: this.#capabilities,
        observers: this.#observers,
      });
      this.#endpoint = endpoint = made;
      this.#closed = false;
      this.#unwatch = watchIframe(iframe, made);
      timer = setTimeout(() => this.#unanswered(made), EARLY);
      const { core } = made;
      core.describe('agent', agent);
      core.describe('requestedCapabilities', requestedCapabilities);
      core.describe('agentCapabilities', { allowedRequests, owner });
      made.advance();
      // A pending handshake keeps the process alive.
      made.wait(1);
      const problem = await new Promise((resolve) => {
        this.#settle = resolve;
        // For the core 0 means the default.
        made.feed(core.x.connect, undefined, limit || MAX_TIMER);
      });
      made.wait(-1);
      if (problem) throw problem;
    } catch (error) {
      if (endpoint) endpoint.dispose();
      else
        opening.then(
          (transport) => transport.close(),
          () => {},
        );
      throw given?.aborted ? given.reason : await error;
    } finally {
      clearTimeout(timer);
      release();
      wake(this.#route);
    }
  }

  /**
   * The error of a handshake without an answer. While it is pending, the console shows what is
   * known about the cause.
   * @param {Endpoint} endpoint
   * @returns {Promise<AbpError>}
   */
  #unanswered(endpoint) {
    return explained(({ errorOf }) => errorOf(this.#route, endpoint), true);
  }

  /**
   * @returns {Promise<import('../transports/transport.js').Transport>} a transport to the app
   */
  async #open() {
    const { target, iframe, origin } = this.#route;
    if (iframe) {
      // A frame without scripts never answers.
      const sandbox = iframe.getAttribute?.('sandbox');
      const needed = ['allow-scripts', origin === OPAQUE ? '' : 'allow-same-origin'];
      const lacking = iframe.contentWindow
        ? needed.find((word) => !(sandbox ?? word).includes(word))
        : 'document';
      if (lacking) throw await unreachable(lacking);
      return iframeTransport(iframe, origin);
    }
    if (this.#endpoint && target instanceof MessagePort) throw await unreachable('port');
    const opens = typeof target === 'function';
    return transportTo(opens ? await target() : target, opens);
  }

  /**
   * Calls a capability.
   * @template {import('../types/app.js').NameOf<App>} Name
   * @param {Name} name of the capability
   * @param {import('../types/app.js').CallArguments<App, Name>} rest its params (default: {}), and
   *   {@link CallOptions}
   * @returns {Promise<import('../types/app.js').ResponseOf<App, Name>>} does not reject when the
   *   call fails: see `success`, `cancelled`, `error`
   * @example
   * const result = await client.call('export.pdf', { title: 'Report' }, { signal, onProgress });
   * if (result.success) show(result.data.content);
   * else say(`${result.error.message}: ${result.metadata?.outcome}`); // 'stopped', 'finished', …
   */
  call(name, ...rest) {
    if (typeof name === 'string' && rest.length < 2) return this.#call(name, rest[0] ?? {}, EMPTY);
    return this.#checked(name, rest);
  }

  /**
   * Calls a capability whose handler streams: `for await (const chunk of client.stream(name,
   * params))`. The call begins at once; a client's first one when the code for streams is loaded.
   * Leaving the loop cancels it; `response` has the outcome. If the handler does not stream, there
   * are no chunks, and the data is that of the response.
   * @template {import('../types/app.js').NameOf<App>} Name
   * @param {Name} name of the capability
   * @param {import('../types/app.js').CallArguments<App, Name>} rest its params (default: {}), and
   *   {@link CallOptions}
   * @returns {import('../session/call-stream.js').CallStream<import('../types/app.js').ChunkOf<App,
   *   Name>, import('../types/app.js').ResponseOf<App, Name>>}
   * @example
   * for await (const word of client.stream('story.tell', {}, { signal })) say(word);
   */
  stream(name, ...rest) {
    const options = /** @type {CallOptions | undefined} */ (rest[1]);
    return this.#endpoint.stream(
      ({ CallStream }) => new CallStream((stream) => this.#checked(name, rest, stream)),
      (loading) => this.#whileWanted(rest, loading),
      // Wrong options, or the end of the call or the client, give the same response as for `call`.
      (error) =>
        error instanceof AbpError && !this.#isEnded(options)
          ? unstarted(error)
          : this.#checked(name, rest),
      options?.signal,
    );
  }

  /**
   * Waits for code that a call needs, unless the call or the session ends first.
   * @template T
   * @param {any[]} rest its params and options. Params are copied, unless objects in them are moved
   * @param {Promise<T>} loading
   */
  #whileWanted(rest, loading) {
    const { signal, transfer } = rest[1] ?? EMPTY;
    if (!transfer) rest[0] = cloneOf(rest[0]);
    const wanted = unless(this.#route.attempt.signal, unless(signal, loading));
    const beginning = Promise.allSettled([this.#beginning, wanted]);
    this.#beginning = beginning;
    void beginning.then(() => this.#beginning === beginning && (this.#beginning = undefined));
    return wanted;
  }

  /** @param {CallOptions | undefined} options of a call that has not begun */
  #isEnded(options) {
    return this.#closed || options?.signal?.aborted;
  }

  /**
   * @param {string} name
   * @param {any[]} rest its params and options, and any further argument
   * @param {import('../session/call-stream.js').CallStream} [stream]
   * @returns {Promise<any>}
   */
  #checked(name, [params = {}, given, more], stream) {
    /** @type {CallOptions} */
    const options = given ?? EMPTY;
    const { retry, transfer, input, idempotencyKey: key } = options;
    const streams = stream || input;
    const wrongOption = given !== undefined && misfit(given, CALL_OPTIONS);
    // Mistakes that keep a call from being made. parts/mistakes/check-agent.js has messages in the
    // same order.
    const mistakes = [
      typeof name !== 'string',
      more !== undefined,
      input !== undefined && !isStream(input),
      streams && !isHighWaterMark(options.highWaterMark),
      wrongOption && misfit(given, CALL_OPTIONS, 'anything'),
      key !== undefined && !key,
      key && streams,
      retry && (streams || transfer),
      key && this.connected && !this.#endpoint.has(abp.OUTCOMES),
    ];
    const checked = (/** @type {Development} */ dev) =>
      dev.checkCall(mistakes, given, stream, CALL_OPTIONS);
    if (mistakes.some(Boolean)) return development().then(checked).then(unstarted);
    // The call does not wait for a warning about an unknown option.
    if (wrongOption) tell(checked);
    if (retry) return this.#callAgain(name, cloneOf(params), options);
    if (!streams) return this.#call(name, params, options);
    return this.#callStreaming(name, [params, options], stream);
  }

  /**
   * Makes a call with a stream, once the code for streams is loaded.
   * @param {string} name
   * @param {[params: unknown, options: CallOptions]} rest
   * @param {import('../session/call-stream.js').CallStream} [stream] reads the chunks of its
   *   handler
   * @returns {Promise<any>}
   */
  #callStreaming(name, rest, stream) {
    const options = rest[1];
    const { input } = options;
    const endpoint = this.#endpoint;
    const begin = (/** @type {import('../session/endpoint.js').Streams} */ { withInput }) =>
      withInput(endpoint, input, (given) =>
        this.#call(name, rest[0], { ...options, stream, input: given }),
      );
    if (endpoint.streams) return begin(endpoint.streams);
    return this.#whileWanted(rest, endpoint.loadStreams()).then(begin, (error) => {
      endUnread(input);
      return this.#isEnded(options) ? this.#call(name, rest[0], options) : unstarted(error);
    });
  }

  /**
   * Makes a call at once, and retries it as long as that may help.
   * @param {string} name
   * @param {unknown} params
   * @param {CallOptions} options
   * @returns {Promise<Response>}
   */
  async #callAgain(name, params, options) {
    // A capability that may run twice needs no key.
    if (this.#endpoint.has(abp.OUTCOMES) && !this.#capabilities.repeatable(name))
      options = { ...options, idempotencyKey: options.idempotencyKey ?? secret() };
    const { memory } = this;
    const sent = [Date.now(), performance.now()];
    const call = (/** @type {MadeOptions} */ made) => this.#call(name, params, made);
    const response = await call(options);
    if (response.success) return response;
    const about = { call, client: this, route: this.#route, memory, sent, options };
    return loadRetry().then(
      ({ callAgain }) => callAgain(response, about),
      () => response,
    );
  }

  /**
   * @param {string} name
   * @param {unknown} params
   * @param {MadeOptions} options
   * @returns {Promise<Response>}
   */
  #call(name, params, options) {
    if (this.#closed) return Promise.resolve(unstarted(CLOSED));
    const response = makeCall(this.#endpoint, name, params, options);
    const { progressToken, onProgress } = options;
    if (progressToken === undefined || !onProgress) return response;
    this.#onProgress.set(progressToken, onProgress);
    return response.finally(() => {
      if (this.#onProgress.get(progressToken) === onProgress)
        this.#onProgress.delete(progressToken);
    });
  }

  /**
   * Calls a capability; returns its data, or throws an error.
   * @template {import('../types/app.js').NameOf<App>} Name
   * @param {Name} name of the capability
   * @param {import('../types/app.js').CallArguments<App, Name>} rest its params (default: {}), and
   *   {@link CallOptions}
   * @returns {Promise<import('../types/app.js').DataOf<App, Name>>} the data. Rejects with an
   *   {@link AbpError} when the call fails. After a cancel the error's `name` is `AbortError`, and
   *   its `cause` is the signal's reason
   * @example
   * const { content } = await client.invoke('export.pdf', { title: 'Report' }, { signal });
   */
  async invoke(name, ...rest) {
    const response = await this.call(name, ...rest);
    if (response.success) return response.data;
    throw rejectionOf(response, rest[1]?.signal);
  }

  /**
   * Cancels a call of this session by its id.
   * @param {string} callId the id of the call
   * @param {string} [reason] sent to the handler
   * @returns {Promise<CancelResponse>} the app's answer
   */
  cancel(callId, reason) {
    if (this.#beginning) return this.#beginning.then(() => this.cancel(callId, reason));
    return new Promise((resolve) => {
      if (this.#closed) resolve(unanswered(callId, unstarted(CLOSED)));
      else cancelById(this.#endpoint, callId, reason, resolve);
    });
  }

  /**
   * Asks for the outcome of a call of this agent, in this session or an older one: also after the
   * connection was lost, as long as the app runs and remembers the call.
   * @param {string} callId the id of the call
   * @param {OutcomeOptions} [options] whether and how long to wait
   * @returns {Promise<import('../types/outcome.js').CallFate>} does not reject when the app cannot
   *   be asked; `unknown` if the app does not know the call or its outcome
   */
  async outcome(callId, options = {}) {
    const { askOutcome } = await loadRetry();
    return askOutcome(this, this.#route, callId, options);
  }

  /**
   * @returns {Promise<import('./capability-list.js').CapabilityInfo[]>} the app's capabilities,
   *   kept up to date by its notifications
   */
  async listCapabilities() {
    return [...this.#capabilities.values()];
  }

  /**
   * @param {string} name of the capability
   * @returns {Promise<import('./capability-list.js').CapabilityInfo | null>} the capability, or
   *   null
   */
  async describeCapability(name) {
    return this.#capabilities.get(name) ?? null;
  }

  /**
   * @param {string} name of the capability
   * @returns {Promise<{ supported: boolean, available: boolean, reason?: string,
   *   requirements?: any[], features?: Record<string, boolean>, alternatives?: string[] }>}
   */
  async supports(name) {
    const { supportOf } = await loadRetry();
    return supportOf(this.#capabilities.get(name));
  }

  /**
   * Ends the session. Pending calls settle as cancelled, and the app aborts those that still run.
   */
  close() {
    this.#closed = true;
    this.#end();
    wake(this.#route);
  }

  /**
   * Ends the latest session or handshake, and automatic reconnecting.
   * @param {AbortSignal} [signal] that of automatic reconnecting, which then continues
   */
  #end(signal) {
    const route = this.#route;
    const { restoring, attempt } = route;
    const why = new AbpError('CANCELLED', 'The client was closed');
    if (signal !== restoring?.signal) {
      route.restoring = undefined;
      restoring?.abort(why);
    }
    attempt.abort(why);
    this.#endpoint?.close();
  }

  /** Begins a new session automatically, after one was lost. */
  #restore() {
    const stop = new AbortController();
    const { signal } = stop;
    const ended = (/** @type {unknown} */ error) => {
      if (!signal.aborted) invokeReportingErrors(this.onReconnect, error);
      return !error;
    };
    const again = () => this.#restore();
    const begin = () => this.reconnect(signal);
    const done = loadRetry()
      .then(({ restore }) => restore(begin, signal, this.#route, again))
      .then(ended, ended);
    this.#route.restoring = Object.assign(stop, { done });
  }

  /**
   * The client as the owner of its endpoint. An agent answers its app, too: its questions, and its
   * requests for the input of a call.
   * @type {import('../session/endpoint.js').Owner}
   */
  #owns = {
    accepts: (call) => {
      const { name, options, endpoint } = call;
      // Without a window it would be a question, which stops the clock of its call.
      if (name === INPUT)
        return options.input && endpoint.streams?.inputOf(call)?.taken === false
          ? abp.NO_ERROR
          : abp.INVALID_PARAMS;
      const allowed = this.#options.allowedRequests?.includes(elicitationMethod(name)) ?? true;
      return allowed && this.onElicitation && endpoint.has(abp.ELICITATION)
        ? abp.NO_ERROR
        : abp.NOT_SUPPORTED;
    },
    run: async (call) => {
      let response;
      try {
        response = await (await loadPart(import('./answers.js'))).answerTo(call, this);
      } catch (error) {
        response = call.thrown(error);
      }
      // The question ends now, so the clock of its call runs again.
      call.endpoint.advance();
      if (!call.hasEnded) call.finish(response);
    },
    finished: (call, response) => {
      if (!call.resolve || !isOpen(response.metadata?.outcome)) return;
      const { callId } = call;
      /** @type {Promise<unknown> | undefined} */
      let settled;
      // The app is asked when this is read; printing or comparing a response does not read it. An
      // open outcome is asked for again.
      const get = () =>
        (settled ??= this.outcome(callId, { settled: true }).then((became) => {
          if (isOpen(became.outcome)) settled = undefined;
          return became;
        }));
      Object.defineProperty(response, 'settled', { get });
    },
    session: (state, message) => {
      const endpoint = this.#endpoint;
      const { signal } = this.#route.attempt;
      const settle = this.#settle;
      this.#settle = undefined;
      const payload = getOwn(message, 'payload');
      if (state === abp.SESSION_READY) {
        const lacking = this.#accept(endpoint, payload);
        if (lacking) this.close();
        return settle?.(lacking ? unreachable(lacking, endpoint.ports.length) : undefined);
      }
      const failed = state === abp.SESSION_FAILED;
      const refusal = failed && getOwn(payload, 'error');
      const error = AbpError.from(
        /** @type {any} */ (refusal || endpoint.refusal(abp.DISCONNECTED_ERROR).error),
      );
      if (endpoint.cause !== undefined) error.cause = endpoint.cause;
      endpoint.dispose();
      if (failed && !refusal)
        settle?.(message ? unreachable('sessionId') : this.#unanswered(endpoint));
      else if (settle) settle(error);
      else if (!signal.aborted) {
        invokeReportingErrors(() => this.onDisconnect?.(error));
        // The listener may have closed the client, or begun a session.
        if (this.#options.reconnect && !signal.aborted) this.#restore();
      }
    },
    progress: (payload, call) => {
      const info = progressInfo(payload);
      // A frame has named the call by its number.
      if (call) info.operationId ??= call.callId;
      const listener = call
        ? call.options.onProgress
        : (this.#onProgress.get(info.operationId) ?? this.onProgress);
      invokeReportingErrors(listener, info);
    },
    notification: (event, data) => {
      if (event === LIST_CHANGED)
        invokeReportingErrors(this.onCapabilitiesChanged, this.#capabilities.merge(data));
      invokeReportingErrors(this.onNotification, event, data);
    },
    ended: () => this.#unwatch(),
  };

  /**
   * @param {Endpoint} endpoint
   * @param {unknown} payload the payload of the `initialize-result`
   * @returns {string | undefined} the missing part, if any
   */
  #accept(endpoint, payload) {
    const { ports } = endpoint;
    const offered = endpoint.has(abp.PORT);
    if (offered && ports.length === 1) {
      endpoint.transport.close();
      endpoint.upgrade(portTransport(ports[0]));
    } else {
      for (const port of ports) port.close();
      if (offered) return 'ports';
      if (this.#route.origin === OPAQUE) return 'identity';
    }
    this.app = /** @type {typeof this.app} */ (getOwn(payload, 'app'));
    this.sessionId = /** @type {string} */ (getOwn(payload, 'sessionId'));
    const { id, rememberFor } = copyRecord(getOwn(payload, 'memory'));
    this.memory =
      endpoint.has(abp.OUTCOMES) && typeof id === 'string' && rememberFor > 0
        ? { id, rememberFor }
        : undefined;
    endpoint.capabilities = this.#capabilities = new CapabilityList();
    this.#capabilities.put(getOwn(payload, 'capabilities'));
    return undefined;
  }
}

/**
 * An error made by the part that reports mistakes, or the error that this part did not load.
 * @param {(dev: Development) => any} explain
 * @param {boolean} retryable whether another attempt may help
 */
const explained = (explain, retryable) =>
  development().then(explain, (error) => Object.assign(error, { retryable }));

/**
 * @param {string} lacking why a session cannot begin
 * @param {number} [amount] the number of ports that the app sent, or the ms that the transport may
 *   take
 */
const unreachable = (lacking, amount) =>
  explained(({ unreachableError }) => unreachableError(lacking, amount), lacking === 'transport');

/** The error of a request to a closed client. A retry does not help; `reconnect()` does. */
const CLOSED = {
  code: 'DISCONNECTED',
  message: 'The client was closed: reconnect() begins a new session',
};

/**
 * Notifies those who wait for a session.
 * @param {Route} route
 */
const wake = ({ waiting }) => waiting.splice(0).forEach((look) => look());
