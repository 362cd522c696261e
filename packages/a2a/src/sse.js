/**
 * Server-sent events, read from bytes: https://html.spec.whatwg.org/multipage/server-sent-events.html. docs/architecture.md says why no
 * library does it.
 */
import { AbpError } from '../../../js/common/errors.js';

/**
 * Parses a stream from chunks that may be cut anywhere. It holds one unfinished event at most. An event that is longer
 * than the limit is an error (`TOO_LARGE`), after which the parser must not be used.
 */
export class EventParser {
  #decoder = new TextDecoder();
  /** The unfinished line. */
  #line = '';
  /** The data of the unfinished event: its lines, each with a line feed after it. */
  #data = '';
  #id = '';
  #afterReturn = false;
  #limit;

  /** @param {number} limit characters of one event */
  constructor(limit) {
    this.#limit = limit;
  }

  /**
   * @param {Uint8Array} bytes
   * @returns {{ data: string, id: string }[]} the events with data that they complete; `id` is that of the latest that had one
   */
  push(bytes) {
    const text = this.#decoder.decode(bytes, { stream: true });
    if (!text) return [];
    // A carriage return has ended its line; the line feed after it may come with the next chunk.
    const rest = this.#afterReturn && text[0] === '\n' ? text.slice(1) : text;
    this.#afterReturn = text.endsWith('\r');
    const lines = rest.split(/\r\n?|\n/);
    const unfinished = lines.length - 1;
    const events = [];
    for (const [i, line] of lines.entries()) {
      this.#line += line;
      if (this.#line.length + this.#data.length > this.#limit)
        throw new AbpError(
          'TOO_LARGE',
          `An event of the stream is longer than ${this.#limit} characters`,
        );
      if (i === unfinished) break;
      if (this.#line === '') {
        if (this.#data.length > 1) events.push({ data: this.#data.slice(0, -1), id: this.#id });
        this.#data = '';
        continue;
      }
      const [, field, value = ''] = /^([^:]*)(?:: ?([^]*))?$/.exec(this.#line) ?? [];
      if (field === 'data') this.#data += `${value}\n`;
      else if (field === 'id' && !value.includes('\0')) this.#id = value;
      this.#line = '';
    }
    return events;
  }
}
