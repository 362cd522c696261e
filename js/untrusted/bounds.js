/**
 * Limits of values from outside. addresses.js, the other part of this folder, decides which hosts
 * are on the public internet. Both hold no state and do not know calls.
 */

/**
 * @typedef {object} Bounds Limits of a value. The defaults are in parentheses.
 * @property {number} [maxValues] number of values, including the value itself: members, elements,
 *   keys and values of maps (1048576). A value that occurs several times counts each time, as it
 *   does in text. An array counts by its length, even if it is sparse: `new Array(2 ** 32 - 1)`
 *   crosses a port at once, but takes minutes and gigabytes to write
 * @property {number} [maxCharacters] of all strings and member names together (67108864)
 * @property {number} [maxDepth] levels of objects in objects (1000)
 * @property {number} [maxBigIntBits] of each BigInt, because converting digits takes more than
 *   linear time (16384, about 4,900 digits)
 */

/**
 * Throws unless a value is within bounds. The bounds also limit the cost of this check.
 *
 * Use it before you walk, copy or stringify a value that arrived by structured clone, or was built
 * from such values:
 *
 *   requireBounded(message, { maxValues: 65536 });
 *   const text = JSON.stringify(message);
 *
 * A value from `JSON.parse` is no larger than its text, so a limit on the text bounds its size,
 * though not its depth. For a list that should be short, checking the length is enough:
 * `Array.isArray(list) && list.length <= MAX`.
 *
 * Bytes (buffers, views of them and Blobs) count as one value. The members of an object with a
 * `toJSON` method are not checked: such an object cannot come from the other side.
 * @param {unknown} value the value to check; reading it may throw
 * @param {Bounds} [bounds] the limits
 * @param {(value: object, values: number) => void} [leave] called with each object when its members
 *   have been counted, and with the number of its values, itself included
 * @throws {RangeError} that names the limit
 * @throws {TypeError} if it is too deep because it contains itself
 */
export function requireBounded(value, bounds = {}, leave = undefined) {
  const { maxValues = 2 ** 20, maxCharacters = 2 ** 26 } = bounds;
  const { maxDepth = 1000, maxBigIntBits = 2 ** 14 } = bounds;
  let values = maxValues;
  let characters = maxCharacters;
  /** The objects that contain the current value, outermost first. @type {object[]} */
  const path = [];
  /**
   * @param {boolean} holds
   * @param {string} what
   * @param {number} limit
   */
  const check = (holds, what, limit) => {
    if (!holds) throw new RangeError(`The value has too many ${what}: the limit is ${limit}`);
  };
  /** @param {string} text */
  const count = (text) => check((characters -= text.length) >= 0, 'characters', maxCharacters);
  /**
   * Visits a value, depth first, as often as it occurs.
   * @param {any} value
   */
  const visit = (value) => {
    check(--values >= 0, 'values', maxValues);
    if (typeof value === 'string') count(value);
    if (typeof value === 'bigint')
      check(BigInt.asIntN(maxBigIntBits, value) === value, 'bits', maxBigIntBits);
    if (typeof value !== 'object' || value === null) return;
    if (typeof value.toJSON === 'function' || ArrayBuffer.isView(value)) return;
    if (path.length >= maxDepth && path.includes(value))
      throw new TypeError('The value contains a cycle');
    check(path.length < maxDepth, 'levels', maxDepth);
    path.push(value);
    const before = values;
    if (Array.isArray(value)) {
      // A list that is too long is not visited.
      check(value.length <= values, 'values', maxValues);
      for (let i = 0; i < value.length; i++) visit(value[i]);
    } else if (value instanceof Set) {
      for (const part of value) visit(part);
    } else if (value instanceof Map) {
      for (const [key, part] of value) {
        visit(key);
        visit(part);
      }
    } else {
      for (const key in value) {
        if (!Object.hasOwn(value, key)) continue;
        check(values > 0, 'values', maxValues);
        count(key);
        visit(value[key]);
      }
    }
    leave?.(value, before - values + 1);
    path.pop();
  };
  visit(value);
}
