/** Checks the size of a value from outside, before any code walks it or writes it as text. */

/**
 * @typedef {object} Bounds Limits of a value. The defaults are in parentheses.
 * @property {number} [maxValues] number of values, including the value itself: members, elements, keys and values of maps
 *   (1048576). A value that occurs several times counts each time, as it does in text. An array counts by its length,
 *   even if it is sparse: `new Array(2 ** 32 - 1)` crosses a port in no time, and takes minutes and gigabytes to write
 * @property {number} [maxCharacters] of all strings and member names together (67108864)
 * @property {number} [maxDepth] levels of objects in objects (1000)
 * @property {number} [maxBigIntBits] of each BigInt, because converting digits takes more than linear
 *   time (16384, about 4,900 digits)
 */

/**
 * Throws unless a value is within bounds. Its own cost is limited by the bounds, whatever the value is.
 *
 * Use it before you walk, copy or stringify a value that arrived by structured clone, or was built from such values:
 *
 *   requireBounded(message, { maxValues: 65536 });
 *   const text = JSON.stringify(message);
 *
 * A value from `JSON.parse` is no larger than its text, so a limit on the text bounds its size, though not its depth.
 * For a list that should be short, checking the length is enough: `Array.isArray(list) && list.length <= MAX`.
 *
 * Bytes (buffers, views of them and Blobs) count as one value. An object with a `toJSON` method is not looked into: no
 * such object can come from the other side. The function uses nothing outside itself, so that it can be injected into a
 * page as text.
 * @param {unknown} value what to check
 * @param {Bounds} [bounds] the limits
 * @throws {RangeError} that names the limit
 * @throws {TypeError} if it is too deep because it contains itself
 */
export function requireBounded(value, bounds = {}) {
  const { maxValues = 2 ** 20, maxCharacters = 2 ** 26 } = bounds;
  const { maxDepth = 1000, maxBigIntBits = 2 ** 14 } = bounds;
  let values = maxValues;
  let characters = maxCharacters;
  /** The objects that contain the current value, outermost first. @type {object[]} */
  const path = [];
  /**
   * @param {number} limit
   * @param {string} what
   */
  const exceeded = (limit, what) => {
    throw new RangeError(`The value has too many ${what}: the limit is ${limit}`);
  };
  /** @param {any} value */
  const visit = (value) => {
    if (--values < 0) exceeded(maxValues, 'values');
    switch (typeof value) {
      case 'string':
        if ((characters -= value.length) < 0) exceeded(maxCharacters, 'characters');
        return;
      case 'bigint':
        if (BigInt.asIntN(maxBigIntBits, value) !== value) exceeded(maxBigIntBits, 'bits');
        return;
      case 'object':
        break;
      default:
        return;
    }
    if (value === null || ArrayBuffer.isView(value) || typeof value.toJSON === 'function') return;
    if (path.length >= maxDepth) {
      if (path.includes(value)) throw new TypeError('The value contains itself');
      exceeded(maxDepth, 'levels');
    }
    path.push(value);
    if (Array.isArray(value)) {
      if (value.length > values) exceeded(maxValues, 'values');
      for (let i = 0; i < value.length; i++) visit(value[i]);
    } else if (value instanceof Map) {
      for (const [key, inner] of value) {
        visit(key);
        visit(inner);
      }
    } else if (value instanceof Set) {
      for (const inner of value) visit(inner);
    } else {
      for (const key in value) {
        if (!Object.hasOwn(value, key)) continue;
        if ((characters -= key.length) < 0) exceeded(maxCharacters, 'characters');
        visit(value[key]);
      }
    }
    path.pop();
  };
  visit(value);
}
