/**
 * Streams of bytes: a process's standard input and output, a socket, whatever else has web streams or Node's.
 * Each message is JSON text in UTF-8, framed by lines or by `Content-Length`.
 *
 * Nothing is read before `onMessage` is set. What cannot be read as a message (bytes that are no UTF-8, text
 * that is no JSON, a header without a length, more than `maxMessage` bytes) is given to `onUnreadable` and
 * skipped, and the messages after it are read. The end of what can be read is the end of the other side.
 */
import { AbpError, callOut, reasonText } from '../errors.js';
import { HeaderFraming, LineFraming } from './framing.js';

/** @typedef {import('../endpoint.js').Transport} Transport */

/**
 * @typedef {object} NodeReadable What we use of `stream.Readable`.
 * @property {(event: any, listener: (...args: any[]) => void) => unknown} on
 * @property {(event: any, listener: (...args: any[]) => void) => unknown} off
 * @property {() => unknown} destroy
 */

/**
 * @typedef {object} NodeWritable What we use of `stream.Writable`.
 * @property {(event: any, listener: (...args: any[]) => void) => unknown} on
 * @property {(bytes: Uint8Array, done: (error?: Error | null) => void) => unknown} write
 * @property {(then: () => void) => unknown} end
 * @property {() => unknown} destroy
 */

/**
 * @typedef {object} Streams Both ends are the transport's from now on: it closes them.
 * @property {ReadableStream<Uint8Array> | NodeReadable} readable
 * @property {WritableStream<Uint8Array> | NodeWritable} writable
 */

/**
 * @typedef {object} StreamOptions
 * @property {number} [maxMessage] bytes of the longest message (32 MiB): longer ones are skipped when they
 *   come, and refused by `post`
 * @property {number} [maxBacklog] bytes that may wait for the other side to read them (128 MiB): one that is
 *   further behind is given up
 */

/**
 * A message a line: ACP, and MCP over stdio.
 * @param {Streams} streams
 * @param {StreamOptions} [options]
 * @returns {Transport}
 */
export const lineTransport = (streams, options) =>
  new StreamTransport(LineFraming, streams, options);

/**
 * A message after its `Content-Length`: LSP.
 * @param {Streams} streams
 * @param {StreamOptions} [options]
 * @returns {Transport}
 */
export const headerTransport = (streams, options) =>
  new StreamTransport(HeaderFraming, streams, options);

/** Bytes that are no UTF-8 are no message: replaced, two ids could become one. */
const decoder = new TextDecoder('utf-8', { fatal: true });
const encoder = new TextEncoder();
const soon = Promise.resolve();

class StreamTransport {
  /** @type {Transport['onUnreadable']} */
  onUnreadable;
  /** @type {Transport['onClose']} */
  onClose;
  /** @type {Transport['onMessage']} */
  #onMessage = () => {};
  #reading = false;
  #closed = false;
  /** What this turn has to say: one write says it. @type {Uint8Array[]} */
  #outgoing = [];
  /** Bytes that the other side has not taken. */
  #backlog = 0;

  /**
   * @param {typeof LineFraming | typeof HeaderFraming} Framing
   * @param {Streams} streams
   * @param {StreamOptions} [options]
   */
  constructor(Framing, { readable, writable }, options = {}) {
    const { maxMessage = 2 ** 25, maxBacklog = 2 ** 27 } = options;
    this.maxMessage = maxMessage;
    this.maxBacklog = maxBacklog;
    this.wrap = Framing.wrap;
    this.framing = new Framing({
      limit: maxMessage,
      message: (bytes) => this.#message(bytes),
      unreadable: (error) => this.#unreadable(error),
    });
    const failed = (/** @type {unknown} */ error) => this.#failed(error);
    this.source = sourceOf(readable, failed);
    this.sink = sinkOf(writable, failed);
  }

  get onMessage() {
    return this.#onMessage;
  }

  set onMessage(listener) {
    this.#onMessage = listener;
    if (this.#reading) return;
    this.#reading = true;
    this.source.start(
      (chunk) => this.#chunk(chunk),
      () => this.#end(),
    );
  }

  /** @param {unknown} message */
  post(message) {
    const text = JSON.stringify(message);
    if (text === undefined) throw new TypeError('What is no JSON value cannot be sent');
    if (this.#closed) return;
    const bytes = encoder.encode(text);
    if (bytes.length > this.maxMessage) {
      const why = `A message of ${bytes.length} bytes is too long to be sent`;
      throw new AbpError('MESSAGE_TOO_LONG', why);
    }
    const parts = this.wrap(bytes);
    this.#backlog += lengthOf(parts);
    if (this.#backlog > this.maxBacklog) {
      const why = new Error(`the other side is ${this.#backlog} bytes behind with reading`);
      // Whoever posts is in the middle of something.
      soon.then(() => this.#failed(why));
      return;
    }
    if (!this.#outgoing.length) soon.then(() => this.#flush());
    this.#outgoing.push(...parts);
  }

  close() {
    if (this.#closed) return;
    this.#flush();
    this.#closed = true;
    this.source.stop();
    // They may be one stream, which has something to say yet.
    this.sink.end(() => this.source.destroy());
  }

  #flush() {
    if (this.#closed || !this.#outgoing.length) return;
    const bytes = joined(this.#outgoing);
    this.#outgoing = [];
    this.sink.write(bytes, () => (this.#backlog -= bytes.length));
  }

  /** @param {unknown} chunk */
  #chunk(chunk) {
    if (this.#closed) return;
    // A stream that was told its encoding gives text.
    const bytes = typeof chunk === 'string' ? encoder.encode(chunk) : chunk;
    if (bytes instanceof Uint8Array) this.framing.push(bytes);
    else this.#failed(new TypeError('the stream gives something else than bytes'));
  }

  /** @param {Uint8Array} bytes */
  #message(bytes) {
    if (this.#closed) return;
    let message;
    try {
      message = JSON.parse(decoder.decode(bytes));
    } catch (cause) {
      const { message: why } = /** @type {Error} */ (cause);
      return this.#unreadable(new AbpError('PARSE_ERROR', `No JSON in UTF-8: ${why}`, { cause }));
    }
    callOut(this.#onMessage, message, []);
  }

  /** @param {AbpError} error */
  #unreadable(error) {
    if (!this.#closed) callOut(this.onUnreadable, error);
  }

  #end() {
    if (this.#closed) return;
    this.framing.end();
    if (!this.#closed) callOut(this.onClose);
  }

  /** @param {unknown} cause */
  #failed(cause) {
    if (this.#closed) return;
    this.#closed = true;
    this.#outgoing = [];
    this.source.stop();
    this.source.destroy();
    this.sink.destroy();
    const why = `The stream failed: ${reasonText(cause) ?? cause}`;
    callOut(this.onClose, new AbpError('TRANSPORT_ERROR', why, { cause }));
  }
}

/** @param {Uint8Array[]} parts */
const lengthOf = (parts) => parts.reduce((sum, part) => sum + part.length, 0);

/** @param {Uint8Array[]} parts */
function joined(parts) {
  const whole = new Uint8Array(lengthOf(parts));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/**
 * @typedef {object} Source
 * @property {(chunk: (chunk: unknown) => void, end: () => void) => void} start
 * @property {() => void} stop gives no more chunks
 * @property {() => void} destroy
 */

/**
 * @param {any} readable
 * @param {(error: unknown) => void} failed
 * @returns {Source}
 */
function sourceOf(readable, failed) {
  if (typeof readable.getReader === 'function') {
    const reader = readable.getReader();
    const cancel = () => void reader.cancel().catch(() => {});
    return {
      async start(chunk, end) {
        try {
          for (let read; !(read = await reader.read()).done;) chunk(read.value);
          end();
        } catch (error) {
          failed(error);
        }
      },
      stop: cancel,
      destroy: cancel,
    };
  }
  /** @type {[string, (...args: any[]) => void][]} */
  let listeners = [];
  // For as long as the stream lives: an error that nobody listens to ends the process.
  readable.on('error', failed);
  return {
    start(chunk, end) {
      let ended = false;
      listeners = [
        ['data', chunk],
        ['end', () => ((ended = true), end())],
        ['close', () => ended || failed(new Error('it was closed before its end'))],
      ];
      for (const [event, listener] of listeners) readable.on(event, listener);
    },
    stop() {
      for (const [event, listener] of listeners) readable.off(event, listener);
    },
    destroy: () => readable.destroy(),
  };
}

/**
 * @typedef {object} Sink
 * @property {(bytes: Uint8Array, done: () => void) => void} write
 * @property {(then: () => void) => void} end says all that was written, and closes
 * @property {() => void} destroy
 */

/**
 * @param {any} writable
 * @param {(error: unknown) => void} failed
 * @returns {Sink}
 */
function sinkOf(writable, failed) {
  if (typeof writable.getWriter === 'function') {
    const writer = writable.getWriter();
    writer.closed.catch(failed);
    return {
      write: (bytes, done) => void writer.write(bytes).then(done, failed),
      end: (then) => void writer.close().then(then, then),
      destroy: () => void writer.abort().catch(() => {}),
    };
  }
  writable.on('error', failed);
  return {
    write: (bytes, done) =>
      writable.write(bytes, (/** @type {unknown} */ error) => (error ? failed(error) : done())),
    end: (then) => writable.end(then),
    destroy: () => writable.destroy(),
  };
}
