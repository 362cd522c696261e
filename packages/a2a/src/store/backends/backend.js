/**
 * Where tasks are kept so that they outlive a process: the contract of a backend, and what all
 * backends share.
 *
 * A task is a log of records, and nothing else is true about it: a record is stored where its
 * writer expects it, or not at all. Whatever else is kept (leases, an index, objects) can be lost
 * or late without anything wrong being told. packages/a2a-store/tests/contracts/backend.js tests
 * all that is said here; a backend of your own must pass it, too.
 */
import { AbpError } from 'abp-bridge/driver';

/**
 * @typedef {object} LogRecord a change of a task, as its log keeps it
 * @property {number} seq its number. Numbers of a task's records grow, and need not follow each
 *   other; 0 comes before all of them
 * @property {string} data
 *
 * @typedef {object} IndexEntry what lists need to know of a task
 * @property {string} tenant may be empty
 * @property {string} context
 * @property {number} time when the task was last changed, in ms since 1970
 * @property {string} [state] of the task, by which lists can be limited. An entry without one is
 *   not counted
 * @property {string} data whatever else a list shows
 *
 * @typedef {object} Sweep which objects a backend looks at, to delete those that nobody keeps
 * @property {number} age ms for which an object was not stored or replaced; more than
 *   {@link MAX_PUT}
 * @property {number} limit how many pieces are looked at
 * @property {(name: string) => Promise<boolean>} keeps is asked of each whole object that is old
 *   enough
 * @property {string} [after] where the sweep before ended
 *
 * @typedef {object} ListFilter which tasks a list shows, the latest first
 * @property {string} tenant
 * @property {string} [context]
 * @property {string} [state]
 * @property {number} [since] tasks that were changed earlier are left out: ms since 1970
 * @property {number} [limit] how many (100)
 * @property {string} [cursor] of the page before
 */

/**
 * Every method rejects with an {@link AbpError}: `UNAVAILABLE`, retryable, when nothing has been
 * done; `INVALID_PARAMS` for a name that is empty or longer than {@link MAX_NAME}, and for text
 * with NUL or a lone surrogate.
 * @typedef {object} Backend
 *
 * @property {number} maxRecord bytes of UTF-8 that a record may have. What is longer goes into an
 *   object
 * @property {boolean} [alone] whether it has one user, which is all that knows of its tasks:
 *   records are not kept, since their only reader has read them as they were written
 *
 * @property {(task: string, data: string, expected: number) => Promise<number> | number} append
 *   stores a record if the latest one of the task is `expected` (0 for none), and returns its
 *   number: from then on it is as durable as the backend promises. Rejects with `CONFLICT` when
 *   another record is the latest, and this one will never be stored; with `UNACKNOWLEDGED` when
 *   nobody can say whether it was: read the log; with `TOO_LARGE`
 * @property {(task: string, after: number, limit?: number) => Promise<LogRecord[]>} read the
 *   records after a number, in order: all, or the first `limit` of them. What was stored before it
 *   was called is among them, whoever stored it
 * @property {(task: string, after: number, onRecord: (record: LogRecord) => void) => () => void}
 *   watch calls `onRecord` for each record after a number, in order, without gap or repeat, those
 *   that are to come included, but not before it has returned. Returns a function that stops it at
 *   once. If the backend is away, the records come when it is back
 * @property {(task: string) => Promise<void>} forget deletes a task's log and its entry in the
 *   index
 *
 * @property {(process: string, left?: boolean) => Promise<void>} renew shows that a process lives,
 *   or that it has `left`, and nobody need wait for it. It reaches the backend now or never: a
 *   renewal that comes late would lie
 * @property {(process: string) => Promise<number>} lease a number that each renewal changes; 0 if
 *   there has been none. Who sees it unchanged for a term of its own clock may take the process's
 *   tasks
 * @property {(limit: number) => Promise<{ process: string, number: number, left: boolean }[]>}
 *   leases those that were not renewed for longest, at most so many. By them others find what a
 *   process has left: they are kept as the logs are, until they are released
 * @property {(process: string, number: number) => Promise<boolean>} release deletes a lease if that
 *   is still its number, or if it is not there; false if the process has renewed it since, and then
 *   nothing is deleted
 *
 * @property {(process: string, answer: (text: string) => string | Promise<string>) => Promise<()
 *   => Promise<void>>} serve answers what is asked of a process. Returns a function that stops it
 * @property {(process: string, text: string, options?: { timeout?: number }) => Promise<string>}
 *   ask asks a process. Rejects with `NO_RESPONDERS`, at once, when nobody serves it, which does
 *   not mean that it is dead; with `TIMEOUT` after `timeout` ms (5000); with `OPERATION_FAILED`
 *   when the answer throws
 *
 * @property {(task: string, entry: IndexEntry, seq: number) => Promise<void>} note enters a task in
 *   the index as it is after a record; an entry of a later record stays, and one of the same record
 *   is replaced
 * @property {(filter: ListFilter) => Promise<{ tasks: (IndexEntry & { task: string })[],
 *   cursor?: string }>} list a tenant's tasks, those that were changed last first. With a cursor
 *   there are more. A task that changes between two pages may be in both or in none
 * @property {(filter: ListFilter) => Promise<number>} count how many tasks with a state a list
 *   shows, on all pages
 *
 * @property {(name: string, bytes: Uint8Array) => Promise<void>} put stores an object, or replaces
 *   it. It fails after {@link MAX_PUT} at the latest
 * @property {(name: string) => Promise<Uint8Array>} get rejects with `OBJECT_NOT_FOUND`
 * @property {(name: string) => Promise<void>} remove deletes an object, if it is there
 * @property {(prefix: string) => Promise<string[]>} objects the names of objects that begin so, for
 *   a sweep
 * @property {(sweep: Sweep) => Promise<string | undefined>} [sweep] deletes old objects that nobody
 *   keeps, and what an end in the midst of `put` has left of others. Looks at so many at most, and
 *   resolves with where the next one goes on, or with undefined if it has come to the end. What is
 *   being stored at the same time stays
 *
 * @property {() => Promise<void>} close ends all that it does; what is asked of it later is
 *   `UNAVAILABLE`
 */

/**
 * Bytes of UTF-8 of a task's, a process's or an object's name, and of a tenant and a context, which
 * may be empty.
 */
export const MAX_NAME = 256;
/** Tasks of a page, unless the filter says how many. */
export const DEFAULT_PAGE = 100;
/** Ms that storing an object may take. */
export const MAX_PUT = 600_000;
/** Ms for an answer. */
export const DEFAULT_TIMEOUT = 5000;

/**
 * The error of a backend that cannot do it now, and may be asked again.
 * @param {string} [why]
 * @param {unknown} [cause]
 */
export const unavailable = (why = 'The backend is closed', cause = undefined) =>
  new AbpError('UNAVAILABLE', why, { retryable: true, cause });

/**
 * The error of a record that was expected at a place which has another.
 * @param {string} task
 * @param {unknown} [cause]
 */
export const conflict = (task, cause) =>
  new AbpError('CONFLICT', `Another record of task ${task} came first`, { cause });

/**
 * The error of a question to a process that nobody hears.
 * @param {string} process
 */
export const noResponders = (process) =>
  new AbpError('NO_RESPONDERS', `Process ${process} cannot be reached`, { retryable: true });

/**
 * The error of an object that is not there.
 * @param {string} name
 */
export const objectNotFound = (name) =>
  new AbpError('OBJECT_NOT_FOUND', `Object ${name} does not exist`);

/**
 * The error of a question that was not answered in time.
 * @param {string} process
 * @param {number} ms
 */
export const noAnswer = (process, ms) =>
  new AbpError('TIMEOUT', `Process ${process} did not answer within ${ms} ms`, { retryable: true });

/** A lone surrogate. Databases cannot store it, and some end a text at NUL. */
const UNSTORABLE = /\p{Surrogate}|\0/u;

/**
 * Throws unless all of these can be stored.
 * @param {...unknown} texts
 */
export function requireTexts(...texts) {
  if (texts.every((text) => typeof text === 'string' && !UNSTORABLE.test(text))) return;
  throw new AbpError('INVALID_PARAMS', 'A text must be well-formed, without NUL');
}

/**
 * Refuses what cannot be the name of a task, a process or an object.
 * @param {unknown} name
 */
export function requireName(name) {
  requireTexts(name);
  if (name === '' || longer(/** @type {string} */ (name), MAX_NAME))
    throw new AbpError('INVALID_PARAMS', `A name has 1 to ${MAX_NAME} bytes`);
}

/**
 * Throws unless an index can have the entry.
 * @param {IndexEntry} entry
 */
export function requireEntry({ tenant, context, state = '', data }) {
  requireTexts(tenant, context, state, data);
  if (longer(tenant, MAX_NAME) || longer(context, MAX_NAME))
    throw new AbpError('INVALID_PARAMS', `A tenant or a context has at most ${MAX_NAME} bytes`);
}

/**
 * Whether a text has more bytes. Each character takes at most three: most texts need not be
 * counted.
 * @param {string} text
 * @param {number} limit
 */
const longer = (text, limit) =>
  text.length * 3 > limit && new TextEncoder().encode(text).length > limit;

/**
 * Refuses a record that is too large, or not well-formed.
 * @param {string} data of a record
 * @param {number} limit bytes
 */
export function requireRecord(data, limit) {
  requireTexts(data);
  if (longer(data, limit)) throw new AbpError('TOO_LARGE', `A record has at most ${limit} bytes`);
}

/** @typedef {{ time: number, task: string }} Place in a list */
/**
 * @typedef {IndexEntry & { task: string, seq?: number }} Indexed an entry, and the record after
 *   which it was written
 */

/**
 * An entry as a list has it.
 * @param {Indexed} entry
 */
export const listed = ({ seq: _seq, ...entry }) => entry;

/**
 * Whether one comes before another in a list: the latest first, then by name.
 * @param {Place} a
 * @param {Place} b
 */
export const isBefore = (a, b) => a.time > b.time || (a.time === b.time && a.task < b.task);

/**
 * Where a page ends.
 * @param {Place} last
 */
export const printCursor = ({ time, task }) => encodeURIComponent(JSON.stringify([time, task]));

/**
 * A page of at most so many, of which one more was looked for.
 * @template {Place} T
 * @param {T[]} found
 * @param {number} limit
 */
export function pageOf(found, limit) {
  const tasks = found.slice(0, limit);
  return found.length > limit ? { tasks, cursor: printCursor(tasks[limit - 1]) } : { tasks };
}

/**
 * @param {string | undefined} cursor
 * @returns {Place | undefined}
 */
export function readCursor(cursor) {
  if (cursor === undefined) return undefined;
  try {
    const [time, task] = JSON.parse(decodeURIComponent(cursor));
    if (typeof time === 'number' && typeof task === 'string') return { time, task };
  } catch {
    // It is refused below.
  }
  throw new AbpError('INVALID_PARAMS', 'The cursor does not belong to this list');
}
