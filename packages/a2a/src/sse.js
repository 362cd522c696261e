/**
 * Server-sent events, read from bytes: https://html.spec.whatwg.org/multipage/server-sent-events.html. docs/architecture.md says why no
 * library does it.
 */
import { AbpError } from '../../../js/common/errors.js';

/**
 * Parses a stream from chunks that may be cut anywhere. It holds one unfinished event at most. An event that is longer
 * than the limit is an error (`TOO_LARGE`), after which the parser must not be used.
 * @param {number} limit characters of one event
 * @returns {(bytes: Uint8Array) => { data: string, id: string }[]} takes a chunk, and gives the events with data that it
 *   completes; `id` is that of the latest that had one
 */
export function eventParser(limit) {
  const decoder = new TextDecoder();
  let afterReturn = false;
  let line = '';
  /** Its lines, each with a line feed after it. */
  let data = '';
  let id = '';
  return (bytes) => {
    const text = decoder.decode(bytes, { stream: true });
    if (!text) return [];
    // A carriage return has ended its line; the line feed after it may come with the next chunk.
    const rest = afterReturn && text[0] === '\n' ? text.slice(1) : text;
    afterReturn = text.endsWith('\r');
    const lines = rest.split(/\r\n?|\n/);
    const unfinished = lines.length - 1;
    const events = [];
    for (const [i, more] of lines.entries()) {
      line += more;
      if (line.length + data.length > limit)
        throw new AbpError(
          'TOO_LARGE',
          `An event of the stream is longer than ${limit} characters`,
        );
      if (i === unfinished) break;
      if (line === '') {
        if (data.length > 1) events.push({ data: data.slice(0, -1), id });
        data = '';
        continue;
      }
      const [, field, value = ''] = /^([^:]*)(?:: ?([^]*))?$/.exec(line) ?? [];
      if (field === 'data') data += `${value}\n`;
      else if (field === 'id' && !value.includes('\0')) id = value;
      line = '';
    }
    return events;
  };
}
