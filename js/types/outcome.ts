/**
 * What became of the work of a call that did not succeed, `metadata.outcome` of its response: it never ran; it ended because
 * of the cancel; it ran to its end, so that its effects stand; it still ran when the response was sent; nobody knows; it
 * failed by itself.
 */
export type CallOutcome = 'unstarted' | 'stopped' | 'finished' | 'running' | 'unknown' | 'failed';
