import * as abp from '../driver/abp-boundary.js';
import { Endpoint, carried } from '../session/endpoint.js';
import { invokeReportingErrors, loadPart } from '../common/errors.js';
import { cloneOf } from '../common/copy.js';
import { getOwn } from '../common/values.js';
import { unless } from '../common/waiting.js';
import * as FrameKind from '../wire/frame-kinds.js';
import { checkedProgress } from '../wire/messages.js';
import { complete, start } from './work.js';
import { beginAfter } from './waits.js';
import { portTransport } from '../transports/port.js';
import { sessionOf } from './session-of.js';

/** @import { Call } from '../session/call.js' */

/** Characters of what an agent is known by; who says more is not known again. */
const MAX_OWNER = 256;

/**
 * @typedef {object} Session The agent, by its own account, and what it asked for. `onSession` and `onSessionEnd` get the
 *   same object.
 * @property {{ name?: string, version?: string }} agent
 * @property {string} [origin] of its page, if the browser vouches for it; otherwise it is absent
 * @property {string[]} [requestedCapabilities]
 * @property {string[]} [allowedRequests] the elicitation methods that it takes; all, if it lists none
 * @property {{ notifications: boolean, progress: boolean, elicitation: boolean }} features what it accepts from the app
 */

/** One agent's connection to an app: an endpoint that is its own delegate. */
export class Connection extends Endpoint {
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
   * }} options `memory` is what is remembered for agents that come back, and `named` what they are told of the memory of keys
   */
  constructor(options) {
    const { registry, transport, upgrade, memory } = options;
    super({
      ...options,
      role: abp.APP,
      features:
        abp.NOTIFICATIONS |
        abp.PROGRESS |
        abp.ELICITATION |
        abp.DYNAMIC_CAPABILITIES |
        (upgrade === 'none' ? 0 : carried(transport) | (memory ? abp.OUTCOMES : 0)),
      callee: registry,
    });
    this.#options = options;
    /** How its agent came. The port that is offered replaces it, as `transport`, until the session ends. */
    this.first = transport;
    this.prepare = transport.prepare;
    if (memory) {
      this.machine.kept = 1;
      this.recall = (/** @type {Call} */ call, /** @type {() => unknown} */ run) =>
        beginAfter(call, memory(), (kept) => kept.recall(this, call, run));
      this.keep = (/** @type {string} */ callId, /** @type {object} */ said) =>
        void memory().then(
          (kept) => kept.keep(this, callId, said),
          () => {},
        );
    }
    registry.attend?.(this);
  }

  start = start;
  complete = complete;

  /** What an app may look at of its sessions, for debugging. */
  get endpoint() {
    return this;
  }

  /** @param {Call} call @returns {AsyncIterableIterator<unknown>} what the agent streams to its handler */
  input(call) {
    return this.stream(
      ({ InputStream }) => new InputStream(call),
      (loading) => unless(call.signal, loading),
    );
  }

  /** Describes the app for the next handshake: at first, and after its capabilities have changed. */
  refresh() {
    const { app, registry, named } = this.#options;
    this.core.describe('app', registry.app ?? app);
    this.core.describe('capabilities', registry.list());
    this.core.describe('memory', named);
  }

  /**
   * Answers the handshake, and offers a port with it. This document made the port, so whoever holds its other end speaks
   * to this document and no other.
   * @param {any} message
   * @param {import('../transports/transport.js').Transport} via
   */
  onHandshake(message, via) {
    const { sessionId } = message.payload;
    let ports;
    if (this.has(abp.PORT) && this.#offered !== sessionId) {
      this.#leavePort();
      const { port1, port2 } = new MessageChannel();
      this.#offered = sessionId;
      this.upgrade(portTransport(port1));
      ports = [port2];
    }
    this.post(message, ports, undefined, via);
  }

  /** Closes the port that was offered, if there is one. */
  #leavePort() {
    if (this.transport === this.first) return;
    this.transport.close();
    this.upgrade(this.first);
  }

  /** @type {(state: abp.Session, message?: unknown) => void} `message` is the `initialize` by which a session begins */
  onSession = (state, message) => {
    const { onSession, onSessionEnd } = this.#options;
    if (this.#session) {
      const ended = this.#session;
      this.#session = undefined;
      invokeReportingErrors(onSessionEnd, ended);
    }
    if (state !== abp.SESSION_READY) {
      const port = this.transport;
      // What is still to be said of it goes there, too.
      return queueMicrotask(() => port === this.transport && this.#leavePort());
    }
    this.hello = getOwn(message, 'id');
    const { owner, ...session } = sessionOf(getOwn(message, 'payload'));
    this.owner = owner && owner.length <= MAX_OWNER ? owner : undefined;
    this.#session = {
      ...session,
      origin: this.first.origin,
      features: {
        notifications: this.has(abp.NOTIFICATIONS),
        progress: this.has(abp.PROGRESS),
        elicitation: this.has(abp.ELICITATION),
      },
    };
    invokeReportingErrors(onSession, this.#session);
  };

  onEnd() {
    this.onSession(abp.SESSION_CLOSED);
    this.#options.onEnd(this);
  }

  /** Ends its session. @param {string} [reason] given to the calls that end with it @override */
  close(reason) {
    this.closing = reason;
    super.close();
  }

  /** @param {object} info @param {unknown} token names it; true is the id of the call @param {abp.Handle} [handle] of its call, if it has one */
  sendProgress(info, token, handle = 0) {
    const isById = handle && token === true;
    const frames = isById ? this.frames : undefined;
    const number = frames && this.core.number(handle);
    if (number) return frames.add(FrameKind.PROGRESS, number, undefined, info);
    const said = { progress: isById ? undefined : token };
    const message = this.core.print(said, abp.REPORT, handle);
    message.payload = { ...info, ...message.payload };
    return this.say(message, { kind: 'droppable' });
  }

  /** Sends the agent a notification, if it takes any. @param {string} event @param {unknown} [data] */
  notify(event, data) {
    if (!this.has(abp.NOTIFICATIONS)) return;
    const message = this.core.print({ name: '', value: data }, abp.NOTIFY);
    // A program may name it by anything that can be sent.
    message.payload.event = event;
    this.say(message);
  }

  /** Sends the agent progress that belongs to no call, if it takes any. @param {unknown} info */
  notifyProgress(info) {
    const checked = checkedProgress('notifyProgress', info);
    if (!checked || !this.has(abp.PROGRESS)) return;
    const { operationId, ...said } = checked;
    this.sendProgress(said, operationId ?? null);
  }

  /** Asks the agent a question. @param {unknown} request @param {abp.Handle} [parent] @param {string} [about] */
  async elicit(request, parent, about) {
    request = cloneOf(request);
    const { ask } = await loadPart(import('./questions.js'));
    return ask(this, this.#session?.allowedRequests, request, parent, about);
  }
}
