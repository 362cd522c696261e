/** Errors that a user can mend: they are told without a stack trace, and each ends the program with its own code. */

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
  /**
   * @param {string} message what is wrong and what mends it
   * @param {number} [exitCode] one of {@link EXIT}
   */
  constructor(message, exitCode = EXIT.UNREACHABLE) {
    super(message);
    this.name = 'UserError';
    this.exitCode = exitCode;
  }
}

/** A request that can be mended by whoever made it. */
export class InvalidRequest extends Error {
  /**
   * @param {string} message
   * @param {unknown} [data] goes along with it
   */
  constructor(message, data) {
    super(message);
    this.data = data;
  }
}

/** @param {string} message */
export const usageError = (message) => new UserError(message, EXIT.USAGE);
