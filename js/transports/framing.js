/**
 * Where messages begin and end in a stream of bytes. Both framings read in linear time whatever the chunks
 * are, hold no more than one message of the allowed length, and go on after what they could not read.
 */
import { AbpError } from '../errors.js';

const CR = 13;
const LF = 10;
/** Of a header block only the end is kept: what comes before it, if it is as long as this, is no header. */
const LONGEST_HEADER = 8192;

/** The header that counts, alone on its line or after what was left of a JSON text. */
const HEADER = /^(?:.*[\]}])?content-length:(.*)$/i;

const encoder = new TextEncoder();
const NEWLINE = Uint8Array.of(LF);

/**
 * @typedef {object} Reader What a framing tells.
 * @property {number} limit bytes that a message may have
 * @property {(bytes: Uint8Array) => void} message takes each message; the bytes are its own until it returns
 * @property {(error: AbpError) => void} unreadable takes what was wrong with what is no message
 */

/** @param {number} limit */
const tooLong = (limit) =>
  new AbpError('MESSAGE_TOO_LONG', `A message of more than ${limit} bytes came and was skipped`);

/** The part of a message that has come. It is copied, for chunks may be single bytes. */
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
   * All of it, with what still comes: without a copy where nothing was kept.
   * @param {Uint8Array} rest
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
    // One long message must not hold its memory for ever.
    if (this.#bytes.length > 2 ** 16) this.#bytes = new Uint8Array(0);
  }
}

/** A message a line, as ACP and MCP's stdio have it. A line that is too long is skipped up to its end. */
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
   * Takes what came.
   * @param {Uint8Array} bytes
   */
  push(bytes) {
    let from = 0;
    for (let end; (end = bytes.indexOf(LF, from)) >= 0; from = end + 1) {
      if (this.#fits(bytes.subarray(from, end))) {
        this.#line(this.#part.take(bytes.subarray(from, end)));
      }
      this.#skipping = false;
    }
    const rest = bytes.subarray(from);
    if (this.#fits(rest)) this.#part.append(rest);
  }

  /** Nothing more will come: the last line need not be ended. */
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
    // Blank lines are none. Space before and after a message is JSON's own, the CR of a CRLF included.
    if (line.some((byte) => byte !== CR && byte !== 32 && byte !== 9)) this.reader.message(line);
  }
}

/**
 * A message after a block of headers, as LSP has it. A block without a usable `Content-Length` is reported,
 * and what follows it is searched for the next block: no text within JSON can look like one, as its line
 * ends are escaped there.
 */
export class HeaderFraming {
  #header = new Uint8Array(LONGEST_HEADER);
  #kept = 0;
  /** Bytes of CR LF CR LF seen. */
  #seen = 0;
  #body = new Part();
  /** Bytes that the body has, once that is known. @type {number | undefined} */
  #length;
  /** A body that is too long comes: whatever it is, it stands before the next header. */
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
   * Takes what came.
   * @param {Uint8Array} bytes
   */
  push(bytes) {
    for (let from = 0; from < bytes.length;) {
      from = this.#length === undefined ? this.#head(bytes, from) : this.#rest(bytes, from);
    }
  }

  /** Nothing more will come. */
  end() {
    if (!this.#kept && this.#length === undefined) return;
    this.reader.unreadable(new AbpError('PARSE_ERROR', 'The stream ended within a message'));
  }

  /**
   * @param {Uint8Array} bytes
   * @param {number} from
   */
  #head(bytes, from) {
    for (let at = from; at < bytes.length;) {
      const byte = bytes[at++];
      if (this.#kept === LONGEST_HEADER) {
        this.#header.copyWithin(0, LONGEST_HEADER / 2);
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
    const lengths = new Set(
      block.split('\r\n').flatMap((line) => {
        // The remainder of a body whose length was wrong may stand before it.
        const header = this.#skipping ? /^.*content-length:(.*)$/i : HEADER;
        const value = header.exec(line)?.[1].trim();
        return value === undefined ? [] : [/^\d+$/.test(value) ? Number(value) : NaN];
      }),
    );
    const [length] = lengths;
    if (lengths.size !== 1 || Number.isNaN(length)) {
      const problem =
        'A message came without a header that says its Content-Length once and rightly';
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
    // No byte will come to end it.
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
