/** A2A: tasks of agents, with streams and cancels. */
export { createTaskClient } from './client.js';
export { createTaskServer } from './server.js';

/**
 * The types that are met on the way.
 * @typedef {import('./client.js').ClientLimits} ClientLimits
 * @typedef {import('./client.js').ClientOptions} ClientOptions
 * @typedef {import('./client.js').Sendable} Sendable
 * @typedef {import('./client.js').SendOptions} SendOptions
 * @typedef {import('./client.js').TaskClient} TaskClient
 * @typedef {import('./dialects.js').Artifact} Artifact
 * @typedef {import('./dialects.js').Event} Event
 * @typedef {import('./dialects.js').Message} Message
 * @typedef {import('./dialects.js').Metadata} Metadata
 * @typedef {import('./dialects.js').Part} Part
 * @typedef {import('./dialects.js').State} State
 * @typedef {import('./dialects.js').Status} Status
 * @typedef {import('./dialects.js').Task} Task
 * @typedef {import('./reply.js').Caller} Caller
 * @typedef {import('./server.js').Access} Access
 * @typedef {import('./server.js').Agent} Agent
 * @typedef {import('./server.js').ServerLimits} ServerLimits
 * @typedef {import('./server.js').TaskServer} TaskServer
 * @typedef {import('./server.js').TaskServerOptions} TaskServerOptions
 * @typedef {import('./task.js').ExecutorContext} ExecutorContext
 * @typedef {import('./task.js').RequestInfo} RequestInfo
 * @typedef {import('./task.js').Said} Said
 * @typedef {import('./task.js').StoredTask} StoredTask
 * @typedef {import('./task-stream.js').TaskStream} TaskStream
 * @typedef {import('./tasks-core.js').TaskLimits} TaskLimits
 */
