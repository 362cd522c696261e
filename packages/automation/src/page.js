/**
 * The connection to the `window.abp` of a page that Puppeteer or Playwright drives, or to its WebMCP tools. An object in
 * the page (page-agent.js) calls them; packages/automation/src/page-transport.js carries the lines. An app of this library
 * is at their other end. Another one is asked (remote-app.js), and its endpoint is here.
 */
import { fromBase64, toBase64 } from '../../binary/src/base64.js';
import { requireBounded, walkBounded } from '../../untrusted/src/bounds.js';
import { bytesOf } from '../../binary/src/binary.js';
import { boundedText, fromMarked, fromText, markedText, toText } from './clone-codec.js';
import { AbpError } from '../../../js/common/errors.js';
import { unless, whenAborted } from '../../../js/common/waiting.js';
import { milliseconds } from '../../../js/common/values.js';
import { MAX_FETCH_CHARACTERS, PageTransport } from './page-transport.js';
import { foreignApp, inTime } from './foreign/foreign-app.js';
import { ForeignTransport } from './foreign/foreign-transport.js';
import { REPORTERS } from '../../page/src/reporters.js';
import { pageAgent } from './page-agent.js';
import { RemoteApp } from './remote-app.js';

/** @import { Found, PageAgent } from './page-agent.js' */
/** @import { Handle } from './page-transport.js' */

/**
 * What we use of pages and frames; both libraries have it.
 * @typedef {object} PageLike
 * @property {(script: string) => Promise<unknown>} evaluateHandle of the result: `evaluate(function, argument)`, with
 *   the object itself as the function's first argument, and `dispose()`
 * @property {() => PageLike} [page] a frame's page
 * @property {() => boolean} [isClosed]
 * @property {() => boolean} [isDetached] a frame's, of Playwright
 * @property {boolean} [detached] a frame's, of Puppeteer
 * @property {(event: any, listener: (...args: unknown[]) => void) => unknown} [on]
 * @property {(event: any, listener: (...args: unknown[]) => void) => unknown} [off]
 */

/** Events of a page that is gone: `crash` is Playwright's, `error` is Puppeteer's. */
const GONE = ['close', 'crash', 'error'];

/** The error of what does not come back: trying again does not help. @param {string} what */
const ended = (what) =>
  new AbpError('DISCONNECTED', `The ${what}: open another, and connect to that`);

/**
 * How a page's WebMCP tools are reached. It is an argument, so that a page that has no use for them does not load it.
 * @typedef {object} ToolsWay
 * @property {((...args: any[]) => any)[]} functions what is injected besides, the last of which makes the tools
 * @property {object} [options] its argument
 * @property {(answer: unknown) => unknown} read makes a response of the answer to a call
 */

/**
 * What is evaluated in the page.
 * @param {ToolsWay} [tools]
 */
function scriptOf(tools) {
  const shared = [
    bytesOf,
    fromBase64,
    toBase64,
    walkBounded,
    requireBounded,
    boundedText,
    fromMarked,
    fromText,
  ];
  const functions = [
    ...[...shared, markedText, toText, inTime, foreignApp],
    ...[...(tools?.functions ?? []), pageAgent],
  ];
  const make = tools?.functions.at(-1)?.name;
  const made = make ? `, globalThis, ${make}(${JSON.stringify(tools?.options)})` : '';
  return `(() => {
'use strict';
${functions.join('\n')}
return ${pageAgent.name}(${MAX_FETCH_CHARACTERS}, ${JSON.stringify(REPORTERS)}${made});
})()`;
}

/**
 * @typedef {object} PageConnection
 * @property {import('../../../js/transports/transport.js').Transport} transport to the app
 * @property {Promise<void>} ended settles when the object in the page has ended
 */

/**
 * Connects to the `window.abp` of a page, as soon as there is one, or to its tools.
 * @param {PageLike} target a Page, whose main frame is meant, or a Frame
 * @param {object} options
 * @param {number} [options.timeout] ms to wait for `window.abp` (10000)
 * @param {AbortSignal} [options.signal] stops waiting
 * @param {import('../../../js/agent/client.js').AgentOptions['limits']} [options.limits]
 * @param {Promise<void>} [options.after] what must have ended first
 * @param {ToolsWay} [options.tools] takes the page's WebMCP tools where there is no `window.abp`
 * @returns {Promise<PageConnection>}
 */
export async function connectToPage(target, { timeout = 10_000, signal, limits, after, tools }) {
  const page = target.page?.() ?? target;
  const stop = new AbortController();
  const closed = () => stop.abort(ended('page was closed'));
  const crashed = () =>
    stop.abort(
      new AbpError('DISCONNECTED', 'The page has crashed: load it again', { retryable: true }),
    );
  const listenerOf = (/** @type {string} */ event) => (event === 'close' ? closed : crashed);
  const unfollow = whenAborted(signal, () => stop.abort(signal?.reason));
  const release = () => GONE.forEach((event) => page.off?.(event, listenerOf(event)));
  for (const event of GONE) page.on?.(event, listenerOf(event));
  if (page.isClosed?.()) closed();
  else if (target.isDetached?.() ?? target.detached) stop.abort(ended('frame was removed'));
  try {
    const { agent, found } = await agentIn(target, stop, milliseconds(timeout), { after, tools });
    const lines = new PageTransport(agent, { gone: stop.signal, release });
    const { ended } = lines;
    if (found === 'ours') return { transport: lines, ended };
    /** @type {ForeignTransport} */
    const transport = new ForeignTransport(
      new RemoteApp(lines, { read: tools?.read, lost: (cause) => transport.lose(cause) }),
      limits,
      () => lines.close(),
    );
    return { transport, ended };
  } catch (error) {
    release();
    throw error;
  } finally {
    unfollow();
  }
}

/**
 * Injects the object into the page, where it waits for `window.abp`. If the page navigates, the object is lost, and
 * another is injected.
 * @param {PageLike} target
 * @param {AbortController} stop
 * @param {number} timeout ms
 * @param {{ after?: Promise<void>, tools?: ToolsWay }} options
 * @returns {Promise<{ agent: Handle<PageAgent>, found: Found }>}
 */
async function agentIn(target, stop, timeout, { after, tools }) {
  const { signal } = stop;
  const script = scriptOf(tools);
  const wanted = tools ? 'Neither a window.abp nor WebMCP tools' : 'No window.abp';
  /** @type {Found} */
  let found = 'none';
  /** @type {unknown} */
  let cause;
  const late = () =>
    stop.abort(
      found === 'other'
        ? new AbpError(
            'NOT_SUPPORTED',
            'window.abp has no initialize and call: it is not an ABP app',
          )
        : new AbpError('TIMEOUT', `${wanted} appeared within ${timeout} ms`, {
            retryable: true,
            cause,
          }),
    );
  const timer = timeout ? setTimeout(late, timeout) : undefined;
  try {
    await unless(signal, Promise.resolve(after));
    for (;;) {
      try {
        const handle = await unless(signal, target.evaluateHandle(script));
        const agent = /** @type {Handle<PageAgent>} */ (handle);
        for (let ms = 0; found !== 'ours' && found !== 'foreign'; ms = 1000) {
          const question = (/** @type {PageAgent} */ agent, /** @type {number} */ ms) =>
            agent.find(ms);
          found = await unless(signal, agent.evaluate(question, ms));
        }
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
