/** Decides how a value can wait to be sent, so that it arrives as it was when it was passed in. */
import { isRecord } from './values.js';

/** A value whose JSON text, when read, gives the same value. It may wait as text. */
export const TEXT = 2;
/** A value that may wait as a copy. */
export const SMALL = 1;
/** A value that is sent at once. */
export const LARGE = 0;

/** The most members of a value that waits as a copy. */
const MAX_COPIED = 64;
/** The most members of a larger value that are visited. */
const MAX_VISITED = 2 ** 20;
/**
 * Levels of objects in objects. In some browsers deeper levels arrive as `null`, without an error.
 */
const MAX_LEVELS = 1000;
/** The most text of a value that may wait as text: characters, and 8 for each member. */
const MAX_TEXT = 2048;
/** Objects in a value that are compared one by one: for a few that is faster than a set. */
const FEW = 32;

/**
 * The findings about a value.
 * @typedef {object} Look
 * @property {number} room characters left for text
 * @property {number} visited members
 * @property {boolean} isSmall
 * @property {boolean} isText
 * @property {unknown[]} met the first objects in it
 * @property {Set<unknown>} [all] all objects in it, once they are more than a few
 */

/**
 * Decides how a value can wait. Strings, numbers, booleans and null may wait as text, in plain
 * objects and lists without repeated objects.
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
 * Visits the members of an object.
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
  // It may be from another realm, or from a library.
  const isPlain = isList || Object.getPrototypeOf(object) === Object.prototype || isRecord(object);
  look.isSmall &&= isPlain;
  if (ArrayBuffer.isView(object)) return;
  const names = Object.keys(object);
  // A list may have holes, or other members, which come last.
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
