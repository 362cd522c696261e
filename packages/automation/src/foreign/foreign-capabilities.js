/**
 * The capabilities of an app of others' making, for an endpoint of ours: that keeps its calls, and the app's own word
 * decides what becomes of a cancel. Takes the place of a Registry.
 */
import { CapabilityList } from '../../../../js/agent/capability-list.js';
import { APP, NO_ERROR } from '../../../../js/driver/abp-boundary.js';
import { partOf } from '../../../page/src/grace.js';
import {
  AbpError,
  reasonText,
  saysCancelled,
  toErrorObject,
} from '../../../../js/common/errors.js';
import { copyRecord, getOwn, isRecord } from '../../../../js/common/values.js';
import { LIST_CHANGED, isResponse, progressInfo } from '../../../../js/wire/messages.js';
import { readError } from '../read-error.js';
import { beginBefore } from './begin-before.js';
import { inTime } from './foreign-app.js';
import { sessionOf } from '../../../../js/app/connection.js';
import { requireJson } from '../../../schemas/src/require-json.js';

/** @import { ProgressInfo, Response } from '../../../../js/wire/messages.js' */
/** @import { CallContext } from '../../../../js/app/registry.js' */
/** @import { ForeignApp, Hear } from './foreign-app.js' */

/**
 * The agents for whom the app works.
 * @typedef {object} Audience
 * @property {(event: string, data: unknown) => void} notify
 * @property {(info: object) => void} notifyProgress of no call that runs
 * @property {(request: unknown) => unknown} elicit asks one of them
 * @property {boolean} [isOne] whether it is one agent: then the app is told what that one takes
 */

/**
 * What an app says of itself, without the functions that it may have beside.
 * @param {string} path what it is called
 * @param {unknown} value
 * @returns {any}
 * @throws {AbpError} if it cannot be JSON
 */
function jsonOf(path, value) {
  if (value === undefined) return undefined;
  try {
    return JSON.parse(JSON.stringify(value));
  } catch (cause) {
    const what = "the app's description of itself";
    requireJson(what, value, path);
    throw new AbpError('INVALID_PARAMS', `${what} cannot be read`, { cause });
  }
}

export class ForeignCapabilities {
  foreign = true;
  /** What the app says of itself. @type {unknown} */
  app;
  #app;
  /** @type {Promise<void> | undefined} */
  #opened;
  #list = new CapabilityList();
  /** The contexts of the calls that run, by the ids that the app has for them. @type {Map<unknown, CallContext>} */
  #running = new Map();

  /**
   * @param {ForeignApp} app
   * @param {Audience} audience
   */
  constructor(app, audience) {
    this.#app = app;
    this.audience = audience;
  }

  /**
   * Begins its session, unless it has one.
   * @param {unknown} hello the payload of the `initialize` of the first agent that wants one
   * @param {number} patience ms that it may take to list what it can do
   * @returns {Promise<void>} resolves when it has a session; rejects with the app's error
   */
  async begin(hello, patience) {
    this.#opened ??= this.#open(hello, patience);
    try {
      await this.#opened;
    } catch (error) {
      void this.end();
      throw error;
    }
  }

  /** @param {import('../../../../js/app/connection.js').Connection} connection */
  attend(connection) {
    beginBefore(connection, (hello) => this.begin(hello, partOf(APP, connection.limits)));
  }

  /** @param {unknown} hello @param {number} patience */
  async #open(hello, patience) {
    const { agent, requestedCapabilities, allowedRequests } = sessionOf(hello);
    const { name = 'unknown', version = '0' } = agent;
    const taken = this.audience.isOne && copyRecord(getOwn(hello, 'features'));
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
    const told = new CapabilityList();
    told.put(getOwn(session, 'capabilities'));
    this.#list = new CapabilityList();
    this.#list.put(jsonOf('capabilities', [...told.values()]));
  }

  /** Ends its session: nobody has one with it any more. @param {string} [reason] */
  async end(reason) {
    this.#opened = undefined;
    await this.#app.close(reason);
  }

  list() {
    return [...this.#list.values()];
  }

  /** @type {Hear} */
  #hear = (kind, report) => {
    switch (kind) {
      case 'Notification':
        return this.audience.notify(String(getOwn(report, 'event')), getOwn(report, 'data'));
      case 'CapabilitiesChanged':
        return this.#changed(jsonOf('capabilities', report));
      case 'Progress':
        return this.#progressed(progressInfo(report));
      case 'Elicitation':
        return this.#ask(report);
    }
  };

  /** @param {object} changes */
  #changed(changes) {
    this.#list.merge(changes);
    this.audience.notify(LIST_CHANGED, changes);
  }

  /** @param {ProgressInfo} info */
  #progressed(info) {
    const { operationId } = info;
    const context =
      this.#running.get(operationId) ??
      [...this.#running.values()].find(({ progressToken }) => progressToken === operationId);
    if (context) context.progress(info);
    else this.audience.notifyProgress(info);
  }

  /** Its question belongs to the call that runs, if there is only one; otherwise any agent may answer. @param {Parameters<import('../../../../js/app/registry.js').CallContext['elicit']>[0]} request */
  async #ask(request) {
    const [context, another] = this.#running.values();
    try {
      const asked = context && !another ? context : this.audience;
      const answer = await asked.elicit(request);
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
   * @param {import('../../../../js/session/call.js').Call} call
   * @param {CallContext} context
   * @returns {Promise<Response>}
   */
  async run(call, context) {
    const { name, params } = call;
    const { timeout } = call.options;
    const { callId, progressToken } = context;
    const id = this.#nameOf(callId);
    this.#running.set(id, context);
    /** Settles with the app's word on the last cancel, or when that takes too long. @type {Promise<unknown> | undefined} */
    let stopping;
    call.rare.onStop = (reason) => {
      // From now on: its response, which waits for this, must not come too late.
      stopping = inTime(this.#stop(id, reason, call), partOf(APP, call.endpoint.limits));
    };
    try {
      let response;
      try {
        response = await this.#app.call(/** @type {string} */ (name), params, {
          callId: id,
          ...(timeout && { timeout }),
          ...(progressToken !== undefined && {
            progressToken: progressToken === callId ? id : progressToken,
          }),
        });
      } finally {
        // An acknowledged cancel counts, whichever the app says first.
        await stopping;
      }
      // With other members it would be taken for data.
      const { success, data, error, cancelled, metadata } = readResponse(response);
      if (success) return { success, data, metadata };
      return /** @type {Response} */ ({ success, error, cancelled, metadata });
    } catch (error) {
      if (saysCancelled(error)) throw error;
      return { success: false, error: toErrorObject(error) };
    } finally {
      this.#running.delete(id);
    }
  }

  /**
   * Asks the app to stop a call.
   * @param {string} id
   * @param {string | undefined} reason
   * @param {import('../../../../js/session/call.js').Call} call gets the app's word; where the app does not know, its response decides
   */
  async #stop(id, reason, call) {
    /** @type {unknown} */
    let answer;
    try {
      answer = await this.#app.cancel(id, reason);
    } catch (error) {
      answer = { reason: toErrorObject(error).message };
    }
    if (!call.handle || getOwn(answer, 'outcome') === 'unknown') return;
    const accepted = Number(getOwn(answer, 'cancelled') === true);
    const { core } = call.endpoint;
    call.tell((x, pointer, handle) => {
      const length = core.writeReason(reasonText(getOwn(answer, 'reason')));
      return x.cancel_answered(pointer, handle, accepted, length);
    });
  }

  /** An id that no other call has: several agents may choose the same. @param {string} callId */
  #nameOf(callId) {
    let id = callId;
    for (let i = 2; this.#running.has(id); i++) id = `${callId}-${i}`;
    return id;
  }
}

const NO_RESPONSE = "The other side's answer is not an ABP response: { success, data, error }";

/**
 * Reads the response to a call or a question, and makes sure that it has `success` and, if it failed, `error.code`.
 * @param {unknown} received what the peer sent
 * @returns {Response} what was said, if it is a response
 */
function readResponse(received) {
  try {
    if (!isRecord(received) || typeof getOwn(received, 'success') !== 'boolean') {
      const details = received !== undefined && { details: received };
      return { success: false, error: { ...readError(NO_RESPONSE), ...details } };
    }
    const response = /** @type {Response} */ (received);
    if (response.success) return response;
    const error = getOwn(received, 'error');
    // A cancelled response needs no error.
    if (error === undefined && response.cancelled === true) return response;
    return { ...response, error: readError(error) };
  } catch {
    return { success: false, error: readError(NO_RESPONSE) };
  }
}
