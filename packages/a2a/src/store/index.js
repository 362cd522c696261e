/**
 * `@abp-bridge/a2a/store`: tasks that outlive their process. An agent has them in memory; the
 * backends of `@abp-bridge/a2a-store`, which stand on this, keep them longer.
 *
 * How it is made. A task is a log of records on a backend (`backends`), and nothing else is true
 * about it.
 * - `owner.js`: a task that this process works on. The core decides (src/abp_tasks.h, a table with
 *   `commits`); what it decides waits in a queue, and is appended one record at a time, where this
 *   process expects it. Held here: the queue and the run.
 * - `replica.js`: a task as its log has it. Every record is read here, at its owner, too, and then
 *   told; the core says what a record means for the owner (`abp_task_read()`). It also stores what
 *   others want of a task: cancels, push configurations.
 * - `records.js`: what a record is, and `replay.js`: what a reader of a stream has missed.
 * - `store.js`: the tasks that are known here, how one begins or is answered, and what else a
 *   server asks of them.
 * - `membership.js`: the lease of this process, and which others are gone; `takeover.js`: what
 *   those have left.
 * - `entries.js`: the index, from which lists are made; `retention.js`: what ended long ago is
 *   deleted.
 * - `push.js` and `telemetry.js` are options of their own.
 *
 * One task: `begin` writes its entry and its duty, the owner asks the core, the record is appended
 * and read, its state is told, and its executor runs. A cancel, at whichever process, is appended
 * as a record; when the owner has read it, the core decides.
 */
import { AbpError } from 'abp-bridge/driver';
import { requireExactly } from '../exact-options.js';
import { TaskLogs } from './store.js';

export { memoryBackend } from './backends/memory.js';
export { pushNotifications } from './push.js';
export { openTelemetry } from './telemetry.js';
// What backends are made of.
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
 * @typedef {object} TaskStoreOptions what `taskStore` may be given
 * @property {Backend} backend where the tasks are kept
 * @property {number} [term] ms after which a process that shows no sign of life is taken for gone
 *   (15000)
 * @property {'fail' | 'rerun'} [onOrphan] what becomes of a task whose process is gone: it fails,
 *   or `execute` is called again where `saveRequest` kept its request (`'fail'`)
 * @property {number} [retention] ms for which a task that has ended is kept, and at most an hour
 *   longer; 0 is for ever (604800000)
 * @property {number} [maxOutbox] characters of what waits to be stored, of all tasks of the
 *   process; then new tasks are refused, and what executors emit throws, with `RATE_LIMITED`
 *   (67108864)
 * @property {(request: RequestInfo) => object | undefined} [saveRequest] what is stored of a
 *   request, for the executor that runs its task again: it becomes `ctx.request`. Headers may hold
 *   secrets, so nothing is stored without it
 */

/**
 * @typedef {object} TaskStore where an agent keeps its tasks: the option `store` of
 *   `createTaskServer`
 * @property {(host: never) => unknown} attach is called by the agent
 *
 * The types that are met on the way.
 * @typedef {import('./backends/backend.js').Backend} Backend
 * @typedef {import('./backends/backend.js').IndexEntry} IndexEntry
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
 * answers for them.
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
