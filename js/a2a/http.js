/**
 * A2A over HTTP, for Node's `http` and for servers in the style of `fetch`: requests are posted, to whatever path
 * this is mounted at; cards are got; streams are Server-Sent Events.
 */
import { refuse } from './requests.js';

/** @import { Reply, TaskServer } from './server.js' */
/** @typedef {{ maxRequest: number, maxUnread: number, keepAlive: number }} HttpOptions */

const JSON_HEADERS = { 'content-type': 'application/json; charset=utf-8' };
const CARD_HEADERS = {
  ...JSON_HEADERS,
  'cache-control': 'public, max-age=3600',
  vary: 'A2A-Version',
};
const STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no', // nginx, do not wait for more
};
const VERSION = 'a2a-version';

/** Where the cards of versions are, from the place on that the agent is mounted at. */
const CARDS = /** @type {const} */ ([
  ['/.well-known/agent-card.json', '0.3'],
  ['/.well-known/agent.json', '0.2'],
  ['/agentCard', 'gem'],
]);

/**
 * The card that is asked for, or undefined when it is none.
 * @param {TaskServer} server
 * @param {string} path
 * @param {string} origin
 * @param {string | null | undefined} version
 */
function cardAt(server, path, origin, version) {
  const [suffix, name] = CARDS.find(([suffix]) => path.endsWith(suffix)) ?? [];
  if (!suffix) return undefined;
  const url = `${origin}${path.slice(0, -suffix.length) || '/'}`;
  // 0.3 and 1.0 share a path.
  const shape = name === '0.3' && version?.trim().startsWith('1.') ? '1.0' : name;
  return JSON.stringify(server.card(shape, url));
}

/**
 * Why a body is not even read: what to answer, and with which status.
 * @param {(name: string) => string | null | undefined} header
 * @param {number} longest
 * @returns {[reason: string, message: string, status: number] | undefined}
 */
function unreadable(header, longest) {
  const type = header('content-type');
  if (type && type.split(';', 1)[0].trim().toLowerCase() !== 'application/json')
    return [
      'CONTENT_TYPE_NOT_SUPPORTED',
      `Unsupported Content-Type "${type}"; expected application/json.`,
      200,
    ];
  const encoding = header('content-encoding');
  if (encoding && encoding.trim().toLowerCase() !== 'identity')
    return [
      'CONTENT_TYPE_NOT_SUPPORTED',
      `Unsupported Content-Encoding "${encoding}"; expected none.`,
      200,
    ];
  return Number(header('content-length')) > longest ? tooLarge(longest) : undefined;
}

/** @param {number} longest @returns {[string, string, number]} */
const tooLarge = (longest) => ['INVALID_REQUEST', `The request is longer than ${longest}`, 413];

/** @param {string} text @param {boolean} [failed] */
const sse = (text, failed) => `${failed ? 'event: error\n' : ''}data: ${text}\n\n`;

/** A line that says nothing, which keeps a stream alive. */
const COMMENT = ':\n\n';

// --- Node ----------------------------------------------------------------------------------------------

/** @implements {Reply} */
class NodeReply {
  left = false;
  /** @type {undefined | (() => void)} */
  onLeave;
  #response;
  #options;
  status = 200;

  /** @param {any} response Node's `ServerResponse` @param {HttpOptions} options */
  constructor(response, options) {
    this.#response = response;
    this.#options = options;
    response.on('close', () => this.#leave());
    // A reader that is gone is no failure of ours.
    response.on('error', () => {});
  }

  /** @param {object} body */
  answer(body) {
    this.#response.writeHead(this.status, JSON_HEADERS).end(JSON.stringify(body));
  }

  open() {
    const { keepAlive } = this.#options;
    this.#response.writeHead(200, STREAM_HEADERS).flushHeaders();
    if (!keepAlive) return;
    const timer = setInterval(() => this.#write(COMMENT), keepAlive);
    this.#response.on('close', () => clearInterval(timer));
  }

  /** @param {object} _ @param {string} text @param {boolean} [failed] */
  frame(_, text, failed) {
    this.#write(sse(text, failed));
  }

  /** @param {string} text */
  #write(text) {
    // What it has not taken from before is too much: nothing that it is sent now would reach it in time.
    if (this.#response.writableLength > this.#options.maxUnread) {
      this.#leave();
      this.#response.destroy();
    } else this.#response.write(text);
  }

  end() {
    this.#response.end();
  }

  #leave() {
    this.left = true;
    this.onLeave?.();
  }
}

/**
 * @param {TaskServer} server
 * @param {HttpOptions} options
 * @returns {(request: any, response: any, next?: (error?: any) => void) => Promise<void>} takes Node's
 *   `IncomingMessage` and `ServerResponse`
 */
export const httpListener = (server, options) => async (request, response, next) => {
  const path = (request.originalUrl ?? request.url).split('?', 1)[0];
  /** @param {string} name */
  const header = (name) => request.headers[name];
  const version = header(VERSION);
  if (request.method === 'GET' || request.method === 'HEAD') {
    const host = header('host') ?? header(':authority'); // of HTTP/2
    const origin = originOf(request.socket.encrypted ? 'https' : 'http', host);
    const card = cardAt(server, path, origin, version);
    if (card !== undefined) response.writeHead(200, CARD_HEADERS).end(card);
    else if (next) next();
    else response.writeHead(404).end();
    return;
  }
  if (request.method !== 'POST') {
    if (next) next();
    else response.writeHead(405, { allow: 'GET, HEAD, POST' }).end();
    return;
  }
  const reply = new NodeReply(response, options);
  const why = unreadable(header, options.maxRequest);
  const text = why ?? (await textOf(request, options.maxRequest));
  if (typeof text === 'string') await server.receive(text, version, reply);
  else if (text) {
    reply.status = text[2];
    refuse(reply, version, text[0], text[1]);
    // What still comes is thrown away, so that the sender lives to read the answer.
    request.resume();
  }
};

/** @param {string} scheme @param {string | undefined} host as the client wrote it */
const originOf = (scheme, host) =>
  host && /^(?:[\w.-]+|\[[\da-f:.]+\])(?::\d+)?$/i.test(host) ? `${scheme}://${host}` : '';

/**
 * @param {any} request
 * @param {number} longest
 * @returns {Promise<string | [string, string, number] | undefined>} undefined when it was broken off
 */
function textOf(request, longest) {
  const { body } = request; // of a body parser that came before
  if (body instanceof Uint8Array) return Promise.resolve(new TextDecoder().decode(body));
  if (body !== undefined)
    return Promise.resolve(typeof body === 'string' ? body : JSON.stringify(body));
  return new Promise((resolve) => {
    const decoder = new TextDecoder();
    let text = '';
    request.on('data', (/** @type {Uint8Array} */ chunk) => {
      if (text.length + chunk.length > longest) {
        request.removeAllListeners('data');
        resolve(tooLarge(longest));
      } else text += decoder.decode(chunk, { stream: true });
    });
    request.on('end', () => resolve(text + decoder.decode()));
    request.on('close', () => resolve(undefined));
    request.on('error', () => resolve(undefined));
  });
}

// --- fetch ---------------------------------------------------------------------------------------------

const encoder = new TextEncoder();

/** @implements {Reply} */
class FetchReply {
  left = false;
  /** @type {undefined | (() => void)} */
  onLeave;
  status = 200;
  #options;
  #resolve = /** @type {(response: Response) => void} */ (() => {});
  /** @type {Promise<Response>} */
  response = new Promise((resolve) => (this.#resolve = resolve));
  /** @type {ReadableStreamDefaultController | undefined} */
  #controller;
  #timer = /** @type {any} */ (undefined);

  /** @param {HttpOptions} options */
  constructor(options) {
    this.#options = options;
  }

  /** @param {object} body */
  answer(body) {
    this.#resolve(
      new Response(JSON.stringify(body), { status: this.status, headers: JSON_HEADERS }),
    );
  }

  open() {
    const { keepAlive, maxUnread } = this.#options;
    const stream = new ReadableStream(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        cancel: () => this.#leave(),
      },
      { highWaterMark: maxUnread, size: (chunk) => chunk.byteLength },
    );
    if (keepAlive) this.#timer = setInterval(() => this.#write(COMMENT), keepAlive);
    this.#resolve(new Response(stream, { headers: STREAM_HEADERS }));
  }

  /** @param {object} _ @param {string} text @param {boolean} [failed] */
  frame(_, text, failed) {
    this.#write(sse(text, failed));
  }

  /** @param {string} text */
  #write(text) {
    const controller = this.#controller;
    if (!controller) return;
    if (/** @type {number} */ (controller.desiredSize) <= 0) {
      this.#leave();
      controller.error(new RangeError('The reader is too slow'));
    } else controller.enqueue(encoder.encode(text));
  }

  #leave() {
    clearInterval(this.#timer);
    this.#controller = undefined;
    this.left = true;
    this.onLeave?.();
  }

  end() {
    clearInterval(this.#timer);
    this.#controller?.close();
    this.#controller = undefined;
  }
}

/**
 * @param {TaskServer} server
 * @param {Request} request
 * @param {HttpOptions} options
 * @returns {Promise<Response>}
 */
export async function respond(server, request, options) {
  const { origin, pathname } = new URL(request.url);
  const version = request.headers.get(VERSION) ?? undefined;
  if (request.method === 'GET' || request.method === 'HEAD') {
    const card = cardAt(server, pathname, origin, version);
    if (card === undefined) return new Response(null, { status: 404 });
    return new Response(card, { headers: CARD_HEADERS });
  }
  if (request.method !== 'POST')
    return new Response(null, { status: 405, headers: { allow: 'GET, HEAD, POST' } });
  const reply = new FetchReply(options);
  const why = unreadable((name) => request.headers.get(name), options.maxRequest);
  const text = why ?? (await bodyOf(request, options.maxRequest));
  if (typeof text === 'string') server.receive(text, version, reply);
  else {
    reply.status = text[2];
    refuse(reply, version, text[0], text[1]);
  }
  return reply.response;
}

/**
 * @param {Request} request
 * @param {number} longest
 * @returns {Promise<string | [string, string, number]>}
 */
async function bodyOf(request, longest) {
  // Firefox has no streams of requests.
  if (!request.body) {
    const whole = await request.text();
    return whole.length > longest ? tooLarge(longest) : whole;
  }
  const decoder = new TextDecoder();
  let text = '';
  const reader = request.body.getReader();
  for (let next; !(next = await reader.read()).done;) {
    if (text.length + next.value.length > longest) {
      await reader.cancel();
      return tooLarge(longest);
    }
    text += decoder.decode(next.value, { stream: true });
  }
  return text + decoder.decode();
}
