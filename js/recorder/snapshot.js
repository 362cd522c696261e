/** Copies of values as JSON can carry them, bounded: what recordings and the inspector keep of payloads. */

const MAX_DEPTH = 12;
const MAX_NODES = 5000;
const MAX_TEXT = 20_000;

/**
 * A copy of a value for people to read. Bytes are described, not copied; what is too deep, too long or cannot be read is
 * said in words.
 * @param {unknown} value any value
 * @returns {unknown} a value that JSON can carry
 */
export function snapshot(value) {
  let left = MAX_NODES;
  const ancestors = new Set();
  /** @param {unknown} part @param {number} depth @returns {unknown} */
  const copy = (part, depth) => {
    switch (typeof part) {
      case 'string':
        return part.length > MAX_TEXT
          ? `${part.slice(0, MAX_TEXT)}… (${part.length} characters)`
          : part;
      case 'number':
        return Number.isFinite(part) ? part : `${part}`;
      case 'boolean':
        return part;
      case 'undefined':
        return undefined;
      case 'object':
        break;
      default:
        return `(${typeof part})`;
    }
    if (part === null) return null;
    if (ArrayBuffer.isView(part) || part instanceof ArrayBuffer) {
      return `(${part.constructor.name}, ${part.byteLength} bytes)`;
    }
    if (ancestors.has(part)) return '(circular)';
    if (depth > MAX_DEPTH || left-- <= 0) return '(…)';
    ancestors.add(part);
    const copied = copyMembers(part, (member) => copy(member, depth + 1));
    ancestors.delete(part);
    return copied;
  };
  try {
    return copy(value, 0);
  } catch {
    return '(cannot be read)';
  }
}

/**
 * @param {any} object
 * @param {(member: unknown) => unknown} copy
 */
function copyMembers(object, copy) {
  if (Array.isArray(object)) {
    const copied = object.slice(0, MAX_NODES).map((member) => copy(member) ?? null);
    if (object.length > MAX_NODES) copied.push(`(… ${object.length} elements)`);
    return copied;
  }
  const tag = Object.prototype.toString.call(object).slice(8, -1);
  if (tag === 'Date') return `${object}`;
  if (tag === 'Error') return { name: object.name, message: copy(object.message) };
  if (tag === 'Blob' || tag === 'File') return `(${tag}, ${object.size} bytes)`;
  if (tag === 'Map' || tag === 'Set') return `(${tag}, ${object.size} members)`;
  if (tag !== 'Object') return `(${tag})`;
  const keys = Object.keys(object);
  /** @type {Record<string, unknown>} */
  const copied = Object.fromEntries(
    keys.slice(0, MAX_NODES).map((key) => [key, copy(object[key])]),
  );
  if (keys.length > MAX_NODES) copied['…'] = `(${keys.length} members)`;
  return copied;
}
