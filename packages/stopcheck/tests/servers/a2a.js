/**
 * An A2A agent on the official SDK. It prints its address. A text is JSON, as `work` takes it. Its
 * temper is the first argument:
 *
 * - `honest` stops, and then says so
 * - `liar` says that the task is canceled, and works on
 * - `forger` says so, too, and its store says that the task is completed
 * - `silent` never answers a cancel
 */
import { once } from 'node:events';
import { AGENT_CARD_PATH, TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { UserBuilder, agentCardHandler, jsonRpcHandler } from '@a2a-js/sdk/server/express';
import express from 'express';
import { hear, work } from './work.js';

const temper = process.argv[2] ?? 'honest';

const { TASK_STATE_CANCELED: CANCELED, TASK_STATE_COMPLETED: COMPLETED } = TaskState;
/** Steps before it asks, if it is to ask. */
const BEFORE = 3;

class Executor {
  /** By the ids of tasks. @type {Map<string, AbortController>} */
  #running = new Map();
  /** What is to be done of tasks that wait for an answer. @type {Map<string, any>} */
  #waiting = new Map();

  #state(bus, { taskId, contextId }, state) {
    const status = { state, timestamp: new Date().toISOString(), message: undefined };
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status, metadata: {} }));
  }

  async execute(context, bus) {
    const { taskId, contextId, userMessage } = context;
    const stop = new AbortController();
    this.#running.set(taskId, stop);
    const status = { state: TaskState.TASK_STATE_SUBMITTED, timestamp: '', message: undefined };
    const task = { id: taskId, contextId, status, history: [userMessage], artifacts: [] };
    bus.publish(AgentEvent.task(context.task ?? { ...task, metadata: {} }));
    this.#state(bus, context, TaskState.TASK_STATE_WORKING);
    const rest = this.#waiting.get(taskId);
    this.#waiting.delete(taskId);
    const how = rest ?? JSON.parse(userMessage.parts[0].content.value);
    const asks = how.asks && !rest;
    const end = await work({ ...how, ...(asks && { steps: BEFORE }) }, stop.signal).then(
      () => (asks ? TaskState.TASK_STATE_INPUT_REQUIRED : COMPLETED),
      () => CANCELED,
    );
    if (asks) this.#waiting.set(taskId, { ...how, steps: how.steps - BEFORE });
    this.#state(bus, context, end);
    bus.finished();
  }

  async cancelTask(taskId, bus) {
    hear();
    if (temper === 'silent') await new Promise(() => {});
    if (temper === 'honest' && !this.#waiting.has(taskId)) this.#running.get(taskId)?.abort();
    else this.#state(bus, { taskId, contextId: '' }, CANCELED);
  }
}

class Store extends InMemoryTaskStore {
  async load(...given) {
    const task = await super.load(...given);
    const isForged = temper === 'forger' && task?.status.state === CANCELED;
    const status = { ...task?.status, state: COMPLETED };
    return isForged ? { ...task, status } : task;
  }
}

const app = express();
const server = app.listen(0, '127.0.0.1');
await once(server, 'listening');
const url = `http://127.0.0.1:${server.address().port}`;
const card = {
  name: 'slow',
  description: 'works in steps',
  version: '1',
  supportedInterfaces: [
    { url: `${url}/a2a`, protocolBinding: 'JSONRPC', tenant: '', protocolVersion: '1.0' },
  ],
  capabilities: {
    streaming: process.argv[3] !== 'polled',
    pushNotifications: false,
    extensions: [],
    extendedAgentCard: false,
  },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [],
  signatures: [],
  provider: undefined,
};
const requestHandler = new DefaultRequestHandler(card, new Store(), new Executor());
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
app.use('/a2a', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
console.log(url);
