/**
 * A2A: tasks of agents, with streams and cancels.
 *
 * How an agent is made. A request arrives by http.js or port.js, and operations.js answers it, with
 * one method for each operation of the protocol. A client's message or cancel is appended to the
 * log of its task, in a store: there is always one (store/store.js), on the user's backend or
 * within the process (store/process-store.js). An owner (store/owner.js) asks the core's table for
 * a verdict and follows it: it stores a state, begins a run of the executor (runs.js), or aborts
 * it. Stored records are read (store/replica.js) and sent: shown-tasks.js keeps the view that
 * clients have of a task, and sends each event to every stream. So only stored events are sent,
 * from one place. docs/design.md follows one task from its request to its last event.
 *
 * The core decides a task's state, how long it is remembered, and the answer to a cancel.
 * JavaScript holds the executor and its contexts, the messages and artifacts of tasks, and the
 * pending answers.
 *
 * How a client is made. client.js is its public interface. With the first call it finds the agent
 * (remote-agent.js): it reads the card over a connection (client-http.js, port.js), and chooses the
 * dialect that both speak (dialects.js). A message is sent as a stream (task-stream.js), which asks
 * the core's table for each step: to open the stream, to request the task, to wait, or to end, and
 * whether an event still counts. JavaScript holds the task as the stream has shown it, and the
 * reason why it failed.
 */
export { createTaskClient } from './client.js';
export { createTaskServer } from './server.js';

/**
 * Types of the interface.
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
