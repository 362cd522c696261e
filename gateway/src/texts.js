/** Texts of pages are a stranger's: they are shown and handed on as data, without control characters, and bounded. */

/* eslint-disable no-control-regex -- that is what is looked for */
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** What reorders or hides text, and so can show a person something else than a model reads. */
const INVISIBLE = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]|[\u{e0000}-\u{e007f}]/gu;

/**
 * @param {unknown} value
 * @param {number} length of the longest text, in UTF-16 units
 * @returns {string} empty when the value is no text
 */
export function cleanText(value, length) {
  if (typeof value !== 'string') return '';
  // No more is looked at than may be kept.
  const text = value
    .slice(0, length + 1)
    .replace(CONTROLS, '')
    .replace(INVISIBLE, '');
  const cut = text.length > length || value.length > length;
  return (cut ? `${text.slice(0, length - 1)}…` : text).toWellFormed();
}

/**
 * The same on one line, for a terminal.
 * @param {unknown} value
 * @param {number} [length]
 */
export const lineOf = (value, length = 200) => cleanText(value, length).replace(/\s+/g, ' ').trim();
