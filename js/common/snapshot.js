/** Values as they are now: what arrives on the other side is the value as it was when it was given to be sent. */
import { isObject, isRecord } from './values.js';

/** Members of a value that waits as a copy. */
const MAX_COPIED = 64;
/** Members of a larger value that are looked at. */
const MAX_VISITED = 2 ** 20;
/** Levels of objects in objects. What is deeper arrives as `null` in some browsers, and nobody is told. */
const MAX_LEVELS = 1000;

/** Stands for a value that cannot wait: it is posted at once, and that copies it. */
export const LARGE = {};

/**
 * Copies a value if it is small and plain: text, numbers, and a few of them in plain objects and lists.
 * @param {unknown} value what is to be sent; reading it may throw
 * @returns {unknown} the copy, or `LARGE`
 * @throws {RangeError} if it is too deep
 */
export function snapshot(value) {
  let visited = 0;
  let isSmall = true;
  /** The objects inside the value. Most have none. @type {Set<unknown> | undefined} */
  let seen;
  /** @param {unknown} part @param {number} level @returns {unknown} */
  const visit = (part, level) => {
    if (!isObject(part)) return part;
    if (level > MAX_LEVELS) throw new RangeError(`It has more than ${MAX_LEVELS} levels`);
    const isList = Array.isArray(part);
    const isKnown = seen?.has(part);
    isSmall &&= !isKnown && (isList || isRecord(part));
    if (isKnown || ArrayBuffer.isView(part)) return part;
    if (level) (seen ??= new Set()).add(part);
    /** @type {any} */
    const copy = isList ? [] : {};
    for (const key of isList ? part.keys() : Object.keys(part)) {
      if (visited++ > MAX_VISITED) break;
      const inner = visit(/** @type {Record<PropertyKey, unknown>} */ (part)[key], level + 1);
      // A list may have holes.
      isSmall &&= visited <= MAX_COPIED && key !== '__proto__' && key in part;
      if (isSmall) copy[key] = inner;
    }
    // And members of other names.
    if (isSmall && isList) isSmall = Object.keys(part).length === part.length;
    return copy;
  };
  const copy = visit(value, 0);
  return isSmall ? copy : LARGE;
}
