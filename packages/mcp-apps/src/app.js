/**
 * The entry `@abp-bridge/mcp-apps/app`, in one file with the core inside: for views that are apps,
 * too.
 */
export * from 'abp-bridge';
export { toolsOf } from './tools.js';
export { applyStyles, createView } from './view.js';
