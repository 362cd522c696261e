/**
 * The connection to the `window.abp` of a page that Puppeteer or Playwright drives, or to its
 * WebMCP tools: see packages/automation/src/index.js.
 */
import inPage from '../../../dist/in-page.js';
import {
  AbpError,
  RelayTransport,
  followSignal,
  milliseconds,
  reasonUnsent,
  reportError,
  unless,
} from 'abp-bridge/driver';
import { PageTransport } from './page-transport.js';
import { questions } from './page-agent.js';
import { readAnswer } from '@abp-bridge/webmcp/page-tools';

/** @import { Found, PageAgent } from './page-agent.js' */
/** @import { Handle } from './page-transport.js' */
/** @import { ForeignApp, Hear } from 'abp-bridge/driver' */

/**
 * The used part of pages and frames; both libraries have it.
 * @typedef {object} PageLike
 * @property {(script: string) => Promise<unknown>} evaluateHandle of the result:
 *   `evaluate(function, argument)`, with the object itself as the function's first argument, and
 *   `dispose()`
 * @property {() => PageLike} [page] a frame's page
 * @property {() => boolean} [isClosed]
 * @property {() => boolean} [isDetached] a frame's, of Playwright
 * @property {boolean} [detached] a frame's, of Puppeteer
 * @property {(event: any, listener: (...args: unknown[]) => void) => unknown} [on]
 * @property {(event: any, listener: (...args: unknown[]) => void) => unknown} [off]
 */

/**
 * The script that is evaluated in the page.
 * @param {boolean} [webmcp]
 */
const scriptOf = (webmcp = false) => `(() => {
${inPage}
return inPage.agent(${webmcp});
})()`;

/**
 * The error of a page or frame that does not come back: a retry does not help.
 * @param {string} what
 */
const ended = (what) =>
  new AbpError('DISCONNECTED', `The ${what}: open another, and connect to that`);

/**
 * Connects to the `window.abp` of a page, as soon as there is one, or to its tools.
 * @param {PageLike} target a Frame, or a Page, which stands for its main frame
 * @param {Partial<import('./index.js').PageOptions>} options
 * @param {Promise<void>} [after] must settle first
 * @returns {Promise<{ transport: import('abp-bridge/driver').Transport,
 *   ended: Promise<void> }>} the transport to the app; `ended` settles when the object in the page
 *   has ended
 */
export async function connectToPage(target, { timeout = 10_000, signal, limits, webmcp }, after) {
  const page = target.page?.() ?? target;
  const { controller: stop, release: unfollow } = followSignal(signal);
  const closed = () => stop.abort(ended('page was closed'));
  const crashed = () =>
    stop.abort(
      new AbpError('DISCONNECTED', 'The page has crashed: load it again', { retryable: true }),
    );
  /** `crash` is Playwright's, `error` is Puppeteer's. */
  const gone = Object.entries({ close: closed, crash: crashed, error: crashed });
  const release = () => gone.forEach((event) => page.off?.(...event));
  for (const event of gone) page.on?.(...event);
  if (page.isClosed?.()) closed();
  else if (target.isDetached?.() ?? target.detached) stop.abort(ended('frame was removed'));
  try {
    const ms = milliseconds(timeout);
    const { agent, found } = await agentIn(target, stop, ms, webmcp, after);
    const lines = new PageTransport(agent, stop.signal);
    const { ended } = lines;
    void ended.then(release);
    if (found === 'ours') return { transport: lines, ended };
    const app = remoteApp(lines, found === 'tools', (cause) => transport.lose(cause));
    const transport = new RelayTransport(app, () => lines.close(), limits);
    return { transport, ended };
  } catch (error) {
    release();
    throw error;
  } finally {
    unfollow();
  }
}

/**
 * Injects the object into the page, where it waits for `window.abp`. If the page navigates, the
 * object is lost, and another is injected.
 * @param {PageLike} target
 * @param {AbortController} stop
 * @param {number} timeout ms
 * @param {boolean} [webmcp]
 * @param {Promise<void>} [after]
 * @returns {Promise<{ agent: Handle<PageAgent>, found: Found }>}
 */
async function agentIn(target, stop, timeout, webmcp, after) {
  const { signal } = stop;
  const script = scriptOf(webmcp);
  const wanted = webmcp ? 'Neither a window.abp nor WebMCP tools' : 'No window.abp';
  /** @type {Found} */
  let found = 'none';
  /** @type {unknown} */
  let cause;
  const late = () => {
    const never = `${wanted} appeared within ${timeout} ms`;
    const other = 'window.abp has no initialize and call: it is not an ABP app';
    stop.abort(
      found === 'other'
        ? new AbpError('NOT_SUPPORTED', other)
        : new AbpError('TIMEOUT', never, { retryable: true, cause }),
    );
  };
  const timer = timeout ? setTimeout(late, timeout) : undefined;
  try {
    await unless(signal, Promise.resolve(after));
    for (;;) {
      try {
        const handle = await unless(signal, target.evaluateHandle(script));
        const agent = /** @type {Handle<PageAgent>} */ (handle);
        for (let ms = 0; found === 'none' || found === 'other'; ms = 1000)
          found = await unless(
            signal,
            agent.evaluate((agent, ms) => agent.find(ms), ms),
          );
        return { agent, found };
      } catch (error) {
        signal.throwIfAborted();
        cause = error;
        await unless(signal, new Promise((resolve) => setTimeout(resolve, 50)));
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

/**
 * A foreign app in the page: sends requests to it, by the lines that page-agent.js describes.
 * @param {PageTransport} lines
 * @param {boolean} isTools whether it is the page's tools
 * @param {(cause: unknown) => void} lost called when the page is gone
 * @returns {ForeignApp}
 */
function remoteApp(lines, isTools, lost) {
  /** @type {Hear} */
  let hear = () => {};
  /** Why the page is gone. @type {{ cause: unknown } | undefined} */
  let gone;
  const { asked, receive, ...questioning } = questions(
    (line) => lines.post(line),
    (_method, [kind, report]) => hear(kind, report),
  );
  lines.onClose = (cause) => {
    gone = { cause };
    for (const { reject } of asked.values()) reject(cause);
    asked.clear();
    lost(cause);
  };
  // A failure affects only the page itself.
  lines.onMessage = (line) => void receive(line).catch(reportError);
  /**
   * @param {keyof ForeignApp} method
   * @param {unknown[]} args
   * @throws if the arguments cannot be sent
   */
  const ask = (method, ...args) =>
    gone ? Promise.reject(gone.cause) : questioning.ask(method, ...args);

  return {
    async open(params, hears, patience) {
      hear = hears;
      return ask('open', params, patience);
    },
    async call(name, params, options) {
      let answer;
      try {
        answer = ask('call', name, params, options);
      } catch (error) {
        const why = await reasonUnsent('parameters', 'params', params, error);
        throw new AbpError('INVALID_PARAMS', why);
      }
      return isTools ? readAnswer(await answer) : answer;
    },
    cancel: async (callId, reason) => ask('cancel', callId, reason),
    // If the page is gone, its app is, too.
    close: (reason) => ask('close', reason).catch(() => {}),
  };
}
