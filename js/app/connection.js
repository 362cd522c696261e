import * as abp from '../core/abp-boundary.js';
import { Endpoint, carried } from '../session/endpoint.js';
import { invokeReportingErrors, requireTimeout } from '../common/errors.js';
import { firstOf, getOwn, milliseconds } from '../common/values.js';
import { INPUT, checkedProgress, elicitationMethod } from '../wire/messages.js';
import { portTransport } from '../transports/port.js';

/** Elicitation methods that an agent may list; further ones are ignored. */
const MAX_REQUESTS = 256;

/**
 * @typedef {object} Session The agent, by its own account, and what it asked for. `onSession` and `onSessionEnd` get the
 *   same object.
 * @property {{ name?: string, version?: string }} agent
 * @property {string} [origin] of its page, if the browser vouches for it; otherwise it is absent
 * @property {string[]} [requestedCapabilities]
 * @property {string[]} [allowedRequests] the elicitation methods that it takes; all, if it lists none
 * @property {{ notifications: boolean, progress: boolean, elicitation: boolean }} features what it accepts from the app
 */

/** One agent's connection to an app. */
export class Connection {
  /** @type {Session | undefined} */
  #session;
  /** The id of the `initialize` by which its session began. @type {unknown} */
  hello;
  /** Whether the console was told that another agent wants a session. */
  toldBusy = false;
  /** The session for which the port was offered. @type {unknown} */
  #offered;
  /** @type {import('../transports/transport.js').Transport | undefined} */
  #port;
  #callbacks;

  /**
   * @param {object} options
   * @param {{ id: string, name: string, version: string, description?: string }} options.app
   * @param {import('./registry.js').Capabilities} options.registry
   * @param {import('../transports/transport.js').Transport} options.transport
   * @param {import('../core/abp-core.js').Limits} [options.limits]
   * @param {boolean} [options.restart]
   * @param {boolean} [options.plain] nothing beyond the published protocol
   * @param {(session: Session) => void} [options.onSession]
   * @param {(session: Session) => void} [options.onSessionEnd]
   * @param {() => void} options.onEnd
   * @param {import('../session/observers.js').Observers} [options.observers]
   */
  constructor(options) {
    const { app, registry, transport, limits, restart, plain, onEnd, observers } = options;
    this.#callbacks = options;
    this.transport = transport;
    this.registry = registry;
    this.endpoint = new Endpoint({
      role: abp.APP,
      features:
        abp.NOTIFICATIONS |
        abp.PROGRESS |
        abp.ELICITATION |
        abp.DYNAMIC_CAPABILITIES |
        (plain ? 0 : carried(transport)),
      limits,
      restart,
      transport,
      callee: registry,
      observers,
      side: {
        elicit: (request, parent) => this.elicit(request, parent),
        input: (callId, parent) => this.#input(callId, parent),
        onHandshake: (message, via) => this.#answer(message, via),
        onSession: (state, message) => {
          if (state === abp.SESSION_READY) this.#begin(message);
          else if (state === abp.SESSION_CLOSED || state === abp.SESSION_LOST) this.#end();
        },
        onEnd: () => {
          this.#end();
          onEnd();
        },
      },
    });
    this.app = app;
  }

  get ready() {
    return this.endpoint.ready;
  }

  /** Whether a port was offered: from then on only that port counts. */
  get onPort() {
    return this.#port !== undefined;
  }

  /** Describes the app for the next handshake: at first, and after its capabilities have changed. */
  refresh() {
    this.endpoint.core.describe('app', this.registry.app ?? this.app);
    this.endpoint.core.describe('capabilities', this.registry.list());
  }

  /**
   * Answers the handshake, and offers a port with it. This document made the port, so whoever holds its other end speaks
   * to this document and no other.
   * @param {any} message
   * @param {import('../transports/transport.js').Transport} via
   */
  #answer(message, via) {
    const { sessionId } = message.payload;
    if (!this.endpoint.has(abp.PORT) || this.#offered === sessionId) {
      return this.endpoint.post(message, undefined, undefined, via);
    }
    this.#leavePort();
    const { port1, port2 } = new MessageChannel();
    this.#offered = sessionId;
    this.#port = portTransport(port1);
    this.endpoint.upgrade(this.#port);
    return this.endpoint.post(message, [port2], undefined, via);
  }

  #leavePort() {
    if (!this.#port) return;
    this.#port.close();
    this.#port = undefined;
    this.#offered = undefined;
    this.endpoint.upgrade(this.transport);
  }

  /** @param {unknown} message its `initialize` */
  #begin(message) {
    this.#tellEnd();
    this.hello = getOwn(message, 'id');
    this.toldBusy = false;
    this.#session = {
      ...sessionOf(getOwn(message, 'payload')),
      origin: this.transport.origin,
      features: {
        notifications: this.endpoint.has(abp.NOTIFICATIONS),
        progress: this.endpoint.has(abp.PROGRESS),
        elicitation: this.endpoint.has(abp.ELICITATION),
      },
    };
    invokeReportingErrors(this.#callbacks.onSession, this.#session);
  }

  #end() {
    this.#tellEnd();
    const port = this.#port;
    // What is still to be said of it goes there, too.
    queueMicrotask(() => port && port === this.#port && this.#leavePort());
  }

  #tellEnd() {
    const session = this.#session;
    this.#session = undefined;
    if (session) invokeReportingErrors(this.#callbacks.onSessionEnd, session);
  }

  /**
   * Ends its session.
   * @param {string} reason given to the calls that end with it
   */
  close(reason) {
    this.endpoint.closing = reason;
    this.endpoint.close();
  }

  /**
   * @param {string} event
   * @param {unknown} [data]
   */
  notify(event, data) {
    this.#tell(abp.NOTIFICATIONS, 'notification', { event, data });
  }

  /** @param {unknown} info */
  notifyProgress(info) {
    this.#tell(abp.PROGRESS, 'progress', checkedProgress(info));
  }

  /**
   * Sends an unsolicited message, if the agent accepts it.
   * @param {number} feature
   * @param {string} type
   * @param {object} payload
   */
  #tell(feature, type, payload) {
    if (this.endpoint.has(feature)) this.endpoint.send({ type, payload });
  }

  /**
   * What the agent streams to a handler.
   * @param {string} callId
   * @param {number} parent
   * @returns {AsyncGenerator<any, any, void>}
   */
  async *#input(callId, parent) {
    // Loaded on demand: few apps read any.
    const { CallStream } = await import('../agent/call-stream.js');
    return yield* new CallStream((stream) =>
      this.endpoint.request(INPUT, { callId }, {}, parent, stream),
    );
  }

  /**
   * @param {any} request
   * @param {number} [parent]
   */
  async elicit(request, parent) {
    const method = getOwn(request, 'method');
    if (typeof method !== 'string') throw new TypeError('elicit needs { method, params }');
    requireTimeout('elicit', request.timeout);
    if (this.ready && !this.endpoint.has(abp.ELICITATION)) {
      const why = 'The agent takes no questions: ask the user in the app itself';
      return this.endpoint.failure(abp.NOT_SUPPORTED, why);
    }
    const { allowedRequests: allowed } = this.#session ?? {};
    if (allowed && ![method, elicitationMethod(method)].some((name) => allowed.includes(name))) {
      return this.endpoint.failure(abp.NOT_SUPPORTED, `The agent does not take ${method}`);
    }
    const timeout = milliseconds(request.timeout);
    return this.endpoint.request(method, request.params, { timeout }, parent);
  }
}

/** @param {unknown} value */
const textOf = (value) => (typeof value === 'string' ? value : undefined);

/** @param {unknown} list */
const textsOf = (list) =>
  Array.isArray(list)
    ? firstOf(list, MAX_REQUESTS).filter((name) => typeof name === 'string')
    : undefined;

/**
 * What an agent says of itself.
 * @param {unknown} payload of its `initialize`
 */
export function sessionOf(payload) {
  const agent = getOwn(payload, 'agent');
  return {
    agent: { name: textOf(getOwn(agent, 'name')), version: textOf(getOwn(agent, 'version')) },
    requestedCapabilities: textsOf(getOwn(payload, 'requestedCapabilities')),
    allowedRequests: textsOf(getOwn(getOwn(payload, 'agentCapabilities'), 'allowedRequests')),
  };
}
