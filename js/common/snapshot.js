/** Values as they are now: what arrives on the other side is the value as it was when it was given to be sent. */
import { isObject, isRecord } from './values.js';

/** Members of a value that waits as a copy. */
const MAX_COPIED = 64;
/** Members of a larger value that are looked at. */
const MAX_VISITED = 2 ** 20;
/** Levels of objects in objects. What is deeper arrives as `null` in some browsers, and nobody is told. */
const MAX_LEVELS = 1000;

/** How much of a value may wait as text: characters, and 8 for each member. */
const MAX_TEXT = 2048;
let room = 0;
/** The objects inside the value that is looked at, and how many there are. @type {unknown[]} */
const met = [];
let count = 0;

/**
 * Whether a value is small, and the same once it was written as JSON and read again: text, numbers, booleans and null, in plain
 * objects and lists that are nowhere twice.
 * @param {unknown} value reading it may throw
 */
export function isText(value) {
  // A getter inside may make a call.
  const before = count;
  room = MAX_TEXT;
  try {
    return fits(value);
  } finally {
    while (count > before) met[--count] = undefined;
  }
}

/** @param {any} part @returns {boolean} */
function fits(part) {
  if (typeof part === 'string') return (room -= part.length) >= 0;
  if (typeof part === 'number') return isFinite(part) && !Object.is(part, -0);
  if (part === null || part === !!part) return true;
  const isList = Array.isArray(part);
  if (part?.toJSON !== undefined || count > 31 || !(isList || isRecord(part))) return false;
  for (let i = 0; i < count; i++) if (met[i] === part) return false;
  met[count++] = part;
  if (isList) {
    if ((room -= 8 * part.length) < 0) return false;
    for (let i = 0; i < part.length; i++) if (!fits(part[i])) return false;
    // It may have members of other names.
    return Object.keys(part).length === part.length;
  }
  for (const key in part)
    if ((room -= 8 + key.length) < 0 || !fits(/** @type {any} */ (part)[key])) return false;
  return true;
}

/**
 * Whether a value is small and plain, so that it may wait as a copy: a few members in plain objects and lists.
 * @param {unknown} value what is to be sent; reading it may throw
 * @throws {RangeError} if it is too deep
 */
export function isSmall(value) {
  let visited = 0;
  let isPlain = true;
  /** The objects inside the value. Most have none. @type {Set<unknown> | undefined} */
  let seen;
  /** @param {any} part @param {number} level */
  const visit = (part, level) => {
    if (!isObject(part)) return;
    if (level > MAX_LEVELS) throw new RangeError(`It has more than ${MAX_LEVELS} levels`);
    const isKnown = seen?.has(part);
    isPlain &&= !isKnown && (Array.isArray(part) || isRecord(part));
    if (isKnown || ArrayBuffer.isView(part)) return;
    if (level) (seen ??= new Set()).add(part);
    for (const key of Object.keys(part)) {
      if (visited++ > MAX_VISITED) break;
      visit(/** @type {any} */ (part)[key], level + 1);
    }
  };
  visit(value, 0);
  return isPlain && visited <= MAX_COPIED;
}
