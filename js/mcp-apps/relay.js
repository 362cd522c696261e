/**
 * A view's tools as an app of this protocol, for `connect`. The view owns the outcome of its calls: nothing is decided here,
 * and what it does not say is not claimed.
 */
import { requireBounded } from '../common/bounds.js';
import { safely } from '../common/errors.js';
import { firstOf, getOwn, isRecord } from '../common/values.js';
import { RpcError } from '../rpc/errors.js';
import { Receiver } from '../transports/receiver.js';
import { INVALID_PARAMS, METHOD_NOT_FOUND } from './protocol.js';
import { responseOf } from './results.js';
import { CAPABILITY } from './tools.js';

/** @typedef {import('./host.js').Host} Host */

const LIST_CHANGED = 'notifications/capabilities/list_changed';
/** Tools of one view that are read. */
const MAX_TOOLS = 256;
/** Characters of a tool's name. */
const MAX_NAME = 256;
/** Characters of a tool's description with its schemas, and of all together, as JSON: the handshake carries no more. */
const MAX_TOOL = 2 ** 16;
const MAX_LIST = 2 ** 19;

/** @typedef {{ tool: string, shown: any, text: string }} Known a capability, and the name of its tool */
/** @typedef {{ controller: AbortController, cancels: unknown[], id: unknown }} Running */

export class ViewTransport extends Receiver {
  /** @type {readonly import('../transports/transport.js').Feature[]} */
  carries = [];
  #host;
  #release;
  /** @type {unknown} */
  #hello;
  /** Capabilities as the agent knows them, with the tools' own names. @type {Map<string, Known>} */
  #known = new Map();
  /** Whether the list may have changed since it was asked for. */
  #stale = false;
  #reading = false;
  /** Calls that run, by callId. @type {Map<unknown, Running>} */
  #running = new Map();

  /**
   * @param {Host} host
   * @param {() => void} release called when it has ended
   */
  constructor(host, release) {
    super();
    this.#host = host;
    this.#release = release;
  }

  /** @param {any} message */
  post({ type, id, payload }) {
    if (this.stopped) return;
    switch (type) {
      case 'initialize':
        // It is repeated until it is answered.
        if (id !== this.#hello) void this.#initialize((this.#hello = id));
        return;
      case 'capabilities/call':
        return void this.#call(id, payload);
      case 'capabilities/cancel':
        return this.#cancel(id, payload);
      case 'shutdown':
        return this.#abortAll(getOwn(payload, 'reason') ?? 'The agent has left');
    }
  }

  /** @override */
  end() {
    this.#abortAll('The agent has left');
    this.#release();
  }

  /** @param {unknown} reason */
  #abortAll(reason) {
    for (const { controller } of this.#running.values()) controller.abort(reason);
  }

  /**
   * @param {string} type
   * @param {unknown} id
   * @param {unknown} payload
   */
  #say(type, id, payload) {
    if (!this.stopped) this.receive({ type, id, timestamp: Date.now(), payload });
  }

  // --- The session ---------------------------------------------------------------------------------

  /** @param {unknown} id */
  async #initialize(id) {
    const { name = 'view', version = '0' } = this.#host.viewInfo;
    try {
      this.#known = await this.#list();
    } catch (error) {
      this.#hello = undefined;
      const payload = { success: false, error: this.#errorOf(error) };
      return this.#say('initialize-result', id, payload);
    }
    this.#say('initialize-result', id, {
      sessionId: `${name}-${Date.now()}`,
      protocolVersion: '0.1',
      app: { id: name, name, version },
      capabilities: [...this.#known.values()].map(({ shown }) => shown),
      features: {
        notifications: true,
        progress: true,
        elicitation: false,
        dynamicCapabilities: true,
      },
    });
  }

  async #list() {
    /** @type {Map<string, Known>} */
    const known = new Map();
    if (!this.#host.offersTools) return known;
    const tools = getOwn(await this.#host.request('tools/list'), 'tools');
    let left = MAX_LIST;
    for (const tool of firstOf(tools, MAX_TOOLS)) {
      const capability = safely(() => capabilityOf(tool), undefined);
      if (!capability || (left -= capability.text.length) < 0) continue;
      known.set(capability.shown.name, capability);
    }
    return known;
  }

  /** The view says that its list has changed. However often it says so, one list is asked for at a time. */
  async refresh() {
    if (this.#hello === undefined || this.stopped) return;
    this.#stale = true;
    if (this.#reading) return;
    this.#reading = true;
    while (this.#stale && !this.stopped) {
      this.#stale = false;
      await this.#readAgain();
    }
    this.#reading = false;
  }

  async #readAgain() {
    const before = this.#known;
    try {
      this.#known = await this.#list();
    } catch {
      return; // The old list stands; calls of what is gone are refused by the view.
    }
    const names = [...this.#known.keys()];
    const added = names.filter((name) => !before.has(name));
    const changed = names.filter(
      (name) => before.has(name) && before.get(name)?.text !== this.#known.get(name)?.text,
    );
    const removed = [...before.keys()].filter((name) => !this.#known.has(name));
    if (!added.length && !changed.length && !removed.length) return;
    const capabilities = [...added, ...changed].map((name) => this.#known.get(name)?.shown);
    const data = { added, removed, changed, capabilities };
    this.#say('notification', undefined, { event: LIST_CHANGED, data });
  }

  // --- Calls ---------------------------------------------------------------------------------------

  /**
   * @param {unknown} id
   * @param {any} payload
   */
  async #call(id, { capability, params, options }) {
    const { callId, progressToken } = options;
    const controller = new AbortController();
    /** @type {Running} */
    const running = { controller, cancels: [], id };
    this.#running.set(callId, running);
    const onProgress =
      progressToken === undefined
        ? undefined
        : (/** @type {any} */ { progress, total, message }) =>
            this.#say('progress', undefined, {
              operationId: progressToken,
              progress,
              total,
              status: message,
            });
    const known = this.#known.get(capability);
    const response = known
      ? await this.#outcome(known.tool, params, { signal: controller.signal, onProgress })
      : {
          success: false,
          error: errorObject('UNKNOWN_CAPABILITY', `Unknown capability: ${capability}`),
        };
    this.#running.delete(callId);
    for (const cancel of running.cancels) this.#answerCancel(cancel, callId, response);
    this.#say('capabilities/call-result', id, response);
  }

  /**
   * @param {string} tool
   * @param {unknown} params
   * @param {import('./outcome.js').ToolOptions & { signal: AbortSignal }} options
   * @returns {Promise<any>} the protocol's response
   */
  async #outcome(tool, params, options) {
    try {
      return responseOf(await this.#host.callTool(tool, params, options));
    } catch (error) {
      const outcome = getOwn(getOwn(error, 'data'), 'outcome');
      if (outcome === undefined) return { success: false, error: this.#errorOf(error) };
      const message = /** @type {Error} */ (error).message;
      const cancelled = errorObject('CANCELLED', message);
      return { success: false, cancelled: true, error: cancelled, metadata: { outcome } };
    }
  }

  /**
   * @param {unknown} id
   * @param {any} payload
   */
  #cancel(id, { callId, reason }) {
    const running = this.#running.get(callId);
    if (!running) {
      const payload = { callId, cancelled: false, reason: 'Operation not found' };
      return this.#say('capabilities/cancel-result', id, payload);
    }
    running.cancels.push(id);
    running.controller.abort(reason);
  }

  /**
   * @param {unknown} id
   * @param {unknown} callId
   * @param {any} response
   */
  #answerCancel(id, callId, { success, cancelled, metadata }) {
    const unknown = metadata?.outcome === 'unknown';
    const reason = unknown
      ? 'The view does not tell what becomes of a cancelled call'
      : 'Operation already completed';
    const stopped = !success && cancelled === true && !unknown;
    const payload = { callId, cancelled: stopped, ...(!stopped && { reason }) };
    this.#say('capabilities/cancel-result', id, payload);
  }

  /** The protocol's error for one of JSON-RPC. @param {any} error */
  #errorOf(error) {
    if (this.#host.ended) return errorObject('DISCONNECTED', 'The view is gone', true);
    const { code, message, data } = error;
    if (!(error instanceof RpcError)) return errorObject('INTERNAL_ERROR', String(message));
    if (code === METHOD_NOT_FOUND) return errorObject('NOT_SUPPORTED', message);
    if (code === INVALID_PARAMS) return errorObject('INVALID_PARAMS', message);
    const retryable = getOwn(data, 'retryable') === true;
    return errorObject(retryable ? 'RATE_LIMITED' : 'OPERATION_FAILED', message, retryable);
  }
}

/**
 * @param {string} code
 * @param {string} message
 * @param {boolean} [retryable]
 */
const errorObject = (code, message, retryable = false) => ({ code, message, retryable });

/**
 * A tool as a capability; undefined if it has no usable name.
 * @param {unknown} tool
 * @returns {Known | undefined}
 * @throws {RangeError} if it is too large
 */
function capabilityOf(tool) {
  const name = getOwn(tool, 'name');
  const own = getOwn(getOwn(tool, '_meta'), CAPABILITY) ?? name;
  if (![name, own].every((text) => typeof text === 'string' && text && text.length <= MAX_NAME)) {
    return undefined;
  }
  /** @type {any} */
  const shown = { name: own, available: true, requirements: [], features: {} };
  const description = getOwn(tool, 'description');
  if (typeof description === 'string') shown.description = description;
  for (const key of ['inputSchema', 'outputSchema', 'annotations']) {
    const value = getOwn(tool, key);
    if (isRecord(value)) shown[key] = value;
  }
  requireBounded(shown, { maxValues: MAX_TOOL / 4, maxCharacters: MAX_TOOL, maxDepth: 32 });
  const text = JSON.stringify([name, shown]);
  return text.length > MAX_TOOL ? undefined : { tool: /** @type {string} */ (name), shown, text };
}
