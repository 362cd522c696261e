/** The signals that end the program. */

/**
 * Resolves with the first signal. The next one ends the program at once; then its driver kills the
 * browser.
 * @param {number} [exitCode]
 * @returns {Promise<string>}
 */
export function signalled(exitCode = 1) {
  let isEnding = false;
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
      process.on(signal, () => {
        if (isEnding) process.exit(exitCode);
        isEnding = true;
        resolve(signal);
      });
    }
  });
}
