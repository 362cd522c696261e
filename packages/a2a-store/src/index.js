/**
 * `@abp-bridge/a2a-store`: backends that store the tasks of A2A agents, so that they outlive their
 * process.
 *
 * How it is made. A backend keeps logs of tasks, an index of them, the leases of processes, and
 * objects, as `Backend` of `@abp-bridge/a2a/store` requires; that package knows what a log means.
 * `sqlite.js` keeps all of it in a file, for processes of one machine; `nats.js` in a cluster.
 */
export { memoryBackend, openTelemetry, pushNotifications, taskStore } from '@abp-bridge/a2a/store';
export { natsBackend } from './nats.js';
export { sqliteBackend } from './sqlite.js';

/**
 * Types of the interface.
 * @typedef {import('@abp-bridge/a2a/store').Backend} Backend
 * @typedef {import('@abp-bridge/a2a/store').IndexEntry} IndexEntry
 * @typedef {import('@abp-bridge/a2a/store').ListFilter} ListFilter
 * @typedef {import('@abp-bridge/a2a/store').LogRecord} LogRecord
 * @typedef {import('@abp-bridge/a2a/store').Push} Push
 * @typedef {import('@abp-bridge/a2a/store').PushOptions} PushOptions
 * @typedef {import('@abp-bridge/a2a/store').Sweep} Sweep
 * @typedef {import('@abp-bridge/a2a/store').TaskStore} TaskStore
 * @typedef {import('@abp-bridge/a2a/store').TaskStoreOptions} TaskStoreOptions
 * @typedef {import('@abp-bridge/a2a/store').Telemetry} Telemetry
 */
