/**
 * Implements `window.abp`; loaded when one of its methods is first called. It is one more agent: a client whose transport has both
 * its ends in this page.
 */
import { unstarted } from '../../../js/wire/messages.js';
import { Client } from '../../../js/agent/client.js';
import { wholeOf } from './grace.js';

import { ENDING, requireOptions } from '../../../js/common/check-options.js';
import { AbpError, toErrorObject } from '../../../js/common/errors.js';
import { getOwn, isRecord } from '../../../js/common/values.js';
import { supportOf } from '../../../js/session/capability-support.js';
import { withBase64 } from '../../binary/src/binary.js';
import { AgentEnd, AppEnd } from './ends.js';
import { REPORTERS } from './reporters.js';

/** @import { Exposed } from '../../../js/app/expose.js' */
/** @typedef {keyof typeof REPORTERS} EventName */
/** @typedef {Partial<Record<EventName, (...args: unknown[]) => unknown>>} Handlers the page's own listeners */

/** The option with which a client says that it takes bytes as they are. */
const TAKES_BYTES = Symbol.for('abp-bridge.bytes');

export class LocalAgent {
  #exposed;
  #handlers;
  #appEnd = new AppEnd();
  /** Of the latest session. @type {Client | undefined} */
  #client;
  /** Settles when the sessions have begun and ended that were asked for until now. @type {Promise<unknown>} */
  #changed = Promise.resolve();

  /**
   * @param {Exposed} exposed
   * @param {Handlers} handlers
   */
  constructor(exposed, handlers) {
    this.#exposed = exposed;
    this.#handlers = handlers;
  }

  get sessionId() {
    return (this.#client?.connected && this.#client.sessionId) || null;
  }

  /** Connects to the app, unless that is done. */
  async #connect() {
    await this.#exposed.ready;
    const end = this.#appEnd;
    if (!end.isOpen) {
      end.isOpen = true;
      this.#exposed.accept(end);
    }
    if (!end.isOpen) throw new AbpError('DISCONNECTED', 'The app was closed', { retryable: true });
  }

  /**
   * Does something in the session; throws if there is none.
   * @template T
   * @param {(client: Client) => T} act
   * @param {unknown} [input] for a handler
   */
  async #inSession(act, input) {
    if (input) throw new AbpError('NOT_SUPPORTED', 'window.abp does not support input streams');
    await this.#changed;
    if (this.#client?.connected) return act(this.#client);
    await this.#connect();
    throw noSession();
  }

  /**
   * Begins or ends a session. What is asked for later waits for it.
   * @template T
   * @param {() => Promise<T>} change
   */
  #change(change) {
    const changing = this.#changed.then(change);
    this.#changed = changing.catch(() => {});
    return changing;
  }

  /**
   * The protocol's own pages disagree on the form of the arguments.
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
    // Params that cannot be cloned are refused here, where an error can be returned.
    const hello = JSON.parse(JSON.stringify(params ?? {}) ?? '{}') ?? {};
    return this.#change(async () => {
      await this.#connect();
      const end = new AgentEnd(this.#appEnd, hello);
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
      await this.#appEnd.agent?.leave(params);
      this.#client?.close();
    });
  }

  /**
   * @param {string} capability
   * @param {unknown} [params]
   * @param {any} [options]
   */
  async call(capability, params, options) {
    const { input, ...made } = this.#optionsOf(options);
    let response;
    try {
      response = await this.#inSession((client) => client.call(capability, params, made), input);
    } catch (error) {
      return unstarted(error);
    }
    return this.#given(response, options);
  }

  /**
   * Calls a capability whose handler streams.
   * @param {string} capability
   * @param {unknown} [params]
   * @param {any} [options]
   */
  async *stream(capability, params, options) {
    const { input, ...made } = this.#optionsOf(options);
    const stream = await this.#inSession(
      (client) => client.stream(capability, params, made),
      input,
    );
    return this.#given(yield* stream, options);
  }

  /**
   * The options of a call that mean something here.
   * @param {any} options
   */
  #optionsOf(options) {
    requireOptions('call', options, {}, true);
    const { timeout, progressToken, idempotencyKey, input, signal: given } = options ?? {};
    const callId = options?.callId ?? undefined;
    // A signal that automation sends into the page arrives as a plain object.
    const signal = isRecord(given) && !('addEventListener' in given) ? undefined : given;
    // The client looks at the others.
    requireOptions('call', { signal, timeout }, ENDING, true);
    const reports = (/** @type {unknown} */ info) => this.#emit('Progress', info);
    const onProgress = progressToken === undefined ? undefined : reports;
    return { callId, timeout, progressToken, idempotencyKey, input, signal, onProgress };
  }

  /**
   * What a call has given, as its caller takes it: `evaluate` loses bytes in what it returns, without an error.
   * @template T
   * @param {T} value
   * @param {any} options
   */
  #given(value, options) {
    return options?.[TAKES_BYTES] ? value : withBase64(value);
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
   * Calls one listener: the page's own handler or, if there is none, a function that the client exposed. What it throws is reported
   * by the client.
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
    // Such functions lose bytes, too.
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

const noSession = () =>
  new AbpError('NOT_INITIALIZED', 'There is no session: begin one, or wait', { retryable: true });
