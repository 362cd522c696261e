/**
 * The app's side of WebMCP: what `expose` takes as its option `webmcp`. The rest is loaded where the browser, or a
 * polyfill, has `document.modelContext`.
 */
import { requireOptions } from '../../../js/common/check-options.js';
import { reportError } from '../../../js/common/errors.js';
import { modelContext } from '../../automation/src/model-context.js';
import { exactOrigin } from '../../../js/common/origins.js';

/**
 * @typedef {object} WebMcpOptions How capabilities become tools.
 * @property {string[]} [origins] the exact origins of pages whose scripts may see and call the tools, in frames around or
 *   in this one (those of `expose`). Scripts of this page's own origin, the browser's agent and whoever drives the browser
 *   always may
 */

/** @type {import('../../../js/common/check-options.js').Kinds<WebMcpOptions>} */
// prettier-ignore
const OPTIONS = {
  origins: 'an object',
};

/** @typedef {import('../../../js/types/app.js').ServedApp} ExposedApp */
/** @typedef {import('../../../js/types/app.js').WebMcp} WebMcp */

/**
 * Makes an app's capabilities WebMCP tools: `expose(definition, { origins, webmcp: webmcp() })`. Each is a tool as long as it
 * is available. Nothing happens, and nothing more is loaded, where there is no `document.modelContext` once the app is
 * ready.
 * @param {WebMcpOptions} [options]
 * @returns {WebMcp}
 * @throws {import('../../../js/common/errors.js').AbpError} INVALID_PARAMS if an origin is not exact
 */
export function webmcp(options = {}) {
  requireOptions('webmcp', options, OPTIONS);
  const exposedTo = options.origins?.map((origin) => exactOrigin(origin));
  return (app) => {
    /** @type {import('./tools.js').Tools | undefined} */
    let tools;
    let isClosed = false;
    const begin = async () => {
      await app.exposed.ready;
      const context = modelContext();
      if (!context || isClosed) return;
      const { Tools } = await import('./tools.js');
      if (!isClosed) tools = new Tools(context, app, exposedTo ?? app.origins);
    };
    // An app that does not get ready says so itself.
    begin().catch((error) => isClosed || reportError(error));
    return {
      changed: () => tools?.update(),
      close() {
        isClosed = true;
        tools?.close();
      },
    };
  };
}
