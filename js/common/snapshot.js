/**
 * Values as they are now: what arrives on the other side is the value as it was when it was given.
 */
import { isRecord } from './values.js';

/** The shape of a value of which a JSON text, read again, is the same. It may wait as text. */
export const TEXT = 2;
/** Of one that may wait as a copy. */
export const SMALL = 1;
/** Of one that is sent at once. */
export const LARGE = 0;

/** Members of a value that waits as a copy. */
const MAX_COPIED = 64;
/** Members of a larger value that are looked at. */
const MAX_VISITED = 2 ** 20;
/**
 * Levels of objects in objects. What is deeper arrives as `null` in some browsers, and nobody is
 * told.
 */
const MAX_LEVELS = 1000;
/** How much of a value may wait as text: characters, and 8 for each member. */
const MAX_TEXT = 2048;
/** Objects in a value that are compared one by one: for a few that is quicker than a set. */
const FEW = 32;

/**
 * What is known of a value.
 * @typedef {object} Look
 * @property {number} room that text still has
 * @property {number} visited members
 * @property {boolean} isSmall
 * @property {boolean} isText
 * @property {unknown[]} met the first objects in it
 * @property {Set<unknown>} [all] all objects in it, once they are more than a few
 */

/**
 * How a value may wait to be sent. As text may wait strings, numbers, booleans and null, in plain
 * objects and lists that are nowhere twice.
 * @param {unknown} value reading it may throw
 * @returns {typeof TEXT | typeof SMALL | typeof LARGE}
 * @throws {RangeError} if it is too deep
 */
export function shapeOf(value) {
  /** @type {Look} */
  const look = { room: MAX_TEXT, visited: 0, isSmall: true, isText: true, met: [] };
  visit(typeof value === 'object' && value !== null ? value : [value], look, 0);
  if (!look.isSmall) return LARGE;
  if (look.isText && look.room >= 0 && !look.all) return TEXT;
  return look.visited > MAX_COPIED ? LARGE : SMALL;
}

/**
 * Looks at the members of an object.
 * @param {any} object
 * @param {Look} look
 * @param {number} level
 */
function visit(object, look, level) {
  if (level > MAX_LEVELS) throw new RangeError(`It has more than ${MAX_LEVELS} levels`);
  if (look.all ? look.all.has(object) : look.met.includes(object)) {
    look.isSmall = false;
    return;
  }
  if (look.met.length < FEW) look.met.push(object);
  else (look.all ??= new Set(look.met)).add(object);
  const isList = Array.isArray(object);
  // Of another realm, or of a library.
  const isPlain = isList || Object.getPrototypeOf(object) === Object.prototype || isRecord(object);
  look.isSmall &&= isPlain;
  if (ArrayBuffer.isView(object)) return;
  const names = Object.keys(object);
  // A list may have holes, or members of other names, which come last.
  const { length } = names;
  const isWhole =
    !isList || (length === object.length && (!length || names[length - 1] === `${length - 1}`));
  look.isText &&= isWhole && object.toJSON === undefined;
  for (const name of names) {
    if (look.visited++ > MAX_VISITED) return;
    const member = object[name];
    look.room -= isList ? 8 : 8 + name.length;
    if (typeof member === 'string') look.room -= member.length;
    else if (typeof member === 'object' && member !== null) visit(member, look, level + 1);
    else if (typeof member === 'number')
      look.isText &&= Number.isFinite(member) && !Object.is(member, -0);
    else if (member !== null && typeof member !== 'boolean') look.isText = false;
  }
}
