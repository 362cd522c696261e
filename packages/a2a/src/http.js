/**
 * A2A over HTTP, for Node's `http` and for servers in the style of `fetch`. Cards have their own
 * paths, and so have the requests of HTTP+JSON (packages/a2a/src/rest.js). JSON-RPC is posted to
 * any path below the one that the agent is mounted at. Streams are server-sent events.
 */
import { AbpError, exactOrigin, isLoopback, isRecord, iteratorOf, safely } from 'abp-bridge/driver';
import { FetchResponse, HttpReply, JSON_TYPE } from './http-reply.js';
import { refuse, versionOf } from './requests.js';
import { looksLikeRoute, readQuery, routeOf, urisIn } from './rest.js';

/** @import { Backlog } from './backlog.js' */
/** @import { TaskServer } from './server.js' */
/**
 * @typedef {object} HttpOptions
 * @property {number} maxRequest
 * @property {number} maxUnread
 * @property {number} keepAlive
 * @property {string[] | '*'} origins
 * @property {string[] | '*'} [hosts]
 * @property {Backlog} backlog
 */

/**
 * A request, from Node or from fetch.
 * @typedef {object} Asked
 * @property {string} verb
 * @property {string} path
 * @property {string} [place] the path below the one that the agent is mounted at, if that is known
 * @property {URLSearchParams} query
 * @property {string} origin of the request's URL
 * @property {string | undefined} host as sent by the client
 * @property {boolean} [local] whether the request came to a loopback address
 * @property {Record<string, string>} headers with names in lower case
 * @property {unknown} user
 * @property {boolean} [shared] whether other handlers serve the remaining paths
 * @property {(longest: number) => Promise<string | Refusal | undefined>} text reads the body;
 *   undefined if the client broke it off
 * @property {() => void} [refused] called when the body is not read to its end
 */
/**
 * @typedef {[reason: string, message: string, status?: number]} Refusal `status` is that of HTTP,
 *   if it is not 200
 */

const TYPES = [JSON_TYPE, 'application/a2a+json'];
const VERBS = 'GET, HEAD, POST, OPTIONS';
/** Seconds for which a browser may cache the answer to a preflight request. */
const PREFLIGHT_AGE = '7200';

/** The paths of the cards, below the path that the agent is mounted at, and their versions. */
const CARDS = /** @type {const} */ ([
  ['/.well-known/agent-card.json', undefined],
  ['/agentCard', 'gem'],
]);

// --- Requests ------------------------------------------------------------------------------------

/**
 * Answers a request.
 * @param {TaskServer} server
 * @param {Asked} asked
 * @param {HttpReply} reply
 * @param {HttpOptions} options
 * @returns {Promise<boolean>} false if the path is not ours; then nothing was answered
 */
async function answer(server, asked, reply, options) {
  const { verb, place = asked.path, query, headers, shared = false, user } = asked;
  const { origins } = options;
  /**
   * @param {number} status
   * @param {object} [more]
   */
  const send = (status, more = {}) => {
    reply.send(status, more);
    asked.refused?.();
    return true;
  };
  if (!isOwnName(asked, options.hosts)) return send(403);
  const version = headers['a2a-version'] ?? query.get('A2A-Version') ?? undefined;
  if (!headers['a2a-extensions'] && headers['x-a2a-extensions'])
    reply.extensionsHeader = 'x-a2a-extensions';
  const allowed = allowOrigin(headers.origin, origins, reply);
  const reads = verb === 'GET' || verb === 'HEAD';
  if (reads && sendCard(server, asked, version, reply)) return true;
  // A page of an unlisted origin could not read the answer, but the request would take effect. A
  // proxy in front may add TLS, so an own page is recognised by its host alone.
  const isOwn = asked.origin && headers.origin?.split('://')[1] === asked.origin.split('://')[1];
  if (headers.origin && !allowed && origins.length > 0 && !isOwn) return send(403);
  if (verb === 'OPTIONS' && allowed) {
    const wanted = headers['access-control-request-headers'];
    return send(204, {
      'access-control-allow-methods': VERBS,
      'access-control-max-age': PREFLIGHT_AGE,
      ...(wanted && { 'access-control-allow-headers': wanted }),
    });
  }
  const route = routeOf(verb, place, shared, (tenant) => server.hasTenant(tenant));
  if (!route && (verb !== 'POST' || looksLikeRoute(place))) {
    if (shared) return false;
    return reads || verb === 'POST' ? send(404) : send(405, { allow: VERBS });
  }
  reply.rest = route !== undefined;
  const dialect = route ? '1.0' : version;
  const why = verb === 'POST' ? unreadable(headers, options) : undefined;
  const text = why ?? (verb === 'POST' ? await asked.text(options.maxRequest) : '');
  if (text === undefined) return true;
  if (typeof text !== 'string') {
    // In HTTP+JSON each error has a status.
    if (text[2]) reply.status = text[2];
    refuse(reply, dialect, text[0], text[1]);
    asked.refused?.();
    return true;
  }
  const extensions = urisIn(headers['a2a-extensions'] ?? headers['x-a2a-extensions']);
  const caller = { version, headers, user, extensions };
  if (!route) await server.receive(text, caller, reply);
  else if (version && versionOf(version) !== '1.0')
    refuse(reply, dialect, 'VERSION_NOT_SUPPORTED', `HTTP+JSON needs A2A 1.0, not ${version}`);
  else {
    const { method, params: named } = route;
    await server.receive(text || '{}', caller, reply, (body) => {
      const given = verb === 'POST' ? body : readQuery(query);
      // Those in the path take precedence. Values other than objects are rejected.
      const params = isRecord(given) ? { ...given, ...named } : (given ?? named);
      return { jsonrpc: '2.0', method, params };
    });
  }
  return true;
}

/**
 * The same, to Node's `ServerResponse` or a FetchResponse; never rejects.
 * @param {TaskServer} server
 * @param {Asked} asked
 * @param {any} response
 * @param {HttpOptions} options
 */
async function serve(server, asked, response, options) {
  const reply = new HttpReply(response, options);
  try {
    return await answer(server, asked, reply, options);
  } catch (error) {
    console.error('abp-bridge: answering a request failed:', error);
    // Fails if something was sent already.
    safely(() => reply.send(500, {}));
    return true;
  }
}

/**
 * True if the agent was addressed by one of its own host names. A page whose host name was rebound
 * to this machine uses another.
 * @param {Pick<Asked, 'host' | 'local'>} asked
 * @param {string[] | '*' | undefined} hosts
 */
export function isOwnName({ host, local }, hosts) {
  // Browsers always name a host.
  if (host === undefined || hosts === '*' || (!hosts && !local)) return true;
  const name = host.replace(/:\d*$/, '').toLowerCase();
  return hosts
    ? hosts.some((one) => [name, host.toLowerCase()].includes(one.toLowerCase()))
    : isLoopback(name);
}

/**
 * Lets pages of an origin read the answer, if that is allowed.
 * @param {string | undefined} origin
 * @param {string[] | '*'} origins
 * @param {HttpReply} reply
 */
function allowOrigin(origin, origins, reply) {
  if (origins.length === 0) return false;
  reply.headers.vary = 'Origin';
  if (!origin || (origins !== '*' && !origins.includes(origin))) return false;
  reply.headers['access-control-allow-origin'] = origin;
  reply.headers['access-control-expose-headers'] = 'A2A-Extensions, ETag, X-A2A-Extensions';
  return true;
}

/**
 * Checks the origins whose pages may send requests.
 * @param {unknown} origins
 * @returns {string[] | '*'}
 */
export function readOrigins(origins = []) {
  if (origins === '*') return origins;
  if (Array.isArray(origins)) return origins.map((origin) => exactOrigin(origin));
  throw new AbpError('INVALID_PARAMS', 'origins is a list of origins, or "*"');
}

/**
 * The reason to reject a body unread.
 * @param {Record<string, string>} headers
 * @param {HttpOptions} options
 * @returns {Refusal | undefined}
 */
function unreadable(headers, { maxRequest }) {
  const { origin, 'content-type': type = '', 'content-encoding': encoding = '' } = headers;
  const wrong = (/** @type {string} */ what) =>
    /** @type {Refusal} */ (['CONTENT_TYPE_NOT_SUPPORTED', `Unsupported Content-${what}.`]);
  // A page may post any other type here without a preflight, so pages must send JSON.
  if ((type || origin) && !TYPES.includes(type.split(';', 1)[0].trim().toLowerCase()))
    return wrong(`Type "${type}"; expected application/json`);
  if (!['', 'identity'].includes(encoding.trim().toLowerCase()))
    return wrong(`Encoding "${encoding}"; expected none`);
  return Number(headers['content-length']) > maxRequest ? tooLarge(maxRequest) : undefined;
}

/**
 * @param {number} longest
 * @returns {Refusal}
 */
const tooLarge = (longest) => [
  'INVALID_REQUEST',
  `The request is longer than ${longest} characters`,
  413,
];

/**
 * A body as text.
 * @param {ReturnType<typeof iteratorOf>} chunks
 * @param {number} longest
 * @returns {Promise<string | Refusal>}
 */
async function readText(chunks, longest) {
  const decoder = new TextDecoder();
  let text = '';
  for (let next; !(next = await chunks.next()).done;) {
    text += decoder.decode(/** @type {Uint8Array} */ (next.value), { stream: true });
    if (text.length <= longest) continue;
    await chunks.return?.();
    return tooLarge(longest);
  }
  return text + decoder.decode();
}

// --- Cards ---------------------------------------------------------------------------------------

/**
 * Sends the card at the request's path, if there is one.
 * @param {TaskServer} server
 * @param {Asked} asked
 * @param {string | undefined} version
 * @param {HttpReply} reply
 */
function sendCard(server, { path, origin, headers }, version, reply) {
  const found = CARDS.find(([suffix]) => path.endsWith(suffix));
  if (!found) return false;
  const [suffix, name] = found;
  const url = `${origin}${path.slice(0, -suffix.length) || '/'}`;
  // 0.3 and 1.0 share a path.
  const card = JSON.stringify(server.card(name ?? versionOf(version), url));
  const etag = `"${hashOf(card)}"`;
  const { 'if-none-match': tags, 'if-modified-since': date } = headers;
  const known = tags
    ? tags.split(',').some((tag) => ['*', etag].includes(tag.trim().replace(/^W\//, '')))
    : Date.parse(date) >= Math.floor(server.since.getTime() / 1000) * 1000;
  const validators = {
    etag,
    'last-modified': server.since.toUTCString(),
    'cache-control': 'public, max-age=3600',
    vary: ['A2A-Version', reply.headers.vary].filter(Boolean).join(', '),
  };
  if (known) reply.send(304, validators);
  else reply.send(200, { ...validators, 'content-type': `${JSON_TYPE}; charset=utf-8` }, card);
  return true;
}

/**
 * FNV-1a, twice: enough to tell one card from another.
 * @param {string} text
 */
function hashOf(text) {
  let [a, b] = [0x811c9dc5, 0x01000193];
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x01000193);
    b = Math.imul(b ^ a, 0x85ebca6b);
  }
  return [a, b].map((half) => (half >>> 0).toString(16).padStart(8, '0')).join('');
}

// --- Node ----------------------------------------------------------------------------------------

/**
 * @param {TaskServer} server
 * @param {HttpOptions} options
 * @returns {(request: any, response: any, next?: (error?: any) => void) => Promise<void>} takes
 *   Node's `IncomingMessage` and `ServerResponse`
 */
export const httpListener = (server, options) => async (request, response, next) => {
  const [path, search] = (request.originalUrl ?? request.url).split('?', 2);
  const { headers, socket, user } = request;
  const host = headers.host ?? headers[':authority']; // of HTTP/2
  const asked = {
    verb: request.method,
    path,
    // Express removes the mount path from `url`.
    place: request.url.split('?', 1)[0],
    query: new URLSearchParams(search),
    origin: originOf(socket.encrypted ? 'https' : 'http', host),
    host,
    local: isLoopback(socket.localAddress ?? ''),
    headers,
    user,
    shared: next !== undefined,
    text: (/** @type {number} */ longest) => textOf(request, longest),
    // The rest of the body is discarded, so that the client goes on to read the answer.
    refused: () => request.resume(),
  };
  if (!(await serve(server, asked, response, options))) next?.();
};

/**
 * @param {string} scheme
 * @param {string | undefined} host as sent by the client
 */
const originOf = (scheme, host) =>
  host && /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i.test(host) ? `${scheme}://${host}` : '';

/**
 * @param {any} request
 * @param {number} longest
 * @returns {Promise<string | Refusal | undefined>} undefined if the client broke it off
 */
async function textOf(request, longest) {
  const { body } = request; // set if a body parser ran before
  if (body instanceof Uint8Array) return new TextDecoder().decode(body);
  if (body !== undefined) return typeof body === 'string' ? body : JSON.stringify(body);
  // The answer uses the same socket, even if the body is not read to its end.
  const chunks = request.iterator({ destroyOnReturn: false });
  return readText(chunks, longest).catch(() => undefined);
}

// --- fetch ---------------------------------------------------------------------------------------

/**
 * @param {TaskServer} server
 * @param {Request} request
 * @param {HttpOptions} options
 * @param {unknown} user
 * @returns {Promise<Response>}
 */
export async function respond(server, request, options, user) {
  const { origin, host, pathname, searchParams } = new URL(request.url);
  const response = new FetchResponse(options.maxUnread);
  const asked = {
    verb: request.method,
    path: pathname,
    query: searchParams,
    origin,
    host,
    headers: Object.fromEntries(request.headers),
    user,
    text: (/** @type {number} */ longest) =>
      // In Firefox requests have no `body`.
      readText(iteratorOf(request.body ?? wholeOf(request)), longest),
  };
  // Not awaited: the response of a stream is available as soon as it begins.
  void serve(server, asked, response, options);
  return response.response;
}

/** @param {Request} request */
async function* wholeOf(request) {
  yield new Uint8Array(await request.arrayBuffer());
}
