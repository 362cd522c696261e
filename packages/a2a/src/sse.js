/** Server-sent events, read from bytes: https://html.spec.whatwg.org/multipage/server-sent-events.html */
import { AbpError } from '../../../js/common/errors.js';

/**
 * @typedef {object} ServerSentEvent
 * @property {string} event its type: `message` unless the stream names one
 * @property {string} data its lines, joined by line feeds
 * @property {string} id of the latest event that had one
 */

/**
 * Parses a stream from chunks that may be cut anywhere. It holds one unfinished event at most. An event that is longer
 * than the limit is an error (`TOO_LARGE`), after which the parser must not be used.
 */
export class EventParser {
  #decoder = new TextDecoder();
  #line = '';
  /** The data of the unfinished event: its lines, each with a line feed after it. */
  #data = '';
  #event = '';
  #id = '';
  #afterReturn = false;
  #limit;

  /** @param {number} limit characters of one event */
  constructor(limit) {
    this.#limit = limit;
  }

  /**
   * @param {Uint8Array} bytes
   * @returns {ServerSentEvent[]} the events that they complete
   */
  push(bytes) {
    const events = [];
    const text = this.#decoder.decode(bytes, { stream: true });
    let from = 0;
    // A carriage return ends its line at once; the line feed after it may come with the next chunk.
    if (this.#afterReturn && text) {
      this.#afterReturn = false;
      if (text[0] === '\n') from = 1;
    }
    // Searched for once, however many carriage returns precede it.
    let feed = -1;
    for (;;) {
      if (feed < from) feed = indexOrEnd(text, '\n', from);
      // Few streams have carriage returns, so only this line is searched for one.
      const end = from + indexOrEnd(text.slice(from, feed), '\r', 0);
      this.#grow(text.slice(from, end));
      if (end === text.length) return events;
      const event = this.#endLine();
      if (event) events.push(event);
      from = end + 1;
      if (text[end] === '\n') continue;
      if (text[from] === '\n') from++;
      else this.#afterReturn = from === text.length;
    }
  }

  /** @param {string} text more of the line */
  #grow(text) {
    this.#line += text;
    if (this.#line.length + this.#data.length > this.#limit) {
      const message = `An event of the stream is longer than ${this.#limit} characters`;
      throw new AbpError('TOO_LARGE', message);
    }
  }

  /** @returns {ServerSentEvent | undefined} the event that the line ends */
  #endLine() {
    const line = this.#line;
    this.#line = '';
    if (line === '') return this.#endEvent();
    const colon = line.indexOf(':');
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1);
    if (field === 'data') this.#data += `${value}\n`;
    else if (field === 'event') this.#event = value;
    else if (field === 'id' && !value.includes('\0')) this.#id = value;
    return undefined;
  }

  /** @returns {ServerSentEvent | undefined} undefined for one without data */
  #endEvent() {
    const data = this.#data;
    const event = this.#event || 'message';
    this.#data = this.#event = '';
    return data === '' ? undefined : { event, data: data.slice(0, -1), id: this.#id };
  }
}

/**
 * The index of the next such character, or the end of the text.
 * @param {string} text
 * @param {string} character
 * @param {number} from
 */
function indexOrEnd(text, character, from) {
  const found = text.indexOf(character, from);
  return found < 0 ? text.length : found;
}
