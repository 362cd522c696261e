/**
 * The capabilities of a foreign app, in place of a Registry, for an endpoint of this library. The
 * endpoint keeps its calls, and the app's answer decides the outcome of a cancel.
 */
import { CapabilityList } from '../agent/capability-list.js';
import { APP, NO_ERROR, TYPE_INITIALIZE, TYPE_INITIALIZE_RESULT } from '../driver/abp-boundary.js';
import { parts } from '../common/parts.js';
import { partOf } from '../page/grace.js';
import {
  AbpError,
  invokeReportingErrors,
  reasonText,
  safely,
  saysCancelled,
  toErrorObject,
} from '../common/errors.js';
import { copyRecord, getOwn, isRecord } from '../common/values.js';
import { LIST_CHANGED, isResponse, progressInfo } from '../wire/messages.js';
import { readError } from './read-error.js';
import { foreignApp, inTime } from './foreign-app.js';
import { sessionOf } from '../app/session-of.js';

/** @import { Connection } from '../app/connection.js' */
/** @import { CallContext } from '../app/registry.js' */
/** @import { Call } from '../session/call.js' */
/** @import { ForeignApp, Hear } from './foreign-app.js' */

/**
 * Makes the connections of an exposed app call a foreign app in its own page.
 * @type
 *   {Awaited<ReturnType<import('../types/parts.js').Parts['foreign']>>['serveForeign']}
 */
export function serveForeign(abp, exposed, options) {
  // The app looks for its report functions in the object where it was found.
  const own = /** @type {{ abp?: unknown } | undefined} */ (globalThis.window)?.abp === abp;
  const app = foreignApp(own ? globalThis : { abp });
  const capabilities = new ForeignCapabilities(app, () => exposed.sessions);
  const { onSessionEnd } = options;
  options.registry = capabilities;
  options.onSessionEnd = (session) => {
    invokeReportingErrors(onSessionEnd, session);
    // The app's session lasts as long as any agent has a session.
    if (!exposed.sessions.length) void capabilities.end();
  };
}

/**
 * A copy of an app's description of itself, without functions in it.
 * @param {string} path its name in errors
 * @param {unknown} value
 */
function jsonOf(path, value) {
  if (value === undefined) return undefined;
  try {
    return JSON.parse(JSON.stringify(value));
  } catch (cause) {
    const what = "the app's description of itself";
    parts.requireJson(what, value, path);
    throw new AbpError('INVALID_PARAMS', `${what} cannot be read`, { cause });
  }
}

export class ForeignCapabilities {
  foreign = true;
  /** The app's description of itself. @type {unknown} */
  app;
  #app;
  #agents;
  #isForOne;
  /** @type {Promise<void> | undefined} */
  #opened;
  #list = new CapabilityList();
  /**
   * The contexts of the running calls, by their ids in the app.
   * @type {Map<unknown, CallContext>}
   */
  #running = new Map();

  /**
   * @param {ForeignApp} app
   * @param {() => Connection[]} [agents] the connected agents, the latest last. Without it, there
   *   is one agent, whose features are passed to the app
   */
  constructor(app, agents) {
    this.#app = app;
    this.#isForOne = !agents;
    this.#agents = agents ?? (() => /** @type {Connection[]} */ ([]));
  }

  /**
   * Serves a connection: the `initialize` of its agent first begins the app's session.
   * @param {Connection} connection
   */
  attend(connection) {
    if (this.#isForOne) this.#agents = () => [connection];
    const { first, endpoint } = connection;
    const receive = endpoint.receive.bind(endpoint);
    /**
     * The id of the pending `initialize`, which is repeated until it is answered.
     * @type {unknown}
     */
    let asked;
    endpoint.receive = (data, ports, via = first) => {
      if (via !== first || getOwn(data, 'type') !== TYPE_INITIALIZE)
        return receive(data, ports, via);
      const id = getOwn(data, 'id');
      if (id === asked) return;
      asked = id;
      const answered = this.#begin(connection, getOwn(data, 'payload'));
      const refuse = (/** @type {unknown} */ error) => {
        const payload = { success: false, error: toErrorObject(error) };
        via.post({ type: TYPE_INITIALIZE_RESULT, id, timestamp: Date.now(), payload });
      };
      void answered.then(() => receive(data, ports, via), refuse).then(() => (asked = undefined));
    };
  }

  /**
   * Begins the app's session, unless it has begun.
   * @param {Connection} connection
   * @param {unknown} hello
   */
  async #begin(connection, hello) {
    this.#opened ??= this.#open(hello, partOf(APP, connection.endpoint.limits));
    try {
      await this.#opened;
    } catch (error) {
      void this.end();
      throw error;
    }
    connection.refresh();
  }

  /**
   * @param {unknown} hello the payload of the agent's `initialize`
   * @param {number} patience ms that it may take to list its capabilities
   */
  async #open(hello, patience) {
    const { agent, requestedCapabilities, allowedRequests } = sessionOf(hello);
    const { name = 'unknown', version = '0' } = agent;
    const taken = this.#isForOne && copyRecord(getOwn(hello, 'features'));
    const session = await this.#app.open(
      {
        protocolVersion: '0.1',
        agent: { name, version },
        features: taken || { notifications: true, progress: true, elicitation: true },
        requestedCapabilities,
        ...(allowedRequests && { agentCapabilities: { allowedRequests } }),
      },
      this.#hear,
      patience,
    );
    const error = getOwn(session, 'error');
    if (error) throw AbpError.from(readError(error));
    if (typeof getOwn(session, 'sessionId') !== 'string') {
      throw new AbpError('SESSION_INVALID', 'The app answered initialize without a sessionId');
    }
    this.app = jsonOf('app', getOwn(session, 'app'));
    const listed = new CapabilityList();
    listed.put(getOwn(session, 'capabilities'));
    this.#list = new CapabilityList();
    this.#list.put(jsonOf('capabilities', [...listed.values()]));
  }

  /**
   * Ends the app's session, when no agent needs it any more.
   * @param {string} [reason]
   */
  async end(reason) {
    this.#opened = undefined;
    await this.#app.close(reason);
  }

  list() {
    return [...this.#list.values()];
  }

  /** @type {Hear} */
  #hear = (kind, report) => {
    if (kind === 'Progress') return this.#progressed(progressInfo(report));
    if (kind === 'Elicitation') return this.#ask(report);
    let [event, data] = [String(getOwn(report, 'event')), getOwn(report, 'data')];
    if (kind === 'CapabilitiesChanged') {
      [event, data] = [LIST_CHANGED, jsonOf('capabilities', report)];
      this.#list.merge(data);
    }
    for (const agent of this.#agents()) agent.notify(event, data);
  };

  /** @param {import('../wire/messages.js').ProgressInfo} info */
  #progressed(info) {
    const { operationId } = info;
    const context =
      this.#running.get(operationId) ??
      [...this.#running.values()].find(({ progressToken }) => progressToken === operationId);
    if (context) return context.progress(info);
    for (const agent of this.#agents()) agent.notifyProgress(info);
  }

  /**
   * Asks the app's question on behalf of the running call, if there is only one; otherwise asks the
   * latest agent.
   * @param {any} request
   */
  async #ask(request) {
    const [context, another] = this.#running.values();
    try {
      const asked = context && !another ? context : this.#agents().at(-1);
      const answer = await asked?.elicit(request);
      return isResponse(answer) ? answer : { success: true, data: answer };
    } catch (error) {
      return { success: false, error: toErrorObject(error) };
    }
  }

  /** The app checks calls itself. */
  rejectionFor() {
    return NO_ERROR;
  }

  /**
   * @param {Call} call
   * @param {CallContext} context
   * @returns {Promise<unknown>} the response
   */
  async run(call, context) {
    const { timeout } = call.options;
    const { callId, progressToken } = context;
    const id = this.#nameOf(callId);
    this.#running.set(id, context);
    /**
     * Settles with the app's answer to the last cancel, or when that takes too long.
     * @type {Promise<unknown> | undefined}
     */
    let stopping;
    call.ensureExtra().onStop = (reason) => {
      // The time counts from now: the call's response waits for this, and must not be too late.
      stopping = inTime(this.#stop(id, reason, call), partOf(APP, call.endpoint.limits));
    };
    const token = progressToken === callId ? id : progressToken;
    try {
      const answering = this.#app.call(/** @type {string} */ (call.name), call.params, {
        callId: id,
        ...(timeout && { timeout }),
        ...(token !== undefined && { progressToken: token }),
      });
      // An acknowledged cancel counts, even if the app sends its result first.
      await answering.catch(() => {});
      await stopping;
      return responseOf(await answering);
    } catch (error) {
      if (saysCancelled(error)) throw error;
      return { success: false, error: toErrorObject(error) };
    } finally {
      this.#running.delete(id);
    }
  }

  /**
   * Asks the app to stop a call, and passes its answer to the core. If the answer is unclear, the
   * app's response decides.
   * @param {string} id
   * @param {string} id
   * @param {string | undefined} reason
   * @param {Call} call
   */
  async #stop(id, reason, call) {
    const failed = (/** @type {unknown} */ error) => ({ reason: toErrorObject(error).message });
    const answer = await this.#app.cancel(id, reason).catch(failed);
    if (!call.handle || getOwn(answer, 'outcome') === 'unknown') return;
    const accepted = Number(getOwn(answer, 'cancelled') === true);
    const { core } = call.endpoint;
    const length = core.writeReason(reasonText(getOwn(answer, 'reason')));
    call.feed(core.x.cancel_answered, accepted, length);
  }

  /**
   * An id that no other call has: several agents may choose the same id.
   * @param {string} callId
   */
  #nameOf(callId) {
    let id = callId;
    for (let i = 2; this.#running.has(id); i++) id = `${callId}-${i}`;
    return id;
  }
}

const NO_RESPONSE = "The other side's answer is not an ABP response: { success, data, error }";

/**
 * An app's answer as a response. Other members are left out: with them it would count as data.
 * @param {any} received
 * @returns {unknown}
 */
const responseOf = (received) =>
  safely(
    () => {
      if (!isRecord(received) || typeof getOwn(received, 'success') !== 'boolean') {
        const details = received !== undefined && { details: received };
        return { success: false, error: { ...readError(NO_RESPONSE), ...details } };
      }
      const { success, data, error, cancelled, metadata } = /** @type {any} */ (received);
      if (success) return { success, data, metadata };
      // A cancelled response needs no error.
      const isWhole = error === undefined && cancelled === true;
      return { success, error: isWhole ? error : readError(error), cancelled, metadata };
    },
    { success: false, error: readError(NO_RESPONSE) },
  );
