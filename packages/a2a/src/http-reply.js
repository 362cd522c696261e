/**
 * Answers over HTTP, in both bindings: to Node's `ServerResponse`, and to a FetchResponse, which
 * has the same methods for servers in the style of fetch.
 */
import { retryAfterIn } from './dialects.js';
import { errorBody } from './rest.js';

/** @import { HttpOptions } from './http.js' */
/** @import { Printed, Reply } from './reply.js' */

export const JSON_TYPE = 'application/json';
const STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform', // compression would hold a stream back
  'x-accel-buffering': 'no', // tells nginx not to buffer
};
/** Keep a connection alive: an empty event in a stream, white space before JSON. */
const COMMENT = ':\n\n';
const SPACE = ' ';
/**
 * Events with at least this many characters are encoded once for all readers; shorter ones are
 * cheaper to copy.
 */
const MIN_SHARED = 1024;
/** Bytes that may wait for a reader whose source can pause. */
const MAX_WAITING = 64 * 1024;
const encoder = new TextEncoder();

/**
 * The answer to a request.
 * @implements {Reply}
 */
export class HttpReply {
  left = false;
  /** @type {undefined | (() => void)} */
  onLeave;
  status = 200;
  /** Sent with every answer. @type {Record<string, string>} */
  headers = {};
  /** The name of the header for extensions. */
  extensionsHeader = 'a2a-extensions';
  /** True if the binding is HTTP+JSON: results have no envelope, and errors have a status. */
  rest = false;
  #response;
  #options;
  #begun = false;
  #streams = false;
  #onRead = () => {};
  #resume = () => this.#onRead();
  #timer = /** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined);

  /**
   * @param {any} response Node's `ServerResponse`, or a FetchResponse
   * @param {HttpOptions} options
   */
  constructor(response, options) {
    this.#response = response;
    this.#options = options;
    response.on('close', () => this.#leave());
    response.on('drain', () => this.#progress());
    // 'close' follows. Without a listener the error would end the process.
    response.on('error', () => {});
  }

  /**
   * The extensions that the request and the agent have in common.
   * @param {string[]} uris
   */
  set extensions(uris) {
    if (uris.length) this.headers[this.extensionsHeader] = uris.join(',');
  }

  get #jsonHeaders() {
    const type = this.rest ? 'application/a2a+json' : JSON_TYPE;
    return { 'content-type': `${type}; charset=utf-8` };
  }

  /** @param {number} ms */
  unavailable(ms) {
    this.status = 503;
    this.headers['retry-after'] = `${ms / 1000}`;
  }

  /** @param {any} response */
  answer(response) {
    const { result, error } = response;
    let body = response;
    if (this.rest) {
      // A request that was rejected before it was read has its status already.
      body = error ? errorBody(error, this.status === 200 ? undefined : this.status) : result;
      if (error) this.status = body.error.code;
      const retryAfter = retryAfterIn(error?.data);
      if (retryAfter) this.headers['retry-after'] = `${retryAfter / 1000}`;
    }
    // Throws if the text is too long for a string, before anything is sent.
    const text = JSON.stringify(body);
    clearInterval(this.#timer);
    if (this.#streams) {
      this.#sendEvent({ text }, error !== undefined);
      this.#response.end();
    } else this.send(this.status, this.#jsonHeaders, text);
  }

  /**
   * Sends a whole answer, or the rest of one.
   * @param {number} status
   * @param {object} headers
   * @param {string} [text]
   */
  send(status, headers, text) {
    if (!this.#begun) this.#response.writeHead(status, { ...this.headers, ...headers });
    this.#response.end(text);
    this.#progress();
  }

  /**
   * Announces a slow answer: keeps the connection alive, since proxies end silent connections.
   * @param {boolean} [streams] whether it may become a stream
   */
  wait(streams = false) {
    const { keepAlive } = this.#options;
    clearInterval(this.#timer);
    // If the reader has left already, nothing would stop the timer.
    if (!keepAlive || this.left) return;
    this.#timer = setInterval(() => {
      this.#begin(streams);
      // Unread data keeps the connection alive, too.
      if (!this.unread()) this.#write(streams ? COMMENT : SPACE);
    }, keepAlive);
  }

  open() {
    this.#begin(true);
    this.wait(true);
  }

  /** @param {boolean} streams */
  #begin(streams) {
    if (!this.#begun) {
      const headers = { ...this.headers, ...(streams ? STREAM_HEADERS : this.#jsonHeaders) };
      this.#response.writeHead(200, headers).flushHeaders();
    }
    this.#begun = true;
    this.#streams ||= streams;
  }

  /**
   * @param {object} head
   * @param {Printed} body
   * @param {boolean} [failed]
   * @param {string} [number]
   */
  event(head, body, failed, number) {
    if (this.rest) {
      const content = failed ? { text: JSON.stringify(errorBody(body.object)) } : body;
      return this.#sendEvent(content, failed, number);
    }
    const start = `${JSON.stringify(head).slice(0, -1)},"${failed ? 'error' : 'result'}":`;
    return this.#sendEvent(body, failed, number, start, '}');
  }

  /**
   * @param {Printed} body
   * @param {boolean} [failed]
   * @param {string} [number]
   * @param {string} [before]
   * @param {string} [after]
   */
  #sendEvent(body, failed, number, before = '', after = '') {
    const id = number ? `id: ${number}\n` : '';
    const start = `${failed ? 'event: error\n' : id}data: ${before}`;
    const end = `${after}\n\n`;
    if (body.text.length < MIN_SHARED) this.#write(start + body.text + end);
    // The event is in memory once, however many readers it waits for.
    else this.#write(start, (body.bytes ??= encoder.encode(body.text)), end);
  }

  /** @param {...(string | Uint8Array)} pieces */
  #write(...pieces) {
    if (this.left) return;
    // Checked before this text is added, so that one long event does not cut off a reader that
    // keeps up.
    if (this.unread() > this.#options.maxUnread) this.cut();
    else {
      // HTTP/2 has no corks.
      this.#response.cork?.();
      for (const piece of pieces) this.#response.write(piece, this.#resume);
      this.#response.uncork?.();
    }
    this.#progress();
  }

  /** Called when data was written or read. */
  #progress() {
    if (!this.left) this.#options.backlog.update(this);
    this.#resume();
  }

  /** Bytes that wait to be read. */
  unread() {
    return this.#response.writableLength ?? 0; // undefined in HTTP/2 when the stream is gone
  }

  /** Resolves when the reader has read most of what was sent, or has left. */
  async room() {
    while (this.unread() > MAX_WAITING && !this.left)
      await new Promise((resolve) => {
        this.#onRead = () => resolve(undefined);
      });
  }

  end() {
    clearInterval(this.#timer);
    this.#response.end();
  }

  cut() {
    this.#leave();
    this.#response.destroy();
  }

  #leave() {
    clearInterval(this.#timer);
    this.#options.backlog.remove(this);
    this.left = true;
    this.#resume();
    this.onLeave?.();
  }
}

/** The members of Node's `ServerResponse` that a reply needs, as a `Response`. */
export class FetchResponse {
  #resolve = /** @type {(response: Response) => void} */ (() => {});
  /** Resolves when its head is known. @type {Promise<Response>} */
  response = new Promise((resolve) => (this.#resolve = resolve));
  #head = /** @type {ResponseInit} */ ({});
  /** @type {ReadableStreamDefaultController | undefined} */
  #controller;
  /** @type {Record<string, () => void>} */
  #listeners = {};
  #room;

  /** @param {number} room bytes that may wait */
  constructor(room) {
    this.#room = room;
  }

  /**
   * @param {string} event
   * @param {() => void} listener
   */
  on(event, listener) {
    this.#listeners[event] = listener;
  }

  /**
   * @param {number} status
   * @param {Record<string, string>} headers
   */
  writeHead(status, headers) {
    this.#head = { status, headers };
    return this;
  }

  flushHeaders() {
    const stream = new ReadableStream(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => this.#listeners.drain(),
        cancel: () => {
          this.#controller = undefined;
          this.#listeners.close();
        },
      },
      { highWaterMark: this.#room, size: (chunk) => chunk.byteLength },
    );
    this.#resolve(new Response(stream, this.#head));
  }

  /** @param {string | Uint8Array} piece */
  write(piece) {
    this.#controller?.enqueue(typeof piece === 'string' ? encoder.encode(piece) : piece);
  }

  /** @param {string} [text] */
  end(text) {
    if (!this.#controller) return this.#resolve(new Response(text ?? null, this.#head));
    if (text) this.write(text);
    this.#controller.close();
    this.#controller = undefined;
  }

  destroy() {
    this.#controller?.error(new RangeError('The reader is too slow'));
    this.#controller = undefined;
  }

  get writableLength() {
    const free = this.#controller?.desiredSize;
    return free === undefined || free === null ? 0 : this.#room - free;
  }
}
