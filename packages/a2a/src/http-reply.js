/** Answers over HTTP, for Node's `http` and as a `Response`. */

/** @import { HttpOptions } from './http.js' */
/** @import { Printed, Reply } from './reply.js' */

export const JSON_TYPE = 'application/json';
const STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform', // compression would hold a stream back
  'x-accel-buffering': 'no', // tells nginx not to buffer
};
/** Keep a connection alive: an empty event of a stream, and white space before JSON. */
const COMMENT = ':\n\n';
const SPACE = ' ';
/** Characters of an event from which on all its readers share its bytes; the bytes of shorter ones are cheaper to copy. */
const MIN_SHARED = 1024;
/** Bytes that may wait for a reader whose stream can wait for it. */
const MAX_WAITING = 64 * 1024;
const encoder = new TextEncoder();

/**
 * The answer to a request over HTTP: what Node and `fetch` have in common.
 * @implements {Reply}
 */
export class HttpReply {
  left = false;
  /** @type {undefined | (() => void)} */
  onLeave;
  status = 200;
  type = JSON_TYPE;
  /** Sent with every answer. @type {Record<string, string>} */
  headers = {};
  /** The name of the header for extensions. */
  extensionsHeader = 'a2a-extensions';
  #options;
  #backlog;
  #begun = false;
  #streams = false;
  #onRead = () => {};
  /** Call this when something of what was sent is on its way. */
  resume = () => this.#onRead();
  #timer = /** @type {ReturnType<typeof setTimeout> | undefined} */ (undefined);

  /** @param {HttpOptions} options @param {import('./backlog.js').Backlog} backlog */
  constructor(options, backlog) {
    this.#options = options;
    this.#backlog = backlog;
  }

  /** Those that the request and the agent have in common. @param {string[]} uris */
  set extensions(uris) {
    if (uris.length) this.headers[this.extensionsHeader] = uris.join(',');
  }

  /** @param {number} ms */
  unavailable(ms) {
    this.status = 503;
    this.headers['retry-after'] = `${ms / 1000}`;
  }

  /** @param {object} body */
  answer(body) {
    this.sendJson(body, 'error' in body);
  }

  /** @param {object} body @param {boolean} failed whether it is an error */
  sendJson(body, failed) {
    // Throws if the text is too long for a string, before anything is sent.
    const text = JSON.stringify(body);
    clearInterval(this.#timer);
    if (this.#streams) {
      this.sendEvent({ text }, failed);
      this.close();
    } else this.send(this.status, { 'content-type': `${this.type}; charset=utf-8` }, text);
  }

  /** Sends a whole answer, or the rest of one. @param {number} status @param {object} headers @param {string} [text] */
  send(status, headers, text) {
    if (this.#begun) {
      if (text) this.push(text);
      this.close();
    } else this.whole(status, { ...this.headers, ...headers }, text);
    this.progress();
  }

  /**
   * The answer will take long: shows signs of life now and then, since proxies end silent connections.
   * @param {boolean} [streams] whether it may become a stream
   */
  wait(streams = false) {
    const { keepAlive } = this.#options;
    clearInterval(this.#timer);
    // If the reader has left already, nothing would stop the timer.
    if (!keepAlive || this.left) return;
    this.#timer = setInterval(() => {
      if (streams) this.#beginStream();
      else if (!this.#begun) this.#begin({ 'content-type': `${this.type}; charset=utf-8` });
      this.#sign(streams ? COMMENT : SPACE);
    }, keepAlive);
  }

  open() {
    this.#beginStream();
    this.wait(true);
  }

  #beginStream() {
    if (!this.#begun) this.#begin(STREAM_HEADERS);
    this.#streams = true;
  }

  /** Sends a sign of life, unless something waits to be read, which is one. @param {string} text */
  #sign(text) {
    if (!this.unread()) this.#write(text);
  }

  /** @param {object} headers */
  #begin(headers) {
    this.#begun = true;
    this.begin(200, { ...this.headers, ...headers });
  }

  /** @param {object} head @param {Printed} body @param {boolean} [failed] @param {string} [number] */
  event(head, body, failed, number) {
    const start = `${JSON.stringify(head).slice(0, -1)},"${failed ? 'error' : 'result'}":`;
    this.sendEvent(body, failed, number, start, '}');
  }

  /**
   * @param {Printed} body
   * @param {boolean} [failed]
   * @param {string} [number]
   * @param {string} [before]
   * @param {string} [after]
   */
  sendEvent(body, failed, number, before = '', after = '') {
    const id = number ? `id: ${number}\n` : '';
    const start = `${failed ? 'event: error\n' : id}data: ${before}`;
    const end = `${after}\n\n`;
    if (body.text.length < MIN_SHARED) this.#write(start + body.text + end);
    // However many wait for it, it is in memory once.
    else this.#write(start, (body.bytes ??= encoder.encode(body.text)), end);
  }

  /** @param {...(string | Uint8Array)} pieces */
  #write(...pieces) {
    if (this.left) return;
    // Checked before this text is added, so that one long event does not cut off a reader that keeps up.
    if (this.unread() > this.#options.maxUnread) this.cut();
    else this.push(...pieces);
    this.progress();
  }

  /** Call this after something was written or read. */
  progress() {
    if (!this.left) this.#backlog.update(this);
    this.resume();
  }

  /** Resolves when the reader has read most of what was sent, or has left. */
  async room() {
    while (this.full() && !this.left)
      await new Promise((resolve) => {
        this.#onRead = () => resolve(undefined);
      });
  }

  end() {
    clearInterval(this.#timer);
    this.close();
  }

  cut() {
    this.leave();
    this.destroy();
  }

  leave() {
    clearInterval(this.#timer);
    this.#backlog.remove(this);
    this.left = true;
    this.resume();
    this.onLeave?.();
  }

  // Implemented for Node and for fetch:
  /** @param {number} _status @param {object} _headers @param {string} [_text] */
  whole(_status, _headers, _text) {}
  /** @param {number} _status @param {object} _headers */
  begin(_status, _headers) {}
  /** @param {...(string | Uint8Array)} _parts */
  push(..._parts) {}
  close() {}
  destroy() {}
  /** Bytes that wait to be read. */
  unread() {
    return 0;
  }
  /** Whether whatever can wait should. */
  full() {
    return false;
  }
}

// --- Node ----------------------------------------------------------------------------------------------

export class NodeReply extends HttpReply {
  #response;

  /**
   * @param {any} response Node's `ServerResponse`
   * @param {HttpOptions} options
   * @param {import('./backlog.js').Backlog} backlog
   */
  constructor(response, options, backlog) {
    super(options, backlog);
    this.#response = response;
    response.on('close', () => this.leave());
    response.on('drain', () => this.progress());
    // 'close' follows. Without a listener the error would end the process.
    response.on('error', () => {});
  }

  /** @param {number} status @param {object} headers @param {string} [text] */
  whole(status, headers, text) {
    this.#response.writeHead(status, headers).end(text);
  }

  /** @param {number} status @param {object} headers */
  begin(status, headers) {
    this.#response.writeHead(status, headers).flushHeaders();
  }

  /** @param {...(string | Uint8Array)} pieces */
  push(...pieces) {
    const response = this.#response;
    // HTTP/2 has no corks.
    if (pieces.length > 1) response.cork?.();
    for (const piece of pieces) response.write(piece, this.resume);
    if (pieces.length > 1) response.uncork?.();
  }

  close() {
    this.#response.end();
  }

  destroy() {
    this.#response.destroy();
  }

  full() {
    return this.unread() > MAX_WAITING;
  }

  unread() {
    return this.#response.writableLength ?? 0; // undefined in HTTP/2 when the stream is gone
  }
}

// --- fetch ---------------------------------------------------------------------------------------------

export class FetchReply extends HttpReply {
  #resolve = /** @type {(response: Response) => void} */ (() => {});
  /** @type {Promise<Response>} */
  response = new Promise((resolve) => (this.#resolve = resolve));
  /** @type {ReadableStreamDefaultController | undefined} */
  #controller;
  #room;

  /** @param {HttpOptions} options @param {import('./backlog.js').Backlog} backlog */
  constructor(options, backlog) {
    super(options, backlog);
    this.#room = options.maxUnread;
  }

  /** @param {number} status @param {object} headers @param {string} [text] */
  whole(status, headers, text) {
    this.#resolve(new Response(text ?? null, { status, headers: { ...headers } }));
  }

  /** @param {number} status @param {object} headers */
  begin(status, headers) {
    const stream = new ReadableStream(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () => this.progress(),
        cancel: () => {
          this.#controller = undefined;
          this.leave();
        },
      },
      { highWaterMark: this.#room, size: (chunk) => chunk.byteLength },
    );
    this.#resolve(new Response(stream, { status, headers: { ...headers } }));
  }

  /** @param {...(string | Uint8Array)} pieces */
  push(...pieces) {
    for (const piece of pieces)
      this.#controller?.enqueue(typeof piece === 'string' ? encoder.encode(piece) : piece);
  }

  close() {
    this.#controller?.close();
    this.#controller = undefined;
  }

  destroy() {
    this.#controller?.error(new RangeError('The reader is too slow'));
    this.#controller = undefined;
  }

  unread() {
    const free = this.#controller?.desiredSize;
    return free === undefined || free === null ? 0 : this.#room - free;
  }

  full() {
    return this.unread() > this.#room / 4;
  }
}
