/**
 * What became of the work of a task that has not completed: in the metadata of the message of its
 * status, in the words of ABP (docs/protocol.md#what-became-of-it).
 */
import { abp, isRecord } from 'abp-bridge/driver';

/** @import { Message, State } from './dialects.js' */

/**
 * @typedef {object} Said what an executor said of its work
 * @property {unknown} [report]
 * @property {{ message: string }} [progress]
 */
/** @typedef {import('abp-bridge/driver').CallOutcome} CallOutcome */

/**
 * What became of a task's work, as metadata. Members without a value are left out.
 * @param {abp.Fate} fate
 * @param {Said} [said]
 */
export const outcomeOf = (fate, { report, progress } = {}) => ({
  outcome: abp.FATES[fate],
  ...(report !== undefined && { report }),
  ...(progress && { progress }),
});

/**
 * The states of tasks that did not succeed, and what is known of the work where their agent does
 * not say.
 * @type {Partial<Record<State, CallOutcome>>}
 */
const UNTOLD = { canceled: 'unknown', failed: 'failed', rejected: 'failed' };

/**
 * Reads what an agent says of the work of a task.
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
