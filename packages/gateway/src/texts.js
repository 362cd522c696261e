/**
 * Texts of pages are foreign: they are shown and passed on as data, without control characters, and
 * limited.
 */

/* eslint-disable no-control-regex -- that is what is looked for */
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/**
 * Characters that reorder or hide text, so that a person sees something else than a model reads.
 */
const INVISIBLE = /[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|[\u{e0000}-\u{e007f}]/gu;

/**
 * @param {unknown} value
 * @param {number} length of the longest text, in UTF-16 units
 * @returns {string} empty if the value is not a string
 */
export function cleanText(value, length) {
  if (typeof value !== 'string') return '';
  // Only as much is read as may be kept.
  const text = printable(value.slice(0, length));
  return value.length > length ? `${text.slice(0, length - 1)}…`.toWellFormed() : text;
}

/**
 * The whole text, as a terminal may show it.
 * @param {string} text
 */
export const printable = (text) => text.replace(CONTROLS, '').replace(INVISIBLE, '').toWellFormed();

/**
 * JSON whose strings a terminal may show: characters that it would interpret are escaped.
 * @param {unknown} value that JSON can represent
 * @param {number} [indent]
 */
export const jsonText = (value, indent) =>
  JSON.stringify(value, undefined, indent)
    .replace(/[\u007f-\u009f]/g, escaped)
    .replace(INVISIBLE, escaped);

/** @param {string} text one character, which may be two units */
const escaped = (text) =>
  text
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');

/**
 * The same on one line, for a terminal.
 * @param {unknown} value
 * @param {number} [length]
 */
export const lineOf = (value, length = 200) => cleanText(value, length).replace(/\s+/g, ' ').trim();

/**
 * A chunk of a stream, as text for a person.
 * @param {any} chunk
 */
export function chunkText(chunk) {
  if (typeof chunk === 'string') return printable(chunk);
  const bytes = chunk?.byteLength ?? chunk?.size;
  if (bytes !== undefined) return `(${bytes} bytes)`;
  try {
    return jsonText(chunk) ?? '';
  } catch {
    return '(not shown: it is not JSON)';
  }
}
