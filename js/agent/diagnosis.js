/** Says why a handshake had no answer. Loaded when that has happened: what is said here is long. */
import { AbpError, safely } from '../common/errors.js';
import { getOwn } from '../common/values.js';
import { readError } from '../wire/messages.js';
import { OPAQUE, visibleOrigin } from '../transports/window.js';

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
 * Makes the error of a handshake that had no answer.
 * @param {Unanswered} unanswered
 * @returns {AbpError} with code TIMEOUT; its `cause` is the app's last refusal, if there was one
 */
export function errorOf(unanswered) {
  const { heard, limit, unread } = unanswered;
  const refusal = getOwn(getOwn(heard, 'payload'), 'error');
  const cause = refusal ? AbpError.from(readError(refusal)) : undefined;
  const why = cause ? refused(cause) : reasonOf(unanswered);
  const within = limit ? ` within ${limit} ms` : '';
  return new AbpError('TIMEOUT', `The app did not answer with a session${within}: ${why}`, {
    retryable: true,
    cause,
    details: unread ? { unread } : undefined,
  });
}

/**
 * Makes the error of an iframe whose sandbox keeps it from answering.
 * @param {string} lacking the word that its sandbox does not have
 */
export const sandboxError = (lacking) =>
  new AbpError(
    'INVALID_PARAMS',
    `The iframe's sandbox lacks ${lacking}: add it${lacking === 'allow-scripts' ? '' : `, or connect with origin: '${OPAQUE}'`} (docs/errors.md#sandbox)`,
  );

/** @param {AbpError} cause */
function refused({ code, message }) {
  const why = `it refused until then, with ${code}: ${message}`;
  return code === 'ALREADY_INITIALIZED'
    ? `${why}. close() the client that has the session (docs/errors.md#already-connected)`
    : `${why} (docs/errors.md#no-answer)`;
}

/**
 * @param {Unanswered} unanswered
 * @returns {string} why there was no answer, and where that is explained
 */
function reasonOf({ iframe, origin, stranger, heard, unread }) {
  if (getOwn(heard, 'jsonrpc')) {
    return 'it speaks JSON-RPC: use createPeer of abp-bridge/rpc (docs/errors.md#json-rpc)';
  }
  if (unread) {
    return 'what came could not be read: it is malformed, or longer than limits.maxControlLength (docs/errors.md#no-answer)';
  }
  if (!iframe) return 'nothing at the other end calls expose (docs/errors.md#no-answer)';
  const here = globalThis.origin;
  if (here === 'null') {
    return 'this page, a file or in a sandbox, has no origin that an app could name: serve it over HTTP (docs/errors.md#refused-origin)';
  }
  if (stranger !== undefined) {
    return `the iframe speaks from ${stranger}, not from ${origin} (docs/errors.md#wrong-origin)`;
  }
  return (
    visibleReason(iframe, origin) ??
    addressReason(iframe, origin) ??
    `its page must load from ${origin}, and call expose(app, { origins: ["${here}"] }). Its console says more (docs/errors.md#no-answer)`
  );
}

/**
 * What can be seen in a document of this page's own origin.
 * @param {HTMLIFrameElement} iframe
 * @param {string} origin
 * @returns {string | undefined}
 */
function visibleReason({ contentWindow }, origin) {
  const visible = visibleOrigin(contentWindow);
  const href = safely(() => contentWindow?.location.href, undefined);
  if (visible === undefined || href === undefined) return undefined;
  const [navigation] = safely(
    () => /** @type {any} */ (contentWindow).performance.getEntriesByType('navigation'),
    [],
  );
  const status = navigation?.responseStatus ?? 0;
  if (status >= 400) {
    return `the server answered ${href} with status ${status} (docs/errors.md#frame-not-found)`;
  }
  if (visible === origin) return undefined;
  return href === 'about:blank'
    ? 'the iframe is empty: its page has not begun to load (docs/errors.md#frame-not-found)'
    : `the iframe shows ${href}, which is not of ${origin} (docs/errors.md#wrong-origin)`;
}

/**
 * What the iframe's address tells. The server may have redirected it.
 * @param {HTMLIFrameElement} iframe
 * @param {string} origin
 * @returns {string | undefined}
 */
function addressReason(iframe, origin) {
  const address = safely(() => new URL(iframe.src), undefined);
  if (!/^https?:$/.test(address?.protocol ?? '')) return undefined;
  const { origin: named, protocol } = /** @type {URL} */ (address);
  if (origin === OPAQUE) {
    return iframe.hasAttribute('sandbox')
      ? undefined
      : `the iframe has no sandbox: its origin is ${named}, not "null" (docs/errors.md#wrong-origin)`;
  }
  if (named !== origin) {
    return `the iframe's src is of ${named}, but connect was given ${origin} (docs/errors.md#wrong-origin)`;
  }
  if (protocol === 'http:' && globalThis.location.protocol === 'https:') {
    return 'browsers may block an http: frame in an https: page (docs/errors.md#frame-not-found)';
  }
  return undefined;
}
