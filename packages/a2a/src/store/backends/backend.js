/**
 * The storage of tasks that outlive a process: the contract of a backend, and functions that all
 * backends share.
 *
 * A task is a log of records, and the log alone is authoritative: a record is stored where its
 * writer expects it, or not at all. Other data (leases, an index, objects) may be lost or late
 * without wrong results for clients. packages/a2a-store/tests/contracts/backend.js tests this
 * contract; a custom backend must pass it, too.
 */
import { AbpError } from 'abp-bridge/driver';

/**
 * @typedef {object} LogRecord a change of a task in its log
 * @property {number} seq its number. The numbers of a task's records increase, with or without
 *   gaps; 0 comes before all of them
 * @property {string} data
 *
 * @typedef {object} IndexEntry the data of a task that lists need
 * @property {string} tenant may be empty
 * @property {string} context
 * @property {number} time when the task was last changed, in ms since 1970
 * @property {string} [state] of the task, by which lists can be filtered. An entry without one is
 *   not counted
 * @property {string} data other members for lists
 *
 * @typedef {object} Sweep the objects that a backend checks, to delete those that are not kept
 * @property {number} age ms since an object was last stored; more than {@link MAX_PUT}
 * @property {number} limit number of pieces that are checked
 * @property {(name: string) => Promise<boolean>} keeps called for each whole object that is old
 *   enough
 * @property {string} [after] where the previous sweep ended
 *
 * @typedef {object} ListFilter the tasks of a list, the latest first
 * @property {string} tenant
 * @property {string} [context]
 * @property {string} [state]
 * @property {number} [since] omits tasks that were last changed earlier: ms since 1970
 * @property {number} [limit] number of tasks (100)
 * @property {string} [cursor] of the previous page
 */

/**
 * Every method rejects with an {@link AbpError}: `UNAVAILABLE`, retryable, when nothing has been
 * done; `INVALID_PARAMS` for a name that is empty or longer than {@link MAX_NAME}, and for text
 * with NUL or a lone surrogate.
 * @typedef {object} Backend
 *
 * @property {number} maxRecord bytes of UTF-8 that a record may have. A longer event goes into an
 *   object
 * @property {boolean} [alone] whether it has one user, the only one that knows its tasks: records
 *   are not kept, since this user reads each as it writes it
 *
 * @property {(task: string, data: string, expected: number) => Promise<number> | number} append
 *   stores a record if the latest one of the task is `expected` (0 for none), and returns its
 *   number: from then on it is as durable as the backend promises. Rejects with `CONFLICT` when
 *   another record is the latest, and this one will never be stored; with `UNACKNOWLEDGED` when it
 *   is unknown whether it was stored: read the log; with `TOO_LARGE`
 * @property {(task: string, after: number, limit?: number) => Promise<LogRecord[]>} read returns
 *   the records after a number, in order: all, or the first `limit` of them. They include every
 *   record that was stored before the call, by any process
 * @property {(task: string, after: number, onRecord: (record: LogRecord) => void) => () => void}
 *   watch calls `onRecord` for each record after a number, in order, without gap or repeat,
 *   including future ones, but not before it has returned. Returns a function that stops it at
 *   once. While the backend is away, records wait until it is back
 * @property {(task: string) => Promise<void>} forget deletes a task's log and its entry in the
 *   index
 *
 * @property {(process: string, left?: boolean) => Promise<void>} renew shows that a process lives,
 *   or that it has `left` and no process need wait for it. It must reach the backend now or never:
 *   a late renewal would be false
 * @property {(process: string) => Promise<number>} lease a number that each renewal changes; 0 if
 *   there has been none. A process that sees it unchanged for a term of its own clock may take the
 *   tasks over
 * @property {(limit: number) => Promise<{ process: string, number: number, left: boolean }[]>}
 *   leases that were not renewed for longest, at most `limit`. By them other processes find the
 *   tasks that a process has left: they are as durable as the logs, until they are released
 * @property {(process: string, number: number) => Promise<boolean>} release deletes a lease if that
 *   is still its number, or if it does not exist; returns false and deletes nothing if the process
 *   has renewed it since
 *
 * @property {(process: string, answer: (text: string) => string | Promise<string>) => Promise<() =>
 *   Promise<void>>} serve answers questions to a process. Returns a function that stops it
 * @property {(process: string, text: string, options?: { timeout?: number }) => Promise<string>}
 *   ask sends a question to a process. Rejects with `NO_RESPONDERS`, at once, when the process
 *   serves no questions, which does not mean that it is dead; with `TIMEOUT` after `timeout` ms
 *   (5000); with `OPERATION_FAILED` when the answer throws
 *
 * @property {(task: string, entry: IndexEntry, seq: number) => Promise<void>} note enters a task in
 *   the index as it is after a record; an entry of a later record stays, and one of the same record
 *   is replaced
 * @property {(filter: ListFilter) => Promise<{ tasks: (IndexEntry & { task: string })[], cursor?:
 *   string }>} list returns a tenant's tasks, the last changed first, and a cursor if there are
 *   more. A task that changes between two pages may be in both or in none
 * @property {(filter: ListFilter) => Promise<number>} count returns the number of tasks with a
 *   state in a list, on all pages
 *
 * @property {(name: string, bytes: Uint8Array) => Promise<void>} put stores an object, or replaces
 *   it. It fails after {@link MAX_PUT} at the latest
 * @property {(name: string) => Promise<Uint8Array>} get rejects with `OBJECT_NOT_FOUND`
 * @property {(name: string) => Promise<void>} remove deletes an object, if it exists
 * @property {(prefix: string) => Promise<string[]>} objects returns the names of objects with a
 *   prefix, for a sweep
 * @property {(sweep: Sweep) => Promise<string | undefined>} [sweep] deletes old objects that are
 *   not kept, and pieces left by a `put` that was interrupted. Checks at most `limit` pieces, and
 *   resolves with the place to continue, or with undefined at the end. Objects that are being
 *   stored stay
 *
 * @property {() => Promise<void>} close ends all activity; later calls reject with `UNAVAILABLE`
 */

/**
 * Bytes of UTF-8 in the name of a task, a process or an object, and in a tenant and a context,
 * which may be empty.
 */
export const MAX_NAME = 256;
/** Tasks on a page, unless the filter has a limit. */
export const DEFAULT_PAGE = 100;
/** Ms that storing an object may take. */
export const MAX_PUT = 600_000;
/** Default ms to wait for an answer. */
export const DEFAULT_TIMEOUT = 5000;

/**
 * The error of a backend that is away; the call may be repeated.
 * @param {string} [why]
 * @param {unknown} [cause]
 */
export const unavailable = (why = 'The backend is closed', cause = undefined) =>
  new AbpError('UNAVAILABLE', why, { retryable: true, cause });

/**
 * The error of a record whose expected place is taken.
 * @param {string} task
 * @param {unknown} [cause]
 */
export const conflict = (task, cause) =>
  new AbpError('CONFLICT', `Another record of task ${task} came first`, { cause });

/**
 * The error of a question to a process that serves none.
 * @param {string} process
 */
export const noResponders = (process) =>
  new AbpError('NO_RESPONDERS', `Process ${process} cannot be reached`, { retryable: true });

/**
 * The error of an object that does not exist.
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
 * Throws unless a text can be the name of a task, a process or an object.
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
 * True if a text has more bytes. A character takes three at most, so most texts need not be
 * counted.
 * @param {string} text
 * @param {number} limit
 */
const longer = (text, limit) =>
  text.length * 3 > limit && new TextEncoder().encode(text).length > limit;

/**
 * Rejects a record that is too large, or not well-formed.
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
 * An entry as lists have it.
 * @param {Indexed} entry
 */
export const listed = ({ seq: _seq, ...entry }) => entry;

/**
 * True if one entry precedes another in a list: the latest first, then by name.
 * @param {Place} a
 * @param {Place} b
 */
export const isBefore = (a, b) => a.time > b.time || (a.time === b.time && a.task < b.task);

/**
 * The cursor for the place where a page ends.
 * @param {Place} last
 */
export const printCursor = ({ time, task }) => encodeURIComponent(JSON.stringify([time, task]));

/**
 * A page of limited length, from a search for one entry more.
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
    // It is rejected below.
  }
  throw new AbpError('INVALID_PARAMS', 'The cursor does not belong to this list');
}
