/** The store of an agent that is given none. */
import { processBackend } from './backends/memory.js';
import { TaskLogs } from './store.js';

/** @import { Parts } from '../server.js' */

/**
 * Nobody else looks at the lease of its process, and a task is forgotten when it is shown no more.
 */
const OPTIONS = /** @type {const} */ ({
  term: Infinity,
  onOrphan: 'fail',
  retention: 0,
  maxOutbox: Infinity,
});

export const processStore = {
  attach: (/** @type {Parts} */ parts) =>
    new TaskLogs(parts, { ...OPTIONS, backend: processBackend() }),
};
