/**
 * The one walk over values from outside: it stops at its limits, whatever the value is.
 *
 * How it is made. `walkBounded` counts what it meets, and leaves to its visitor what becomes of it: `requireBounded` only throws,
 * others make copies, or count. addresses.js is the other half of this package: which hosts are on the public internet. Neither holds
 * anything, nor knows calls.
 */

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
 * @typedef {object} Visitor What a walk does with what it meets. What its functions return is used where `copies` is true.
 * @property {(limit: number, what: string) => unknown} exceed called where a limit is reached: throws, or returns what takes the
 *   place of the part. The members of an object that are left are then skipped
 * @property {(value: unknown) => unknown} [leaf] takes each value that is no object
 * @property {(value: object) => unknown} [replace] takes each object; the walk enters those for which it returns undefined
 * @property {(name: string) => string} [name] takes the name of each member that is entered
 * @property {(value: object, values: number) => void} [leave] takes each object when its members have been visited, and how
 *   many values it has, itself included
 * @property {boolean} [copies] whether the walk makes copies of the objects that it enters
 */

/**
 * Walks a value, depth first, and visits a part as often as it occurs. It uses nothing outside itself, so that it can be injected into
 * a page as text. Returns the copy, if the visitor wants one.
 * @param {unknown} value what to walk; reading it may throw @param {Bounds} bounds @param {Visitor} visitor
 */
export function walkBounded(value, bounds, { exceed, leaf, replace, name, leave, copies }) {
  const { maxValues = 2 ** 20, maxCharacters = 2 ** 26 } = bounds;
  const { maxDepth = 1000, maxBigIntBits = 2 ** 14 } = bounds;
  let values = maxValues;
  let characters = maxCharacters;
  /** The objects that contain the current value, outermost first. @type {object[]} */
  const path = [];
  /** @param {unknown} value @returns {unknown} */
  const visit = (value) => {
    if (--values < 0) return exceed(maxValues, 'values');
    if (typeof value !== 'object' || value === null) {
      if (typeof value === 'bigint' && BigInt.asIntN(maxBigIntBits, value) !== value) {
        return exceed(maxBigIntBits, 'bits');
      }
      const taken = leaf ? leaf(value) : value;
      if (typeof taken === 'string' && (characters -= taken.length) < 0) {
        return exceed(maxCharacters, 'characters');
      }
      return taken;
    }
    const taken = replace?.(value);
    if (taken !== undefined) return taken;
    if (ArrayBuffer.isView(value)) return value;
    // A cycle is never left by copying; else it ends where it is too deep.
    if ((copies || path.length >= maxDepth) && path.includes(value)) return exceed(0, 'cycles');
    if (path.length >= maxDepth) return exceed(maxDepth, 'levels');
    path.push(value);
    const before = values;
    const copy = enter(value);
    leave?.(value, before - values + 1);
    path.pop();
    return copy;
  };
  /** @param {any} value an object @returns {unknown} */
  const enter = (value) => {
    if (Array.isArray(value)) {
      // What is too long is not even looked at, where that ends the walk.
      if (value.length > values) exceed(maxValues, 'values');
      /** @type {unknown[]} */
      const copy = [];
      for (let i = 0, isOver = false; i < value.length && !isOver; i++) {
        isOver = values <= 0;
        const part = visit(value[i]);
        if (copies) copy.push(part);
      }
      return copies ? copy : value;
    }
    if (value instanceof Map || value instanceof Set) {
      const copy = value instanceof Map ? new Map() : new Set();
      for (const [key, inner] of value.entries()) {
        if (values <= 0) {
          exceed(maxValues, 'values');
          break;
        }
        const part = visit(key);
        if (copy instanceof Map) {
          const made = visit(inner);
          if (copies) copy.set(part, made);
        } else if (copies) copy.add(part);
      }
      return copies ? copy : value;
    }
    /** @type {unknown} */
    const copy = {};
    for (const key in value) {
      if (!Object.hasOwn(value, key)) continue;
      const named = name ? name(key) : key;
      const hasRoom = values > 0 && (characters -= named.length) >= 0;
      const part = hasRoom
        ? visit(value[key])
        : values > 0
          ? exceed(maxCharacters, 'characters')
          : exceed(maxValues, 'values');
      if (copies)
        Object.defineProperty(copy, named, {
          value: part,
          writable: true,
          enumerable: true,
          configurable: true,
        });
      if (!hasRoom) break;
    }
    return copies ? copy : value;
  };
  return visit(value);
}

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
 * such object can come from the other side. The function uses only `walkBounded`, so that it can be injected into a page
 * as text.
 * @param {unknown} value what to check
 * @param {Bounds} [bounds] the limits
 * @throws {RangeError} that names the limit
 * @throws {TypeError} if it is too deep because it contains itself
 */
export function requireBounded(value, bounds = {}) {
  walkBounded(value, bounds, {
    replace: (/** @type {{ toJSON?: unknown }} */ object) =>
      typeof object.toJSON === 'function' ? object : undefined,
    exceed: (limit, what) => {
      if (what === 'cycles') throw new TypeError('The value contains a cycle');
      throw new RangeError(`The value has too many ${what}: the limit is ${limit}`);
    },
  });
}
