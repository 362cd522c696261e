/** What objects of further options may have. It is looked at where there is such an object. */

/** The kinds of `Limits` in js/driver/abp-core.js */
// prettier-ignore
export const LIMITS = {
  firstNumber: 'a number', grace: 'a number', heartbeat: 'a number', maxCalls: 'a number', maxConcurrent: 'a number',
  maxControlLength: 'a number', maxIdLength: 'a number', probe: 'a number', rememberFor: 'a number', remembered: 'a number',
  streamBytes: 'a number', streamChunks: 'a number',
};
/** The kinds of `Reconnecting` in js/agent/retry.js */
// prettier-ignore
export const RECONNECTING = {
  attempts: 'a number', delay: 'a number', maxDelay: 'a number', reload: 'a boolean or a function',
};
