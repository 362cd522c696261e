/** What a handler says of its work, for when that does not succeed. */
import { safely } from './errors.js';
import { copyOf, plainText } from './copy.js';
import { parse } from './values.js';

/** Characters of a report, as JSON. */
const MAX_REPORT = 4096;

/**
 * A copy of what a handler says.
 * @param {unknown} said
 * @param {unknown} [name] of the handler, whose report this is: the console says if it cannot be
 *   kept. An old one would be wrong by then
 * @returns {any} undefined if it is not JSON, or too long
 */
export function keptReport(said, name) {
  const text = safely(() => plainText(copyOf(said)));
  if (text && text.length <= MAX_REPORT) return parse(text);
  if (name) console.error(`abp-bridge: ${name}: a report is JSON of at most 4 KB`);
  return undefined;
}
