/** A2A: tasks of agents, with streams and cancels. */
export { createTaskClient } from './client.js';
export { createTaskServer } from './server.js';
