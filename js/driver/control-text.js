/** Control messages on their way into the core. */

/**
 * Writes a control message as JSON. Strings may contain what the core cannot carry: NUL or lone surrogates. These are
 * replaced by U+FFFD, so that a reason that was cut in the wrong place does not cost the whole message. A callId that
 * contains them becomes null, because the replaced text could be the id of another call. Binary data is left out, and
 * a BigInt becomes null.
 * @param {unknown} message as it arrived
 * @param {number} longest characters of the text; throws a RangeError if it certainly has more. That is known while it is
 *   written: nothing that is too large is written to its end
 */
export function controlText(message, longest) {
  let left = longest;
  /** @param {number} size characters that the text has at least */
  const count = (size) => {
    if ((left -= size) < 0) throw new RangeError('the message is too long');
  };
  /** @type {(this: unknown, key: string, value: unknown) => unknown} */
  function write(key, value) {
    // A value takes a few characters, and may claim to have any number of elements.
    count(Array.isArray(this) ? 2 : key.length + 4);
    if (Array.isArray(value) && value.length * 2 > left) count(Infinity);
    if (ArrayBuffer.isView(value)) return undefined;
    if (typeof value === 'bigint' || value instanceof BigInt) return null;
    if (typeof value !== 'string') return value;
    count(value.length);
    if (key === 'id') return value;
    const words = value.replace(/[\0\p{Surrogate}]/gu, '\ufffd');
    return key === 'callId' && words !== value ? null : words;
  }
  return JSON.stringify(message, write);
}
