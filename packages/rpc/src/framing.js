/**
 * Finds messages in a stream of bytes. Both framings read in linear time, however the bytes are split into chunks. They
 * keep no more than one message of the allowed length, and continue after anything that they could not read.
 */
import { AbpError } from '../../../js/common/errors.js';

const CR = 13;
const LF = 10;
/** Bytes of a header block that are kept. Anything longer is not a header block, so only its end is kept. */
const MAX_HEADER_BYTES = 8192;

/** The header that counts: alone on its line, or after the remainder of a JSON text. */
const HEADER = /^(?:.*[\]}])?content-length:(.*)$/i;

const encoder = new TextEncoder();
const NEWLINE = Uint8Array.of(LF);

/**
 * @typedef {object} Reader What a framing reports to.
 * @property {number} limit bytes that a message may have
 * @property {number} left lines, or blocks of headers, that may be read in this turn: a framing counts it down and stops
 *   at 0
 * @property {(bytes: Uint8Array) => void} message takes each message; the bytes are only valid until it returns
 * @property {(error: AbpError) => void} unreadable takes an error for each piece that is not a message
 */

/** @param {number} limit */
const tooLong = (limit) =>
  new AbpError(
    'MESSAGE_TOO_LONG',
    `A message of more than ${limit} bytes was received and skipped`,
  );

/** The part of a message that has arrived. It is copied, because chunks may be single bytes. */
class Part {
  #bytes = new Uint8Array(0);
  length = 0;

  /** @param {Uint8Array} bytes */
  append(bytes) {
    const length = this.length + bytes.length;
    if (length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(1024, length, this.#bytes.length * 2));
      larger.set(this.#bytes.subarray(0, this.length));
      this.#bytes = larger;
    }
    this.#bytes.set(bytes, this.length);
    this.length = length;
  }

  /**
   * The whole message, without a copy if nothing was kept.
   * @param {Uint8Array} rest its last part
   */
  take(rest) {
    if (!this.length) return rest;
    this.append(rest);
    const whole = this.#bytes.subarray(0, this.length);
    this.clear();
    return whole;
  }

  clear() {
    this.length = 0;
    // Do not keep the memory of one long message for ever.
    if (this.#bytes.length > 2 ** 16) this.#bytes = new Uint8Array(0);
  }
}

/** One message a line, as in ACP and in MCP over stdio. A line that is too long is skipped. */
export class LineFraming {
  #part = new Part();
  #skipping = false;

  /** @param {Reader} reader */
  constructor(reader) {
    this.reader = reader;
  }

  /** @param {Uint8Array} message */
  static wrap(message) {
    return [message, NEWLINE];
  }

  /**
   * Reads a chunk.
   * @param {Uint8Array} bytes the chunk
   * @param {number} [from] the offset at which to continue
   * @returns {number} the offset at which it stopped
   */
  push(bytes, from = 0) {
    const { reader } = this;
    for (let end; (end = bytes.indexOf(LF, from)) >= 0; from = end + 1) {
      if (reader.left-- <= 0) return from;
      if (this.#fits(bytes.subarray(from, end))) {
        this.#line(this.#part.take(bytes.subarray(from, end)));
      }
      this.#skipping = false;
    }
    const rest = bytes.subarray(from);
    if (this.#fits(rest)) this.#part.append(rest);
    return bytes.length;
  }

  /** The stream has ended. The last line needs no line end. */
  end() {
    this.push(NEWLINE);
  }

  /** @param {Uint8Array} more */
  #fits(more) {
    if (!this.#skipping && this.#part.length + more.length > this.reader.limit) {
      this.#skipping = true;
      this.#part.clear();
      this.reader.unreadable(tooLong(this.reader.limit));
    }
    return !this.#skipping;
  }

  /** @param {Uint8Array} line */
  #line(line) {
    // Blank lines are not messages. JSON allows white space around a message, which includes the CR of a CRLF.
    if (line.some((byte) => byte !== CR && byte !== 32 && byte !== 9)) this.reader.message(line);
  }
}

/**
 * A message after a block of headers, as in LSP. A block without a usable `Content-Length` is reported, and what follows
 * is searched for the next block. No text within JSON can look like a block, because line ends are escaped there.
 */
export class HeaderFraming {
  #header = new Uint8Array(MAX_HEADER_BYTES);
  #kept = 0;
  /** How many bytes of CR LF CR LF were seen. */
  #seen = 0;
  #body = new Part();
  /** Length of the body in bytes, once it is known. @type {number | undefined} */
  #length;
  /** Whether a body that is too long is being skipped: it ends before the next header. */
  #skipping = false;

  /** @param {Reader} reader */
  constructor(reader) {
    this.reader = reader;
  }

  /** @param {Uint8Array} message */
  static wrap(message) {
    return [encoder.encode(`Content-Length: ${message.length}\r\n\r\n`), message];
  }

  /**
   * Reads a chunk.
   * @param {Uint8Array} bytes the chunk
   * @param {number} [from] the offset at which to continue
   * @returns {number} the offset at which it stopped
   */
  push(bytes, from = 0) {
    const { reader } = this;
    while (from < bytes.length && reader.left > 0) {
      from = this.#length === undefined ? this.#head(bytes, from) : this.#rest(bytes, from);
    }
    return from;
  }

  /** The stream has ended. */
  end() {
    if (!this.#kept && this.#length === undefined) return;
    this.reader.unreadable(
      new AbpError('PARSE_ERROR', 'The stream ended in the middle of a message'),
    );
  }

  /**
   * @param {Uint8Array} bytes
   * @param {number} from
   */
  #head(bytes, from) {
    for (let at = from; at < bytes.length;) {
      const byte = bytes[at++];
      if (this.#kept === MAX_HEADER_BYTES) {
        this.#header.copyWithin(0, MAX_HEADER_BYTES / 2);
        this.#kept /= 2;
      }
      this.#header[this.#kept++] = byte;
      if (byte === CR) this.#seen = this.#seen === 2 ? 3 : 1;
      else if (byte === LF && this.#seen % 2) this.#seen++;
      else this.#seen = 0;
      if (this.#seen === 4) {
        this.#block(String.fromCharCode(...this.#header.subarray(0, this.#kept)));
        this.#kept = 0;
        this.#seen = 0;
        return at;
      }
    }
    return bytes.length;
  }

  /** @param {string} block */
  #block(block) {
    this.reader.left--;
    const lengths = new Set(
      block.split('\r\n').flatMap((line) => {
        // The remainder of a body whose length was wrong may precede it.
        const header = this.#skipping ? /^.*content-length:(.*)$/i : HEADER;
        const value = header.exec(line)?.[1].trim();
        return value === undefined ? [] : [/^\d+$/.test(value) ? Number(value) : NaN];
      }),
    );
    const [length] = lengths;
    if (lengths.size !== 1 || Number.isNaN(length)) {
      const problem = 'A message was received without one valid Content-Length header';
      this.reader.unreadable(new AbpError('PARSE_ERROR', problem));
    } else if (length > this.reader.limit) {
      this.#skipping = true;
      this.reader.unreadable(tooLong(this.reader.limit));
    } else this.#expect(length);
  }

  /** @param {number} length */
  #expect(length) {
    this.#length = length;
    this.#skipping = false;
    // An empty body is complete already.
    if (length === 0) this.#rest(new Uint8Array(0), 0);
  }

  /**
   * @param {Uint8Array} bytes
   * @param {number} from
   */
  #rest(bytes, from) {
    const end = from + /** @type {number} */ (this.#length) - this.#body.length;
    const more = bytes.subarray(from, end);
    if (end > bytes.length) this.#body.append(more);
    else {
      this.#length = undefined;
      this.reader.message(this.#body.take(more));
    }
    return Math.min(end, bytes.length);
  }
}
