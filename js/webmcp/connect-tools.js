/** An agent in a page, and the WebMCP tools of that page's document or of a frame. */
import { connect } from '../agent/client.js';
import { localPage, pageEvents } from '../automation/local-page.js';
import { pageTools } from '../automation/page-tools.js';
import { pageTransport } from '../automation/page.js';
import { TOOLS } from '../automation/tools-way.js';
import { AbpError, toErrorObject } from '../common/errors.js';
import { modelContext } from '../common/model-context.js';
import { exactOrigin } from '../common/origins.js';
import { isObject } from '../common/values.js';
import { watchFrame } from '../transports/frame-watcher.js';

/**
 * See js/webmcp/index.js.
 * @param {Document | HTMLIFrameElement} target
 * @param {Omit<import('../agent/client.js').ConnectOptions, 'upgrade'>} options
 * @returns {Promise<import('../agent/client.js').Client>}
 */
export async function connectTools(target, options) {
  const iframe = isObject(target) && 'contentWindow' in target ? target : undefined;
  if (!iframe && target !== globalThis.document) {
    throw new AbpError('INVALID_PARAMS', "connectTools needs this page's document, or an iframe");
  }
  const { origin: given, ...rest } = options ?? {};
  const origin = iframe && exactOrigin(given);
  return connect(async () => {
    const { timeout, signal } = rest;
    if (!modelContext()) {
      throw new AbpError('NOT_SUPPORTED', 'This browser has no WebMCP: document.modelContext');
    }
    if (iframe && !iframe.contentWindow) {
      throw new AbpError('INVALID_PARAMS', 'The iframe is in no document: append it first');
    }
    const tools = pageTools({ window: iframe?.contentWindow ?? globalThis.window, origin });
    try {
      await tools.found();
    } catch (error) {
      throw AbpError.from(toErrorObject(error));
    }
    return pageTransport(watched(iframe, localPage(pageEvents(), tools)), {
      timeout,
      signal,
      tools: TOOLS,
    });
  }, rest);
}

/**
 * A page that is gone when its iframe has lost its document.
 * @param {HTMLIFrameElement | undefined} iframe
 * @param {import('../automation/page.js').PageLike} page
 * @returns {import('../automation/page.js').PageLike}
 */
function watched(iframe, page) {
  if (!iframe) return page;
  let unwatch = () => {};
  return {
    ...page,
    on(event, gone) {
      if (event !== 'close') return;
      const lost = () => gone();
      unwatch = watchFrame(iframe, { lost, leave: lost, close: lost }, () => true);
    },
    off: () => unwatch(),
  };
}
