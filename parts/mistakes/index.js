/** The messages about mistakes. js/common/development.js loads them with the first mistake. */
export { warn } from './warnings.js';
export * from './diagnosis.js';
export * from './check-agent.js';
export { warnOfUnread } from './unread-options.js';
export * from './app.js';
export { explain } from './explain.js';
export * from './unsent.js';
