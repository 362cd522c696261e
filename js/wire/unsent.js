/** What cannot be sent. What finds the reason is loaded when something cannot be. */
import { development, tell } from '../common/development.js';
import { toErrorObject } from '../common/errors.js';

/**
 * Says why a value cannot be sent.
 * @param {string} what it is
 * @param {string} path what it is called in a message
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
