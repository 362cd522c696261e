/**
 * Streams of bytes: a process's standard input and output, a socket, or anything else with web or
 * Node streams. Each message is JSON text in UTF-8, framed by lines or by `Content-Length`.
 *
 * Nothing is read before `onMessage` is set. Input that is not a message (bytes that are not UTF-8,
 * text that is not JSON, a header without a length, more than `maxMessage` bytes) is reported to
 * `onUnreadable` and skipped; reading continues after it. When the readable stream ends, the other
 * side is gone.
 */
import {
  MAX_MESSAGES_PER_TURN,
  AbpError,
  Receiver,
  inAnotherTurn,
  invokeReportingErrors,
  messageToText,
  reasonText,
  requireOptions,
  requireValues,
} from 'abp-bridge/driver';
import { BLANK, HeaderFraming, LineFraming } from './framing.js';

/** @import { Feature, Transport } from 'abp-bridge/driver' */

/**
 * @typedef {object} NodeReadable The used part of `stream.Readable`.
 * @property {(event: any, listener: (...args: unknown[]) => void) => unknown} on
 * @property {() => unknown} destroy
 * @property {() => unknown} [pause]
 * @property {() => unknown} [resume]
 */

/**
 * @typedef {object} NodeWritable The used part of `stream.Writable`.
 * @property {(event: any, listener: (...args: unknown[]) => void) => unknown} on
 * @property {(bytes: Uint8Array, done: (error?: Error | null) => void) => unknown} write
 * @property {(then: () => void) => unknown} end
 * @property {() => unknown} destroy
 */

/**
 * @typedef {object} Streams The transport owns both from now on, and closes them.
 * @property {ReadableStream<Uint8Array> | NodeReadable} readable
 * @property {WritableStream<Uint8Array> | NodeWritable} writable
 */

/**
 * @typedef {object} StreamOptions Limits of byte streams.
 * @property {number} [maxMessage] bytes of the longest message (32 MiB): longer ones are skipped on
 *   arrival, and rejected by `post`
 * @property {number} [maxBacklog] bytes that may wait for the other side to read them (128 MiB):
 *   above it, the connection is closed
 */

/** @type {import('abp-bridge/driver').Kinds<StreamOptions>} */
const OPTIONS = { maxBacklog: 'a number', maxMessage: 'a number' };

/**
 * One message a line: ACP, and MCP over stdio.
 * @param {Streams} streams to read and write
 * @param {StreamOptions} [options]
 * @returns {Transport}
 */
export const lineTransport = (streams, options) =>
  new StreamTransport(LineFraming, streams, options);

/**
 * Messages after a `Content-Length` header: LSP.
 * @param {Streams} streams to read and write
 * @param {StreamOptions} [options]
 * @returns {Transport}
 */
export const headerTransport = (streams, options) =>
  new StreamTransport(HeaderFraming, streams, options);

/** Bytes that are not UTF-8 are an error: if they were replaced, two ids could become the same. */
const decoder = new TextDecoder('utf-8', { fatal: true });
const encoder = new TextEncoder();
/** Bytes of backlog above which senders that can wait do so. */
const ENOUGH_BACKLOG = 2 ** 18;

class StreamTransport extends Receiver {
  /** @type {readonly Feature[]} */
  carries = ['liveness', 'streams'];
  /** @type {Transport['onEnd']} */
  onEnd = undefined;
  #started = false;
  /** True if input is being read, or will be in a later turn. */
  #reading = false;
  /** How the stream ended, if it has. @type {{ cause?: unknown } | undefined} */
  #ending;
  /** True if all input of the other side was read. */
  #finished = false;
  /** Messages of this turn, for a single write. @type {Uint8Array[]} */
  #outgoing = [];
  /** Bytes that were posted and that the other side has not read. */
  #backlog = 0;
  /** Resolve when the other side has read. @type {(() => void)[]} */
  #waiting = [];

  /**
   * @param {typeof LineFraming | typeof HeaderFraming} Framing
   * @param {Streams} streams
   * @param {StreamOptions} [options]
   */
  constructor(Framing, { readable, writable }, options = {}) {
    super();
    requireOptions('a stream of bytes', options, OPTIONS);
    requireValues('a stream of bytes', options, OPTIONS);
    const { maxMessage = 2 ** 25, maxBacklog = 2 ** 27 } = options;
    this.maxBacklog = maxBacklog;
    this.framing = new Framing(maxMessage);
    this.source = sourceOf(readable, (ending) => this.#ended(ending));
    const failed = (/** @type {unknown} */ cause) => this.#failed(cause);
    this.sink = sinkOf(writable, failed, () => this.#sinkClosed());
    const { allowHalfOpen } = /** @type {{ allowHalfOpen?: boolean }} */ (writable);
    /**
     * True if the writable stays open when the readable ends: a socket is both, and has an option
     * for it.
     */
    this.mayOutlive = allowHalfOpen !== false || /** @type {unknown} */ (readable) !== writable;
  }

  /** @override */
  listen() {
    if (this.#started) return;
    this.#started = true;
    void this.source.start((chunk) => this.#chunk(chunk));
  }

  /** @param {unknown} message */
  post(message) {
    const pieces = this.framing.wrap(this.#encode(message));
    if (this.stopped) return;
    this.#backlog += lengthOf(pieces);
    if (this.#backlog > this.maxBacklog) {
      const why = new Error(`the other side has not read ${this.#backlog} bytes`);
      // In a later turn, so that the caller of `post` is not interrupted.
      return queueMicrotask(() => this.#failed(why));
    }
    if (!this.#outgoing.length) queueMicrotask(() => this.#flush());
    this.#outgoing.push(...pieces);
  }

  /** @returns {Promise<void> | undefined} */
  room() {
    if (this.#backlog < ENOUGH_BACKLOG || this.stopped) return undefined;
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** @param {unknown} message */
  #encode(message) {
    try {
      const { limit } = this.framing;
      const bytes = encoder.encode(messageToText(message, limit));
      if (bytes.length > limit) throw new RangeError(`It has ${bytes.length} bytes`);
      return bytes;
    } catch (cause) {
      if (!(cause instanceof RangeError)) throw cause;
      const why = `A message is too long to be sent: ${cause.message}`;
      throw new AbpError('MESSAGE_TOO_LONG', why, { cause });
    }
  }

  /** @override */
  end() {
    this.#letGo();
    this.#flush();
    this.source.stop();
    // Both may be the same stream, which may still have something to write.
    this.sink.end(() => this.source.destroy());
  }

  #flush() {
    if (!this.#outgoing.length) return;
    const bytes = joined(this.#outgoing);
    this.#outgoing = [];
    this.sink.write(bytes, () => {
      this.#backlog -= bytes.length;
      if (this.#backlog < ENOUGH_BACKLOG) this.#letGo();
    });
  }

  #letGo() {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** @param {unknown} chunk */
  #chunk(chunk) {
    if (this.stopped) return;
    // A stream with an encoding gives strings.
    const bytes = typeof chunk === 'string' ? encoder.encode(chunk) : chunk;
    if (!(bytes instanceof Uint8Array))
      return this.#failed(new TypeError('the stream must contain bytes'));
    this.framing.push(bytes);
    this.#read();
  }

  /**
   * @param {{ cause?: unknown }} ending with a cause, unless the other side has ended the readable
   *   in an orderly way
   */
  #ended(ending) {
    this.#ending ??= ending;
    this.#read();
  }

  /** Reads the available input, as much as one turn allows, and then the end. */
  #read() {
    if (this.#reading) return;
    this.#reading = true;
    for (let left = MAX_MESSAGES_PER_TURN; left > 0 && !this.stopped; left--) {
      const found = this.framing.next();
      if (!found) {
        this.#reading = false;
        return this.#finish();
      }
      this.#found(found);
    }
    if (this.stopped) return;
    this.source.pause();
    inAnotherTurn(() => {
      this.#reading = false;
      this.#read();
      if (!this.#reading) this.source.resume();
    });
  }

  /** @param {Uint8Array | AbpError} found */
  #found(found) {
    if (found === BLANK) return;
    if (found instanceof AbpError) return this.receiveUnreadable(found);
    let message;
    try {
      message = JSON.parse(decoder.decode(found));
    } catch (cause) {
      const why = `The message is not JSON in UTF-8: ${reasonText(cause)}`;
      return this.receiveUnreadable(new AbpError('PARSE_ERROR', why, { cause }));
    }
    this.receive(message);
  }

  /** Call this when all available input was read: handles the end, if it has come. */
  #finish() {
    const ending = this.#ending;
    if (!ending || this.stopped || this.#finished) return;
    if ('cause' in ending) return this.#failed(ending.cause);
    this.#finished = true;
    const last = this.framing.end();
    if (last) this.#found(last);
    if (!this.mayOutlive || !this.sink.isOpen()) return this.lose();
    // Nothing more will arrive, but the other side may still read.
    this.deliverInTurn(() => (this.onEnd ? invokeReportingErrors(this.onEnd) : this.lose()));
  }

  /** The writable was closed. While the other side still sends, that is not its end. */
  #sinkClosed() {
    if (this.stopped || !this.#finished) return;
    this.lose();
    this.stop();
  }

  /** @param {unknown} cause */
  #failed(cause) {
    if (this.stopped) return;
    this.#outgoing = [];
    this.source.destroy();
    this.sink.destroy();
    const why = `The stream failed: ${reasonText(cause) ?? cause}`;
    this.lose(new AbpError('TRANSPORT_ERROR', why, { cause }));
    this.stop();
  }
}

/** @param {Uint8Array[]} pieces */
const lengthOf = (pieces) => pieces.reduce((sum, piece) => sum + piece.length, 0);

/** @param {Uint8Array[]} pieces */
function joined(pieces) {
  const whole = new Uint8Array(lengthOf(pieces));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/**
 * A readable stream, of Node or of the web: passes its chunks to the function given to `start`,
 * unless it is paused.
 * @param {any} readable
 * @param {(ending: { cause?: unknown }) => void} ended called at its end, perhaps several times:
 *   the first counts
 */
function sourceOf(readable, ended) {
  if (typeof readable.getReader !== 'function') {
    // These listeners are never removed: an `error` event without one ends the process.
    readable.on('error', (/** @type {unknown} */ cause) => ended({ cause }));
    return {
      start(/** @type {(chunk: unknown) => void} */ take) {
        readable.on('data', take);
        readable.on('end', () => ended({}));
        readable.on('close', () => ended({ cause: new Error('it was closed before its end') }));
      },
      pause: () => void readable.pause?.(),
      resume: () => void readable.resume?.(),
      stop() {},
      destroy: () => void readable.destroy(),
    };
  }
  const reader = readable.getReader();
  const cancel = () => void reader.cancel().catch(() => {});
  let resume = () => {};
  /** @type {Promise<void> | undefined} */
  let paused;
  return {
    async start(/** @type {(chunk: unknown) => void} */ take) {
      try {
        for (let read; !(read = await reader.read()).done; await paused) take(read.value);
        ended({});
      } catch (cause) {
        ended({ cause });
      }
    },
    pause: () => void (paused ??= new Promise((resolve) => (resume = resolve))),
    resume() {
      paused = undefined;
      resume();
    },
    stop: cancel,
    destroy: cancel,
  };
}

/**
 * A writable stream, of Node or of the web.
 * @param {any} writable
 * @param {(error: unknown) => void} failed
 * @param {() => void} closed
 */
function sinkOf(writable, failed, closed) {
  if (typeof writable.getWriter !== 'function') {
    writable.on('error', failed);
    writable.on('close', closed);
    return {
      write: (/** @type {Uint8Array} */ bytes, /** @type {() => void} */ done) =>
        void writable.write(bytes, (/** @type {unknown} */ error) =>
          error ? failed(error) : done(),
        ),
      /** Closes after everything was written. */
      end: (/** @type {() => void} */ then) => void writable.end(then),
      /** True if written data can arrive, as far as is known. */
      isOpen: () => writable.writable !== false,
      destroy: () => void writable.destroy(),
    };
  }
  const writer = writable.getWriter();
  writer.closed.catch(failed);
  return {
    write: (/** @type {Uint8Array} */ bytes, /** @type {() => void} */ done) =>
      void writer.write(bytes).then(done, failed),
    end: (/** @type {() => void} */ then) => void writer.close().then(then, then),
    isOpen: () => true,
    destroy: () => void writer.abort().catch(() => {}),
  };
}
