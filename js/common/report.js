/** The report of a handler about its work, for a call that does not succeed. */
import { safely } from './errors.js';
import { copyOf, plainText } from './copy.js';
import { parse } from './values.js';

/** Characters of a report, as JSON. */
const MAX_REPORT = 4096;

/**
 * A copy of a handler's report.
 * @param {unknown} said
 * @param {unknown} [name] the handler's name, if this is its report: the console shows an error if
 *   the report cannot be kept, since the previous one would be outdated
 * @returns {any} undefined if it is not JSON, or too long
 */
export function keptReport(said, name) {
  const text = safely(() => plainText(copyOf(said)));
  if (text && text.length <= MAX_REPORT) return parse(text);
  if (name) console.error(`abp-bridge: ${name}: a report is JSON of at most 4 KB`);
  return undefined;
}
