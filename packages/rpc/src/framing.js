/**
 * Finds messages in a stream of bytes, in linear time for any chunks. `push` adds a chunk, and
 * `next` returns the bytes of a message, which are valid until the next `push`; an error for a
 * piece that is not a message, after which reading goes on; or undefined if another chunk is
 * needed. At most one message of the allowed length is kept.
 */
import { AbpError } from 'abp-bridge/driver';

const CR = 13;
const LF = 10;
const NEWLINE = Uint8Array.of(LF);
/** JSON's white space. */
const BLANKS = [CR, LF, 32, 9];
/** A line without a message: it is blank, or the end of one that was skipped. */
export const BLANK = new Uint8Array(0);
/**
 * Bytes of a header block that are kept. Anything longer is not a header block, so only its end is
 * kept.
 */
const MAX_HEADER_BYTES = 8192;

/** A valid header: alone on its line, or after the remainder of a JSON text. */
const HEADER = /^(?:.*[\]}])?content-length:(.*)$/i;
/** After a skipped body, any text may precede it. */
const HEADER_AFTER_SKIPPED = /^.*content-length:(.*)$/i;

const encoder = new TextEncoder();

class Framing {
  /** The remaining bytes are from `#at` to `#end`. @type {Uint8Array} */
  #bytes = BLANK;
  #at = 0;
  #end = 0;
  /** Number of remaining bytes that were searched already. */
  searched = 0;
  /** True if a message that is too long is being skipped. */
  skipping = false;

  /** @param {number} limit bytes that a message may have */
  constructor(limit) {
    this.limit = limit;
  }

  /** The remaining bytes. */
  get rest() {
    return this.#bytes.subarray(this.#at, this.#end);
  }

  /**
   * A chunk is not copied if no bytes remain before it.
   * @param {Uint8Array} chunk
   */
  push(chunk) {
    const { rest } = this;
    if (!rest.length) {
      this.#bytes = chunk;
      this.#at = this.#end = 0;
    } else if (this.#end + chunk.length > this.#bytes.length) {
      // Twice the need: chunks may be single bytes, and many wait if their source cannot pause.
      this.#bytes = new Uint8Array(rest.length + Math.max(rest.length, chunk.length));
      this.#bytes.set(rest);
      this.#at = 0;
      this.#end = rest.length;
    }
    if (rest.length) this.#bytes.set(chunk, this.#end);
    this.#end += chunk.length;
  }

  /**
   * Takes the next bytes.
   * @param {number} length
   * @param {number} [searched] number of remaining bytes that were searched already
   */
  take(length, searched = 0) {
    const taken = this.rest.subarray(0, length);
    this.#at += length;
    this.searched = searched;
    // Do not keep the memory of a long message for ever.
    if (this.#at === this.#end) {
      this.#bytes = BLANK;
      this.#at = this.#end = 0;
    }
    return taken;
  }

  /** Skips the message from now on. */
  tooLong() {
    this.skipping = true;
    const why = `A message of more than ${this.limit} bytes was received and skipped`;
    return new AbpError('MESSAGE_TOO_LONG', why);
  }
}

/** One message a line, as in ACP and in MCP over stdio. */
export class LineFraming extends Framing {
  /**
   * @param {Uint8Array} message
   * @returns {Uint8Array[]}
   */
  wrap = (message) => [message, NEWLINE];

  /** @returns {Uint8Array | AbpError | undefined} */
  next() {
    const { rest, skipping } = this;
    const found = rest.indexOf(LF, this.searched);
    const length = found < 0 ? rest.length : found;
    const fits = length <= this.limit;
    if (skipping || !fits) this.take(length);
    if (!skipping && !fits) return this.tooLong();
    if (found < 0) return void this.take(0, skipping ? 0 : length);
    this.skipping = false;
    const line = this.take(skipping ? 1 : length + 1);
    // JSON allows white space around a message, which includes the CR of a CRLF.
    return line.some((byte) => !BLANKS.includes(byte)) ? line : BLANK;
  }

  /** Call this at the end of the stream. The last line needs no line end. */
  end() {
    this.push(NEWLINE);
    return this.next();
  }
}

/**
 * A message after a block of headers, as in LSP. The input after a block without a usable
 * `Content-Length`, or after a body that is too long, is searched for the next block. JSON text
 * cannot look like a block, because line ends are escaped there.
 */
export class HeaderFraming extends Framing {
  /** Bytes of the body, once known. @type {number | undefined} */
  #length;

  /**
   * @param {Uint8Array} message
   * @returns {Uint8Array[]}
   */
  wrap = (message) => [encoder.encode(`Content-Length: ${message.length}\r\n\r\n`), message];

  /** @returns {Uint8Array | AbpError | undefined} */
  next() {
    if (this.#length === undefined) {
      const block = this.#block();
      if (!block) return undefined;
      const length = this.#lengthIn(block);
      if (typeof length !== 'number') return length;
      this.#length = length;
      this.skipping = false;
    }
    if (this.rest.length < this.#length) return undefined;
    const body = this.take(this.#length);
    this.#length = undefined;
    return body;
  }

  /** Call this at the end of the stream. */
  end() {
    return this.rest.length || this.#length !== undefined
      ? new AbpError('PARSE_ERROR', 'The stream ended in the middle of a message')
      : undefined;
  }

  /** Takes a block of headers, if it is complete. */
  #block() {
    const { rest } = this;
    for (let at = this.searched; (at = rest.indexOf(LF, at)) >= 0; at++)
      if (rest[at - 1] === CR && rest[at - 2] === LF && rest[at - 3] === CR)
        return this.take(at + 1).subarray(-MAX_HEADER_BYTES);
    const kept = Math.min(rest.length, MAX_HEADER_BYTES);
    this.take(rest.length - kept, kept);
    return undefined;
  }

  /**
   * The length of the body, or an error.
   * @param {Uint8Array} block
   */
  #lengthIn(block) {
    const header = this.skipping ? HEADER_AFTER_SKIPPED : HEADER;
    const lines = String.fromCharCode(...block).split('\r\n');
    const found = lines.flatMap((line) => header.exec(line)?.[1].trim() ?? []);
    const lengths = new Set(found.map((value) => (/^\d+$/.test(value) ? Number(value) : NaN)));
    const [length] = lengths;
    const why = 'A message was received without one valid Content-Length header';
    if (lengths.size !== 1 || Number.isNaN(length)) return new AbpError('PARSE_ERROR', why);
    return length > this.limit ? this.tooLong() : length;
  }
}
