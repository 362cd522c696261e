/**
 * The outcome of a call that did not succeed, `metadata.outcome` of its response: it never ran; it
 * stopped because of the cancel; it ran to its end, so its effects stand; it still ran when the
 * response was sent; its outcome is unknown; it failed by itself.
 */
export type CallOutcome = 'unstarted' | 'stopped' | 'finished' | 'running' | 'unknown' | 'failed';

/** The state of a call, as far as it is known: its outcome, and its handler's last report. */
export type CallFate = {
  /** Also `finished` for a call that succeeded. */
  outcome: CallOutcome;
  /** The last report of its handler. */
  report?: any;
  /** Its last progress. */
  progress?: import('../wire/messages.js').ProgressInfo;
  /** Why its state is not known. */
  error?: import('../common/errors.js').ErrorObject;
};
