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

/** Characters of an agent's secret; an agent with a longer one is not recognised again. */
const MAX_OWNER = 256;

/**
 * @typedef {object} Session An agent, by its own account, and its requests. `onSession` and
 *   `onSessionEnd` get the same object.
 * @property {{ name?: string, version?: string }} agent
 * @property {string} [origin] of its page, if the browser guarantees it; otherwise absent
 * @property {string[]} [requestedCapabilities]
 * @property {string[]} [allowedRequests] the elicitation methods that it accepts; all, if absent
 * @property {{ notifications: boolean, progress: boolean, elicitation: boolean }} features which
 *   messages it accepts from the app
 */

/**
 * A connection of one agent to an app: the owner of an endpoint.
 * @implements {Owner}
 */
export class Connection {
  /** @type {Session | undefined} */
  #session;
  /** The id of the `initialize` that began its session. @type {unknown} */
  hello;
  /**
   * The agent's secret, by which it is recognised in another session. @type {string | undefined}
   */
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
   * }} options `memory` loads the memory for agents that come back; `named` is the description of
   *   the memory of keys that agents get
   */
  constructor(options) {
    const { registry, transport, upgrade, memory, limits, restart, observers } = options;
    this.#options = options;
    /**
     * The transport on which the agent connected. The offered port replaces it until the session
     * ends.
     */
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

  /** True if there is a session. */
  get ready() {
    return this.endpoint.ready;
  }

  /**
   * Describes the app for the next handshake: at the start, and when its capabilities have changed.
   */
  refresh() {
    const { app, registry, named } = this.#options;
    const { core } = this.endpoint;
    core.describe('app', registry.app ?? app);
    core.describe('capabilities', registry.list());
    core.describe('memory', named);
  }

  // --- For its endpoint --------------------------------------------------------------------------

  /** @param {Call} call */
  accepts(call) {
    return this.#options.registry.rejectionFor(call);
  }

  /**
   * Runs the handler of a call, or answers from the memory instead.
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
   * Keeps a handler's report and progress, for later questions.
   * @param {string} callId
   * @param {{ report?: unknown, progress?: object }} reports
   */
  keep(callId, reports) {
    this.#options.memory?.().then(
      (kept) => kept.keep(this.endpoint, callId, reports),
      () => {},
    );
  }

  /**
   * Makes the port that the answer to the handshake offers. This document made it, so only the
   * holder of its other end can speak to this document through it.
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
   * @param {unknown} [message] the `initialize` that began a session
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
      // The last messages of the session are sent through the port, too.
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

  /** Called when its endpoint has ended. */
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

  // --- For the app -------------------------------------------------------------------------------

  /**
   * Sends the agent a notification, if it accepts them.
   * @param {string} event
   * @param {unknown} [data]
   */
  notify(event, data) {
    const { endpoint } = this;
    if (!endpoint.has(abp.NOTIFICATIONS)) return;
    const message = endpoint.core.print({ name: '', value: data }, abp.NOTIFY);
    // The name of an event may be any value that can be sent.
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
   * Sends the agent progress that belongs to no call, if it accepts it.
   * @param {unknown} info
   */
  notifyProgress(info) {
    const checked = checkedProgress('notifyProgress', info);
    if (!checked || !this.endpoint.has(abp.PROGRESS)) return;
    const { operationId, ...progress } = checked;
    this.endpoint.line.progress(progress, operationId ?? null);
  }
}
