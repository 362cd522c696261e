import { inAnotherTurn } from './breathe.js';
import { invokeReportingErrors } from './errors.js';
import { cloneOf } from './copy.js';

/**
 * The longest wait of a report for the end of a turn, in ms: code that computes may not let it end.
 */
const LONGEST = 50;

/**
 * Limits frequent reports. In each turn of the event loop it sends the first report at once, and
 * the last one when the turn is over.
 * @template T
 * @param {(report: T) => void} send
 */
export function latestOf(send) {
  /** @type {T | undefined} the waiting report */
  let last;
  let until = 0;
  /** Sends the waiting report now. */
  const flush = () => {
    const report = last;
    last = undefined;
    until = 0;
    if (report === undefined) return;
    until = performance.now() + LONGEST;
    inAnotherTurn(flush);
    invokeReportingErrors(send, report);
  };
  const add = (/** @type {T} */ report) => {
    last = report;
    if (performance.now() > until) flush();
    else last = cloneOf(report);
  };
  return { add, flush };
}
