import * as abp from '../driver/abp-boundary.js';
import { Endpoint, carried } from '../session/endpoint.js';
import { Outflow } from '../session/outflow.js';
import { invokeReportingErrors } from '../common/errors.js';
import { sizeOf } from '../common/value-size.js';
import { firstOf, getOwn, textOf } from '../common/values.js';
import { checkedProgress } from '../wire/messages.js';
import { contextOf } from './context.js';
import { portTransport } from '../transports/port.js';
import { InputStream, ask } from './questions.js';

/** @import { Call } from '../session/call.js' */

/** Characters of what an agent is known by; who says more is not known again. */
const MAX_OWNER = 256;
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
  /** What only its agent knows, so that it is known again. @type {string | undefined} */
  owner;
  /** The session for which the port was offered. @type {unknown} */
  #offered;
  #options;

  /**
   * @param {object} options
   * @param {{ id: string, name: string, version: string, description?: string }} options.app
   * @param {import('./registry.js').Capabilities} options.registry
   * @param {import('./expose.js').AppTransport} options.transport
   * @param {import('../driver/abp-core.js').Limits} [options.limits]
   * @param {boolean} [options.restart]
   * @param {'frames' | 'none'} [options.upgrade] `'none'` for nothing beyond the published protocol
   * @param {(session: Session) => void} [options.onSession]
   * @param {(session: Session) => void} [options.onSessionEnd]
   * @param {(ended: Connection) => void} options.onEnd
   * @param {() => Promise<import('../types/parts.js').Memory>} [options.memory] what is remembered for agents that come back
   * @param {{ id: string, rememberFor: number }} [options.named] what the agent is told of the memory of keys
   * @param {import('../session/observers.js').Observers} [options.observers]
   */
  constructor(options) {
    const { registry, transport, upgrade, memory } = options;
    this.#options = options;
    this.transport = transport;
    this.endpoint = new Endpoint({
      ...options,
      role: abp.APP,
      features:
        abp.NOTIFICATIONS |
        abp.PROGRESS |
        abp.ELICITATION |
        abp.DYNAMIC_CAPABILITIES |
        (upgrade === 'none' ? 0 : carried(transport) | (memory ? abp.OUTCOMES : 0)),
      callee: registry,
      side: {
        flow: { Outflow, sizeOf },
        prepare: transport.prepare,
        context: contextOf,
        elicit: (request, parent, about) => this.elicit(request, parent, about),
        input: (call) => new InputStream(call),
        ...(memory && {
          recall: (call, run) => call.beginAfter(memory(), (kept) => kept.recall(this, call, run)),
          keep: (callId, said) =>
            void memory().then(
              (kept) => kept.keep(this.endpoint, callId, said),
              () => {},
            ),
        }),
        onHandshake: (message, via) => this.#answer(message, via),
        onSession: (state, message) => {
          if (state === abp.SESSION_READY) this.#begin(message);
          else this.#end();
        },
        onEnd: () => {
          this.#end();
          options.onEnd(this);
        },
      },
    });
    if (memory) this.endpoint.machine.kept = 1;
    registry.attend?.(this);
  }

  /** Whether there is a session. */
  get ready() {
    return this.endpoint.ready;
  }

  /**
   * Hands a message to the endpoint.
   * @param {unknown} data
   * @param {readonly MessagePort[]} [ports]
   * @param {import('../transports/transport.js').Transport} [via]
   */
  receive(data, ports, via = this.transport) {
    this.endpoint.receive(data, ports, via);
  }

  /** Describes the app for the next handshake: at first, and after its capabilities have changed. */
  refresh() {
    const { app, registry, named } = this.#options;
    const { core } = this.endpoint;
    core.describe('app', registry.app ?? app);
    core.describe('capabilities', registry.list());
    core.describe('memory', named);
  }

  /**
   * Answers the handshake, and offers a port with it. This document made the port, so whoever holds its other end speaks
   * to this document and no other.
   * @param {any} message
   * @param {import('../transports/transport.js').Transport} via
   */
  #answer(message, via) {
    const { endpoint } = this;
    const { sessionId } = message.payload;
    let ports;
    if (endpoint.has(abp.PORT) && this.#offered !== sessionId) {
      this.#leavePort();
      const { port1, port2 } = new MessageChannel();
      this.#offered = sessionId;
      endpoint.upgrade(portTransport(port1));
      ports = [port2];
    }
    return endpoint.post(message, ports, undefined, via);
  }

  /** Closes the port that was offered, if there is one. */
  #leavePort() {
    const { endpoint, transport } = this;
    if (endpoint.transport === transport) return;
    endpoint.transport.close();
    endpoint.upgrade(transport);
  }

  /** @param {unknown} message its `initialize` */
  #begin(message) {
    this.#tellEnd();
    this.hello = getOwn(message, 'id');
    const payload = getOwn(message, 'payload');
    const owner = textOf(getOwn(getOwn(payload, 'agentCapabilities'), 'owner'));
    this.owner = owner && owner.length <= MAX_OWNER ? owner : undefined;
    const takes = (/** @type {abp.Feature} */ feature) => this.endpoint.has(feature);
    this.#session = {
      ...sessionOf(payload),
      origin: this.transport.origin,
      features: {
        notifications: takes(abp.NOTIFICATIONS),
        progress: takes(abp.PROGRESS),
        elicitation: takes(abp.ELICITATION),
      },
    };
    invokeReportingErrors(this.#options.onSession, this.#session);
  }

  #end() {
    this.#tellEnd();
    const { endpoint } = this;
    const port = endpoint.transport;
    // What is still to be said of it goes there, too.
    queueMicrotask(() => port === endpoint.transport && this.#leavePort());
  }

  #tellEnd() {
    const session = this.#session;
    this.#session = undefined;
    if (session) invokeReportingErrors(this.#options.onSessionEnd, session);
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
   * Sends the agent a notification, if it takes any.
   * @param {string} event
   * @param {unknown} [data]
   */
  notify(event, data) {
    this.endpoint.notify(event, data);
  }

  /**
   * Sends the agent progress that belongs to no call, if it takes any.
   * @param {unknown} info
   */
  notifyProgress(info) {
    this.endpoint.notifyProgress(checkedProgress(info));
  }

  /**
   * Asks the agent a question.
   * @param {unknown} request
   * @param {abp.Handle} [parent]
   * @param {string} [about]
   */
  async elicit(request, parent, about) {
    return ask(this.endpoint, this.#session?.allowedRequests, request, parent, about);
  }
}

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
