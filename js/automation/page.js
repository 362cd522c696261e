/**
 * The connection to the `window.abp` of a page that Puppeteer or Playwright drives, or to its WebMCP tools. An object in
 * the page (page-agent.js) calls them; js/transports/page.js carries the messages.
 */
import { fromBase64, toBase64 } from '../common/base64.js';
import { requireBounded } from '../common/bounds.js';
import { bytesOf } from '../wire/binary.js';
import { boundedText, fromMarked, fromText, markedText, toText } from '../wire/clone-codec.js';
import { AbpError, saysCancelled, toErrorObject } from '../common/errors.js';
import { offAbort, onAbort } from '../common/signals.js';
import { milliseconds } from '../common/values.js';
import { CALL } from '../wire/messages.js';
import { MAX_FETCH_CHARACTERS, PageTransport, unless } from '../transports/page.js';
import { pageAgent } from './page-agent.js';

/** @import { PageAgent } from './page-agent.js' */
/** @import { Handle } from '../transports/page.js' */

/**
 * What we use of pages and frames; both libraries have it.
 * @typedef {object} PageLike
 * @property {(script: string) => Promise<unknown>} evaluateHandle of the result: `evaluate(function, argument)`, with
 *   the object itself as the function's first argument, and `dispose()`
 * @property {() => PageLike} [page] a frame's page
 * @property {() => boolean} [isClosed]
 * @property {(event: any, listener: (...args: unknown[]) => void) => unknown} [on]
 * @property {(event: any, listener: (...args: unknown[]) => void) => unknown} [off]
 */

/** Events of a page that is gone: `crash` is Playwright's, `error` is Puppeteer's. */
const GONE = ['close', 'crash', 'error'];

const CANCEL_RESULT = 'capabilities/cancel-result';

/**
 * How a page's WebMCP tools are reached. It is an argument, so that a page that has no use for them does not load it.
 * @typedef {object} ToolsWay
 * @property {((...args: any[]) => any)[]} functions what is injected besides, the last of which makes the tools
 * @property {object} [options] its argument
 * @property {(said: unknown) => import('../agent/client.js').Response} read reads what a tool returned
 */

/**
 * What is evaluated in the page.
 * @param {ToolsWay} [tools]
 */
function scriptOf(tools) {
  const shared = [bytesOf, fromBase64, toBase64, requireBounded, boundedText, fromMarked, fromText];
  const functions = [...shared, markedText, toText, ...(tools?.functions ?? []), pageAgent];
  const make = tools?.functions.at(-1)?.name;
  const made = make ? `, globalThis, ${make}(${JSON.stringify(tools?.options)})` : '';
  return `(() => {
'use strict';
${functions.join('\n')}
return ${pageAgent.name}(${MAX_FETCH_CHARACTERS}${made});
})()`;
}

/**
 * Connects to the `window.abp` of a page, as soon as there is one, or to its tools.
 * @param {PageLike} target a Page, whose main frame is meant, or a Frame
 * @param {object} options
 * @param {number} [options.timeout] ms to wait for `window.abp` (10000)
 * @param {AbortSignal} [options.signal] stops waiting
 * @param {Promise<void>} [options.after] what must have ended first
 * @param {ToolsWay} [options.tools] takes the page's WebMCP tools where there is no `window.abp`
 * @returns {Promise<PageTransport>}
 */
export async function pageTransport(target, { timeout = 10_000, signal, after, tools }) {
  const page = target.page?.() ?? target;
  const stop = new AbortController();
  const gone = () =>
    stop.abort(new AbpError('DISCONNECTED', 'The page is gone', { retryable: true }));
  const given = { handleEvent: () => stop.abort(signal?.reason) };
  const release = () => GONE.forEach((event) => page.off?.(event, gone));
  for (const event of GONE) page.on?.(event, gone);
  onAbort(signal, given);
  if (page.isClosed?.()) gone();
  try {
    const agent = await agentIn(target, stop, milliseconds(timeout), { after, tools });
    const read = (/** @type {string} */ line) => readMessage(line, tools);
    return new PageTransport(agent, { read, gone: stop.signal, release });
  } catch (error) {
    release();
    throw error;
  } finally {
    offAbort(signal, given);
  }
}

/**
 * Injects the object into the page, where it waits for `window.abp`. If the page navigates, the object is lost, and
 * another is injected.
 * @param {PageLike} target
 * @param {AbortController} stop
 * @param {number} timeout ms
 * @param {{ after?: Promise<void>, tools?: ToolsWay }} options
 * @returns {Promise<Handle<PageAgent>>}
 */
async function agentIn(target, stop, timeout, { after, tools }) {
  const { signal } = stop;
  const script = scriptOf(tools);
  const wanted = tools ? 'neither a window.abp nor WebMCP tools' : 'no window.abp';
  let found = 'none';
  /** @type {unknown} */
  let cause;
  const late = () =>
    stop.abort(
      found === 'other'
        ? new AbpError('NOT_SUPPORTED', 'window.abp has no initialize and call: it is not of ABP')
        : new AbpError('TIMEOUT', `The page has shown ${wanted} in time`, {
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
        for (let ms = 0; found !== 'ready'; ms = 1000) {
          const question = (/** @type {PageAgent} */ there, /** @type {number} */ ms) =>
            there.find(ms);
          found = await unless(signal, agent.evaluate(question, ms));
        }
        return agent;
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
 * Reads a message of the page. What an app threw is converted to the protocol's error here, and what a tool returned to
 * its response.
 * @param {string} line
 * @param {ToolsWay} [tools]
 * @returns {any} null if it is unreadable
 */
function readMessage(line, tools) {
  let message;
  try {
    message = fromText(line);
  } catch {
    return null;
  }
  if (typeof message !== 'object' || message === null) return null;
  const { type } = message;
  if (Object.hasOwn(message, 'thrown')) {
    const { thrown } = message;
    const error = toErrorObject(thrown);
    if (type === CANCEL_RESULT) {
      message.payload = { cancelled: false, reason: error.message, error };
    } else if (saysCancelled(thrown)) {
      message.payload = { success: false, cancelled: true, error: { ...error, code: 'CANCELLED' } };
    } else message.payload = { success: false, error };
  } else if (tools && type === CALL.response && Object.hasOwn(message.payload ?? {}, 'said')) {
    message.payload = tools.read(message.payload.said);
  }
  return message;
}
