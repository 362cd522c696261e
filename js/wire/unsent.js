/**
 * Errors for values that cannot be sent. The part that finds the reason is loaded when it is
 * needed.
 */
import { development, tell } from '../common/development.js';
import { toErrorObject } from '../common/errors.js';

/**
 * Finds out why a value cannot be sent.
 * @param {string} what a name for the value
 * @param {string} path its path in the message
 * @param {unknown} value
 * @param {unknown} error
 */
export const reasonUnsent = (what, path, value, error) =>
  development().then(
    (dev) => dev.reasonUnsent(what, path, value, error),
    () => toErrorObject(error).message,
  );

/**
 * Warns that a message was not sent.
 * @param {unknown} error
 * @param {unknown} [payload] of the message
 */
export const warnUnsent = (error, payload) => tell((dev) => dev.warnUnsent(error, payload));
