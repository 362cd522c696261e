/** Control messages on their way into the core. */
import { requireBounded } from '../common/bounds.js';

/**
 * Writes a control message as JSON. Strings may contain what the core cannot carry: NUL or lone surrogates. These are
 * replaced by U+FFFD, so that a reason that was cut in the wrong place does not cost the whole message. A callId that
 * contains them becomes null, because the replaced text could be the id of another call. Binary data is left out, and
 * a BigInt becomes null.
 * @param {unknown} message as it arrived
 * @param {number} longest characters of the text; throws a RangeError if it certainly has more
 */
export function controlText(message, longest) {
  const maxBigIntBits = Number.MAX_SAFE_INTEGER; // none is written
  requireBounded(message, { maxValues: longest / 8, maxCharacters: longest, maxBigIntBits });
  return JSON.stringify(message, (key, value) => {
    if (ArrayBuffer.isView(value)) return undefined;
    if (typeof value === 'bigint' || value instanceof BigInt) return null;
    if (typeof value !== 'string' || key === 'id') return value;
    const words = value.replace(/[\0\p{Surrogate}]/gu, '\ufffd');
    return key === 'callId' && words !== value ? null : words;
  });
}
