/** @a2a-js/sdk: its README ("Task cancellation") keeps a set of the cancelled tasks. */
import { AGENT_CARD_PATH, TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { UserBuilder, agentCardHandler, jsonRpcHandler } from '@a2a-js/sdk/server/express';
import express from 'express';

const cancelled = new Set();
const executor = {
  async cancelTask(taskId) {
    cancelled.add(taskId);
  },
  async execute({ userMessage, taskId, contextId }, bus) {
    const statusOf = (state) => ({
      state,
      timestamp: new Date().toISOString(),
      message: undefined,
    });
    const show = (state) =>
      bus.publish(
        AgentEvent.statusUpdate({ taskId, contextId, status: statusOf(state), metadata: {} }),
      );
    const status = statusOf(TaskState.TASK_STATE_SUBMITTED);
    const task = { id: taskId, contextId, status, artifacts: [], history: [userMessage] };
    bus.publish(AgentEvent.task({ ...task, metadata: {} }));
    show(TaskState.TASK_STATE_WORKING);
    const url = userMessage.parts[0].content.value;
    for (let done = 0; done < 8; done++) {
      if (cancelled.has(taskId)) return show(TaskState.TASK_STATE_CANCELED);
      await (await fetch(url)).text();
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
    show(TaskState.TASK_STATE_COMPLETED);
  },
};
const port = Number(process.argv[2]);
const url = `http://127.0.0.1:${port}/`;
const card = {
  name: 'slow',
  description: 'fetches an address',
  version: '1',
  supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', tenant: '', protocolVersion: '1.0' }],
  capabilities: { streaming: true, pushNotifications: false, extensions: [] },
  defaultInputModes: ['text'],
  defaultOutputModes: ['text'],
  skills: [],
};
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
const app = express();
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler }));
app.use(jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }));
app.listen(port, '127.0.0.1');
