import * as abp from '../driver/abp-boundary.js';
import { Endpoint, carried } from '../session/endpoint.js';
import { invokeReportingErrors, loadPart } from '../common/errors.js';
import { cloneOf } from '../common/copy.js';
import { getOwn } from '../common/values.js';
import { OUTCOME, checkedProgress } from '../wire/messages.js';
import { contextOf } from './context.js';
import { complete, runHandler } from './handler.js';
import { beginAfter } from './waits.js';
import { portTransport } from '../transports/port.js';
import { sessionOf } from './session-of.js';

/** @import { Call } from '../session/call.js' */
/** @import { Owner } from '../session/endpoint.js' */

/** Characters of what an agent is known by; who says more is not known again. */
const MAX_OWNER = 256;

/**
 * @typedef {object} Session The agent, by its own account, and what it asked for. `onSession` and
 *   `onSessionEnd` get the same object.
 * @property {{ name?: string, version?: string }} agent
 * @property {string} [origin] of its page, if the browser vouches for it; otherwise it is absent
 * @property {string[]} [requestedCapabilities]
 * @property {string[]} [allowedRequests] the elicitation methods that it takes; all, if it lists
 *   none
 * @property {{ notifications: boolean, progress: boolean, elicitation: boolean }} features what it
 *   accepts from the app
 */

/**
 * One agent's connection to an app: the owner of an endpoint.
 * @implements {Owner}
 */
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
   * @param {import('./expose.js').ServeOptions & {
   *   app: { id: string, name: string, version: string, description?: string },
   *   registry: import('./registry.js').Capabilities,
   *   transport: import('./expose.js').AppTransport,
   *   onEnd: (ended: Connection) => void,
   *   memory?: () => Promise<import('../types/parts.js').Memory>,
   *   named?: { id: string, rememberFor: number },
   *   observers?: import('../session/observers.js').Observers,
   * }} options `memory` is what is remembered for agents that come back, and `named` what they are
   *   told of the memory of keys
   */
  constructor(options) {
    const { registry, transport, upgrade, memory, limits, restart, observers } = options;
    this.#options = options;
    /** How its agent came. The port that is offered replaces it, until the session ends. */
    this.first = transport;
    this.endpoint = new Endpoint({
      role: abp.APP,
      features:
        abp.NOTIFICATIONS |
        abp.PROGRESS |
        abp.ELICITATION |
        abp.DYNAMIC_CAPABILITIES |
        (upgrade === 'none' ? 0 : carried(transport) | (memory ? abp.OUTCOMES : 0)),
      limits,
      restart,
      transport,
      owner: this,
      capabilities: registry,
      offer: (sessionId) => this.#offer(sessionId),
      observers,
    });
    if (memory) this.endpoint.kept = 1;
    registry.attend?.(this);
  }

  /** Whether there is a session. */
  get ready() {
    return this.endpoint.ready;
  }

  /**
   * Describes the app for the next handshake: at first, and after its capabilities have changed.
   */
  refresh() {
    const { app, registry, named } = this.#options;
    const { core } = this.endpoint;
    core.describe('app', registry.app ?? app);
    core.describe('capabilities', registry.list());
    core.describe('memory', named);
  }

  // --- What its endpoint asks for ----------------------------------------------------------------

  /** @param {Call} call */
  accepts(call) {
    return this.#options.registry.rejectionFor(call);
  }

  /**
   * Calls the handler of a call, or answers in its place what is remembered.
   * @param {Call} call
   * @returns {unknown}
   */
  answer(call) {
    const { registry, memory } = this.#options;
    if (!memory || (call.options.idempotencyKey === undefined && call.name !== OUTCOME))
      return registry.run(call, contextOf(call));
    const run = () => registry.run(call, contextOf(call));
    return beginAfter(call, memory(), (kept) => kept.recall(this, call, run));
  }

  run = runHandler;
  finished = complete;

  /**
   * Keeps what a handler said of its work, for those who ask later.
   * @param {string} callId
   * @param {{ report?: unknown, progress?: object }} said
   */
  keep(callId, said) {
    this.#options.memory?.().then(
      (kept) => kept.keep(this.endpoint, callId, said),
      () => {},
    );
  }

  /**
   * Makes the port that the answer to the handshake offers. This document made it, so whoever holds
   * its other end speaks to this document and no other.
   * @param {unknown} sessionId
   */
  #offer(sessionId) {
    if (this.#offered === sessionId) return undefined;
    this.#leavePort();
    const { port1, port2 } = new MessageChannel();
    this.#offered = sessionId;
    this.endpoint.upgrade(portTransport(port1));
    return [port2];
  }

  /** Closes the port that was offered, if there is one. */
  #leavePort() {
    const { endpoint, first } = this;
    if (endpoint.transport === first) return;
    endpoint.transport.close();
    endpoint.upgrade(first);
  }

  /**
   * @param {abp.Session} state
   * @param {unknown} [message] the `initialize` by which a session begins
   */
  session(state, message) {
    const { endpoint } = this;
    const { onSession, onSessionEnd } = this.#options;
    if (this.#session) {
      const ended = this.#session;
      this.#session = undefined;
      invokeReportingErrors(onSessionEnd, ended);
    }
    if (state !== abp.SESSION_READY) {
      const port = endpoint.transport;
      // What is still to be said of it goes there, too.
      return queueMicrotask(() => port === endpoint.transport && this.#leavePort());
    }
    this.hello = getOwn(message, 'id');
    const { owner, ...session } = sessionOf(getOwn(message, 'payload'));
    this.owner = owner && owner.length <= MAX_OWNER ? owner : undefined;
    this.#session = {
      ...session,
      origin: this.first.origin,
      features: {
        notifications: endpoint.has(abp.NOTIFICATIONS),
        progress: endpoint.has(abp.PROGRESS),
        elicitation: endpoint.has(abp.ELICITATION),
      },
    };
    invokeReportingErrors(onSession, this.#session);
  }

  /** Nothing is sent or received any more. */
  ended() {
    this.session(abp.SESSION_CLOSED);
    this.#options.onEnd(this);
  }

  /**
   * Asks the agent a question.
   * @param {unknown} request
   * @param {abp.Handle} [parent]
   * @param {string} [about]
   */
  async question(request, parent, about) {
    request = cloneOf(request);
    const { ask } = await loadPart(import('./questions.js'));
    return ask(this.endpoint, this.#session?.allowedRequests, request, parent, about);
  }

  // --- What the app tells its agent --------------------------------------------------------------

  /**
   * Sends the agent a notification, if it takes any.
   * @param {string} event
   * @param {unknown} [data]
   */
  notify(event, data) {
    const { endpoint } = this;
    if (!endpoint.has(abp.NOTIFICATIONS)) return;
    const message = endpoint.core.print({ name: '', value: data }, abp.NOTIFY);
    // A program may name it by anything that can be sent.
    message.payload.event = event;
    endpoint.line.control(message);
  }

  /**
   * Asks the agent a question that belongs to no call.
   * @param {unknown} request
   */
  elicit(request) {
    return this.question(request);
  }

  /**
   * Sends the agent progress that belongs to no call, if it takes any.
   * @param {unknown} info
   */
  notifyProgress(info) {
    const checked = checkedProgress('notifyProgress', info);
    if (!checked || !this.endpoint.has(abp.PROGRESS)) return;
    const { operationId, ...said } = checked;
    this.endpoint.line.progress(said, operationId ?? null);
  }
}
