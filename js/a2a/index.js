/** A2A: tasks of agents, with streams and cancels. */
export { createTaskServer } from './server.js';
