/**
 * Finds the part of a value that makes it impossible to send. Runs only when sending has failed.
 */
import { safely, toErrorObject } from '../../js/common/errors.js';
import { copyOf } from '../../js/common/copy.js';
import { isObject } from '../../js/common/values.js';
import { warn } from './warnings.js';

/** The most levels of objects that are searched. */
const MAX_SEARCHED_LEVELS = 16;

/** @param {() => unknown} read */
function isCloneable(read) {
  try {
    copyOf(read());
    return true;
  } catch (error) {
    // A value that is too large or too deep is another problem.
    return safely(() => /** @type {Error} */ (error).name !== 'DataCloneError', true);
  }
}

/** @param {unknown} value */
const kindOf = (value) =>
  safely(() => (isObject(value) ? String(value.constructor.name) : ''), '') || typeof value;

/**
 * Finds the first part of a value that the structured clone algorithm rejects.
 * @param {unknown} value the value that could not be sent; reading it may throw
 * @param {string} path the name of the value, such as `params`
 * @returns {string | undefined} the path and the kind of that part; undefined if the whole value
 *   can be cloned
 */
function uncloneablePart(value, path) {
  if (isCloneable(() => value)) return undefined;
  for (let level = 0; isObject(value) && level < MAX_SEARCHED_LEVELS; level++) {
    const whole = /** @type {Record<string, unknown>} */ (value);
    const key = safely(() => Object.keys(whole), []).find((key) => !isCloneable(() => whole[key]));
    if (key === undefined) break;
    path += Array.isArray(value) ? `[${key}]` : `.${key}`;
    value = safely(() => whole[key], undefined);
  }
  return `${path} (${kindOf(value)})`;
}

/**
 * Explains why a value cannot be sent.
 * @param {string} what a name for the value
 * @param {string} path its path in the message
 * @param {unknown} value
 * @param {unknown} error
 */
export function reasonUnsent(what, path, value, error) {
  const part = uncloneablePart(value, path);
  const why = `${part ? `${part}: ` : ''}${toErrorObject(error).message}`;
  return `The ${what} cannot be sent: ${why} (docs/errors.md#what-cannot-be-sent)`;
}

/**
 * Warns that a message was not sent.
 * @param {unknown} error
 * @param {unknown} payload of the message
 */
export function warnUnsent(error, payload) {
  const part = uncloneablePart(payload, 'payload') ?? '';
  warn(`a message could not be sent: ${part} (docs/errors.md#what-cannot-be-sent)`, error);
}
