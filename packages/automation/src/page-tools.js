/**
 * The WebMCP tools of a document, as an object of the form of `window.abp`, which is called like any other app of others'
 * making. It is injected as text, so it uses nothing but what is injected with it.
 *
 * WebMCP settles a call at once when its caller aborts, and drops what the tool says afterwards. So nobody here knows
 * whether the tool has stopped, and a response to a cancelled call says so: `metadata.outcome` is `'unknown'`.
 */
import { modelContext } from './model-context.js';
import { toolList } from './tool-list.js';
import { toolRunner } from './tool-runner.js';

/** @import { Changes } from './tool-list.js' */

/**
 * @typedef {object} PageTools
 * @property {() => Promise<boolean>} found whether there are tools, and the page had the time to show a `window.abp`
 * @property {any} abp the tools, in the form of `window.abp`. A call that was executed is answered `{ output }`, the text
 *   that WebMCP gave
 */

/**
 * @param {object} [of]
 * @param {any} [of.window] the window whose tools are meant: this page's own, or that of a frame
 * @param {string} [of.origin] the exact origin of a frame
 * @param {number} [of.patience] ms that a page with tools has to show a `window.abp`
 * @returns {PageTools}
 */
export function pageTools({ window = globalThis, origin, patience = 0 } = {}) {
  const page = /** @type {any} */ (globalThis);
  const list = toolList({ window, origin });
  const run = toolRunner(list);
  /** In ms, when tools were first seen. @type {number | undefined} */
  let seen;
  /** @type {((changes: Changes) => void) | undefined} */
  let onChanged;
  /** What aborts the calls that run, by callId. @type {Map<unknown, AbortController>} */
  const running = new Map();

  async function onToolChange() {
    const changes = await list.changes();
    if (changes) onChanged?.(changes);
  }

  const abp = {
    async initialize() {
      const capabilities = await list.describe();
      modelContext().addEventListener?.('toolchange', onToolChange);
      const home = origin ?? page.location?.origin ?? 'null';
      const name = (origin === undefined && page.document?.title) || home;
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
    },
    listCapabilities: list.describe,
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
        const tool = await list.find(name);
        if (tool) return { output: await run(tool, params, controller.signal) };
        const message = `Unknown capability: ${String(name).slice(0, 200)}`;
        const error = { code: 'UNKNOWN_CAPABILITY', message, retryable: false };
        return { success: false, error, metadata: { outcome: 'unstarted' } };
      } catch (error) {
        const metadata = { outcome: 'unknown' };
        if (controller.signal.aborted) return { success: false, cancelled: true, metadata };
        if (/** @type {any} */ (error)?.code === 'DISCONNECTED')
          return { success: false, error, metadata };
        throw error;
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
      if (controller) return { callId, cancelled: false, outcome: 'unknown' };
      return { callId, cancelled: false, reason: 'Operation not found' };
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
        if (!modelContext() || !(await list.read(true)).size) return false;
        seen = performance.now();
      }
      const isLoaded = page.document?.readyState === 'complete';
      return patience === 0 || (isLoaded && performance.now() - seen >= patience);
    },
    abp,
  };
}
