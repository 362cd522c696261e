/** What `abp-bridge/keys` exports: stores of keys that outlive the app, in a browser and in Node. */
export { indexedDBKeys } from './indexeddb.js';
export { sqliteKeys } from './sqlite.js';

/** @typedef {import('./stored-keys.js').KeysOptions} KeysOptions What a store remembers. */
