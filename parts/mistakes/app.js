/** Warns an app's author, on the console, about rejected agents and mistakes of handlers. */
import { safely } from '../../js/common/errors.js';
import { isObject } from '../../js/common/values.js';
import { warnOnce } from './warnings.js';

/**
 * Warns once about a second agent in a window that has a session.
 * @param {{ hello: unknown }} connection the connection of the first agent
 */
export const tellBusy = (connection) =>
  warnOnce(
    connection.hello,
    'an agent was refused: another agent in the same window has a session (docs/errors.md#already-connected)',
    connection,
  );

/** The most rejected origins that are written to the console, for one app. */
const MAX_REFUSED = 16;

/**
 * Warns once about an agent whose origin is not listed.
 * @param {{ origins?: string[] }} options of the app
 * @param {string} origin the agent's origin
 */
export function tellRefused({ origins = [] }, origin) {
  const list = JSON.stringify([...origins, origin]);
  const text = `an agent from ${origin} was refused. To let it call this app: expose(app, { origins: ${list} }) (docs/errors.md#refused-origin)`;
  warnOnce(origin, text, origins, MAX_REFUSED);
}

/** Mistakes of handlers: the message, and a hint. */
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
 * Warns once about a mistake of a handler.
 * @param {unknown} name the name of its capability, or of the task
 * @param {keyof typeof MISTAKES} mistake
 */
export function warnOfHandler(name, mistake) {
  const [what, hint] = MISTAKES[mistake];
  warnOnce(`${name} ${mistake}`, `${name} ${what}: ${hint}`);
}

/**
 * Warns once about progress that was not sent.
 * @param {string} who the name of the reporter
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
