/** Calls as tasks, in the words of both versions of MCP. */
import { OUTCOME } from './outcomes.js';
import { progressText } from './progress.js';
import { PATIENCE_WITH_CLIENTS } from './runs.js';
import { cleanText } from './texts.js';

/** How often a client should ask for a task, in ms. */
const POLL_INTERVAL = 1000;

/** @typedef {import('./run.js').Run} Run */

/** @param {Run} run */
function statusMessage(run) {
  const words = run.result
    ? cleanText(run.result.isError ? run.result.content[0]?.text : '', 500)
    : run.progress && progressText(run.progress);
  return words ? { statusMessage: words } : {};
}

/** What became of the work of one that did not succeed. @param {Run} run */
function outcomeOf({ result }) {
  const told = result?._meta?.[OUTCOME];
  return told ? { _meta: { [OUTCOME]: told } } : {};
}

/** How long it is kept from its creation on, if nobody asks again. @param {Run} run */
const timeToLive = (run) => Math.round(performance.now() - run.began) + PATIENCE_WITH_CLIENTS;

/** @param {Run} run */
const taskOf = (run) => ({
  taskId: run.id,
  createdAt: run.createdAt.toISOString(),
  lastUpdatedAt: run.updatedAt.toISOString(),
  ...statusMessage(run),
  ...outcomeOf(run),
});

/** A task of 2025-11-25. @param {Run} run */
export function legacyTask(run) {
  // There, a tool's own failure is a failed task.
  const failed = run.state === 'completed' && run.result?.isError;
  return {
    ...taskOf(run),
    status: failed ? 'failed' : run.state,
    ttl: timeToLive(run),
    pollInterval: POLL_INTERVAL,
  };
}

/** A task of 2026-07-28. @param {Run} run */
export const extensionTask = (run) => ({
  ...taskOf(run),
  status: run.state,
  ttlMs: timeToLive(run),
  pollIntervalMs: POLL_INTERVAL,
});
