/**
 * What answers `window.abp`, loaded when one of its methods is first called. It is one more agent, and speaks
 * the messages that a remote one speaks.
 */
import * as abp from '../dist/abp-constants.js';
import { AbpError, callOut, reasonText, toErrorObject } from './errors.js';
import { CALL, ELICITATION, own } from './messages.js';
import { listen, unlisten } from './signals.js';
import { supportOf } from './support.js';

/** The callbacks that clients expose to the page, by the protocol's names of their handlers. */
const CALLBACKS = {
  Notification: ['__abp_notification', '__abpOnNotification'],
  Progress: ['__abp_progress', '__abpOnProgress'],
  Elicitation: ['__abp_elicitation', '__abpOnElicitation'],
  CapabilitiesChanged: ['__abp_capabilities_changed', '__abpOnCapabilitiesChanged'],
};
/** @typedef {keyof typeof CALLBACKS} EventName */

/** @param {any} error */
const failed = (error) => ({ success: false, error: toErrorObject(error) });

/**
 * @typedef {object} Page What it serves.
 * @property {import('./expose.js').Exposed} exposed
 * @property {import('./app.js').Registry} registry
 * @property {(transport: import('./endpoint.js').Transport) => import('./app.js').Connection | undefined} open
 *   begins a connection, unless the app has been closed
 * @property {Partial<Record<EventName, (...args: any[]) => any>>} handlers
 */

export class LocalAgent {
  /** Requests without an answer, by id. @type {Map<string, (payload: any) => void>} */
  #pending = new Map();
  #next = 0;
  /** @type {import('./app.js').Connection | undefined} */
  #connection;
  #page;
  /** @type {string | null} */
  #sessionId = null;
  /** @type {import('./endpoint.js').Transport} */
  #transport = {
    post: (message) => this.#receive(message),
    onMessage() {},
    close: () => {
      const gone = this.#connection?.endpoint.failure(abp.DISCONNECTED_ERROR);
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
    throw new AbpError('DISCONNECTED', 'This app has been closed', { retryable: true });
  }

  /**
   * @param {string} type
   * @param {any} payload
   * @param {string} [id]
   */
  async #send(type, payload, id) {
    await this.#connected();
    this.#transport.onMessage({ type, id, timestamp: Date.now(), payload }, []);
  }

  /**
   * @param {string} type
   * @param {any} payload
   * @returns {Promise<any>}
   */
  #ask(type, payload, id = `page-${++this.#next}`) {
    return new Promise((resolve) => {
      this.#pending.set(id, resolve);
      this.#send(type, payload, id).catch((error) => this.#answered(id, failed(error)));
    });
  }

  /**
   * @param {string} id
   * @param {any} payload
   */
  #answered(id, payload) {
    this.#pending.get(id)?.(payload);
    this.#pending.delete(id);
  }

  /**
   * The protocol's own pages disagree on the form of the arguments.
   * @param {any} callId
   * @param {unknown} [reason]
   */
  async cancel(callId, reason) {
    if (typeof callId === 'object') {
      reason = own(callId, 'reason');
      callId = own(callId, 'callId');
    }
    // What is no text is no callId, and may be what no message can carry.
    const named = typeof callId === 'string' && { callId };
    const said = await this.#ask('capabilities/cancel', { ...named, reason: reasonText(reason) });
    return { ...named, cancelled: false, ...said };
  }

  /** @param {any} params */
  async initialize(params) {
    // What no message can carry is refused here, where it can be said.
    const result = await this.#ask('initialize', JSON.parse(JSON.stringify(params ?? {})));
    if (result.success === false) throw AbpError.from(result.error);
    this.#sessionId = result.sessionId;
    return result;
  }

  /**
   * @param {string} capability
   * @param {any} [params]
   * @param {any} [options]
   */
  async call(capability, params = {}, options = {}) {
    const { signal: given, ...rest } = options ?? {};
    // Automation makes a plain object of a signal that it sends into the page.
    const signal = typeof given?.addEventListener === 'function' ? given : undefined;
    const id = `page-${++this.#next}`;
    const callId = rest.callId ?? id;
    const record = {
      handleEvent: () => void this.cancel(callId, signal.reason),
    };
    if (signal?.aborted) {
      const { endpoint } = await this.#connected();
      return endpoint.failure(abp.CANCELLED_ERROR, reasonText(signal.reason));
    }
    listen(signal, record);
    const response = await this.#ask(
      CALL.request,
      { capability, params, options: { ...rest, callId } },
      id,
    );
    unlisten(signal, record);
    return response;
  }

  /** @param {any} params */
  async shutdown(params) {
    // Where no connection can be had, there is none to end.
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

  /** @param {any} request */
  async elicit(request) {
    const connection = this.#page.exposed.sessions.at(-1) ?? (await this.#connected());
    return connection.elicit(request);
  }

  /** @param {any} message */
  #receive(message) {
    const { type, id, payload } = message;
    switch (type) {
      case 'notification':
        if (payload.event === 'notifications/capabilities/list_changed') {
          const { added = [], removed = [], changed = [] } = payload.data ?? {};
          this.#tell('CapabilitiesChanged', { added, removed, changed });
        }
        return this.#tell('Notification', payload.event, payload.data);
      case 'progress':
        return this.#tell('Progress', payload);
      case 'elicitation/request':
        return void this.#question(id, payload);
    }
    this.#answered(id, payload);
  }

  /**
   * Tells whoever listens, once: the page's own handler, else a callback of the client.
   * @param {EventName} name
   * @param {...any} args
   */
  #emit(name, ...args) {
    const handler = this.#page.handlers[name];
    if (handler) return handler(...args);
    const callback = CALLBACKS[name]
      .map((key) => /** @type {any} */ (globalThis)[key])
      .find(Boolean);
    if (typeof callback !== 'function') return undefined;
    const [event, data] = args;
    const result = callback(name === 'Notification' ? { event, data } : event);
    // What a client exposed answers with a promise that rejects when the client fails.
    if (name !== 'Elicitation') result?.catch?.(() => {});
    return result;
  }

  /**
   * What a listener throws is not the app's to deal with, which only reports.
   * @param {EventName} name
   * @param {...any} args
   */
  #tell(name, ...args) {
    callOut(() => this.#emit(name, ...args));
  }

  /**
   * @param {string} id
   * @param {any} payload
   */
  async #question(id, payload) {
    let response;
    try {
      response = await this.#emit('Elicitation', payload);
      if (response === undefined)
        throw new AbpError('NOT_SUPPORTED', 'Nobody here takes questions');
      response = ELICITATION.succeed(response);
    } catch (error) {
      response = failed(error);
    }
    await this.#send('elicitation/response', response, id);
  }
}
