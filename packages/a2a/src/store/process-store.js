/** The store of an agent without the option `store`. */
import { processBackend } from './backends/memory.js';
import { TaskLogs } from './store.js';

/** @import { Parts } from '../server.js' */

/**
 * No other process checks this one's lease, and a task that is no longer shown is forgotten.
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
