/**
 * The WebMCP tools of a document, as an object of the form of `window.abp`, which the agent in the page (page-agent.js)
 * calls like any other. It is injected as text, so it uses nothing but what is injected with it:
 * js/common/model-context.js and js/wire/plain-json.js.
 *
 * WebMCP settles a call at once when its caller aborts, and drops what the tool says afterwards. So nobody here knows
 * whether the tool has stopped, and a response to a cancelled call says so: `error.details.outcome` is `'unknown'`.
 */
import { modelContext } from '../common/model-context.js';
import { plainJson } from '../wire/plain-json.js';

/**
 * @typedef {object} PageTools
 * @property {() => Promise<boolean>} found whether there are tools, and the page had the time to show a `window.abp`
 * @property {any} abp the tools, in the form of `window.abp`. A call that was executed is answered `{ said }`, the text
 *   that WebMCP gave
 */

/**
 * What a page registers, as WebMCP lists it.
 * @typedef {object} Tool
 * @property {string} name
 * @property {unknown} [title]
 * @property {unknown} [description]
 * @property {unknown} [inputSchema] JSON Schema, or its text
 * @property {object} [annotations]
 */

/** @typedef {{ added: string[], removed: string[], changed: string[] }} Changes names of tools */

/**
 * @param {object} [of]
 * @param {any} [of.window] the window whose tools are meant: this page's own, or that of a frame
 * @param {string} [of.origin] the exact origin of a frame
 * @param {number} [of.patience] ms that a page with tools has to show a `window.abp`
 * @returns {PageTools}
 */
export function pageTools({ window = globalThis, origin, patience = 0 } = {}) {
  const MAX_TOOLS = 4096;
  const page = /** @type {any} */ (globalThis);
  /** In ms, when tools were first seen. @type {number | undefined} */
  let seen;
  /** The tools by name; undefined when they must be asked for. @type {Map<string, Tool> | undefined} */
  let known;
  /** What was told of each, as text. @type {Map<string, string>} */
  let told = new Map();
  /** @type {((changes: Changes) => void) | undefined} */
  let onChanged;
  /** Calls that run, by callId. @type {Map<unknown, AbortController>} */
  const running = new Map();
  /** Whether `executeTool` takes the input as text: polyfills do, and browsers did. */
  let takesText = false;

  /** @param {unknown} value */
  const text = (value) => (typeof value === 'string' && value ? value : undefined);

  /** @returns {Promise<Map<string, Tool>>} */
  async function list() {
    if (known) return known;
    const others = origin !== undefined && origin !== page.location?.origin;
    const listed = await modelContext().getTools(others ? { fromOrigins: [origin] } : {});
    const tools = new Map();
    for (const tool of [...listed].slice(0, MAX_TOOLS)) {
      if (typeof tool?.name !== 'string' || tool.annotations?.debugging) continue;
      if ((tool.window ?? page) !== window) continue;
      if (origin !== undefined && tool.origin !== origin) continue;
      tools.set(tool.name, tool);
    }
    return (known = tools);
  }

  /** @param {unknown} schema as it is, or as text */
  function parsed(schema) {
    if (typeof schema !== 'string') return schema ?? undefined;
    try {
      return JSON.parse(schema);
    } catch {
      return undefined;
    }
  }

  /** @param {Tool} tool */
  function describe(tool) {
    const { name, title, description, inputSchema, annotations } = tool;
    const isNative = /\[native code\]/.test(
      Function.prototype.toString.call(modelContext().executeTool),
    );
    return {
      name,
      title: text(title),
      description: text(description),
      inputSchema: parsed(inputSchema),
      annotations: annotations ? { ...annotations } : undefined,
      available: true,
      requirements: [],
      // Whether the browser passes a cancel on to the tool, and whether what became of it is known.
      features: {
        cancellation: isNative && typeof inputSchema !== 'string',
        cancelOutcome: false,
        progress: false,
        elicitation: false,
      },
    };
  }

  async function describeAll() {
    const all = [...(await list()).values()].map(describe);
    told = new Map(all.map((tool) => [tool.name, JSON.stringify(tool)]));
    return all;
  }

  async function onToolChange() {
    known = undefined;
    const before = told;
    let all;
    try {
      all = await describeAll();
    } catch {
      return; // The document is going away.
    }
    const names = all.map(({ name }) => name);
    const added = names.filter((name) => !before.has(name));
    const removed = [...before.keys()].filter((name) => !told.has(name));
    const changed = names.filter((name) => before.has(name) && before.get(name) !== told.get(name));
    if (added.length || removed.length || changed.length) onChanged?.({ added, removed, changed });
  }

  /**
   * @param {Tool} tool
   * @param {unknown} input
   * @param {AbortSignal} signal
   * @returns {Promise<unknown>}
   */
  async function execute(tool, input, signal) {
    try {
      return await modelContext().executeTool(tool, takesText ? JSON.stringify(input) : input, {
        signal,
      });
    } catch (error) {
      const { name, message } = /** @type {Error} */ (error ?? {});
      // Either way it was refused before the tool was called: what a tool throws has another form.
      const isRefused = name === 'TypeError' || /^Failed to parse input/.test(message);
      if (takesText || !isRefused || signal.aborted) throw error;
      takesText = true;
      return execute(tool, input, signal);
    }
  }

  /**
   * The error of a call that WebMCP rejected. It hides what the tool threw.
   * @param {string} name
   * @param {any} error
   */
  async function errorOf(name, error) {
    const message = String(error?.message ?? error);
    /** @type {Record<string, string>} */
    const codes = { NotAllowedError: 'PERMISSION_DENIED', NotSupportedError: 'NOT_SUPPORTED' };
    const code = codes[error?.name];
    if (code) return { code, message, retryable: false };
    known = undefined;
    const there = await list().catch(() => new Map());
    // A document that loads again may have registered the same tool by now: then only the browser's words tell.
    if (there.has(name) && !/transient/.test(message)) {
      return { code: 'OPERATION_FAILED', message, retryable: false };
    }
    const gone = 'The tool is gone, and what became of its call is not known';
    const details = { outcome: 'unknown' };
    return { code: 'DISCONNECTED', message: gone, retryable: true, details };
  }

  const abp = {
    async initialize() {
      const all = await describeAll();
      modelContext().addEventListener?.('toolchange', onToolChange);
      const home = origin ?? page.location?.origin ?? 'null';
      const name = origin === undefined ? text(page.document?.title) : undefined;
      return {
        sessionId: `webmcp-${Math.random().toString(36).slice(2)}`,
        protocolVersion: '0.1',
        app: { id: home, name: name ?? home, version: '0', webmcp: true },
        capabilities: all,
        features: {
          notifications: true,
          progress: false,
          elicitation: false,
          dynamicCapabilities: true,
        },
      };
    },
    listCapabilities: describeAll,
    /** @param {(changes: Changes) => void} handler */
    onCapabilitiesChanged(handler) {
      onChanged = handler;
    },
    /**
     * @param {string} name
     * @param {unknown} params
     * @param {{ callId?: string }} [options]
     */
    async call(name, params, { callId } = {}) {
      const controller = new AbortController();
      running.set(callId, controller);
      try {
        let tool = (await list()).get(name);
        if (!tool) {
          known = undefined;
          tool = (await list()).get(name);
        }
        if (!tool) {
          const message = `Unknown capability: ${String(name).slice(0, 200)}`;
          throw { code: 'UNKNOWN_CAPABILITY', message, retryable: false };
        }
        let input;
        try {
          input = JSON.parse(JSON.stringify(params ?? {}, plainJson));
        } catch (error) {
          const message = `The parameters cannot be sent: ${/** @type {Error} */ (error).message}`;
          throw { code: 'INVALID_PARAMS', message, retryable: false };
        }
        controller.signal.throwIfAborted();
        try {
          return { said: await execute(tool, input, controller.signal) };
        } catch (error) {
          if (controller.signal.aborted) throw error;
          throw await errorOf(name, error);
        }
      } catch (error) {
        if (!controller.signal.aborted) throw error;
        const { reason } = controller.signal;
        return {
          success: false,
          cancelled: true,
          error: {
            code: 'CANCELLED',
            message: typeof reason === 'string' ? reason : 'The operation was cancelled',
            retryable: false,
            details: { outcome: 'unknown' },
          },
        };
      } finally {
        running.delete(callId);
      }
    },
    /**
     * @param {string} callId
     * @param {unknown} [reason]
     */
    async cancel(callId, reason) {
      const controller = running.get(callId);
      controller?.abort(reason);
      const why = controller
        ? 'WebMCP does not tell whether the tool has stopped'
        : 'Operation not found';
      return { callId, cancelled: false, reason: why };
    },
    /** @param {{ reason?: string }} [why] */
    async shutdown({ reason } = {}) {
      modelContext()?.removeEventListener?.('toolchange', onToolChange);
      onChanged = undefined;
      for (const controller of running.values()) controller.abort(reason);
    },
  };

  return {
    async found() {
      if (seen === undefined) {
        known = undefined;
        if (!modelContext() || !(await list()).size) return false;
        seen = performance.now();
      }
      const isLoaded = page.document?.readyState === 'complete';
      return patience === 0 || (isLoaded && performance.now() - seen >= patience);
    },
    abp,
  };
}
