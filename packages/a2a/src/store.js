/**
 * The store of an agent, which has one in any case. It is a package of its own, `a2a-store`, and
 * this is the only file here that imports it.
 */
export { processStore } from '../../a2a-store/src/process-store.js';

/**
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
