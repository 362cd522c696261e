/**
 * Tells an app's author, on the console, which agents were refused and what its handlers do wrong.
 */
import { safely } from '../../js/common/errors.js';
import { isObject } from '../../js/common/values.js';
import { warnOnce } from './warnings.js';

/**
 * Warns once of a second agent of a window that has a session.
 * @param {{ hello: unknown }} connection that has it
 */
export const tellBusy = (connection) =>
  warnOnce(
    connection.hello,
    'an agent was refused: another agent in the same window has a session (docs/errors.md#already-connected)',
    connection,
  );

/** Origins whose refusal is written to the console, of an app. */
const MAX_REFUSED = 16;

/**
 * Warns once of an agent of an origin that is not listed.
 * @param {{ origins?: string[] }} options of the app
 * @param {string} origin its own
 */
export function tellRefused({ origins = [] }, origin) {
  const list = JSON.stringify([...origins, origin]);
  const text = `an agent from ${origin} was refused. To let it call this app: expose(app, { origins: ${list} }) (docs/errors.md#refused-origin)`;
  warnOnce(origin, text, origins, MAX_REFUSED);
}

/** What a handler does wrong, and what helps. */
const MISTAKES = {
  busy: [
    'still ran when its cancel had waited for limits.grace',
    'give its signal to fetch and to what else takes one, or await breathe() in its loop (docs/apps.md#long-work)',
  ],
  hasty: [
    'calls breathe() without await, so its loop lets no cancel in',
    'write await breathe() (docs/apps.md#long-work)',
  ],
  deaf: [
    'ended before a cancel was read that was there: no message was read meanwhile',
    'await breathe() in its loop, or give its work to a worker (docs/errors.md#a-cancel-comes-too-late)',
  ],
};

/**
 * Warns once of a mistake of a handler.
 * @param {unknown} name of its capability, or of the task
 * @param {keyof typeof MISTAKES} mistake
 */
export function warnOfHandler(name, mistake) {
  const [what, hint] = MISTAKES[mistake];
  warnOnce(`${name} ${mistake}`, `${name} ${what}: ${hint}`);
}

/**
 * Warns once of progress that was not sent.
 * @param {string} who reported it
 * @param {unknown} info
 */
export function warnOfProgress(who, info) {
  const shown = isObject(info)
    ? `{ ${safely(() => Object.keys(info), []).join(', ')} }`
    : typeof info;
  const what = `reported progress as ${shown.slice(0, 100)}, which was not sent`;
  const hint = 'write progress({ progress: 3, total: 10 }), in numbers (docs/apps.md#progress)';
  warnOnce(`${who} progress`, `${who} ${what}: ${hint}`);
}
