/** MCP over streamable HTTP, in both versions, for clients on this machine that have the token. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { AsyncLocalStorage } from 'node:async_hooks';
import { Readable, finished } from 'node:stream';
import {
  WebStandardStreamableHTTPServerTransport,
  createMcpHandler,
  isLegacyRequest,
} from '@modelcontextprotocol/server';
import { keepAliveOf, serveGuarded } from './http-guard.js';
import { McpServer } from './mcp-server.js';
import { log } from './errors.js';
import { unguessable } from './runs.js';
import { lineOf } from './texts.js';
import { within } from './waiting.js';

/** Bytes of a request. */
const MAX_BODY = 4 << 20;
/** Sessions of clients of the older version. */
const MAX_SESSIONS = 64;
/** Ms of silence after which a session may be evicted. */
const SESSION_IDLE = 30 * 60_000;
/** Ms that clients may take to read their last answers. */
const CLOSING = 1000;
const PATH = '/mcp';
const EVENTS = 'text/event-stream';

/** The current exchange. @type {AsyncLocalStorage<Exchange>} */
const exchange = new AsyncLocalStorage();
/** The latest exchange of each connection. @type {WeakMap<import('node:net').Socket, Exchange>} */
const latest = new WeakMap();

/**
 * @typedef {import('node:http').IncomingMessage} IncomingMessage
 * @typedef {import('node:http').ServerResponse} ServerResponse
 *
 * @typedef {object} Session
 * @property {WebStandardStreamableHTTPServerTransport} transport
 * @property {McpServer} server
 * @property {number} usedAt ms of `performance.now()`
 * @property {Set<ServerResponse>} open answers that were not read yet
 */

/**
 * @param {import('./gateway.js').Gateway} gateway
 * @param {import('./commands.js').Values & { http: string }} values of the options
 */
export async function serveHttp(gateway, values) {
  /** @type {Map<string, Session>} */
  const sessions = new Map();
  const onerror = (/** @type {Error} */ error) => log(lineOf(error.message));
  const keepAliveMs = keepAliveOf(values);
  const modern = createMcpHandler(
    ({ era }) => new McpServer(gateway, era, { exchange: () => exchange.getStore() }),
    { legacy: 'reject', maxRequestBodySize: MAX_BODY, keepAliveMs, onerror },
  );
  gateway.listeners.add(() => {
    modern.notify.toolsChanged();
    for (const { server } of sessions.values()) void server.sendToolListChanged().catch(() => {});
  });

  /**
   * Makes room: evicts the session that was silent for long, or longest, if it is not in use.
   */
  function evict() {
    const idle = [...sessions].filter(([, { open }]) => !open.size);
    idle.sort(([, a], [, b]) => a.usedAt - b.usedAt);
    for (const [id, { transport, usedAt }] of idle) {
      if (sessions.size < MAX_SESSIONS && performance.now() - usedAt < SESSION_IDLE) return;
      sessions.delete(id);
      void transport.close();
    }
  }

  /**
   * A client of the older version has a session, in which its cancels are looked up.
   * @param {Request} request
   * @param {ServerResponse} outgoing
   */
  async function serveLegacy(request, outgoing) {
    const id = request.headers.get('mcp-session-id');
    let session = id === null ? undefined : sessions.get(id);
    if (id !== null && !session) return refusal(404, 'Session not found');
    if (!session) {
      evict();
      if (sessions.size >= MAX_SESSIONS) return refusal(503, 'Too many sessions');
      session = await openSession();
    }
    const { transport, open } = session;
    session.usedAt = performance.now();
    if (request.method !== 'GET') {
      // The session is in use until the answer has been read, or is abandoned.
      open.add(outgoing);
      finished(outgoing, () => open.delete(outgoing));
    }
    return transport.handleRequest(request);
  }

  /** @returns {Promise<Session>} */
  async function openSession() {
    const owner = unguessable();
    const server = new McpServer(gateway, 'legacy', { owner, exchange: () => exchange.getStore() });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, session),
      onsessionclosed: (id) => void sessions.delete(id),
      maxRequestBodySize: MAX_BODY,
      keepAliveMs,
    });
    /** @type {Session} */
    const session = { transport, server, usedAt: 0, open: new Set() };
    server.onerror = onerror;
    server.onclose = () => gateway.runs.leave(owner);
    await server.connect(transport);
    return session;
  }

  /**
   * @param {IncomingMessage} incoming
   * @param {ServerResponse} outgoing
   * @param {Exchange} own
   * @param {AbortSignal} signal a cancel
   */
  async function answer(incoming, outgoing, own, signal) {
    if (incoming.url?.split('?')[0] !== PATH) return refusal(404, `MCP is served at ${PATH}`);
    if (Number(incoming.headers['content-length']) > MAX_BODY)
      return refusal(413, `A request may have at most ${MAX_BODY} bytes`);
    const request = toRequest(incoming);
    // The end of a response cancels its request in the newer version only.
    if (await isLegacyRequest(request, undefined, { maxRequestBodySize: MAX_BODY }))
      return exchange.run(own, serveLegacy, request, outgoing);
    if (own.isLost) return refusal(400, 'The client has left');
    own.isModern = true;
    const cancellable = new Request(request, { signal });
    return exchange.run(own, () => awaitAlive(modern.fetch(cancellable), outgoing, keepAliveMs));
  }

  /**
   * @param {IncomingMessage} incoming
   * @param {ServerResponse} outgoing
   * @param {import('./http-guard.js').Problem} [problem]
   */
  async function respond(incoming, outgoing, problem) {
    const cancel = new AbortController();
    const own = new Exchange(incoming, outgoing);
    outgoing.once('close', () => {
      if (own.isLost && !own.goesOn) cancel.abort(new Error('the client closed the response'));
    });
    try {
      const response = problem
        ? refusal(problem.status, problem.message, problem.headers)
        : await answer(incoming, outgoing, own, cancel.signal);
      await send(response, outgoing, own);
    } catch (error) {
      onerror(/** @type {Error} */ (error));
      if (outgoing.headersSent) outgoing.destroy();
      else outgoing.writeHead(500).end();
    }
  }

  const service = { what: 'MCP', where: values.http, path: PATH };
  const http = await serveGuarded(service, values, (...given) => void respond(...given));
  return {
    /** @type {Promise<string>} */
    ended: new Promise(() => {}),
    async close() {
      for (const { transport } of sessions.values()) await transport.close();
      await modern.close();
      // The ends of subscriptions and calls are still being sent.
      const written = new Promise((resolve) => http.close(resolve));
      await within(CLOSING, written).catch(() => {});
      http.closeAllConnections();
    },
  };
}

/**
 * @param {number} status
 * @param {string} message
 * @param {Record<string, string>} [headers]
 */
const refusal = (status, message, headers) =>
  Response.json(
    { jsonrpc: '2.0', id: null, error: { code: -32000, message } },
    { status, headers },
  );

/**
 * @param {IncomingMessage} incoming
 * @returns {Request}
 */
function toRequest(incoming) {
  const { method = 'GET', headers, url = '/' } = incoming;
  const hasBody = method !== 'GET' && method !== 'HEAD';
  return new Request(new URL(url, `http://${headers.host}`), {
    method,
    headers: Object.entries(headers).flatMap(([name, value]) =>
      [value ?? []].flat().map((each) => /** @type {[string, string]} */ ([name, each])),
    ),
    ...(hasBody && {
      body: /** @type {ReadableStream} */ (Readable.toWeb(incoming)),
      duplex: 'half',
    }),
  });
}

/** A request and its answer. */
export class Exchange {
  #outgoing;
  /** True if, in its version, a closed answer is a cancel. */
  isModern = false;
  /** True if the request says that a closed answer is not a cancel. */
  goesOn = false;
  /**
   * Called if the connection breaks after the answer, before the client has used it again.
   * @type {(() => void)[]}
   */
  brokenAfter = [];
  /** True if all of the answer was sent. @type {Promise<boolean>} */
  written;

  /**
   * @param {IncomingMessage} incoming
   * @param {ServerResponse} outgoing
   */
  constructor({ socket }, outgoing) {
    this.#outgoing = outgoing;
    this.written = new Promise((resolve) => {
      outgoing.once('close', () => resolve(outgoing.writableFinished));
    });
    if (!latest.has(socket))
      socket.once('close', (hadError) => {
        if (hadError) for (const each of latest.get(socket)?.brokenAfter ?? []) each();
      });
    latest.set(socket, this);
  }

  /** True if the client has closed the answer before all was sent. */
  get isLost() {
    return this.#outgoing.destroyed && !this.#outgoing.writableFinished;
  }

  /** Resolves when the client has read the sent data, or is gone. */
  async drained() {
    const outgoing = this.#outgoing;
    if (!outgoing.writableNeedDrain || outgoing.destroyed) return;
    const over = new AbortController();
    const { signal } = over;
    await Promise.race([once(outgoing, 'drain', { signal }), once(outgoing, 'close', { signal })])
      .catch(() => {})
      .finally(() => over.abort());
  }
}

/**
 * Sends signs of life until there is a response, since proxies end silent connections. The first
 * one turns the answer into a stream of events.
 * @param {Promise<Response>} response
 * @param {ServerResponse} outgoing
 * @param {number} ms 0 for never
 */
function awaitAlive(response, outgoing, ms) {
  const show = () => {
    if (outgoing.destroyed) return;
    if (!outgoing.headersSent) outgoing.writeHead(200, { 'content-type': EVENTS });
    outgoing.write(':\n\n');
  };
  const timer = ms ? setInterval(show, ms) : undefined;
  return response.finally(() => clearInterval(timer));
}

/**
 * @param {Response} response
 * @param {ServerResponse} outgoing
 * @param {Exchange} exchange
 */
async function send(response, outgoing, exchange) {
  const { isModern } = exchange;
  if (!outgoing.headersSent)
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  else if (response.headers.get('content-type') !== EVENTS) {
    const text = await response.text();
    if (!outgoing.destroyed) outgoing.write(`event: message\ndata: ${text}\n\n`);
    return void outgoing.end();
  }
  if (!response.body) return void outgoing.end();
  outgoing.flushHeaders();
  const reader = response.body.getReader();
  const leave = () => void reader.cancel().catch(() => {});
  // In the newer version that would be a cancel.
  if (outgoing.destroyed && !isModern) leave();
  else if (!isModern) outgoing.once('close', leave);
  for (;;) {
    const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }));
    if (done) return void outgoing.end();
    // Before a piece, not after it: the end is sent with the last piece, since a client that has
    // the whole answer may close it at once.
    await exchange.drained();
    if (!outgoing.destroyed) outgoing.write(value);
  }
}
