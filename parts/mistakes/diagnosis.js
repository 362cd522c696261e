/**
 * Explains why there is no session: no core, no connection to the app, or no answer. Loaded on
 * demand, because the messages are long.
 */
import { AbpError, reasonText, safely } from '../../js/common/errors.js';
import { getOwn } from '../../js/common/values.js';
import { warn } from './warnings.js';

/** The origin of a sandboxed frame. */
const OPAQUE = 'null';

/**
 * The error if the core cannot be loaded as JavaScript either.
 * @param {unknown} cause why it did not load
 */
export function withoutCore(cause) {
  const why = `WebAssembly is forbidden here, and its replacement did not load: ${reasonText(cause)}`;
  return new AbpError('NOT_SUPPORTED', `${why} (docs/errors.md#webassembly)`, { cause });
}

/**
 * Findings about a handshake without an answer.
 * @typedef {object} Unanswered
 * @property {HTMLIFrameElement} [iframe] the iframe of the app
 * @property {string} origin the origin that the program gave for it
 * @property {string} [stranger] another origin from which the frame sent messages
 * @property {unknown} lastMessage the last message that arrived instead of an answer
 * @property {number} [unread] the number of messages that could not be read
 * @property {number} limit the time limit in ms; 0 if the user set no limit
 */

/**
 * Makes the error of a handshake without an answer. While the handshake is pending, writes the
 * known reason to the console.
 * @param {Pick<Unanswered, 'iframe' | 'origin' | 'limit'>} route
 * @param {{ ready: boolean, over: boolean, lastMessage: unknown, counters: Record<string, number>,
 *   transport: { post: unknown, stranger?: string } }} endpoint
 * @returns {Promise<AbpError>} with code TIMEOUT; its `cause` is the app's last rejection, if there
 *   was one
 */
export async function errorOf(route, endpoint) {
  const { iframe, origin, limit } = route;
  const { lastMessage, transport, counters } = endpoint;
  const unread = counters.malformed;
  const unanswered = { iframe, origin, limit, lastMessage, unread, stranger: transport.stranger };
  const blocked = iframe && (await blockedReason(iframe));
  const refusal = getOwn(getOwn(lastMessage, 'payload'), 'error');
  const cause = refusal ? AbpError.from(/** @type {any} */ (refusal)) : undefined;
  const known = cause ? refused(cause) : (blocked ?? knownReason(unanswered));
  // A page that still loads gets more time.
  const loads =
    iframe?.getAttribute('src') &&
    safely(() => iframe.contentWindow?.location.href, '') === 'about:blank' &&
    addressReason(iframe, origin) === undefined;
  const isWaiting = !endpoint.ready && !endpoint.over;
  if (isWaiting && known && (blocked || !loads)) warn(`the app has not answered yet: ${known}`);
  const within = limit ? ` within ${limit} ms` : '';
  const why = `The app did not answer with a session${within}: ${known ?? likelyReason(unanswered)}`;
  const details = unread ? { unread } : undefined;
  return new AbpError('TIMEOUT', why, { retryable: true, cause, details });
}

/**
 * Makes the error if a session with the app cannot begin.
 * @param {string} lacking the missing part: the `document` of its iframe, an open `port`, a
 *   `transport` in time, a word in its iframe's sandbox; or in its answer one port (`ports`), proof
 *   of its document's identity (`identity`), or a `sessionId`
 * @param {number} [amount] the number of ports that it sent, or the ms that its transport may take
 */
export function unreachableError(lacking, amount) {
  /** @type {Record<string, [code: string, message: string]>} */
  const known = {
    transport: [
      'TIMEOUT',
      `The function given to connect did not return a transport within ${amount} ms (docs/errors.md#no-answer)`,
    ],
    port: [
      'TRANSPORT_ERROR',
      'This port was closed with its session: give connect a new port, or a function that opens one',
    ],
    ports: ['TRANSPORT_ERROR', `The app agreed to a port but sent ${amount}`],
    identity: [
      'NOT_SUPPORTED',
      'A sandboxed app must use a port: only a port identifies its document',
    ],
    sessionId: ['SESSION_INVALID', 'The app answered initialize without a sessionId'],
    document: ['INVALID_PARAMS', 'The iframe is not in a document: append it first'],
  };
  const or = lacking === 'allow-scripts' ? '' : `, or connect with origin: '${OPAQUE}'`;
  const sandbox = `The iframe's sandbox lacks ${lacking}: add it${or} (docs/errors.md#sandbox)`;
  const [code, message] = known[lacking] ?? ['INVALID_PARAMS', sandbox];
  return new AbpError(code, message, { retryable: lacking === 'transport' });
}

/** @param {AbpError} cause */
function refused({ code, message }) {
  const why = `it refused, with ${code}: ${message}`;
  return code === 'ALREADY_INITIALIZED'
    ? `${why}. close() the client that has the session (docs/errors.md#already-connected)`
    : `${why} (docs/errors.md#no-answer)`;
}

/**
 * @param {Unanswered} unanswered
 * @returns {string | undefined} why there is no answer, with a link to the explanation
 */
function knownReason({ iframe, origin, stranger, lastMessage, unread }) {
  if (getOwn(lastMessage, 'jsonrpc')) {
    return 'it speaks JSON-RPC: use createPeer of @abp-bridge/rpc (docs/errors.md#json-rpc)';
  }
  if (unread) {
    return 'its messages could not be read: they are malformed, or longer than limits.maxControlLength (docs/errors.md#no-answer)';
  }
  if (stranger !== undefined) {
    const named = origin ? `from ${origin}` : 'the origin that was named for it';
    return `${iframe ? "the iframe's" : 'its'} messages come from ${stranger}, not ${named} (docs/errors.md#wrong-origin)`;
  }
  if (!iframe) return undefined;
  if (globalThis.origin === OPAQUE) {
    return 'this page has no origin that an app could list, as it is a file or sandboxed: serve it over HTTP (docs/errors.md#refused-origin)';
  }
  return visibleReason(iframe, origin) ?? addressReason(iframe, origin);
}

/** Time in which a browser delivers existing reports, in ms. */
const HANDED_OVER = 50;

/**
 * A report of a policy that has blocked something.
 * @typedef {object} PolicyReport
 * @property {string} type
 * @property {{ disposition?: string, effectiveDirective?: string, destination?: string,
 *   blockedURL: string }} [body]
 */

/**
 * The policy that keeps the browser from loading the frame, if the browser reports that.
 * @param {HTMLIFrameElement} iframe
 * @returns {Promise<string | undefined>}
 */
async function blockedReason({ src }) {
  const { ReportingObserver } = /** @type {any} */ (globalThis);
  const origin = safely(() => new URL(src).origin, undefined);
  if (!ReportingObserver || !origin) return undefined;
  /** @type {PolicyReport[]} */
  const reports = await new Promise((resolve) => {
    const observer = new ReportingObserver(resolve, { buffered: true });
    observer.observe();
    setTimeout(() => (observer.disconnect(), resolve([])), HANDED_OVER);
  });
  const isOfFrame = (/** @type {PolicyReport} */ { body }) =>
    body?.disposition === 'enforce' &&
    (body.effectiveDirective === 'frame-src' || body.destination === 'iframe') &&
    safely(() => new URL(body.blockedURL).origin, undefined) === origin;
  const report = reports.find(isOfFrame);
  if (!report) return undefined;
  return report.type === 'coep'
    ? "this page's Cross-Origin-Embedder-Policy blocks the frame: the app must send Cross-Origin-Embedder-Policy and Cross-Origin-Resource-Policy, too (docs/workers.md#what-a-task-is-given)"
    : `this page's Content Security Policy blocks the frame: add ${origin} to frame-src (docs/errors.md#frame-not-found)`;
}

/**
 * The message without any finding.
 * @param {Unanswered} unanswered
 */
const likelyReason = ({ iframe, origin }) =>
  iframe
    ? `its page must ${origin === OPAQUE ? 'load' : `load from ${origin}`}, and call expose(app, { origins: ["${globalThis.origin}"] }). Its console says more (docs/errors.md#no-answer)`
    : 'nothing at the other end calls expose (docs/errors.md#no-answer)';

/**
 * Findings in a frame's document, if that has this page's origin.
 * @param {HTMLIFrameElement} iframe
 * @param {string} origin
 * @returns {string | undefined}
 */
function visibleReason({ contentWindow }, origin) {
  const href = safely(() => contentWindow?.location.href, undefined);
  if (href === undefined) return undefined;
  const [navigation] = safely(
    () => /** @type {any} */ (contentWindow).performance.getEntriesByType('navigation'),
    [],
  );
  const status = navigation?.responseStatus ?? 0;
  if (status >= 400) {
    return `the server answered ${href} with status ${status} (docs/errors.md#frame-not-found)`;
  }
  if (safely(() => /** @type {any} */ (contentWindow).origin, undefined) === origin)
    return undefined;
  return href === 'about:blank'
    ? 'the iframe is empty: its page has not begun to load (docs/errors.md#frame-not-found)'
    : `the iframe shows ${href}, which is not at ${origin} (docs/errors.md#wrong-origin)`;
}

/**
 * Findings in the iframe's address. The server may have redirected it.
 * @param {HTMLIFrameElement} iframe
 * @param {string} origin
 * @returns {string | undefined}
 */
function addressReason(iframe, origin) {
  const address = safely(() => new URL(iframe.src), undefined);
  if (!/^https?:/.test(address?.protocol ?? '')) return undefined;
  const { origin: named, protocol } = /** @type {URL} */ (address);
  if (origin === OPAQUE) {
    return iframe.hasAttribute('sandbox')
      ? undefined
      : `the iframe has no sandbox: its origin is ${named}, not "null" (docs/errors.md#wrong-origin)`;
  }
  if (named !== origin) {
    return `the iframe's src is at ${named}, but connect was given origin: ${origin} (docs/errors.md#wrong-origin)`;
  }
  if (protocol === 'http:' && globalThis.location.protocol === 'https:') {
    return 'browsers may block an http: frame in an https: page (docs/errors.md#frame-not-found)';
  }
  return undefined;
}

/**
 * @param {{ message?: string }} event the event of a page's worker that failed to start
 */
export const startError = ({ message }) =>
  new AbpError(
    'TRANSPORT_ERROR',
    message ||
      "The worker's script did not load; workers have no import map (docs/errors.md#a-file-did-not-load)",
  );
