/** Tells an app's author, on the console, which agents were refused and which handlers do not stop. */
import { safely } from '../errors.js';
import { isObject } from '../values.js';
import { warn } from '../warnings.js';

/** Handlers, and what was done in them, that are warned of at most. */
const MAX_TOLD = 100;
/** @type {Set<string>} */
const told = new Set();

/** Warns once of what a handler does. @param {string} name of it @param {string} what @param {string} hint what helps, and where that is explained */
function warnOnce(name, what, hint) {
  const id = `${name} ${hint}`;
  if (told.has(id) || told.size >= MAX_TOLD) return;
  told.add(id);
  warn(`${name} ${what}: ${hint}`);
}

/** Sessions of which it was said that another agent wants one: what began each, by its connection. @type {WeakMap<object, unknown>} */
const held = new WeakMap();

/** Warns once of a second agent of a window that has a session. @param {{ hello: unknown }} connection that has it */
export function tellBusy(connection) {
  if (held.get(connection) === connection.hello) return;
  held.set(connection, connection.hello);
  warn(
    'an agent was refused: another agent in the same window has a session (docs/errors.md#already-connected)',
  );
}

/** Origins whose refusal is written to the console, of an app. */
const MAX_REFUSED = 16;
/** Those of which it was written, by the apps' own lists. @type {WeakMap<string[], Set<string>>} */
const refused = new WeakMap();

/**
 * Warns once of an agent of an origin that is not listed.
 * @param {string[]} origins those that are, as the app was given them
 * @param {string} origin its own
 */
export function tellRefused(origins, origin) {
  const told = refused.get(origins) ?? new Set();
  if (told.size >= MAX_REFUSED || told.has(origin)) return;
  refused.set(origins, told.add(origin));
  const list = JSON.stringify([...origins, origin]);
  warn(
    `an agent from ${origin} was refused. To let it call this app: expose(app, { origins: ${list} }) (docs/errors.md#refused-origin)`,
  );
}

/** Warns once of a handler that ran on when its cancel had waited for it long enough. @param {string} name of the capability */
export function warnOfHandler(name) {
  warnOnce(
    name,
    'still ran when its cancel had waited for limits.grace',
    'give its signal to fetch and to what else takes one, or await breathe() in its loop (docs/apps.md#long-work)',
  );
}

/** Warns once of a handler that lets nothing in. @param {string} name of the capability, or the task */
export function warnOfBreathe(name) {
  warnOnce(
    name,
    'calls breathe() without await, so its loop lets no cancel in',
    'write await breathe() (docs/apps.md#long-work)',
  );
}

/** Warns once of progress that was not sent. @param {string} who reported it @param {unknown} info */
export function warnOfProgress(who, info) {
  const shown = isObject(info)
    ? `{ ${safely(() => Object.keys(info), []).join(', ')} }`
    : typeof info;
  warnOnce(
    who,
    `reported progress as ${shown.slice(0, 100)}, which was not sent`,
    'write progress({ progress: 3, total: 10 }), in numbers (docs/apps.md#progress)',
  );
}
