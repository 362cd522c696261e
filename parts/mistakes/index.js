/**
 * The development part: what is said of mistakes. js/common/development.js loads it with the first
 * one.
 */
export { warn } from './warnings.js';
export * from './diagnosis.js';
export * from './check-agent.js';
export { warnOfUnread } from './unread-options.js';
export * from './app.js';
export { explain } from './explain.js';
export * from './unsent.js';
