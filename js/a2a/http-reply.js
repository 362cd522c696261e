/** Answers over HTTP: to Node's `http`, and as a `Response`. */

/** @import { HttpOptions } from './http.js' */
/** @import { Printed, Reply } from './reply.js' */

export const JSON_TYPE = 'application/json';
const STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no', // nginx, do not wait for more
};
/** A line that says nothing, which keeps a stream alive; and what JSON may begin with. */
const COMMENT = ':\n\n';
const SPACE = ' ';

/**
 * Where the answer to a request over HTTP goes: what Node and `fetch` have in common.
 * @implements {Reply}
 */
export class HttpReply {
  left = false;
  /** @type {undefined | (() => void)} */
  onLeave;
  status = 200;
  type = JSON_TYPE;
  /** Headers of whatever is answered. @type {Record<string, string>} */
  headers = {};
  /** The header that names extensions. */
  extensionsHeader = 'a2a-extensions';
  #options;
  #backlog;
  #begun = false;
  #timer = /** @type {any} */ (undefined);

  /** @param {HttpOptions} options @param {import('./backlog.js').Backlog} backlog */
  constructor(options, backlog) {
    this.#options = options;
    this.#backlog = backlog;
  }

  /** What the request and the agent both know. @param {string[]} uris */
  set extensions(uris) {
    if (uris.length) this.headers[this.extensionsHeader] = uris.join(',');
  }

  /** @param {object} body */
  answer(body) {
    this.sendJson(body);
  }

  /** @param {object} body */
  sendJson(body) {
    // Before anything is sent: what is too long to be text throws here.
    const text = JSON.stringify(body);
    clearInterval(this.#timer);
    this.send(this.status, { 'content-type': `${this.type}; charset=utf-8` }, text);
  }

  /** All of an answer, or its rest. @param {number} status @param {object} headers @param {string} [text] */
  send(status, headers, text) {
    if (this.#begun) {
      if (text) this.push(text);
      this.close();
    } else this.whole(status, { ...this.headers, ...headers }, text);
    this.progress();
  }

  /** The answer will take its time: now and then something is sent, for those who end silent connections. */
  wait() {
    const { keepAlive } = this.#options;
    if (!keepAlive || this.left) return;
    this.#timer = setInterval(() => {
      if (!this.#begun) this.#begin({ 'content-type': `${this.type}; charset=utf-8` });
      this.#write(SPACE);
    }, keepAlive);
  }

  open() {
    const { keepAlive } = this.#options;
    this.#begin(STREAM_HEADERS);
    // Nobody would stop the clock of one that left before this.
    if (keepAlive && !this.left) this.#timer = setInterval(() => this.#write(COMMENT), keepAlive);
  }

  /** @param {object} headers */
  #begin(headers) {
    this.#begun = true;
    this.begin(200, { ...this.headers, ...headers });
  }

  /** @param {object} head @param {Printed} body @param {boolean} [failed] */
  frame(head, { text }, failed) {
    const start = JSON.stringify(head).slice(0, -1);
    this.sendEvent(`${start},"${failed ? 'error' : 'result'}":${text}}`, failed);
  }

  /** @param {string} text @param {boolean} [failed] */
  sendEvent(text, failed) {
    this.#write(`${failed ? 'event: error\n' : ''}data: ${text}\n\n`);
  }

  /** @param {string} text */
  #write(text) {
    if (this.left) return;
    // What it has not taken from before is too much: nothing that it is sent now would reach it in time.
    if (this.unread() > this.#options.maxUnread) this.cut();
    else this.push(text);
    this.progress();
  }

  /** Something was written or read. */
  progress() {
    if (!this.left) this.#backlog.update(this);
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
    this.onLeave?.();
  }

  // What Node and fetch do in their own ways:
  /** @param {number} _status @param {object} _headers @param {string} [_text] */
  whole(_status, _headers, _text) {}
  /** @param {number} _status @param {object} _headers */
  begin(_status, _headers) {}
  /** @param {string} _text */
  push(_text) {}
  close() {}
  destroy() {}
  /** Bytes that have not been taken. */
  unread() {
    return 0;
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
    // A reader that is gone is no failure of ours.
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

  /** @param {string} text */
  push(text) {
    this.#response.write(text);
  }

  close() {
    this.#response.end();
  }

  destroy() {
    this.#response.destroy();
  }

  unread() {
    return this.#response.writableLength ?? 0; // HTTP/2 has none when its stream is gone
  }
}

// --- fetch ---------------------------------------------------------------------------------------------

const encoder = new TextEncoder();

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

  /** @param {string} text */
  push(text) {
    this.#controller?.enqueue(encoder.encode(text));
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
}
