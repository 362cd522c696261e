/**
 * The WebMCP tools of a document, as an object of the form of `window.abp`, which is called like
 * any foreign app. It is made in the document of the tools: in a driven page, too.
 *
 * WebMCP settles a call at once when its caller aborts, and drops the tool's later answer. So it is
 * unknown whether the tool has stopped, and the response to a cancelled call says so:
 * `metadata.outcome` is `'unknown'`.
 */
import {
  copyRecord,
  firstOf,
  getOwn,
  isObject,
  isResponse,
  plainJson,
  textToBytes,
} from 'abp-bridge/driver';
import { modelContext } from './model-context.js';

export { modelContext };

/**
 * A tool of a page, as WebMCP lists it. `inputSchema` is JSON Schema, or its text.
 * @typedef {object} Tool
 * @property {string} name
 * @property {unknown} [title]
 * @property {unknown} [description]
 * @property {unknown} [inputSchema]
 * @property {object} [annotations]
 */

/**
 * @typedef {object} PageTools The tools of a page.
 * @property {() => Promise<boolean>} found whether there are tools, and the page had the time to
 *   show a `window.abp`
 * @property {any} abp the tools, in the form of `window.abp`. A call that was executed is answered
 *   `{ output }`, WebMCP's text: see {@link readAnswer}
 */

/** Tools that are read at most. */
const MAX_TOOLS = 4096;
const page = /** @type {any} */ (globalThis);

/**
 * A tool as a capability.
 * @param {Tool} tool
 */
function describe({ name, title, description, inputSchema, annotations }) {
  const text = (/** @type {unknown} */ value) =>
    typeof value === 'string' && value ? value : undefined;
  const { toString } = Function.prototype;
  const isNative = /\[native code\]/.test(toString.call(modelContext().executeTool));
  const isText = typeof inputSchema === 'string';
  let schema = inputSchema ?? undefined;
  try {
    if (isText) schema = JSON.parse(inputSchema);
  } catch {
    schema = undefined;
  }
  return {
    name,
    title: text(title),
    description: text(description),
    inputSchema: schema,
    annotations: annotations ? { ...annotations } : undefined,
    available: true,
    requirements: [],
    // Whether the browser passes a cancel on to the tool, and whether the outcome is known.
    features: {
      cancellation: isNative && !isText,
      cancelOutcome: false,
      progress: false,
      elicitation: false,
    },
  };
}

/** The tools of a window. */
class ToolList {
  #window;
  #origin;
  /** By name; undefined when they must be requested. @type {Map<string, Tool> | undefined} */
  #known;
  /** The last description of each, as text. @type {Map<string, string>} */
  #described = new Map();

  /**
   * @param {any} window
   * @param {string} [origin]
   */
  constructor(window, origin) {
    this.#window = window;
    this.#origin = origin;
  }

  /**
   * Requests the tools.
   * @returns {Promise<Map<string, Tool>>}
   */
  async ask() {
    const [window, origin] = [this.#window, this.#origin];
    this.#known = undefined;
    const others = origin !== undefined && origin !== page.location?.origin;
    const listed = await modelContext().getTools(others ? { fromOrigins: [origin] } : {});
    const tools = new Map();
    for (const tool of [...listed].slice(0, MAX_TOOLS)) {
      if (typeof tool?.name !== 'string' || tool.annotations?.debugging) continue;
      if ((tool.window ?? page) !== window) continue;
      if (origin !== undefined && tool.origin !== origin) continue;
      tools.set(tool.name, tool);
    }
    return (this.#known = tools);
  }

  /** @param {string} name */
  async find(name) {
    return this.#known?.get(name) ?? (await this.ask()).get(name);
  }

  /** All tools as capabilities. */
  async describe() {
    const all = [...(this.#known ?? (await this.ask())).values()].map(describe);
    this.#described = new Map(all.map((tool) => [tool.name, JSON.stringify(tool)]));
    return all;
  }

  /**
   * The changes since they were described.
   * @returns {Promise<object | undefined>} the names; undefined if nothing has changed
   */
  async changes() {
    this.#known = undefined;
    const before = this.#described;
    await this.describe();
    const told = this.#described;
    const names = [...told.keys()];
    const added = names.filter((name) => !before.has(name));
    const removed = [...before.keys()].filter((name) => !told.has(name));
    const changed = names.filter((name) => before.has(name) && before.get(name) !== told.get(name));
    return added.length || removed.length || changed.length
      ? { added, removed, changed }
      : undefined;
  }
}

/** @param {unknown} params */
function inputOf(params) {
  try {
    const input = JSON.parse(JSON.stringify(params ?? {}, plainJson));
    if (typeof (input ?? '') !== 'object') throw new TypeError('WebMCP takes an object');
    return input;
  } catch (error) {
    const message = `The parameters cannot be sent: ${/** @type {Error} */ (error).message}`;
    throw { code: 'INVALID_PARAMS', message, retryable: false };
  }
}

/** The tools in the form of `window.abp`. */
class ToolsApp {
  #tools;
  #origin;
  /** Called with changes. @type {((changes: object) => void) | undefined} */
  #onChanged;
  /** True if `executeTool` last accepted the input as text: polyfills do, and browsers did. */
  #takesText = false;
  /** Abort the running calls, by callId. @type {Map<unknown, AbortController>} */
  #running = new Map();

  /**
   * @param {ToolList} tools
   * @param {string} [origin]
   */
  constructor(tools, origin) {
    this.#tools = tools;
    this.#origin = origin;
  }

  async initialize() {
    const capabilities = await this.#tools.describe();
    modelContext().addEventListener?.('toolchange', this.#onToolChange);
    const home = this.#origin ?? page.location?.origin ?? 'null';
    const name = (this.#origin === undefined && page.document?.title) || home;
    return {
      sessionId: `webmcp-${Math.random().toString(36).slice(2)}`,
      protocolVersion: '0.1',
      app: { id: home, name, version: '0', webmcp: true },
      capabilities,
      features: {
        notifications: true,
        progress: false,
        elicitation: false,
        dynamicCapabilities: true,
      },
    };
  }

  listCapabilities() {
    return this.#tools.describe();
  }

  /** @param {(changes: object) => void} handler */
  onCapabilitiesChanged(handler) {
    this.#onChanged = handler;
  }

  #onToolChange = async () => {
    const changes = await this.#tools.changes().catch(() => {}); // The document is going away.
    if (changes) this.#onChanged?.(changes);
  };

  /**
   * @param {string} name
   * @param {unknown} params
   * @param {{ callId?: string }} [options]
   */
  async call(name, params, { callId } = {}) {
    const controller = new AbortController();
    const { signal } = controller;
    this.#running.set(callId, controller);
    try {
      const tool = await this.#tools.find(name);
      if (!tool) {
        const message = `Unknown capability: ${String(name).slice(0, 200)}`;
        const error = { code: 'UNKNOWN_CAPABILITY', message, retryable: false };
        return { success: false, error, metadata: { outcome: 'unstarted' } };
      }
      const input = inputOf(params);
      signal.throwIfAborted();
      return { output: await this.#execute(tool, input, signal) };
    } catch (error) {
      const metadata = { outcome: 'unknown' };
      if (signal.aborted) return { success: false, cancelled: true, metadata };
      if (/** @type {any} */ (error)?.code === 'DISCONNECTED')
        return { success: false, error, metadata };
      throw error;
    } finally {
      this.#running.delete(callId);
    }
  }

  /**
   * @param {Tool} tool
   * @param {unknown} input
   * @param {AbortSignal} signal
   * @param {boolean} [asText]
   * @param {boolean} [isRetry] whether the other form was rejected
   * @returns {Promise<unknown>} WebMCP's text; rejects with the protocol's error, or with the
   *   signal's reason
   */
  async #execute(tool, input, signal, asText = this.#takesText, isRetry = false) {
    try {
      const given = asText ? JSON.stringify(input) : input;
      const output = await modelContext().executeTool(tool, given, { signal });
      this.#takesText = asText;
      return output;
    } catch (error) {
      const { name, message } = /** @type {Error} */ (error ?? {});
      // It was rejected before the tool was called: errors of tools have another form.
      const isRefused = name === 'TypeError' || /^Failed to parse input/.test(message);
      if (signal.aborted) throw error;
      if (isRetry || !isRefused) throw await this.#errorOf(tool.name, error);
      return this.#execute(tool, input, signal, !asText, true);
    }
  }

  /**
   * The error of a call that WebMCP rejected. WebMCP hides the tool's own error.
   * @param {string} name
   * @param {any} error
   */
  async #errorOf(name, error) {
    const message = String(error?.message ?? error);
    /** @type {Record<string, string>} */
    const codes = { NotAllowedError: 'PERMISSION_DENIED', NotSupportedError: 'NOT_SUPPORTED' };
    const code = codes[error?.name];
    if (code) return { code, message, retryable: false };
    const tools = await this.#tools.ask().catch(() => new Map());
    // A document that loads again may have registered the same tool by now: then only the browser's
    // message shows it.
    if (tools.has(name) && !/transient/.test(message)) {
      return { code: 'OPERATION_FAILED', message, retryable: false };
    }
    const gone = "The tool no longer exists, so its call's outcome is unknown";
    return { code: 'DISCONNECTED', message: gone, retryable: false };
  }

  /**
   * @param {string} callId
   * @param {unknown} [reason]
   */
  async cancel(callId, reason) {
    const controller = this.#running.get(callId);
    controller?.abort(reason);
    if (controller) return { callId, cancelled: false, outcome: 'unknown' };
    return { callId, cancelled: false, reason: 'Operation not found' };
  }

  /** @param {{ reason?: string }} [why] */
  async shutdown({ reason } = {}) {
    modelContext()?.removeEventListener?.('toolchange', this.#onToolChange);
    this.#onChanged = undefined;
    for (const controller of this.#running.values()) controller.abort(reason);
  }
}

/**
 * @param {object} [of]
 * @param {any} [of.window] the window of the tools: this page's own, or that of a frame
 * @param {string} [of.origin] the exact origin of a frame
 * @param {number} [of.patience] ms that a page with tools has to show a `window.abp`
 * @returns {PageTools}
 */
export function pageTools({ window = globalThis, origin, patience = 0 } = {}) {
  const tools = new ToolList(window, origin);
  /** In ms, when tools were first seen. @type {number | undefined} */
  let seen;
  return {
    async found() {
      if (seen === undefined) {
        if (!modelContext() || !(await tools.ask()).size) return false;
        seen = performance.now();
      }
      const isLoaded = page.document?.readyState === 'complete';
      return patience === 0 || (isLoaded && performance.now() - seen >= patience);
    },
    abp: new ToolsApp(tools, origin),
  };
}

/** Parts of an MCP result that are searched for text. */
const MAX_PARTS = 64;

/**
 * Reads the answer to a call of a tool, outside of its page.
 * @param {unknown} answer
 * @returns {unknown} unchanged, if the tool was not executed; the response that the tool returned,
 *   if it is one; otherwise a success with the returned value, or MCP's `isError` as a failure
 */
export function readAnswer(answer) {
  if (!isObject(answer) || !Object.hasOwn(answer, 'output')) return answer;
  const value = valueOf(getOwn(answer, 'output'));
  if (isResponse(value)) return value;
  const content = getOwn(value, 'content');
  if (!Array.isArray(content) || getOwn(value, 'isError') !== true) {
    return { success: true, ...(value !== undefined && { data: value }) };
  }
  const texts = firstOf(content, MAX_PARTS).map((part) => getOwn(part, 'text'));
  const message =
    texts.filter((text) => typeof text === 'string').join('\n') ||
    'The tool failed without giving a reason';
  const details = copyRecord(value);
  return {
    success: false,
    error: { code: 'OPERATION_FAILED', message, retryable: false, details },
  };
}

/** @param {unknown} output JSON or, where the tool returned a string, that string */
function valueOf(output) {
  // Chromium writes `undefined` as this text; null means that the document was left.
  if (typeof output !== 'string' || output === 'undefined') return undefined;
  try {
    return JSON.parse(output, textToBytes);
  } catch {
    return output;
  }
}
