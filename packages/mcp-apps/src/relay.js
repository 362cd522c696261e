/**
 * A view's tools as a foreign app (js/foreign), for `connect`. The view owns the outcome of its
 * calls: nothing is decided here, and an outcome that the view does not report is `unknown`.
 */
import { RpcError } from '@abp-bridge/rpc';
import {
  AbpError,
  RelayTransport,
  abortError,
  copyRecord,
  firstOf,
  getOwn,
  isObject,
  isRecord,
  requireBounded,
  safely,
  unstarted,
} from 'abp-bridge/driver';
import { isCancelled } from './calls.js';
import { INVALID_PARAMS, METHOD_NOT_FOUND, defined } from './protocol.js';
import { responseOf } from './results.js';
import { CAPABILITY } from './tools.js';

/** @import { ForeignApp, Hear } from 'abp-bridge/driver' */

/** The message for agents of a host whose view is gone for good: a retry does not help. */
export const GONE =
  'The view was removed: a host is for one document, so make another, and connect to that';

/** Tools of one view that are read, and characters of a tool's name. */
const MAX_TOOLS = 256;
const MAX_NAME = 256;
/**
 * Characters of a tool's description with its schemas, and of all together, as JSON: the limit of
 * the handshake.
 */
const MAX_TOOL = 2 ** 16;
const MAX_LIST = 2 ** 19;

/**
 * @typedef {Map<string, { tool: string, shown: { name: string, [key: string]: unknown },
 *   text: string }>} Known by the capabilities' names
 */

/** Connects an agent to the tools of one view. */
export class ViewTransport extends RelayTransport {
  #host;
  /** @type {Known} */
  #known = new Map();
  /** @type {Hear | undefined} */
  #report;
  /** True if the list may have changed since it was requested. */
  #stale = false;
  #reading = false;
  /** Abort the running calls. @type {Map<string, AbortController>} */
  #running = new Map();

  /**
   * @param {import('./host.js').Host} host
   * @param {() => void} release called when it has ended
   */
  constructor(host, release) {
    /** @type {ForeignApp} */
    const app = {
      open: (_params, hear) => this.#open(hear),
      call: (...call) => this.#call(...call),
      cancel: async (callId, reason) => {
        this.#running.get(callId)?.abort(abortError(reason));
        // The result has the outcome.
        return { outcome: 'unknown' };
      },
      async close() {},
    };
    super(app, release);
    this.#host = host;
  }

  /** @param {Hear} hear */
  async #open(hear) {
    const host = this.#host;
    try {
      await host.ready;
      this.#known = await this.#read();
    } catch (error) {
      throw this.#errorOf(error);
    }
    this.#report = hear;
    const { name = 'view', version = '0' } = host.viewInfo;
    const capabilities = [...this.#known.values()].map(({ shown }) => shown);
    return { sessionId: 'view', app: { id: name, name, version }, capabilities };
  }

  async #read() {
    /** @type {Known} */
    const known = new Map();
    if (!isObject(getOwn(this.#host.viewCapabilities, 'tools'))) return known;
    const tools = getOwn(await this.#host.request('tools/list'), 'tools');
    let left = MAX_LIST;
    for (const tool of firstOf(tools, MAX_TOOLS)) {
      const capability = safely(() => capabilityOf(tool), undefined);
      if (!capability || (left -= capability.text.length) < 0) continue;
      known.set(capability.shown.name, capability);
    }
    return known;
  }

  /**
   * Call this when the view reports a changed list. One list is requested at a time.
   */
  async refresh() {
    if (!this.#report) return;
    this.#stale = true;
    if (this.#reading) return;
    this.#reading = true;
    while (this.#stale && !this.#host.ended) {
      this.#stale = false;
      const before = this.#known;
      // If that fails, the old list stays: the view rejects calls of removed tools.
      const now = (this.#known = await this.#read().catch(() => before));
      const news = [...now.keys()].filter((name) => before.get(name)?.text !== now.get(name)?.text);
      const added = news.filter((name) => !before.has(name));
      const changed = news.filter((name) => before.has(name));
      const removed = [...before.keys()].filter((name) => !now.has(name));
      const capabilities = news.map((name) => now.get(name)?.shown);
      if (capabilities.length || removed.length)
        this.#report('CapabilitiesChanged', { added, removed, changed, capabilities });
    }
    this.#reading = false;
  }

  /** @type {ForeignApp['call']} */
  async #call(name, params, { callId, progressToken }) {
    const known = this.#known.get(name);
    if (!known) {
      const message = `Unknown capability: ${name.slice(0, 200)}`;
      return unstarted(new AbpError('UNKNOWN_CAPABILITY', message));
    }
    const controller = new AbortController();
    this.#running.set(callId, controller);
    /** @type {import('./calls.js').ToolOptions['onProgress']} */
    const onProgress = ({ progress, total, message: status }) =>
      this.#report?.('Progress', { operationId: callId, progress, total, status });
    const options = {
      signal: controller.signal,
      ...(progressToken !== undefined && { onProgress }),
    };
    try {
      return responseOf(await this.#host.callTool(known.tool, params, options));
    } catch (error) {
      const { outcome, report } = copyRecord(getOwn(error, 'data'));
      const { message } = /** @type {Error} */ (error);
      return defined({
        success: false,
        ...(isCancelled(error)
          ? { cancelled: true, error: new AbpError('CANCELLED', message) }
          : { error: this.#errorOf(error) }),
        metadata: outcome === undefined ? undefined : defined({ outcome, report }),
      });
    } finally {
      this.#running.delete(callId);
    }
  }

  /**
   * The protocol's error for one of JSON-RPC.
   * @param {any} error
   */
  #errorOf(error) {
    if (this.#host.ended) return new AbpError('DISCONNECTED', GONE);
    const { code, message, data } = error;
    if (getOwn(data, 'closedBy')) return new AbpError('DISCONNECTED', 'The view has closed itself');
    if (!(error instanceof RpcError)) return new AbpError('INTERNAL_ERROR', String(message));
    if (code === METHOD_NOT_FOUND) return new AbpError('NOT_SUPPORTED', message);
    if (code === INVALID_PARAMS) return new AbpError('INVALID_PARAMS', message);
    const retryable = getOwn(data, 'retryable') === true;
    return new AbpError(retryable ? 'RATE_LIMITED' : 'OPERATION_FAILED', message, { retryable });
  }
}

/**
 * @param {unknown} text
 * @returns {text is string}
 */
const isName = (text) => typeof text === 'string' && text !== '' && text.length <= MAX_NAME;

/**
 * A tool as a capability; undefined if it has no usable name.
 * @param {unknown} tool
 * @throws {RangeError} if it is too large
 */
function capabilityOf(tool) {
  const name = getOwn(tool, 'name');
  const own = getOwn(getOwn(tool, '_meta'), CAPABILITY) ?? name;
  if (!isName(name) || !isName(own)) return undefined;
  /** @type {{ name: string, [key: string]: unknown }} */
  const shown = { name: own, available: true, requirements: [], features: {} };
  const description = getOwn(tool, 'description');
  if (typeof description === 'string') shown.description = description;
  for (const key of ['inputSchema', 'outputSchema', 'annotations']) {
    const value = getOwn(tool, key);
    if (isRecord(value)) shown[key] = value;
  }
  requireBounded(shown, { maxValues: MAX_TOOL / 4, maxCharacters: MAX_TOOL, maxDepth: 32 });
  const text = JSON.stringify([name, shown]);
  return text.length > MAX_TOOL ? undefined : { tool: name, shown, text };
}
