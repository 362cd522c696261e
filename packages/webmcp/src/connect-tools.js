/** An agent in a page, and the WebMCP tools of that page's document or of a frame. */
import { connect } from 'abp-bridge';
import {
  AbpError,
  RelayTransport,
  exactOrigin,
  foreignApp,
  isObject,
  milliseconds,
  toErrorObject,
  watchIframe,
} from 'abp-bridge/driver';
import { pageTools, readAnswer } from './page-tools.js';
import { modelContext } from './model-context.js';

/**
 * See packages/webmcp/src/index.js.
 * @param {Document | HTMLIFrameElement} target
 * @param {Parameters<typeof import('./index.js').connectTools>[1]} options
 * @param {(iframe: HTMLIFrameElement) => boolean} isLoaded
 */
export async function connectTools(target, options, isLoaded) {
  const iframe = isObject(target) && 'contentWindow' in target ? target : undefined;
  if (!iframe && target !== globalThis.document) {
    throw new AbpError('INVALID_PARAMS', "connectTools needs this page's document or an iframe");
  }
  const { origin: given, ...rest } = options ?? {};
  const origin = iframe && exactOrigin(given);
  const open = async () => {
    const without = 'This browser does not have WebMCP (document.modelContext)';
    if (!modelContext()) throw new AbpError('NOT_SUPPORTED', without);
    if (iframe && !iframe.contentWindow) {
      throw new AbpError('INVALID_PARAMS', 'The iframe is not in a document: append it first');
    }
    const tools = pageTools({ window: iframe?.contentWindow ?? globalThis.window, origin });
    await someTool(tools, rest);
    const app = foreignApp({ abp: tools.abp });
    const call = app.call.bind(app);
    app.call = async (...made) => readAnswer(await call(...made));
    let unwatch = () => {};
    const transport = new RelayTransport(app, () => unwatch(), rest.limits);
    if (iframe) {
      const gone = () =>
        transport.lose(new AbpError('DISCONNECTED', 'The page was closed', { retryable: true }));
      unwatch = watchDocument(iframe, !isLoaded(iframe), gone);
    }
    return transport;
  };
  return connect(Object.assign(open, { iframe }), rest);
}

/**
 * Waits until there is a tool.
 * @param {import('./page-tools.js').PageTools} tools
 * @param {{ timeout?: number, signal?: AbortSignal }} options
 */
async function someTool(tools, { timeout = 10_000, signal }) {
  const limit = milliseconds(timeout) || Infinity;
  for (const until = performance.now() + limit; ; await pause()) {
    signal?.throwIfAborted();
    try {
      if (await tools.found()) return;
    } catch (error) {
      throw AbpError.from(toErrorObject(error));
    }
    if (performance.now() > until) {
      const why = `No WebMCP tools appeared within ${timeout} ms`;
      throw new AbpError('TIMEOUT', why, { retryable: true });
    }
  }
}

/** Ms between two checks. */
const PAUSE = 20;
const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE));

/**
 * Detects when an iframe has lost its document.
 * @param {HTMLIFrameElement} iframe
 * @param {boolean} own whether its `load` is still to come: a document of another site can neither
 *   be compared nor asked, and that is the first after its tools came
 * @param {() => void} lost
 * @returns {() => void} stops it
 */
function watchDocument(iframe, own, lost) {
  // A frame that has begun to load still shows an empty document.
  const shown = iframe.contentDocument?.URL === 'about:blank' ? undefined : iframe.contentDocument;
  const suspect = () => {
    const same = shown ? iframe.contentDocument === shown : own;
    own = false;
    if (!same) lost();
  };
  return watchIframe(iframe, { lost, suspect, leave: lost, close: lost });
}
