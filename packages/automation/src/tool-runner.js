/**
 * Executes a WebMCP tool. Injected as text, so it uses nothing but what is injected with it:
 * packages/automation/src/model-context.js and packages/automation/src/plain-json.js.
 */
import { modelContext } from './model-context.js';
import { plainJson } from './plain-json.js';

/** @import { Tool } from './tool-list.js' */

/** @param {{ read: (anew?: boolean) => Promise<Map<string, Tool>> }} list of the document's tools */
export function toolRunner(list) {
  /** Whether `executeTool` took the input as text last: polyfills do, and browsers did. */
  let takesText = false;

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

  /**
   * @param {Tool} tool
   * @param {unknown} input
   * @param {AbortSignal} signal
   * @param {boolean} [asText]
   * @param {boolean} [isRetry] whether the other form was refused
   * @returns {Promise<unknown>}
   */
  async function execute(tool, input, signal, asText = takesText, isRetry = false) {
    try {
      const output = await modelContext().executeTool(
        tool,
        asText ? JSON.stringify(input) : input,
        {
          signal,
        },
      );
      takesText = asText;
      return output;
    } catch (error) {
      const { name, message } = /** @type {Error} */ (error ?? {});
      // Either way it was refused before the tool was called: what a tool throws has another form.
      const isRefused = name === 'TypeError' || /^Failed to parse input/.test(message);
      if (isRetry || !isRefused || signal.aborted) throw error;
      return execute(tool, input, signal, !asText, true);
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
    const tools = await list.read(true).catch(() => new Map());
    // A document that loads again may have registered the same tool by now: then only the browser's words tell.
    if (tools.has(name) && !/transient/.test(message)) {
      return { code: 'OPERATION_FAILED', message, retryable: false };
    }
    const gone = "The tool no longer exists, so its call's outcome is unknown";
    return { code: 'DISCONNECTED', message: gone, retryable: false };
  }

  /**
   * @param {Tool} tool
   * @param {unknown} params
   * @param {AbortSignal} signal
   * @returns {Promise<unknown>} the text that WebMCP gives; rejects with the protocol's error, or as the signal says
   */
  return async (tool, params, signal) => {
    const input = inputOf(params);
    signal.throwIfAborted();
    try {
      return await execute(tool, input, signal);
    } catch (error) {
      throw signal.aborted ? error : await errorOf(tool.name, error);
    }
  };
}
