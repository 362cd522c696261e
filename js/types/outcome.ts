/**
 * What became of the work of a call that did not succeed, `metadata.outcome` of its response: it
 * never ran; it ended because of the cancel; it ran to its end, so that its effects stand; it still
 * ran when the response was sent; nobody knows; it failed by itself.
 */
export type CallOutcome = 'unstarted' | 'stopped' | 'finished' | 'running' | 'unknown' | 'failed';

/** What is known of a call by now: its outcome, and what its handler said of its work. */
export type CallFate = {
  /** `finished` of a call that succeeded, too. */
  outcome: CallOutcome;
  /** What its handler reported last. */
  report?: any;
  /** Its last progress. */
  progress?: import('../wire/messages.js').ProgressInfo;
  /** Why it cannot be told. */
  error?: import('../common/errors.js').ErrorObject;
};
