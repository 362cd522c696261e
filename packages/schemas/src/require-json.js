/** What stands in a handshake: JSON, and nothing else. */
import { AbpError } from '../../../js/common/errors.js';
import { isObject } from '../../../js/common/values.js';

/** Levels of objects in what describes an app. The core reads 64 levels, of which the handshake needs some. */
const MAX_DESCRIPTION_DEPTH = 56;

/**
 * Throws unless a value can be written as JSON, so that it can stand in a handshake.
 * @param {string} what contains the value, for the error's message
 * @param {unknown} value the value
 * @param {string} path where in it the value is, for the error's message
 * @param {number} [depth] how deep that is
 */
export function requireJson(what, value, path, depth = 0) {
  const type = typeof value;
  const isForeign = ['bigint', 'function', 'symbol'].includes(type);
  if (isForeign || depth > MAX_DESCRIPTION_DEPTH) {
    const why = isForeign ? `is a ${type}` : 'is too deep, or contains a cycle';
    throw new AbpError('INVALID_PARAMS', `${what} must be JSON, but ${path.slice(0, 200)} ${why}`);
  }
  if (!isObject(value)) return;
  for (const [key, part] of Object.entries(value)) {
    requireJson(what, part, `${path}.${key}`, depth + 1);
  }
}
