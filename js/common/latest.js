import { inAnotherTurn } from './breathe.js';
import { invokeReportingErrors } from './errors.js';
import { cloneOf } from './copy.js';

/** How long a report waits for the end of a turn, in ms: code that computes may not let it end. */
const LONGEST = 50;

/**
 * Sends the latest of what is reported more often than anybody can read: in each turn of the event
 * loop the first report at once, and when it is over the last one.
 * @template T
 * @param {(report: T) => void} send
 */
export function latestOf(send) {
  /** @type {T | undefined} what waits */
  let last;
  let until = 0;
  /** Sends what waits: also for who will not report any more. */
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
