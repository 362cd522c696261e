/** Tells the app's author, on the console, which agents were refused. Loaded with the first of them. */
import { warn } from '../warnings.js';

/** A second agent of a window that has a session. */
export const tellBusy = () =>
  warn(
    'an agent was refused: another agent in the same window has a session (docs/errors.md#already-connected)',
  );

/**
 * An agent of an origin that is not listed.
 * @param {string[] | undefined} origins those that are
 * @param {string} origin its own
 */
export function tellRefused(origins, origin) {
  const list = JSON.stringify([...(origins ?? []), origin]);
  warn(
    `an agent from ${origin} was refused. To let it call this app: expose(app, { origins: ${list} }) (docs/errors.md#refused-origin)`,
  );
}
