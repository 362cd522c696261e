/**
 * A2A: tasks of agents, with streams and cancels.
 *
 * How an agent is made. A request comes in by a door (http.js, port.js), and operations.js answers
 * it, one method for each operation of the protocol. What a client sends or cancels goes into the
 * log of its task, in a store: there is always one (store/store.js), on a backend of the user's or
 * within the process (store/process-store.js). An owner (store/owner.js) asks the core's table what
 * to do about it, and does as its verdict says: it stores a state, begins a run of the executor
 * (runs.js), or aborts it. What was stored is read (store/replica.js) and told: shown-tasks.js has
 * what clients see of a task, and sends each event to every stream. So nothing is told that was not
 * stored, and one place tells it. docs/design.md follows one task from its request to its last
 * event.
 *
 * The core decides what becomes of a task, how long it is remembered, and what a cancel is
 * answered. Held here are the executor and its contexts, the messages and artifacts of tasks, and
 * the answers of those who wait.
 *
 * How a client is made. client.js is what its users call. With the first call it finds the agent
 * (remote-agent.js): it reads the card over a connection (client-http.js, port.js), and takes the
 * dialect that both speak (dialects.js). A message that is sent is a stream (task-stream.js), which
 * asks the core's table at each step what to do: to open the stream, to ask for the task, to wait,
 * or to end, and whether an event still counts. Held here are the task as the stream has shown it,
 * and why it failed.
 */
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
 * @typedef {import('./dialects.js').Dialect} Dialect
 * @typedef {import('./dialects.js').Event} Event
 * @typedef {import('./dialects.js').Message} Message
 * @typedef {import('./dialects.js').Metadata} Metadata
 * @typedef {import('./dialects.js').Operation} Operation
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
 * @typedef {import('./runs.js').ExecutorContext} ExecutorContext
 * @typedef {import('./task.js').RequestInfo} RequestInfo
 * @typedef {import('./task.js').Said} Said
 * @typedef {import('./task.js').StoredTask} StoredTask
 * @typedef {import('./task-stream.js').TaskStream} TaskStream
 * @typedef {import('./tasks-core.js').TaskLimits} TaskLimits
 */
