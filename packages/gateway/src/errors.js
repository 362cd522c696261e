/**
 * Messages for the user: errors with a remedy and without a stack trace, each with its own exit
 * code; and a log.
 */
import { printable } from './texts.js';

/** Exit codes of the program. */
export const EXIT = {
  OK: 0,
  FAILED: 1, // the call failed in the app
  USAGE: 2,
  UNREACHABLE: 3, // no browser, no page, no app in it
  UNSAVED: 4, // the result could not be written to the given place
  TIMEOUT: 124, // as of the program `timeout`
  CANCELLED: 130, // as of a shell's command that Ctrl-C ended
};

export class UserError extends Error {
  /**
   * @param {string} message the problem and its remedy
   * @param {number} [exitCode] one of {@link EXIT}
   */
  constructor(message, exitCode = EXIT.UNREACHABLE) {
    super(message);
    this.name = 'UserError';
    this.exitCode = exitCode;
  }
}

/** An error of a request that its sender can correct. */
export class InvalidRequest extends Error {
  /**
   * @param {string} message
   * @param {unknown} [data] sent with it
   */
  constructor(message, data) {
    super(message);
    this.data = data;
  }
}

/** @param {string} message */
export const usageError = (message) => new UserError(message, EXIT.USAGE);

/**
 * @param {string | undefined} text
 * @param {string} name of the option, for the error
 * @returns {number | undefined} ms
 */
export function seconds(text, name) {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() !== '' && value >= 0 && value < 2 ** 31 / 1000) return value * 1000;
  throw usageError(`--${name} takes seconds, such as 30 or 0.5, not ${JSON.stringify(text)}`);
}

/** @param {string} line */
export const log = (line) => void process.stderr.write(`abp-bridge-gateway: ${printable(line)}\n`);
