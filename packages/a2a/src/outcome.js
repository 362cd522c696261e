/**
 * What became of the work of a task that did not complete. It is metadata of its status message, in
 * the words of ABP (docs/protocol.md#what-became-of-it).
 */
import { abp, isRecord } from 'abp-bridge/driver';

/** @import { Message, State } from './dialects.js' */

/**
 * @typedef {object} Said an executor's statement on its work
 * @property {unknown} [report]
 * @property {{ message: string }} [progress]
 */
/** @typedef {import('abp-bridge/driver').CallOutcome} CallOutcome */

/**
 * The outcome of a task's work, as metadata. Members without a value are omitted.
 * @param {abp.Fate} fate
 * @param {Said} [said]
 */
export const outcomeOf = (fate, { report, progress } = {}) => ({
  outcome: abp.FATES[fate],
  ...(report !== undefined && { report }),
  ...(progress && { progress }),
});

/**
 * The outcome to assume for a task that did not succeed, when its agent reports none.
 * @type {Partial<Record<State, CallOutcome>>}
 */
const UNTOLD = { canceled: 'unknown', failed: 'failed', rejected: 'failed' };

/**
 * Reads an agent's report on the work of a task.
 * @param {State} state
 * @param {Message} [message] of its status
 * @returns {{ outcome?: CallOutcome, report?: unknown, progress?: any }}
 */
export function readOutcome(state, message) {
  const untold = UNTOLD[state];
  if (!untold) return {};
  const { outcome, report, progress } = message?.metadata ?? {};
  return {
    outcome: abp.FATES.indexOf(outcome) > 0 ? outcome : untold,
    report,
    progress: isRecord(progress) ? progress : undefined,
  };
}
