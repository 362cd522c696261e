/**
 * Finds messages in a stream of bytes, in linear time however they are cut into chunks. `push` gives a chunk, and `next` takes what
 * was found in it: the bytes of a message, which are valid until the next call; an error for a piece that is no message, after which
 * reading goes on; or undefined once it needs another chunk. No more is kept than one message of the allowed length.
 */
import { AbpError } from '../../../js/common/errors.js';

const CR = 13;
const LF = 10;
const NEWLINE = Uint8Array.of(LF);
const BLOCK_END = [CR, LF, CR, LF];
/** JSON's white space. */
const BLANKS = [CR, LF, 32, 9];
/** A line that is no message: it is blank, or the end of one that was skipped. */
export const BLANK = new Uint8Array(0);
/** Bytes of a header block that are kept. Anything longer is not a header block, so only its end is kept. */
const MAX_HEADER_BYTES = 8192;

/** The header that counts: alone on its line, or after the remainder of a JSON text. */
const HEADER = /^(?:.*[\]}])?content-length:(.*)$/i;
/** Any text may precede it where a body was skipped. */
const HEADER_AFTER_SKIPPED = /^.*content-length:(.*)$/i;

const encoder = new TextEncoder();

class Framing {
  /** What is read of it begins at `at`. @type {Uint8Array} */
  chunk = new Uint8Array(0);
  at = 0;
  /** Whether a message that is too long is being skipped. */
  skipping = false;
  /** The part of a message that came in earlier chunks. It is a copy, because chunks may be single bytes. */
  #part = new Uint8Array(0);
  /** Its length. */
  kept = 0;

  /** @param {number} limit bytes that a message may have */
  constructor(limit) {
    this.limit = limit;
  }

  /** @param {Uint8Array} bytes */
  push(bytes) {
    this.chunk = bytes;
    this.at = 0;
  }

  /** Keeps a part of a message. @param {Uint8Array} bytes */
  keep(bytes) {
    const length = this.kept + bytes.length;
    if (length > this.#part.length) {
      const larger = new Uint8Array(Math.max(1024, length, this.#part.length * 2));
      larger.set(this.#part.subarray(0, this.kept));
      this.#part = larger;
    }
    this.#part.set(bytes, this.kept);
    this.kept = length;
  }

  /** The whole message, without a copy if nothing was kept. Another one begins. @param {Uint8Array} rest its last part */
  whole(rest) {
    if (this.kept) this.keep(rest);
    const whole = this.kept ? this.#part.subarray(0, this.kept) : rest;
    this.begin();
    return whole;
  }

  /** A message begins. @param {boolean} [skipping] */
  begin(skipping = false) {
    this.skipping = skipping;
    this.kept = 0;
    // Do not keep the memory of one long message for ever.
    if (this.#part.length > 2 ** 16) this.#part = new Uint8Array(0);
  }

  /** From now on the message is skipped. */
  tooLong() {
    this.begin(true);
    const why = `A message of more than ${this.limit} bytes was received and skipped`;
    return new AbpError('MESSAGE_TOO_LONG', why);
  }
}

/** One message a line, as in ACP and in MCP over stdio. */
export class LineFraming extends Framing {
  /** @param {Uint8Array} message @returns {Uint8Array[]} */
  static wrap = (message) => [message, NEWLINE];

  /** @returns {Uint8Array | AbpError | undefined} */
  next() {
    while (this.at < this.chunk.length) {
      const end = this.chunk.indexOf(LF, this.at);
      const piece = this.chunk.subarray(this.at, end < 0 ? undefined : end);
      this.at += piece.length + 1;
      const fits = this.skipping || this.kept + piece.length <= this.limit;
      const error = fits ? undefined : this.tooLong();
      if (end < 0 && !this.skipping) this.keep(piece);
      if (end >= 0) {
        const line = this.whole(this.skipping ? BLANK : piece);
        // JSON allows white space around a message, which includes the CR of a CRLF.
        if (!error) return line.some((byte) => !BLANKS.includes(byte)) ? line : BLANK;
      }
      if (error) return error;
    }
  }

  /** The stream has ended. The last line needs no line end. */
  end() {
    this.push(NEWLINE);
    return this.next();
  }
}

/**
 * A message after a block of headers, as in LSP. What follows a block without a usable `Content-Length`, or a body that is too long, is
 * searched for the next block. No text within JSON can look like a block, because line ends are escaped there.
 */
export class HeaderFraming extends Framing {
  #header = new Uint8Array(MAX_HEADER_BYTES);
  #headerLength = 0;
  /** Bytes that the body has, once that is known. @type {number | undefined} */
  #length;

  /** @param {Uint8Array} message @returns {Uint8Array[]} */
  static wrap = (message) => [encoder.encode(`Content-Length: ${message.length}\r\n\r\n`), message];

  /** @returns {Uint8Array | AbpError | undefined} */
  next() {
    while (this.at < this.chunk.length || this.#length === 0) {
      if (this.#length === undefined) {
        const error = this.#readHeader() && this.#expect();
        if (error) return error;
        continue;
      }
      const piece = this.chunk.subarray(this.at, this.at + this.#length - this.kept);
      this.at += piece.length;
      if (this.kept + piece.length === this.#length) {
        this.#length = undefined;
        return this.whole(piece);
      }
      this.keep(piece);
    }
  }

  /** The stream has ended. */
  end() {
    return this.#headerLength || this.#length !== undefined
      ? new AbpError('PARSE_ERROR', 'The stream ended in the middle of a message')
      : undefined;
  }

  /** @returns {boolean} whether a block has been read to its end */
  #readHeader() {
    const header = this.#header;
    while (this.at < this.chunk.length) {
      if (this.#headerLength === MAX_HEADER_BYTES) {
        header.copyWithin(0, MAX_HEADER_BYTES / 2);
        this.#headerLength /= 2;
      }
      const byte = this.chunk[this.at++];
      header[this.#headerLength++] = byte;
      const first = this.#headerLength - BLOCK_END.length;
      if (byte === LF && BLOCK_END.every((part, i) => header[first + i] === part)) return true;
    }
    return false;
  }

  /** Reads from the block how long the body is. @returns {AbpError | undefined} what is wrong */
  #expect() {
    const block = String.fromCharCode(...this.#header.subarray(0, this.#headerLength));
    const header = this.skipping ? HEADER_AFTER_SKIPPED : HEADER;
    const found = block.split('\r\n').map((line) => header.exec(line)?.[1].trim());
    const lengths = new Set(found.filter((value) => value !== undefined).map(lengthOf));
    const [length] = lengths;
    this.#headerLength = 0;
    if (lengths.size !== 1 || Number.isNaN(length)) {
      const why = 'A message was received without one valid Content-Length header';
      return new AbpError('PARSE_ERROR', why);
    }
    if (length > this.limit) return this.tooLong();
    this.#length = length;
    this.begin();
  }
}

/** @param {string} value of a header */
const lengthOf = (value) => (/^\d+$/.test(value) ? Number(value) : NaN);
