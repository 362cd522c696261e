/** Frames as docs/protocol.md describes them, read without the code that is tested. */

/**
 * The entries of a frame, whether they came as values or as text (docs/protocol.md#as-text).
 * @returns {any[][]}
 */
export function entriesOf(frame) {
  const isText = typeof frame === 'string';
  const flat = isText ? JSON.parse(frame) : frame;
  const entries = Array.from({ length: flat.length / 4 }, (_, i) => flat.slice(i * 4, i * 4 + 4));
  return entries.flatMap(([kind, key, a, b]) => {
    if (kind === 10) return entriesOf(b);
    if (isText && a === null) a = undefined;
    return [[kind, key, a, b]];
  });
}
