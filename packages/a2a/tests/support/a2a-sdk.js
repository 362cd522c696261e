/**
 * An agent on the real SDK's server, whose tasks take steps; it speaks 1.0, and 0.3 through its
 * compatibility.
 */
import { AGENT_CARD_PATH, TaskState } from '@a2a-js/sdk';
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import {
  UserBuilder,
  agentCardHandler,
  jsonRpcHandler,
  restHandler,
} from '@a2a-js/sdk/server/express';
import express from 'express';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRequestHandler } from '../../src/adapters/a2a-sdk.js';

const text = (value) => ({
  content: { $case: 'text', value },
  metadata: undefined,
  filename: '',
  mediaType: 'text/plain',
});

/**
 * How its executor takes a cancel: at once, before its next step, or not at all.
 * @typedef {'immediate' | 'cooperative' | 'ignore'} Policy
 */
class SlowExecutor {
  /** Steps by what the task was asked. */
  steps = {};
  cancels = 0;
  #cancelled = new Set();

  /** @param {{ policy: Policy, steps: number, step: number, end: number }} options */
  constructor(options) {
    this.options = options;
  }

  status(bus, { taskId, contextId }, state) {
    const status = { state, timestamp: new Date().toISOString(), message: undefined };
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status, metadata: {} }));
  }

  async execute(context, bus) {
    const { taskId, contextId, userMessage } = context;
    const name = userMessage.parts[0].content.value;
    const { policy, steps, step, end } = this.options;
    this.steps[name] = 0;
    if (name === 'say') {
      const parts = [text('said')];
      const message = { messageId: 'm', role: 2, parts, contextId, taskId: '', extensions: [] };
      bus.publish(AgentEvent.message({ ...message, metadata: {}, referenceTaskIds: [] }));
      bus.finished();
      return;
    }
    const status = {
      state: TaskState.TASK_STATE_SUBMITTED,
      timestamp: new Date().toISOString(),
      message: undefined,
    };
    const history = [userMessage];
    const task = { id: taskId, contextId, status, history, artifacts: [], metadata: {} };
    bus.publish(AgentEvent.task(context.task ?? task));
    this.status(bus, context, TaskState.TASK_STATE_WORKING);
    for (let n = 1; n <= steps; n++) {
      await sleep(step);
      if (policy === 'immediate' && this.#cancelled.has(taskId)) return;
      if (policy === 'cooperative' && this.#cancelled.has(taskId)) {
        this.status(bus, context, TaskState.TASK_STATE_CANCELED);
        bus.finished();
        return;
      }
      this.steps[name]++;
      const part = { artifactId: `step-${n}`, name: '', description: '', extensions: [] };
      const artifact = { ...part, parts: [text(`step ${n}/${steps}`)], metadata: {} };
      const update = { taskId, contextId, artifact, append: false, lastChunk: false, metadata: {} };
      bus.publish(AgentEvent.artifactUpdate(update));
    }
    this.status(
      bus,
      context,
      name === 'ask' && !context.task ? TaskState.TASK_STATE_INPUT_REQUIRED : end,
    );
    bus.finished();
  }

  async cancelTask(taskId, bus, context) {
    this.cancels++;
    this.#cancelled.add(taskId);
    if (this.options.policy !== 'immediate') return;
    const contextId = context?.contextId ?? '';
    this.status(bus, { taskId, contextId }, TaskState.TASK_STATE_CANCELED);
    bus.finished();
  }
}

/**
 * With `behind`, the tasks are ours: its front and its executor with our request handler between
 * them.
 * @param {Partial<{ policy: Policy, steps: number, step: number, end: number, streaming: boolean,
 *   rest: boolean, behind: object,
 *   executor: object, userBuilder: any }>} [options]
 */
export async function startSdkAgent({
  policy = 'immediate',
  steps = 10,
  step = 20,
  end = TaskState.TASK_STATE_COMPLETED,
  streaming = true,
  rest = false,
  behind = undefined,
  executor = new SlowExecutor({ policy, steps, step, end }),
  userBuilder = UserBuilder.noAuthentication,
} = {}) {
  const app = express();
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${server.address().port}`;
  const supported = (protocolVersion) => ({
    url: `${url}/a2a`,
    protocolBinding: 'JSONRPC',
    tenant: '',
    protocolVersion,
  });
  const card = {
    name: 'SlowAgent',
    description: 'Runs steps',
    version: '1.0',
    supportedInterfaces: rest
      ? [{ ...supported('1.0'), url: `${url}/rest`, protocolBinding: 'HTTP+JSON' }]
      : [supported('1.0'), supported('0.3')],
    capabilities: { streaming, pushNotifications: false, extensions: [], extendedAgentCard: false },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [],
    signatures: [],
    provider: undefined,
  };
  const requestHandler = behind
    ? createRequestHandler(card, executor, behind)
    : new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
  if (requestHandler.guard) app.use(['/rest', '/a2a'], requestHandler.guard);
  const legacyCompat = { enabled: true };
  const cards = agentCardHandler({ agentCardProvider: requestHandler, legacyCompat });
  app.use(`/${AGENT_CARD_PATH}`, cards);
  app.use('/rest', restHandler({ requestHandler, userBuilder }));
  app.use('/a2a', jsonRpcHandler({ requestHandler, userBuilder, legacyCompat }));
  return {
    url,
    card,
    executor,
    requestHandler,
    close() {
      requestHandler.server?.close();
      server.closeAllConnections();
      server.close();
    },
  };
}
