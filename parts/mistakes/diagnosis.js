/**
 * Says why there is no session: no core, no way to the app, or no answer. Loaded when that has
 * happened: what is said here is long.
 */
import { AbpError, reasonText, safely } from '../../js/common/errors.js';
import { getOwn } from '../../js/common/values.js';
import { warn } from './warnings.js';

/** The origin of a sandboxed frame. */
const OPAQUE = 'null';

/**
 * The core cannot be loaded as JavaScript either.
 * @param {unknown} cause why not
 */
export function withoutCore(cause) {
  const why = `WebAssembly is forbidden here, and its replacement did not load: ${reasonText(cause)}`;
  return new AbpError('NOT_SUPPORTED', `${why} (docs/errors.md#webassembly)`, { cause });
}

/**
 * What is known of a handshake that had no answer.
 * @typedef {object} Unanswered
 * @property {HTMLIFrameElement} [iframe] where the app should be
 * @property {string} origin that was named for it
 * @property {string} [stranger] another origin from which the frame spoke
 * @property {unknown} heard the last message that came instead of an answer
 * @property {number} [unread] how many messages came that could not be read
 * @property {number} limit ms that were waited; 0 if there was no limit of the user's
 */

/**
 * Makes the error of a handshake that had no answer. As long as the answer is waited for, the
 * console says what is known by now.
 * @param {Pick<Unanswered, 'iframe' | 'origin' | 'limit'>} route
 * @param {{ ready: boolean, over: boolean, lastMessage: unknown, counters: Record<string, number>,
 *   transport: { post: unknown, stranger?: string } }} endpoint
 * @returns {Promise<AbpError>} with code TIMEOUT; its `cause` is the app's last refusal, if there
 *   was one
 */
export async function errorOf(route, endpoint) {
  const { iframe, origin, limit } = route;
  const { lastMessage: heard, transport, counters } = endpoint;
  const unread = counters.malformed;
  const unanswered = { iframe, origin, limit, heard, unread, stranger: transport.stranger };
  const blocked = iframe && (await blockedReason(iframe));
  const refusal = getOwn(getOwn(heard, 'payload'), 'error');
  const cause = refusal ? AbpError.from(/** @type {any} */ (refusal)) : undefined;
  const known = cause ? refused(cause) : (blocked ?? knownReason(unanswered));
  // A page that still loads is waited for.
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
 * Makes the error of an app with which no session can begin.
 * @param {string} lacking what it lacks: a `document` for its iframe, an open `port`, a `transport`
 *   in time, a word in its iframe's sandbox; in its answer one port (`ports`), what names its
 *   document (`identity`), or a `sessionId`
 * @param {number} [amount] how many ports it sent, or how many ms its transport may take
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
 * @returns {string | undefined} why there is no answer, and where that is explained
 */
function knownReason({ iframe, origin, stranger, heard, unread }) {
  if (getOwn(heard, 'jsonrpc')) {
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

/** ms in which a browser hands over what it has reported already. */
const HANDED_OVER = 50;

/**
 * A report of what a policy has blocked.
 * @typedef {object} PolicyReport
 * @property {string} type
 * @property {{ disposition?: string, effectiveDirective?: string, destination?: string,
 *   blockedURL: string }} [body]
 */

/**
 * The policy that keeps the browser from loading the frame, where the browser reports such things.
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
 * What is said where nothing is known.
 * @param {Unanswered} unanswered
 */
const likelyReason = ({ iframe, origin }) =>
  iframe
    ? `its page must ${origin === OPAQUE ? 'load' : `load from ${origin}`}, and call expose(app, { origins: ["${globalThis.origin}"] }). Its console says more (docs/errors.md#no-answer)`
    : 'nothing at the other end calls expose (docs/errors.md#no-answer)';

/**
 * What can be seen in a document of this page's own origin.
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
 * What the iframe's address tells. The server may have redirected it.
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

/** @param {{ message?: string }} event with which a page's worker failed to start */
export const startError = ({ message }) =>
  new AbpError(
    'TRANSPORT_ERROR',
    message ||
      "The worker's script did not load; workers have no import map (docs/errors.md#a-file-did-not-load)",
  );
