/**
 * The exports of `abp-bridge/keys`: stores of keys that outlive the app, in a browser and in Node.
 */
export { indexedDBKeys } from './indexeddb.js';
export { sqliteKeys } from './sqlite.js';

/** @typedef {import('./stored-keys.js').KeysOptions} KeysOptions The options of a store. */
