/**
 * What the package `a2a-store` imports from here, beside the table of tasks (tasks-core.js) and
 * types (store-types.js).
 */
export { STATES, DIALECTS, getField, readState } from './dialects.js';
export { requireExactly } from './exact-options.js';
export { newId } from './ids.js';
export { outcomeOf } from './outcome.js';
export { RETRY, pause, within } from './pause.js';
export { away, refusal } from './refusals.js';
export { reused } from './repeats.js';
export { invalid, requestInfo, timeOf } from './requests.js';
export { MAX_HISTORY_MESSAGES, statusOf, withOutcome } from './task.js';
