/**
 * A view's tools as the capabilities of an app of this protocol, for `connect`. The view owns the outcome of its calls:
 * nothing is decided here, and what it does not say is not claimed.
 */
import { returnOf } from '../../../js/app/waits.js';
import { beginBefore } from '../../automation/src/foreign/begin-before.js';
import { RelayTransport } from '../../automation/src/foreign/relay-transport.js';
import { requireBounded } from '../../untrusted/src/bounds.js';
import { safely } from '../../../js/common/errors.js';
import { firstOf, getOwn, isRecord } from '../../../js/common/values.js';
import {
  FATE_UNSTARTED,
  NO_ERROR,
  REFUSE,
  UNKNOWN_CAPABILITY,
} from '../../../js/driver/abp-boundary.js';
import { RpcError } from '../../rpc/src/errors.js';
import { isCancelled } from './calls.js';
import { INVALID_PARAMS, METHOD_NOT_FOUND, recordOf, defined } from './protocol.js';
import { responseOf } from './results.js';
import { CAPABILITY } from './tools.js';

/** @import { Call } from '../../../js/session/call.js' */
/** @import { Host } from './host.js' */

/** What agents of a host are told whose view is gone for good: trying again does not help. */
export const GONE =
  'The view was removed: a host is for one document, so make another, and connect to that';

/** Tools of one view that are read, and characters of a tool's name. */
const MAX_TOOLS = 256;
const MAX_NAME = 256;
/** Characters of a tool's description with its schemas, and of all together, as JSON: the handshake carries no more. */
const MAX_TOOL = 2 ** 16;
const MAX_LIST = 2 ** 19;

/** @typedef {{ tool: string, shown: Record<string, unknown> & { name: string }, text: string }} Known a capability, and the name of its tool */

/** The tools of one view. Takes the place of a Registry. */
class ViewCapabilities {
  /** The view's word decides what becomes of a cancel. */
  foreign = true;
  #host;
  /** As the agent knows them, with the tools' own names. @type {Map<string, Known>} */
  #known = new Map();
  /** Whether the list may have changed since it was asked for. */
  #stale = false;
  #reading = false;
  #hasBegun = false;
  /** Tells agents what has changed. @type {(changes: object) => void} */
  tell = () => {};
  /** Of calls that the view has answered, until their agents are told. @type {Set<Promise<void>>} */
  #telling = new Set();

  /** @param {Host} host */
  constructor(host) {
    this.#host = host;
  }

  get app() {
    const { name = 'view', version = '0' } = this.#host.viewInfo;
    return { id: name, name, version };
  }

  list() {
    return [...this.#known.values()].map(({ shown }) => shown);
  }

  /** @param {import('../../../js/app/connection.js').Connection} connection */
  attend(connection) {
    beginBefore(connection, async () => {
      try {
        await this.#host.ready;
        this.#known = await this.#read();
      } catch (error) {
        throw this.#errorOf(error);
      }
      this.#hasBegun = true;
    });
  }

  async #read() {
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
    if (!this.#hasBegun) return;
    this.#stale = true;
    if (this.#reading) return;
    this.#reading = true;
    while (this.#stale && !this.#host.ended) {
      this.#stale = false;
      const before = this.#known;
      // If it is not told, the old list stands: calls of what is gone are refused by the view.
      this.#known = await this.#read().catch(() => before);
      this.#tellChanges(before, this.#known);
    }
    this.#reading = false;
  }

  /** @param {Map<string, Known>} before @param {Map<string, Known>} now */
  #tellChanges(before, now) {
    const names = [...now.keys()];
    const added = names.filter((name) => !before.has(name));
    const changed = names.filter(
      (name) => (before.get(name) ?? now.get(name))?.text !== now.get(name)?.text,
    );
    const removed = [...before.keys()].filter((name) => !now.has(name));
    const capabilities = [...added, ...changed].map((name) => now.get(name)?.shown);
    if (capabilities.length || removed.length) this.tell({ added, removed, changed, capabilities });
  }

  /** @param {Call} call */
  rejectionFor({ name }) {
    return this.#known.has(/** @type {string} */ (name)) ? NO_ERROR : UNKNOWN_CAPABILITY;
  }

  /**
   * @param {Call} call @param {import('../../../js/app/registry.js').CallContext} context
   * @returns {Promise<unknown>} the protocol's response
   */
  async run(call, { signal, progress, progressToken }) {
    const { name, params } = call;
    const known = this.#known.get(/** @type {string} */ (name));
    // It may have been removed while the call waited for its turn.
    if (!known) {
      call.postpone();
      return call.endpoint.core.response(REFUSE, UNKNOWN_CAPABILITY, FATE_UNSTARTED);
    }
    /** @type {import('./calls.js').ToolOptions['onProgress']} */
    const onProgress = ({ progress: done, total, message }) =>
      progress({ progress: done, total, status: message });
    const options = { signal, ...(progressToken !== undefined && { onProgress }) };
    try {
      return responseOf(await this.#host.callTool(known.tool, params, options));
    } catch (error) {
      const { outcome, report } = recordOf(getOwn(error, 'data'));
      const cancelled = isCancelled(error) || undefined;
      const { message } = /** @type {Error} */ (error);
      return defined({
        success: false,
        cancelled,
        error: cancelled ? errorObject('CANCELLED', message) : this.#errorOf(error),
        metadata: outcome === undefined ? undefined : defined({ outcome, report }),
      });
    } finally {
      const returned = returnOf(call);
      this.#telling.add(returned);
      void returned.then(() => this.#telling.delete(returned));
    }
  }

  /** Resolves when agents are told what the view has answered by now. */
  async told() {
    await Promise.all(this.#telling);
  }

  /** The protocol's error for one of JSON-RPC. @param {any} error */
  #errorOf(error) {
    if (this.#host.ended) return errorObject('DISCONNECTED', GONE);
    const { code, message, data } = error;
    if (getOwn(data, 'closedBy')) return errorObject('DISCONNECTED', 'The view has closed itself');
    if (!(error instanceof RpcError)) return errorObject('INTERNAL_ERROR', String(message));
    if (code === METHOD_NOT_FOUND) return errorObject('NOT_SUPPORTED', message);
    if (code === INVALID_PARAMS) return errorObject('INVALID_PARAMS', message);
    const retryable = getOwn(data, 'retryable') === true;
    return errorObject(retryable ? 'RATE_LIMITED' : 'OPERATION_FAILED', message, retryable);
  }
}

/** The way of an agent to the tools of one view. */
export class ViewTransport extends RelayTransport {
  /** @param {Host} host @param {() => void} release called when it has ended */
  constructor(host, release) {
    const view = new ViewCapabilities(host);
    super(view, release);
    this.view = view;
    view.tell = (changes) => this.changed(changes);
  }
}

/** @param {string} code @param {string} message @param {boolean} [retryable] */
const errorObject = (code, message, retryable = false) => ({ code, message, retryable });

/**
 * A tool as a capability; undefined if it has no usable name.
 * @param {unknown} tool
 * @returns {Known | undefined}
 * @throws {RangeError} if it is too large
 */
function capabilityOf(tool) {
  const name = getOwn(tool, 'name');
  const own = /** @type {string} */ (getOwn(getOwn(tool, '_meta'), CAPABILITY) ?? name);
  if (![name, own].every((text) => typeof text === 'string' && text && text.length <= MAX_NAME)) {
    return undefined;
  }
  /** @type {Known['shown']} */
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
