/** What a user is told: errors that can be mended, without a stack trace, each with its own exit code; and what goes on. */
import { printable } from './texts.js';

/** What the program ends with. */
export const EXIT = {
  OK: 0,
  /** The app said that the call failed. */
  FAILED: 1,
  /** The command line is wrong. */
  USAGE: 2,
  /** There is no way to the app: no browser, no page, no app in it. */
  UNREACHABLE: 3,
  /** The result could not be written where it was wanted. */
  UNSAVED: 4,
  /** As of the program `timeout`. */
  TIMEOUT: 124,
  /** As of a shell's command that Ctrl-C ended. */
  CANCELLED: 130,
};

export class UserError extends Error {
  /** @param {string} message what is wrong and what mends it @param {number} [exitCode] one of {@link EXIT} */
  constructor(message, exitCode = EXIT.UNREACHABLE) {
    super(message);
    this.name = 'UserError';
    this.exitCode = exitCode;
  }
}

/** A request that can be mended by whoever made it. */
export class InvalidRequest extends Error {
  /** @param {string} message @param {unknown} [data] goes along with it */
  constructor(message, data) {
    super(message);
    this.data = data;
  }
}

/** @param {string} message */
export const usageError = (message) => new UserError(message, EXIT.USAGE);

/** @param {string | undefined} text @param {string} name of the option, for the error @returns {number | undefined} ms */
export function seconds(text, name) {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() !== '' && value >= 0 && value < 2 ** 31 / 1000) return value * 1000;
  throw usageError(`--${name} takes seconds, such as 30 or 0.5, not ${JSON.stringify(text)}`);
}

/** @param {string} line */
export const log = (line) => void process.stderr.write(`abp-bridge-gateway: ${printable(line)}\n`);
