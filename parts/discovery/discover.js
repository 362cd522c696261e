/**
 * Discovery: finds out whether a page belongs to an app that supports the protocol, and which
 * capabilities the app claims, without running any of its code.
 */
import { HOW_TO_ALLOW, isPublic } from '../../js/untrusted/addresses.js';
import { requireOptions } from '../../js/common/check-options.js';
import { AbpError } from '../../js/common/errors.js';
import { readHead } from './head-reader.js';
import { MAX_MANIFEST_BYTES, parseManifest, warningsOf } from './manifest.js';
import { milliseconds } from '../../js/common/values.js';
import { followSignal } from '../../js/common/signals.js';

export { isPublic } from '../../js/untrusted/addresses.js';
export { AbpError } from '../../js/common/errors.js';
export { manifestOf } from './manifest.js';

const TIMEOUT = 10_000;
const MAX_REDIRECTS = 5;
const MAX_HEAD_CHARACTERS = 50_000;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/**
 * @typedef {object} DiscoverOptions The options of `discover`.
 * @property {AbortSignal} [signal] cancels the discovery, which rejects with the signal's reason
 * @property {number} [timeout] ms for all of it (10000)
 * @property {boolean} [allowPrivate] whether loopback, private and link-local addresses are allowed
 *   (false)
 * @property {boolean} [sameOrigin] whether only the page's own origin is requested, even by links
 *   and redirects (false)
 * @property {(hostname: string) => Promise<{ address: string }[]>} [lookup] resolves names, in Node
 *   (default: the system's resolver); its answers are checked like other addresses
 */

/** @type {import('../../js/common/check-options.js').Kinds<DiscoverOptions>} */
const OPTIONS = {
  allowPrivate: 'a boolean',
  lookup: 'a function',
  sameOrigin: 'a boolean',
  signal: 'an AbortSignal',
  timeout: 'a number',
};

/**
 * @typedef {object} Supported A page that names a manifest, and the manifest.
 * @property {true} supported
 * @property {import('../../js/types/parts.js').Manifest} manifest
 * @property {string} manifestUrl
 * @property {string[]} warnings
 * @typedef {object} Unsupported The reason why no manifest was found.
 * @property {false} supported
 * @property {string} code
 * @property {string} reason
 */

/**
 * A response, in the same form in Node and in browsers. `url` is after redirects; `body` is closed
 * when the reader stops.
 * @internal
 * @typedef {object} Response
 * @property {URL} url
 * @property {number} status
 * @property {(name: string) => string | undefined} header
 * @property {AsyncIterable<Uint8Array>} body
 */

/**
 * Makes one request; follows no redirect, where that can be controlled.
 * @internal
 * @typedef {object} RequestOptions
 * @property {string} accept
 * @property {AbortSignal} signal
 * @property {boolean} allowPrivate
 * @property {DiscoverOptions['lookup']} lookup
 * @typedef {(url: URL, options: RequestOptions) => Promise<Response>} Request
 */

/**
 * Reads the manifest that a page names in `<link rel="abp-manifest" href>`. A manifest is only a
 * hint: the capabilities of the app are those in the answer to `initialize`, that is {@link
 * import('../../js/agent/client.js').connect}.
 * @param {string | URL} url the page's address
 * @param {DiscoverOptions} [options]
 * @returns {Promise<Supported | Unsupported>} with `supported: false`, with `code` and `reason`
 * @throws {AbpError} INVALID_PARAMS when `url` is not an address; the signal's reason when it
 *   aborts
 */
export async function discover(url, options = {}) {
  requireOptions('discover', options, OPTIONS);
  const { signal, timeout, allowPrivate = false, sameOrigin = false, lookup } = options;
  if (!URL.canParse(url)) {
    throw new AbpError('INVALID_PARAMS', 'discover needs the full URL of a page, with https://');
  }
  signal?.throwIfAborted();
  const origin = sameOrigin ? new URL(url).origin : undefined;
  const { controller: stop, release } = followSignal(signal);
  const ms = milliseconds(timeout) || TIMEOUT;
  const late = () => stop.abort(new AbpError('TIMEOUT', `Discovery took longer than ${ms} ms`));
  const timer = setTimeout(late, ms);
  /**
   * @param {URL} at
   * @param {string} accept
   */
  const open = (at, accept) =>
    get(at, { accept, signal: stop.signal, allowPrivate, origin, lookup });
  try {
    const page = await open(new URL(url), 'text/html');
    const manifestUrl = await manifestIn(page);
    const manifest = parseManifest(await jsonIn(await open(manifestUrl, 'application/json')));
    const warnings = warningsOf(manifest);
    return { supported: true, manifest, manifestUrl: manifestUrl.href, warnings };
  } catch (thrown) {
    signal?.throwIfAborted();
    const error = stop.signal.aborted ? stop.signal.reason : thrown;
    if (!(error instanceof AbpError)) throw error;
    return { supported: false, code: error.code, reason: error.message };
  } finally {
    clearTimeout(timer);
    release();
    stop.abort(); // closes open responses
  }
}

/**
 * Requests in a browser, which follows redirects by itself, and shows only the final URL and no IP
 * addresses.
 * @type {Request}
 */
async function requestInPage(url, { accept, signal }) {
  const response = await fetch(url, {
    signal,
    headers: { accept },
    credentials: 'omit',
    referrerPolicy: 'no-referrer',
  });
  return {
    url: new URL(response.url),
    status: response.status,
    header: (name) => response.headers.get(name) ?? undefined,
    body: chunksOf(response.body),
  };
}

/**
 * The chunks of a stream, for browsers that cannot iterate over one.
 * @param {ReadableStream<Uint8Array> | null} stream
 */
async function* chunksOf(stream) {
  const reader = stream?.getReader();
  try {
    for (let part = await reader?.read(); part?.value; part = await reader?.read())
      yield part.value;
  } finally {
    reader?.cancel().catch(() => {});
  }
}

/**
 * Follows redirects. Each address is checked like the first.
 * @param {URL} url
 * @param {RequestOptions & { origin: string | undefined }} options
 */
async function get(url, options) {
  const isNode = /** @type {any} */ (globalThis).process?.versions?.node;
  const request = isNode ? (await import('./node-http.js')).request : requestInPage;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    checkAddress(url, options);
    const response = await request(url, options).catch((error) => {
      throw unreachable(error, url);
    });
    checkAddress(response.url, options);
    const location = REDIRECTS.has(response.status) && response.header('location');
    if (!location) {
      if (response.status >= 200 && response.status < 300) return response;
      throw new AbpError('HTTP_STATUS', `${short(url)} answered with status ${response.status}`);
    }
    url = resolve(location, response.url);
  }
  throw new AbpError('TOO_MANY_REDIRECTS', `More than ${MAX_REDIRECTS} redirects`);
}

/** @param {URL} url */
const short = (url) => url.href.slice(0, 200);

/**
 * @param {any} error
 * @param {URL} url
 */
function unreachable(error, url) {
  if (error instanceof AbpError) return error;
  const why = `${error?.message || error?.code}`.slice(0, 200);
  return new AbpError('TRANSPORT_ERROR', `${short(url)} cannot be read: ${why}`, { cause: error });
}

/** @param {string} why */
const blocked = (why) => new AbpError('BLOCKED', why);

/**
 * @param {string} text
 * @param {URL} base
 */
function resolve(text, base) {
  if (URL.canParse(text, base)) return new URL(text, base);
  throw blocked(`Not an address: ${JSON.stringify(text.slice(0, 200))}`);
}

/**
 * @param {URL} url
 * @param {{ allowPrivate: boolean, origin: string | undefined }} options
 */
function checkAddress(url, { allowPrivate, origin }) {
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw blocked(`Only http and https are read, not ${short(url)}`);
  }
  if (url.username || url.password) throw blocked(`${url.host} must not contain a password`);
  if (origin && url.origin !== origin) throw blocked(`${short(url)} is at another origin`);
  if (allowPrivate || isPublic(url.hostname)) return;
  throw blocked(`${url.hostname} is not a public address: ${HOW_TO_ALLOW}`);
}

/** @param {Response} response */
function contentType(response) {
  const [essence, ...parameters] = (response.header('content-type') ?? '').split(';');
  const charset = parameters.map((text) => /^\s*charset\s*=\s*"?([^\s"]+)/i.exec(text)?.[1]);
  return { essence: essence.trim().toLowerCase(), charset: charset.find(Boolean) };
}

/**
 * @param {Response} response
 * @param {string} [charset]
 * @returns {AsyncGenerator<string>}
 */
async function* textOf({ url, body }, charset = 'utf-8') {
  let decoder;
  try {
    decoder = new TextDecoder(charset);
  } catch {
    decoder = new TextDecoder(); // as browsers do with an unknown charset
  }
  let bytes = 0;
  try {
    for await (const chunk of body) {
      bytes += chunk.length;
      if (bytes > MAX_MANIFEST_BYTES)
        throw new AbpError('TOO_LARGE', `${short(url)} is larger than 1 MiB`);
      yield decoder.decode(chunk, { stream: true });
    }
  } catch (error) {
    throw unreachable(error, url);
  }
  yield decoder.decode();
}

/**
 * Reads a page up to the end of its head.
 * @param {Response} page
 * @returns {Promise<URL>} the URL of the manifest
 */
async function manifestIn(page) {
  const { essence, charset } = contentType(page);
  if (essence && essence !== 'text/html') {
    throw new AbpError('CONTENT_TYPE', `The page is not HTML but ${essence.slice(0, 200)}`);
  }
  const { href, base } = await headOf(textOf(page, charset));
  if (!href) {
    const where = `in the page's head, or in its first ${MAX_HEAD_CHARACTERS} characters`;
    throw new AbpError('NO_MANIFEST', `There is no <link rel="abp-manifest" href> ${where}`);
  }
  // A base that is not a usable address is ignored.
  const from =
    base !== undefined && URL.canParse(base, page.url) ? new URL(base, page.url) : page.url;
  return resolve(href, /^https?:$/.test(from.protocol) ? from : page.url);
}

/**
 * @param {AsyncIterable<string>} text
 * @returns {Promise<import('./head-reader.js').Found>}
 */
async function headOf(text) {
  const reading = readHead();
  reading.next();
  let left = MAX_HEAD_CHARACTERS;
  for await (const piece of text) {
    for (const character of piece.slice(0, left)) {
      const { done, value } = reading.next(character);
      if (done) return value;
    }
    left -= piece.length;
    if (left <= 0) break;
  }
  return {};
}

/** @param {Response} response */
async function jsonIn(response) {
  const { essence } = contentType(response);
  if (!/^((application|text)\/json|[^/]+\/[^/]+\+json)$/.test(essence)) {
    const type = essence ? `is ${essence.slice(0, 200)}` : 'has no content type';
    throw new AbpError('CONTENT_TYPE', `The manifest ${type}; it must be application/json`);
  }
  let json = '';
  // JSON is UTF-8, whatever the header says.
  for await (const piece of textOf(response)) json += piece;
  return json;
}
