/**
 * The agent that implements `window.abp`, and its transport, which has both ends in this page: see
 * window-abp.js.
 */
import * as abp from '../driver/abp-boundary.js';
import { unstarted } from '../wire/messages.js';
import { Client } from '../agent/client.js';
import { wholeOf } from './grace.js';
import { ENDING, requireForm, requireOptions } from '../common/check-options.js';
import { copyOf, plainText } from '../common/copy.js';
import { AbpError, safely, toErrorObject } from '../common/errors.js';
import { getOwn, isRecord } from '../common/values.js';
import { supportOf } from '../session/capability-support.js';
import { withBase64 } from '../binary/binary.js';
import { REPORTERS } from './reporters.js';

/** @import { Transport } from '../transports/transport.js' */
/** @typedef {keyof typeof REPORTERS} EventName */
/**
 * @typedef {Partial<Record<EventName, (...args: unknown[]) => unknown>>} Handlers the page's own
 *   listeners
 */

/** The option with which a client declares that it can take bytes. */
const TAKES_BYTES = Symbol.for('abp-bridge.bytes');

/** Features that the client needs. They are hidden from the user of `window.abp`. */
const OWN_FEATURES = ['bridge.streams', 'bridge.outcomes'];

const noSession = () =>
  new AbpError('NOT_INITIALIZED', 'There is no session: begin one, or wait', { retryable: true });

/**
 * The result of a call in a form that its caller can take: `evaluate` silently loses bytes in its
 * result.
 * @param {any} value
 * @param {any[]} rest its options
 */
const given = (value, [options]) => (options?.[TAKES_BYTES] ? value : withBase64(value));

/**
 * The agent, and the app's end of the transport. It outlives the sessions.
 * @implements {Transport}
 */
export class LocalAgent {
  carries = /** @type {const} */ (['streams']);
  isOpen = false;
  /** The agent's end of the current session. @type {AgentEnd | undefined} */
  agent;
  /** The agent's end of a session that is beginning. @type {AgentEnd | undefined} */
  newcomer;
  /** @type {Transport['onMessage']} */
  onMessage = () => {};
  #exposed;
  #handlers;
  /** The client of the latest session. @type {Client | undefined} */
  #client;
  /**
   * Settles when all requested changes of the session are done.
   * @type {Promise<unknown>}
   */
  #changed = Promise.resolve();

  /**
   * @param {import('../app/expose.js').Exposed} exposed
   * @param {Handlers} handlers
   */
  constructor(exposed, handlers) {
    this.#exposed = exposed;
    this.#handlers = handlers;
  }

  get sessionId() {
    return (this.#client?.connected && this.#client.sessionId) || null;
  }

  /** Connects to the app, unless connected. */
  async #connect() {
    await this.#exposed.ready;
    if (!this.isOpen) {
      this.isOpen = true;
      this.#exposed.accept(this);
    }
    if (!this.isOpen) throw new AbpError('DISCONNECTED', 'The app was closed', { retryable: true });
  }

  /**
   * Passes a message from the app to the agent.
   * @param {any} message
   * @param {Transferable[]} [transfer]
   */
  post({ payload, ...message }, transfer) {
    const { type } = message;
    if (type === abp.TYPE_INITIALIZE_RESULT) return this.newcomer?.answered(message, payload);
    // A chunk is read later, so it is copied. A result that cannot be copied stays usable in this
    // page.
    const copy = () => copyOf(payload, transfer);
    if (type === abp.TYPE_CHUNK) payload = copy();
    else if (type === abp.TYPE_CALL_RESULT) payload = safely(copy, payload);
    return this.agent?.onMessage({ ...message, payload }, []);
  }

  /** Called when the app has closed the transport. */
  close() {
    this.isOpen = false;
    this.agent?.onClose();
    this.newcomer?.onClose();
  }

  /**
   * Calls a function with the client of the session; throws if there is no session.
   * @template T
   * @param {(client: Client) => T} act
   * @param {{ input?: unknown }} [made] options of a call
   */
  async #inSession(act, { input } = {}) {
    if (input) throw new AbpError('NOT_SUPPORTED', 'window.abp does not support input streams');
    await this.#changed;
    if (this.#client?.connected) return act(this.#client);
    await this.#connect();
    throw noSession();
  }

  /**
   * Begins or ends a session. Later requests wait for that.
   * @template T
   * @param {() => Promise<T>} change
   */
  #change(change) {
    const changing = this.#changed.then(change);
    this.#changed = changing.catch(() => {});
    return changing;
  }

  /**
   * Cancels a call. The protocol's own pages disagree on the form of the arguments, so it takes
   * both.
   * @param {unknown} callId
   * @param {any} [reason]
   */
  async cancel(callId, reason) {
    if (typeof callId === 'object') {
      reason = getOwn(callId, 'reason');
      callId = getOwn(callId, 'callId');
    }
    // Anything but a string is not a callId, and might not be cloneable.
    const id = typeof callId === 'string' ? callId : '';
    try {
      return await this.#inSession((client) => client.cancel(id, reason));
    } catch (thrown) {
      const error = toErrorObject(thrown);
      return { callId: id, cancelled: false, reason: error.message, error };
    }
  }

  /** @param {unknown} params */
  async initialize(params) {
    // Params that cannot be cloned are rejected here, where the caller gets the error.
    const hello = JSON.parse(plainText(params ?? {}) ?? '{}') ?? {};
    return this.#change(async () => {
      await this.#connect();
      const end = new AgentEnd(this, hello);
      const { signal } = end.refusal;
      const client = new Client(() => end, {
        agent: hello.agent,
        limits: { grace: wholeOf(this.#exposed.limits) },
        onNotification: (event, data) => this.#emit('Notification', { event, data }),
        onProgress: (info) => this.#emit('Progress', info),
        onCapabilitiesChanged: (changes) => this.#emit('CapabilitiesChanged', changes),
        onElicitation: (request) => this.#answer(request),
      });
      await client.reconnect(signal);
      this.#client = client;
      return end.answer;
    });
  }

  /** @param {unknown} params */
  shutdown(params) {
    return this.#change(async () => {
      await this.agent?.leave(params);
      this.#client?.close();
    });
  }

  /**
   * @param {string} capability
   * @param {unknown} [params]
   * @param {any[]} rest its options
   */
  async call(capability, params, ...rest) {
    const made = this.#optionsOf(rest);
    let response;
    try {
      response = await this.#inSession((client) => client.call(capability, params, made), made);
    } catch (error) {
      return unstarted(error);
    }
    return given(response, rest);
  }

  /**
   * Calls a capability whose handler streams.
   * @param {string} capability
   * @param {unknown} [params]
   * @param {any[]} rest its options
   */
  async *stream(capability, params, ...rest) {
    const made = this.#optionsOf(rest);
    const stream = await this.#inSession((client) => client.stream(capability, params, made), made);
    return given(yield* stream, rest);
  }

  /**
   * Reads the options of a call that are supported here.
   * @param {any[]} rest the arguments after its params
   */
  #optionsOf(rest) {
    requireForm('call', 'call(name, params, { signal })', rest);
    const [options] = rest;
    const { timeout, progressToken, idempotencyKey, input, signal: given } = options ?? {};
    const callId = options?.callId ?? undefined;
    // A signal that automation sends into the page arrives as a plain object.
    const signal = isRecord(given) && !('addEventListener' in given) ? undefined : given;
    // The client checks the other options.
    requireOptions('call', { signal, timeout }, ENDING, true);
    const reports = (/** @type {unknown} */ info) => this.#emit('Progress', info);
    const onProgress = progressToken === undefined ? undefined : reports;
    return { callId, timeout, progressToken, idempotencyKey, input, signal, onProgress };
  }

  listCapabilities() {
    return this.#exposed.capabilities;
  }

  /** @param {string} name */
  describeCapability(name) {
    return this.listCapabilities().find((capability) => capability.name === name) ?? null;
  }

  /** @param {string} name */
  supports(name) {
    return supportOf(this.describeCapability(name));
  }

  /** @param {unknown} request */
  async elicit(request) {
    const session = this.#exposed.sessions.at(-1);
    if (session) return session.elicit(request);
    await this.#connect();
    return { success: false, error: toErrorObject(noSession()) };
  }

  /**
   * Calls one listener: the page's own handler or, without one, a function that the client exposed.
   * The client reports errors of the listener.
   * @param {EventName} name
   * @param {...unknown} args
   */
  #emit(name, ...args) {
    const handler = this.#handlers[name];
    if (handler) return handler(...args);
    const callback = REPORTERS[name]
      .map((key) => /** @type {Record<string, unknown>} */ (globalThis)[key])
      .find(Boolean);
    if (typeof callback !== 'function') return undefined;
    // Such functions also lose bytes.
    const text = withBase64(args);
    return 'then' in text ? text.then((args) => callback(...args)) : callback(...args);
  }

  /** @param {unknown} request a question of the app */
  async #answer(request) {
    try {
      const answer = await this.#emit('Elicitation', request);
      if (answer !== undefined) return answer;
      throw new AbpError('NOT_SUPPORTED', 'Elicitation is not supported here');
    } catch (error) {
      return { success: false, error: toErrorObject(error) };
    }
  }
}

/**
 * The agent's end of the transport, for one session.
 * @implements {Transport}
 */
class AgentEnd {
  carries = /** @type {const} */ (['streams']);
  /** The app's answer when the session began. @type {any} */
  answer;
  /**
   * Aborts with the app's error if the app rejects the session. The client alone would try again
   * until the earlier session has ended.
   */
  refusal = new AbortController();
  #app;
  #hello;
  /** @type {Transport['onMessage']} */
  onMessage = () => {};
  onClose = () => {};

  /**
   * @param {LocalAgent} app
   * @param {any} hello the handshake of the user of `window.abp`, which replaces that of the client
   */
  constructor(app, hello) {
    this.#app = app;
    this.#hello = hello;
  }

  /** @param {any} message */
  post(message) {
    const app = this.#app;
    if (!app.isOpen) return queueMicrotask(() => this.onClose());
    if (message.type === abp.TYPE_INITIALIZE) {
      // The client repeats it if the answer takes long. A second `initialize` would end the session
      // that the first began.
      if (app.agent === this) return;
      app.newcomer = this;
      const own = Object.fromEntries(OWN_FEATURES.map((name) => [name, true]));
      const features = { ...this.#hello.features, ...own };
      message = { ...message, payload: { ...this.#hello, features } };
    } else if (app.agent !== this) return;
    void this.#hand(message);
  }

  /** @param {object} message */
  async #hand(message) {
    // Two microtasks later, a handler that has returned has finished. The handler itself may have
    // fired the signal.
    await Promise.resolve().then(() => {});
    this.#app.onMessage(message, []);
  }

  /**
   * @param {object} message
   * @param {any} payload
   */
  answered(message, payload) {
    const app = this.#app;
    app.newcomer = undefined;
    if (payload.sessionId) {
      this.answer = structuredClone(payload);
      for (const name of OWN_FEATURES) delete this.answer.features[name];
      delete this.answer.memory;
      // The app has ended the session before this one, if there was one.
      app.agent?.onClose();
      app.agent = this;
    } else this.refusal.abort(AbpError.from(payload.error));
    this.onMessage({ ...message, payload }, []);
  }

  /**
   * Ends the session. The app reports the outcomes of its calls before the client ends them.
   * @param {unknown} payload
   */
  async leave(payload = {}) {
    await this.#hand({ type: abp.TYPE_SHUTDOWN, timestamp: Date.now(), payload });
    this.close();
  }

  close() {
    if (this.#app.agent === this) this.#app.agent = undefined;
  }
}
