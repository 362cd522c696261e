/**
 * The client's side of A2A over HTTP. Each request is a POST. Its answer, a JSON body or a stream
 * of server-sent events, is read as a sequence of JSON-RPC responses of limited length.
 */
import { AbpError, getOwn, safely, textOf } from 'abp-bridge/driver';
import { within } from './pause.js';
import { restRequest, restResponse, urisIn } from './rest.js';
import { Unsent } from './unsent.js';

/**
 * The answer to a request.
 * @typedef {object} Responses
 * @property {() => Promise<unknown>} next the next JSON-RPC response, or undefined at the end: the
 *   agent ended the answer, the connection broke, or `close` was called
 * @property {() => void} close stops reading
 * @property {string} [lastEventId] the number of the latest response, if the agent gave it one
 */

/**
 * @typedef {object} Interface an interface of a card. `rest`: of the HTTP+JSON binding
 * @property {string} [url]
 * @property {boolean} rest
 */

/**
 * A connection to an agent.
 * @typedef {object} Binding
 * @property {(timeout: number) => Promise<unknown>} card the agent card
 * @property {<T extends Interface>(interfaces: T[]) => T} [use] uses the URL of the first
 *   allowed interface of a card for requests, and returns that interface; throws BLOCKED if no
 *   interface is allowed
 * @property {(dialect: import('./dialects.js').Dialect, request: object, how: { stream: boolean,
 *   abortable: boolean, lastEventId?: string }) => Responses} open sends a JSON-RPC request. Only
 *   an `abortable` one, which costs more, can be closed before its answer begins; any other is
 *   closed when it begins
 * @property {string[]} declared URIs of the extensions that are declared with every request
 * @property {string[]} used the extensions in use, according to the latest answer
 * @property {() => void} [close]
 */

/**
 * @typedef {string[] | ((url: URL) => boolean)} Endpoints allowed origins, or a function that
 *   returns whether requests may go to a URL
 */

/** The paths of agent cards: since 0.3, and of the gem. */
const CARDS = ['.well-known/agent-card.json', 'agentCard'];

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\b/i;
const STREAM_TYPE = /^text\/event-stream\b/i;

/** The global under which Node's fetch finds its dispatcher. Other runtimes have none. */
const DISPATCHER = Symbol.for('undici.globalDispatcher.1');
/**
 * The program's dispatcher without its limit of 300 s of silence. A task may be silent for longer,
 * and requests have limits of their own.
 */
const patient = {
  /**
   * @param {object} options
   * @param {unknown} handler
   */
  dispatch: (options, handler) =>
    /** @type {any} */ (globalThis)[DISPATCHER].dispatch(
      { ...options, headersTimeout: 0, bodyTimeout: 0 },
      handler,
    ),
};

/**
 * Node's error codes for a connection that was never made; other runtimes have no such codes.
 */
const NOT_CONNECTED =
  /^(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT)$/;

/** The error of a connection that ended before the answer. */
export const disconnected = () =>
  new AbpError('DISCONNECTED', 'The connection to the agent was lost', { retryable: true });

/**
 * @param {string} message
 * @param {unknown} [cause]
 */
const malformed = (message, cause) => new AbpError('INVALID_AGENT_RESPONSE', message, { cause });

/**
 * @param {URL} given the URL of the agent, or of its card
 * @param {Pick<import('./client.js').ClientOptions, 'fetch' | 'headers'>
 *   & { endpoints: Endpoints }} options
 * @param {{ event: number, body: number }} limits
 * @returns {Binding}
 */
export function httpConnection(given, { fetch: own, headers, endpoints }, limits) {
  const ownHeaders = Object.fromEntries(new Headers(headers));
  /** The URL for requests, and whether it is of the HTTP+JSON binding. */
  let url = given;
  let rest = false;

  /**
   * The URL of an interface. Undefined if requests cannot go there: the origin of a `blob:` URL is
   * that of another URL.
   * @param {string | undefined} named as in a card
   */
  const placeOf = (named) => {
    if (named === undefined) return url;
    const place = URL.canParse(named, given) ? new URL(named, given) : undefined;
    const { protocol = '', username, password } = place ?? {};
    return /^https?:$/.test(protocol) && !username && !password ? place : undefined;
  };

  /** @param {URL} place */
  const mayAsk = (place) => {
    if (place.origin === given.origin) return true;
    if (typeof endpoints !== 'function') return endpoints.includes(place.origin);
    return endpoints(new URL(place)) === true;
  };

  /**
   * @param {URL} to
   * @param {RequestInit} init
   */
  const fetchFrom = async (to, init) => {
    // A browser's fetch throws when it is called as a method.
    const send = own ?? fetch;
    const answer = await send(to, {
      ...init,
      headers: { ...(to.origin === given.origin && ownHeaders), ...init.headers },
      // A redirect could send the message and the credentials elsewhere.
      redirect: 'manual',
      ...(!own && DISPATCHER in globalThis && { dispatcher: patient }),
    });
    const used = answer.headers.get('a2a-extensions') ?? answer.headers.get('x-a2a-extensions');
    if (used) connection.used = urisIn(used);
    return answer;
  };

  /**
   * @param {URL} to
   * @param {{ method?: string, headers: Record<string, string>, body?: string }} init
   * @param {boolean} [abortable]
   * @param {(body: unknown) => unknown} [read] turns a body into a JSON-RPC response
   */
  const ask = (to, init, abortable = true, read = undefined) => {
    const controller = abortable ? new AbortController() : undefined;
    const answer = fetchFrom(to, { ...init, signal: controller?.signal });
    return readResponses(answer, controller, limits, read);
  };

  /** @type {Binding} */
  const connection = {
    declared: [],
    used: [],

    /** Fetches the card from the first of the usual paths that has one. */
    async card(timeout) {
      const folder = given.href.replace(/[?#].*|\/?$/, '/');
      const places = CARDS.flatMap((path) => [new URL(path, given.origin), new URL(path, folder)]);
      const path = CARDS.find((path) => given.pathname.endsWith(`/${path}`));
      if (path || given.pathname.endsWith('.json')) places.unshift(given);
      if (path) url = new URL(given.pathname.slice(0, -path.length), given);
      for (const place of new Set(places.map(String))) {
        const init = { headers: { 'a2a-version': '1.0', accept: 'application/json' } };
        try {
          const card = await answerWithin(timeout, ask(new URL(place), init));
          if (getOwn(card, 'capabilities')) return card;
        } catch (error) {
          // Some servers answer unknown paths with an HTML page.
          const status = getOwn(getOwn(error, 'details'), 'status');
          const missing = status === 404 || status === 405;
          if (!missing && getOwn(error, 'code') !== 'INVALID_AGENT_RESPONSE') throw error;
        }
      }
      throw new AbpError(
        'AGENT_CARD_NOT_FOUND',
        `No agent card at ${given}: to call an agent without one, give \`version\``,
      );
    },

    /**
     * Uses the first interface at the card's own origin, or at a URL that `endpoints` allows. A
     * foreign card must not direct this client, and its user's messages, to any address it names.
     */
    use(interfaces) {
      const places = interfaces.map((one) => placeOf(one.url));
      const found = places.findIndex((place) => place && mayAsk(place));
      if (found < 0) {
        const to = places.find(Boolean)?.origin;
        const why = to
          ? `leads to ${to}, another origin: if you trust that, give endpoints: [${JSON.stringify(to)}]`
          : 'leads to no address of http or https';
        throw new AbpError(
          'BLOCKED',
          `The card of ${given.origin} ${why} (docs/errors.md#blocked)`,
        );
      }
      url = /** @type {URL} */ (places[found]);
      rest = interfaces[found].rest;
      return interfaces[found];
    },

    open(dialect, request, { stream, abortable, lastEventId }) {
      const { declared } = connection;
      const headers = {
        'content-type': 'application/json',
        accept: stream ? 'text/event-stream' : 'application/json, application/a2a+json',
        ...(dialect.header && { 'a2a-version': dialect.header }),
        ...(lastEventId && { 'last-event-id': lastEventId }),
        ...(declared.length && { [dialect.extensionsHeader]: declared.join(',') }),
      };
      const { verb, path, body } = rest
        ? restRequest(/** @type {import('./rest.js').RpcRequest} */ (request))
        : { verb: 'POST', path: '', body: request };
      const init = { method: verb, headers, ...(body && { body: JSON.stringify(body) }) };
      const to = path ? new URL(url.href.replace(/\/*$/, path)) : url;
      return ask(to, init, abortable, rest ? restResponse : undefined);
    },
  };
  return connection;
}

/**
 * The single answer to a request. Rejects with `TIMEOUT` when it is late, and with `DISCONNECTED`
 * when there is no answer.
 * @param {number} timeout ms
 * @param {Responses} responses
 */
export async function answerWithin(timeout, responses) {
  const why = `The agent did not answer within ${timeout} ms`;
  const late = () => new AbpError('TIMEOUT', why, { retryable: true });
  try {
    const response = await within(responses.next(), timeout, late);
    if (response === undefined) throw disconnected();
    return response;
  } finally {
    responses.close();
  }
}

/**
 * The responses of an answer, read on demand.
 * @param {Promise<Response>} asked
 * @param {AbortController | undefined} controller of the request
 * @param {{ event: number, body: number }} limits
 * @param {(body: unknown) => unknown} [toResponse] turns a body into a JSON-RPC response
 * @returns {Responses}
 */
function readResponses(asked, controller, limits, toResponse = (body) => body) {
  let closed = false;
  /** @type {ReadableStreamDefaultReader<Uint8Array> | undefined} */
  let reader;
  const close = () => {
    if (closed) return;
    closed = true;
    // Aborting a finished response would close a connection that the next request could use.
    if (reader) reader.cancel().catch(() => {});
    else controller?.abort();
  };
  /** @returns {AsyncGenerator<unknown, undefined>} */
  async function* readAll() {
    try {
      const answer = await asked.catch((cause) => {
        const code = getOwn(cause?.cause, 'code');
        const Kind = NOT_CONNECTED.test(String(code)) ? Unsent : AbpError;
        const why = 'The agent cannot be reached';
        throw new Kind('TRANSPORT_ERROR', why, { retryable: true, cause });
      });
      const { status, headers, body, type: kind } = answer;
      if (kind === 'opaqueredirect' || (status >= 300 && status < 400)) {
        const why = `The agent redirects to ${headers.get('location') ?? 'another place'}: use that URL`;
        throw new AbpError('TRANSPORT_ERROR', why, { details: { status } });
      }
      if (!body) throw malformed(`The agent sent an empty answer (HTTP ${status})`);
      reader = body.getReader();
      if (closed) reader.cancel().catch(() => {});
      const type = headers.get('content-type') ?? 'none';
      if (!answer.ok || !STREAM_TYPE.test(type)) {
        yield toResponse(parseJson(await readBody(answer, type, reader, limits.body)));
        return;
      }
      const parse = eventParser(limits.event);
      // When the connection breaks, the stream ends: its reader finds out what became of the task.
      for (let bytes; (bytes = (await reader.read().catch(() => undefined))?.value);)
        for (const { data, id } of parse(bytes)) {
          responses.lastEventId = id;
          yield toResponse(parseJson(data));
        }
    } catch (error) {
      if (!closed) throw error;
    } finally {
      close();
    }
  }
  // If it is closed before it is read, nobody needs its error.
  asked.catch(() => {});
  const all = readAll();
  /** @type {Responses} */
  const responses = { next: async () => (await all.next()).value, close };
  return responses;
}

/**
 * The text of an answer that is not a stream.
 * @param {Response} answer
 * @param {string} type
 * @param {ReadableStreamDefaultReader<Uint8Array>} reader
 * @param {number} limit bytes
 */
async function readBody({ ok, status, headers }, type, reader, limit) {
  const isJson = JSON_TYPE.test(type);
  if (ok && !isJson) throw malformed(`The agent's answer has the content type ${type}`);
  const decoder = new TextDecoder();
  const announced = Number(headers.get('content-length'));
  let body = '';
  let size = announced > limit ? announced : 0;
  while (size <= limit) {
    const { value } = await reader.read().catch(() => Promise.reject(disconnected()));
    if (!value) break;
    size += value.length;
    body += decoder.decode(value, { stream: true });
  }
  if (size > limit)
    throw new AbpError('TOO_LARGE', `The agent's answer is longer than ${limit} bytes`);
  if (ok) return body;
  // Some agents send an error status with a JSON-RPC error as the body.
  const error = isJson ? safely(() => getOwn(JSON.parse(body), 'error')) : undefined;
  const explains = typeof getOwn(error, 'code') === 'number';
  const retryAfter = retryAfterOf(headers);
  const busy = status === 429 || (status === 503 && retryAfter !== undefined);
  if (explains && !busy) return body;
  const Kind = busy ? Unsent : AbpError;
  const explanation = explains && textOf(getOwn(error, 'message'));
  const message = explanation || `The agent answered with HTTP status ${status}`;
  throw new Kind(explains ? 'RATE_LIMITED' : 'TRANSPORT_ERROR', message, {
    retryable: busy || status >= 500,
    retryAfter,
    details: { status, body: body.slice(0, 1024) },
  });
}

/**
 * @param {string} text
 * @returns {unknown}
 */
function parseJson(text) {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw malformed("The agent's answer is not JSON", cause);
  }
}

/**
 * The Retry-After header in ms: it has seconds, or a date.
 * @param {Headers} headers
 */
function retryAfterOf(headers) {
  const given = headers.get('retry-after');
  if (!given) return undefined;
  const ms = /^\d+$/.test(given) ? Number(given) * 1000 : Date.parse(given) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/**
 * Parses server-sent events from chunks that may be cut anywhere
 * (https://html.spec.whatwg.org/multipage/server-sent-events.html; docs/decisions.md says why no
 * library does it). It holds one unfinished event at most. An event that is longer than the limit
 * is an error (`TOO_LARGE`), after which the parser must not be used.
 * @param {number} limit characters of one event
 * @returns {(bytes: Uint8Array) => { data: string, id: string }[]} takes a chunk, and returns the
 *   events with data that it completes; `id` is the latest id received
 */
function eventParser(limit) {
  const decoder = new TextDecoder();
  let afterReturn = false;
  let line = '';
  /** The event's data lines, each followed by a line feed. */
  let data = '';
  let id = '';
  return (bytes) => {
    const text = decoder.decode(bytes, { stream: true });
    if (!text) return [];
    // The previous chunk ended with the carriage return of a line; its line feed may begin this
    // one.
    const rest = afterReturn && text[0] === '\n' ? text.slice(1) : text;
    afterReturn = text.endsWith('\r');
    const lines = rest.split(/\r\n?|\n/);
    const unfinished = lines.length - 1;
    const events = [];
    for (const [i, more] of lines.entries()) {
      line += more;
      if (line.length + data.length > limit)
        throw new AbpError(
          'TOO_LARGE',
          `An event of the stream is longer than ${limit} characters`,
        );
      if (i === unfinished) break;
      if (line === '') {
        if (data.length > 1) events.push({ data: data.slice(0, -1), id });
        data = '';
        continue;
      }
      const [, field, value = ''] = /^([^:]*)(?:: ?([^]*))?$/.exec(line) ?? [];
      if (field === 'data') data += `${value}\n`;
      else if (field === 'id' && !value.includes('\0')) id = value;
      line = '';
    }
    return events;
  };
}
