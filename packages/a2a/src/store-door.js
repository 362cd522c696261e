/** All that the package `a2a-store` imports from here. */
export { STATES, DIALECTS, getField, readState } from './dialects.js';
export { requireExactly } from './exact-options.js';
export { newId } from './ids.js';
export { outcomeOf } from './outcome.js';
export { RETRY, pause, within } from './pause.js';
export { away, refusal } from './refusals.js';
export { reused } from './repeats.js';
export { invalid, requestInfo, timeOf } from './requests.js';
export { MAX_HISTORY_MESSAGES, statusOf, withOutcome } from './task.js';
export * as core from './tasks-boundary.js';
export { TaskTable, ended } from './tasks-core.js';

/**
 * @typedef {import('./dialects.js').Artifact} Artifact
 * @typedef {import('./dialects.js').Dialect} Dialect
 * @typedef {import('./dialects.js').Message} Message
 * @typedef {import('./dialects.js').Metadata} Metadata
 * @typedef {import('./dialects.js').Status} Status
 * @typedef {import('./dialects.js').Task} Task
 * @typedef {import('./lists.js').Listed} Listed
 * @typedef {import('./outcome.js').Said} Said
 * @typedef {import('./repeats.js').Mark} Mark
 * @typedef {import('./runs.js').ExecutorContext} ExecutorContext
 * @typedef {import('./server.js').Parts} Parts
 * @typedef {import('./shown-tasks.js').Entry} Entry
 * @typedef {import('./task.js').RequestInfo} RequestInfo
 * @typedef {import('./task.js').StoredTask} StoredTask
 */
