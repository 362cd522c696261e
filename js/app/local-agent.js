/**
 * Implements `window.abp`; loaded when one of its methods is first called. It is one more agent, which exchanges the same
 * messages as a remote one.
 */
import * as abp from '../driver/abp-boundary.js';
import { copyOf } from '../common/copy.js';
import {
  AbpError,
  invokeReportingErrors,
  reasonText,
  saysTimeout,
  safely,
  toErrorObject,
} from '../common/errors.js';
import { getOwn, isObject, isRecord } from '../common/values.js';
import { CallStream } from '../agent/call-stream.js';
import { LIST_CHANGED, isResponse } from '../wire/messages.js';
import { onAbort, offAbort } from '../common/signals.js';
import { withBase64 } from '../wire/binary.js';
import { REPORTERS } from './reporters.js';
import { ENDING, requireOptions } from '../common/check-options.js';
import { neverRan } from './never-ran.js';
import { supportOf } from '../session/capability-support.js';

/** @typedef {keyof typeof REPORTERS} EventName */

/** The option with which a client says that it takes bytes as they are. */
const TAKES_BYTES = Symbol.for('abp-bridge.bytes');

const STREAMS = 'bridge.streams';

/**
 * @typedef {object} Page What it serves.
 * @property {import('./expose.js').Exposed} exposed
 * @property {import('./registry.js').Registry} registry
 * @property {(transport: import('../transports/transport.js').Transport) => import('./connection.js').Connection | undefined} open
 *   begins a connection, unless the app has been closed
 * @property {Partial<Record<EventName, (...args: unknown[]) => unknown>>} handlers
 */

export class LocalAgent {
  /** Unanswered requests, by id. @type {Map<string, (payload: unknown) => void>} */
  #pending = new Map();
  #next = 0;
  /** @type {import('./connection.js').Connection | undefined} */
  #connection;
  #page;
  /** @type {string | null} */
  #sessionId = null;
  /** Who reads the chunks of a call, by its callId. @type {Map<string, CallStream>} */
  #streams = new Map();
  /** @type {import('../transports/transport.js').Transport} */
  #transport = {
    carries: ['streams'],
    post: (message, transfer) => this.#receive(message, transfer),
    onMessage() {},
    close: () => {
      const { core } = this.#connection?.endpoint ?? {};
      const gone = core?.response(abp.RESULT, abp.DISCONNECTED, abp.FATE_UNKNOWN);
      this.#connection = undefined;
      for (const id of this.#pending.keys()) this.#answered(id, gone);
    },
  };

  /** @param {Page} page */
  constructor(page) {
    this.#page = page;
  }

  get sessionId() {
    return this.#connection?.ready ? this.#sessionId : null;
  }

  async #connected() {
    await this.#page.exposed.ready;
    this.#connection ??= this.#page.open(this.#transport);
    if (this.#connection) return this.#connection;
    throw new AbpError('DISCONNECTED', 'The app was closed', { retryable: true });
  }

  /**
   * @param {string} type
   * @param {unknown} payload
   * @param {string} [id]
   */
  async #send(type, payload, id) {
    await this.#connected();
    this.#say(type, payload, id);
  }

  /**
   * @param {string} type
   * @param {unknown} payload
   * @param {string} [id]
   */
  #say(type, payload, id) {
    this.#transport.onMessage({ type, id, timestamp: Date.now(), payload }, []);
  }

  /**
   * @param {string} type
   * @param {unknown} payload
   * @returns {Promise<any>}
   */
  #ask(type, payload, id = `page-${++this.#next}`) {
    return new Promise((resolve) => {
      this.#pending.set(id, resolve);
      this.#send(type, payload, id).catch((error) => this.#answered(id, neverRan(error)));
    });
  }

  /**
   * @param {string} id
   * @param {unknown} payload
   */
  #answered(id, payload) {
    this.#pending.get(id)?.(payload);
    this.#pending.delete(id);
  }

  /**
   * The protocol's own pages disagree on the form of the arguments.
   * @param {unknown} callId
   * @param {unknown} [reason]
   */
  async cancel(callId, reason) {
    if (typeof callId === 'object') {
      reason = getOwn(callId, 'reason');
      callId = getOwn(callId, 'callId');
    }
    // Anything but a string is not a callId, and might not be cloneable.
    const named = typeof callId === 'string' && { callId };
    const answer = await this.#ask('capabilities/cancel', { ...named, reason: reasonText(reason) });
    return { ...named, cancelled: false, ...answer };
  }

  /** @param {unknown} params */
  async initialize(params) {
    // Params that cannot be cloned are refused here, where an error can be returned.
    /** @type {unknown} */
    const hello = JSON.parse(JSON.stringify(params ?? {}));
    // `stream` has the chunks, and nobody else needs to know of them.
    if (isObject(hello)) {
      const features = /** @type {object | undefined} */ (getOwn(hello, 'features'));
      Object.assign(hello, { features: { ...features, [STREAMS]: true } });
    }
    const result = await this.#ask('initialize', hello);
    if (result.success === false) throw AbpError.from(result.error);
    this.#sessionId = result.sessionId;
    delete result.features[STREAMS];
    return result;
  }

  /**
   * @param {string} capability
   * @param {unknown} [params]
   * @param {any} [options]
   */
  async call(capability, params = {}, options = {}) {
    requireOptions('call', options, {}, true);
    const { signal: given, stream, input, ...rest } = options ?? {};
    // A signal that automation sends into the page arrives as a plain object.
    const signal = isRecord(given) && !('addEventListener' in given) ? undefined : given;
    // The app looks at the others.
    requireOptions('call', { signal, timeout: rest.timeout }, ENDING, true);
    const id = `page-${++this.#next}`;
    const callId = rest.callId ?? id;
    const record = {
      handleEvent: () => void this.cancel(callId, signal.reason),
    };
    if (signal?.aborted) {
      const { endpoint } = await this.#connected();
      return this.#stopped(endpoint, signal, abp.FATE_UNSTARTED);
    }
    if (input) {
      const error = new AbpError('NOT_SUPPORTED', 'window.abp does not support input streams');
      return neverRan(error);
    }
    onAbort(signal, record);
    // For everybody else chunks are collected.
    const streams = this.#streams.has(callId) && { stream };
    const response = await this.#ask(
      'capabilities/call',
      { capability, params, options: { ...rest, ...streams, callId } },
      id,
    );
    offAbort(signal, record);
    if (response.cancelled !== true || !signal?.aborted) {
      // `evaluate` loses bytes in what it returns, without an error.
      return options?.[TAKES_BYTES] ? response : withBase64(response);
    }
    const { endpoint } = await this.#connected();
    const repeatable = this.#page.registry.repeatable(capability);
    return this.#stopped(endpoint, signal, abp.FATE_UNKNOWN, response, repeatable);
  }

  /**
   * @param {import('../session/endpoint.js').Endpoint} endpoint
   * @param {AbortSignal} signal that has stopped a call
   * @param {abp.Fate} fate
   * @param {any} [given] its response
   * @param {boolean} [repeatable]
   */
  #stopped({ core }, { reason }, fate, given, repeatable) {
    const told = given?.metadata?.outcome;
    return core.response(
      abp.RESULT,
      abp.CANCELLED,
      /** @type {abp.Fate} */ (told ? abp.FATES.indexOf(told) : fate),
      {
        given,
        reason: reasonText(reason) ?? '',
        expired: saysTimeout(reason),
        repeatable,
      },
    );
  }

  /**
   * Calls a capability whose handler streams. The app's side counts what is under way; each chunk is granted when it is read.
   * @param {string} capability
   * @param {unknown} [params]
   * @param {any} [options]
   */
  stream(capability, params, options) {
    const { callId = `page-${++this.#next}`, signal } = options ?? {};
    const window = { chunks: abp.DEFAULT_STREAM_CHUNKS, bytes: abp.DEFAULT_STREAM_BYTES };
    return new CallStream((stream) => {
      // Another with this callId stays; the core refuses the second.
      if (!this.#streams.has(callId)) this.#streams.set(callId, stream);
      stream.attach({
        followed: signal,
        read: (bytes) => this.#say('bridge/credit', { callId, chunks: 1, bytes }),
        leave: () => void this.cancel(callId, 'The reader stopped reading the stream'),
      });
      return this.call(capability, params, { ...options, callId, stream: window }).finally(() => {
        if (this.#streams.get(callId) === stream) this.#streams.delete(callId);
      });
    });
  }

  /** @param {unknown} params */
  async shutdown(params) {
    // Without a connection there is no session to end.
    await this.#send('shutdown', params ?? {}).catch(() => {});
  }

  listCapabilities() {
    return this.#page.registry.list();
  }

  /** @param {string} name */
  describeCapability(name) {
    return this.#page.registry.describe(name);
  }

  /** @param {string} name */
  supports(name) {
    return supportOf(this.#page.registry.describe(name));
  }

  /** @param {unknown} request */
  async elicit(request) {
    const connection = this.#page.exposed.sessions.at(-1) ?? (await this.#connected());
    return connection.elicit(request);
  }

  /** @param {any} message @param {Transferable[]} [transfer] */
  #receive(message, transfer) {
    const { type, id, payload } = message;
    switch (type) {
      case 'notification':
        if (payload.event === LIST_CHANGED) {
          const { added = [], removed = [], changed = [] } = payload.data ?? {};
          this.#tell('CapabilitiesChanged', { added, removed, changed });
        }
        return this.#tell('Notification', payload);
      case 'progress':
        return this.#tell('Progress', payload);
      case 'elicitation/request':
        return void this.#question(id, payload);
      case 'bridge/chunk': {
        const stream = this.#streams.get(payload.callId);
        // It waits until it is read.
        return stream?.push(copyOf(payload.chunk, transfer), payload.size);
      }
      case 'bridge/credit':
      case 'bridge/cancel':
        return;
    }
    // Its caller reads it later. What cannot be copied stays in this page, where it can be used.
    this.#answered(
      id,
      safely(() => copyOf(payload, transfer), payload),
    );
  }

  /**
   * Calls one listener: the page's own handler or, if there is none, a function that the client exposed.
   * @param {EventName} name
   * @param {...unknown} args
   */
  #emit(name, ...args) {
    const handler = this.#page.handlers[name];
    if (handler) return handler(...args);
    const callback = REPORTERS[name]
      .map((key) => /** @type {Record<string, unknown>} */ (globalThis)[key])
      .find(Boolean);
    if (typeof callback !== 'function') return undefined;
    // Such functions lose bytes, too.
    const text = withBase64(args);
    return 'then' in text ? text.then((args) => callback(...args)) : callback(...args);
  }

  /**
   * Calls a listener and reports what it throws: the app, which only reports, cannot handle it.
   * @param {EventName} name
   * @param {...unknown} args
   */
  #tell(name, ...args) {
    invokeReportingErrors(() => this.#emit(name, ...args));
  }

  /**
   * @param {string} id
   * @param {unknown} payload
   */
  async #question(id, payload) {
    let response;
    try {
      response = await this.#emit('Elicitation', payload);
      if (response === undefined)
        throw new AbpError('NOT_SUPPORTED', 'Elicitation is not supported here');
      if (!isResponse(response)) response = { success: true, data: response };
    } catch (error) {
      response = { success: false, error: toErrorObject(error) };
    }
    // Whoever asked may be gone by now: that begins no other session.
    this.#say('elicitation/response', response, id);
  }
}
