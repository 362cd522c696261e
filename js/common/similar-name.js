/** Finds the name that was probably meant. */

/** Edits between names that may be the same: an added, a missing or a replaced letter. */
const MAX_EDITS = 2;
/** Characters of the longest name that is compared. */
const MAX_COMPARED_LENGTH = 64;

/**
 * True if so many edits turn one text into the other.
 * @param {string} a
 * @param {string} b
 * @param {number} edits
 * @returns {boolean}
 */
function isNear(a, b, edits) {
  let i = 0;
  while (i < a.length && a[i] === b[i]) i++;
  if (i === a.length && i === b.length) return true;
  const [restA, restB, nextA, nextB] = [a.slice(i), b.slice(i), a.slice(i + 1), b.slice(i + 1)];
  return (
    edits > 0 &&
    (isNear(nextA, nextB, edits - 1) ||
      isNear(nextA, restB, edits - 1) ||
      isNear(restA, nextB, edits - 1))
  );
}

/**
 * The name that was probably meant, in any case of letters.
 * @param {string} given any text
 * @param {string[]} names what exists
 * @returns {string | undefined} undefined if none is similar
 */
export function similarName(given, names) {
  if (given.length > MAX_COMPARED_LENGTH) return undefined;
  const text = given.toLowerCase();
  const near = (/** @type {number} */ edits) =>
    names.find(
      (name) =>
        Math.abs(name.length - given.length) <= edits && isNear(text, name.toLowerCase(), edits),
    );
  const last = (/** @type {string} */ name) => name.toLowerCase().endsWith(`.${text}`);
  return near(0) ?? near(1) ?? names.find(last) ?? near(MAX_EDITS);
}
