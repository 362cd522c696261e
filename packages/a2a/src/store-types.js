/**
 * Types that this package and `a2a-store` know of each other. Those of this one:
 * @typedef {import('./dialects.js').Artifact} Artifact
 * @typedef {import('./dialects.js').Dialect} Dialect
 * @typedef {import('./dialects.js').Message} Message
 * @typedef {import('./dialects.js').Metadata} Metadata
 * @typedef {import('./dialects.js').Status} Status
 * @typedef {import('./dialects.js').Task} Task
 * @typedef {import('./lists.js').Listed} Listed
 * @typedef {import('./outcome.js').Said} Said
 * @typedef {import('./repeats.js').Mark} Mark
 * @typedef {import('./runs.js').ExecutorContext} ExecutorContext
 * @typedef {import('./server.js').Parts} Parts
 * @typedef {import('./shown-tasks.js').Entry} Entry
 * @typedef {import('./task.js').RequestInfo} RequestInfo
 * @typedef {import('./task.js').StoredTask} StoredTask
 *
 * Those of the store:
 * @typedef {import('../../a2a-store/src/backends/backend.js').ListFilter} ListFilter
 * @typedef {import('../../a2a-store/src/backends/backend.js').Place} Place
 * @typedef {import('../../a2a-store/src/index.js').TaskStore} TaskStore
 * @typedef {import('../../a2a-store/src/owner.js').Owner} Owner
 * @typedef {import('../../a2a-store/src/owner.js').Prompt} Prompt
 * @typedef {import('../../a2a-store/src/push.js').Push} Push
 * @typedef {import('../../a2a-store/src/push.js').PushConfig} PushConfig
 * @typedef {import('../../a2a-store/src/push.js').Pushes} Pushes
 * @typedef {import('../../a2a-store/src/records.js').Origin} Origin
 * @typedef {import('../../a2a-store/src/records.js').TaskEvent} TaskEvent
 * @typedef {import('../../a2a-store/src/replay.js').Numbered} Numbered
 * @typedef {import('../../a2a-store/src/replay.js').Replay} Replay
 * @typedef {import('../../a2a-store/src/replica.js').Replica} Replica
 * @typedef {import('../../a2a-store/src/store.js').TaskLogs} TaskLogs
 * @typedef {import('../../a2a-store/src/telemetry.js').Reports} Reports
 * @typedef {import('../../a2a-store/src/telemetry.js').Telemetry} Telemetry
 */
export {};
