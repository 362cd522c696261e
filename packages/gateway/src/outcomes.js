/** The outcome of a call's work, as a sentence for a model. */
import { progressText } from './progress.js';
import { cleanText } from './texts.js';

/** The member of MCP's results and tasks for it, in the protocol's words: `{ outcome, report }`. */
export const OUTCOME = 'abp-bridge/outcome';
/** Characters of an app's report on its own work. */
const MAX_SAID = 500;

/**
 * @typedef {object} Became
 * @property {string} [outcome] the word of the protocol
 * @property {{ applied?: unknown, remaining?: unknown }} [report] of the handler: `{ applied,
 *   remaining }`
 * @property {import('./progress.js').Info} [progress] the latest
 */

/** The meaning of each outcome, and advice. @type {Record<string, (done: string) => string>} */
const SENTENCES = {
  unstarted: () => 'It never began, so nothing was done: it may be called again.',
  stopped: (done) => `It stopped ${done || 'before its end'}. What it had done stands.`,
  finished: (done) =>
    `It ran to its end all the same${done && `, ${done}`}: all its effects stand, only its result was dropped. Do not call it again.`,
  running: (done) =>
    `It was told to stop and has not yet${done && `; it was last heard of ${done}`}. It may still change something: look before you call it again.`,
  unknown: (done) =>
    `Whether its work was done is not known${done && `; it was last heard of ${done}`}: find out before you call it again.`,
  failed: (done) => (done ? `It failed ${done}.` : ''),
};

/** @param {unknown} said by an app, of any form */
function words(said) {
  if (Array.isArray(said)) return String(said.length);
  return cleanText(typeof said === 'string' ? said : JSON.stringify(said ?? undefined), MAX_SAID);
}

/** @param {unknown} said */
const countOf = (said) =>
  Array.isArray(said) ? said.length : Number.isFinite(said) ? Number(said) : undefined;

/**
 * The progress of the work, as the end of a sentence; empty if not reported.
 * @param {Became} became
 */
function reached({ report, progress }) {
  const { applied, remaining } = report ?? {};
  const [done, left] = [countOf(applied), countOf(remaining)];
  const stage = progress && progressText({ stage: progress.stage, status: progress.status });
  const at = stage ? ` (${stage})` : '';
  if (done !== undefined && left !== undefined) return `after ${done} of ${done + left}${at}`;
  const said = [words(applied), remaining !== undefined && `remaining: ${words(remaining)}`];
  if (applied !== undefined || remaining !== undefined) {
    return `after ${said.filter(Boolean).join('; ')}`;
  }
  const { progress: count, total, percentage } = progress ?? {};
  if (Number.isFinite(count) && total > 0) return `at ${count} of ${total}${at}`;
  return Number.isFinite(percentage) ? `at ${Math.round(percentage)} %${at}` : '';
}

/**
 * @param {Became} became
 * @returns {string} empty if nothing is known
 */
export const sentenceOf = (became) =>
  Object.hasOwn(SENTENCES, became.outcome ?? '')
    ? SENTENCES[/** @type {string} */ (became.outcome)](reached(became))
    : '';
