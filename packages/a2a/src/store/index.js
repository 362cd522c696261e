/**
 * `@abp-bridge/a2a/store`: tasks that outlive their process. By default an agent has them in
 * memory; the backends of `@abp-bridge/a2a-store`, which build on this entry, keep them longer.
 *
 * How it is made. A task is a log of records on a backend (`backends`), and the log alone is
 * authoritative.
 * - `owner.js`: a task that this process works on. The core decides (src/abp_tasks.h, a table with
 *   `commits`); its decisions are queued, and appended one record at a time, where this process
 *   expects it. Holds the queue and the run.
 * - `replica.js`: reads a task's log. Every record is read here, at its owner, too, and then sent
 *   to clients; the core decides what a record means for the owner (`abp_task_read()`). It also
 *   stores cancels and push configurations for tasks of other processes.
 * - `records.js`: the format of records; `replay.js`: the events that a reader of a stream has
 *   missed.
 * - `store.js`: the tasks that are known here, their start and answers, and the other requests of a
 *   server.
 * - `membership.js`: the lease of this process, and which others are gone; `takeover.js`: takes
 *   over their tasks.
 * - `entries.js`: the index, from which lists are made; `retention.js`: deletes tasks that ended
 *   long ago.
 * - `push.js` and `telemetry.js` are separate options.
 *
 * One task: `begin` writes its entry and its duty, the owner asks the core, the record is appended
 * and read, its state is sent to clients, and its executor runs. A cancel, from any process, is
 * appended as a record; when the owner has read it, the core decides.
 */
import { AbpError } from 'abp-bridge/driver';
import { requireExactly } from '../exact-options.js';
import { TaskLogs } from './store.js';

export { memoryBackend } from './backends/memory.js';
export { pushNotifications } from './push.js';
export { openTelemetry } from './telemetry.js';
// For the implementation of backends.
export {
  DEFAULT_PAGE,
  DEFAULT_TIMEOUT,
  MAX_PUT,
  conflict,
  listed,
  noAnswer,
  noResponders,
  objectNotFound,
  pageOf,
  readCursor,
  requireEntry,
  requireName,
  requireRecord,
  unavailable,
} from './backends/backend.js';
export { localBackend } from './backends/local.js';
export { OrderedIndex } from './backends/ordered.js';
export { pause, within } from '../pause.js';

/** @import { RequestInfo } from '../task.js' */

/**
 * @typedef {object} TaskStoreOptions options of `taskStore`
 * @property {Backend} backend where the tasks are stored
 * @property {number} [term] ms without a sign of life after which a process is considered gone
 *   (15000)
 * @property {'fail' | 'rerun'} [onOrphan] the fate of a task whose process is gone: it fails, or
 *   `execute` is called again if `saveRequest` kept its request (`'fail'`)
 * @property {number} [retention] ms for which a task that has ended is kept, plus an hour at most;
 *   0 for ever (604800000)
 * @property {number} [maxOutbox] characters that may wait to be stored, of all tasks of the
 *   process; above it, new tasks are rejected, and emitting throws, with `RATE_LIMITED` (67108864)
 * @property {(request: RequestInfo) => object | undefined} [saveRequest] returns the parts of a
 *   request to store, for the executor that runs its task again: they become `ctx.request`. Headers
 *   may hold secrets, so nothing is stored without it
 */

/**
 * @typedef {object} TaskStore stores the tasks of an agent: the option `store` of
 *   `createTaskServer`
 * @property {(host: never) => unknown} attach called by the agent
 *
 * Types of the interface.
 * @typedef {import('./backends/backend.js').Backend} Backend
 * @typedef {import('./backends/backend.js').IndexEntry} IndexEntry
 * @typedef {import('./backends/backend.js').Indexed} Indexed
 * @typedef {import('./backends/backend.js').ListFilter} ListFilter
 * @typedef {import('./backends/backend.js').LogRecord} LogRecord
 * @typedef {import('./backends/backend.js').Place} Place
 * @typedef {import('./backends/local.js').Storage} Storage
 * @typedef {import('./backends/backend.js').Sweep} Sweep
 * @typedef {import('./push.js').Push} Push
 * @typedef {import('./push.js').PushOptions} PushOptions
 * @typedef {import('./telemetry.js').Telemetry} Telemetry
 */

/** @type {import('abp-bridge/driver').Kinds<TaskStoreOptions>} */
const OPTIONS = {
  backend: 'an object',
  maxOutbox: 'a number',
  onOrphan: '"fail" or "rerun"',
  retention: 'a number',
  saveRequest: 'a function',
  term: 'a number',
};

/**
 * Keeps tasks on a backend, so that they outlive their process, and any process on the same backend
 * serves them.
 * @param {TaskStoreOptions} options
 * @returns {TaskStore}
 */
export function taskStore(options) {
  requireExactly('taskStore', options, OPTIONS);
  const {
    backend,
    term = 15_000,
    onOrphan = 'fail',
    retention = 604_800_000,
    maxOutbox = 64 << 20,
    saveRequest,
  } = options;
  if (typeof backend?.append !== 'function')
    throw new AbpError('INVALID_PARAMS', 'taskStore needs a backend');
  return {
    attach: (/** @type {import('../server.js').Parts} */ parts) =>
      new TaskLogs(parts, { backend, term, onOrphan, retention, maxOutbox, saveRequest }),
  };
}
