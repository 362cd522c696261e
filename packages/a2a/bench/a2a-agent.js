// One A2A agent in a process of its own: ours, with a store or without, or the SDK's, with the same
// executor. Sends its port, and on request its memory use.
import { createServer } from 'node:http';

const [, , whose, where] = process.argv;
const CARD = { name: 'bench', description: 'Measured', version: '1', skills: [] };
const artifact = { artifactId: 'result', parts: [{ text: 'done' }] };
/** A message "wait" is a task that works until it is cancelled. */
const waits = (text) => text === 'wait';

/** The store: none, in memory, in a file, or on NATS at a port. */
async function storeOf() {
  if (whose === 'ours') return undefined;
  const { memoryBackend, natsBackend, sqliteBackend, taskStore } =
    await import('@abp-bridge/a2a-store');
  if (whose === 'memory') return taskStore({ backend: memoryBackend() });
  if (whose === 'sqlite') return taskStore({ backend: await sqliteBackend(where) });
  const { connect } = await import('@nats-io/transport-node');
  const jetstream = await import('@nats-io/jetstream');
  const connection = await connect({ servers: `127.0.0.1:${where}` });
  return taskStore({ backend: await natsBackend({ connection, jetstream }) });
}

async function ours() {
  const { createTaskServer } = await import('../src/index.js');
  const store = await storeOf();
  const server = createTaskServer(
    {
      card: CARD,
      execute(ctx) {
        if (waits(ctx.message.parts[0].text))
          return new Promise((resolve) => {
            ctx.signal.addEventListener('abort', () => resolve(undefined));
          });
        ctx.emitArtifact(artifact);
        return undefined;
      },
    },
    store ? { store } : {},
  );
  return server.handle;
}

async function sdk() {
  const { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } =
    await import('@a2a-js/sdk/server');
  const { UserBuilder, jsonRpcHandler } = await import('@a2a-js/sdk/server/express');
  const { TaskState } = await import('@a2a-js/sdk');
  const { default: express } = await import('express');
  const statusOf = (state) => ({ state, timestamp: new Date().toISOString() });
  const stops = new Map();
  const executor = {
    async execute({ taskId, contextId, userMessage }, bus) {
      const status = (state) =>
        bus.publish(
          AgentEvent.statusUpdate({ taskId, contextId, status: statusOf(state), metadata: {} }),
        );
      bus.publish(
        AgentEvent.task({
          id: taskId,
          contextId,
          status: statusOf(TaskState.TASK_STATE_SUBMITTED),
          artifacts: [],
          history: [userMessage],
          metadata: {},
        }),
      );
      status(TaskState.TASK_STATE_WORKING);
      if (waits(userMessage.parts[0].content.value)) {
        await new Promise((resolve) => stops.set(taskId, resolve));
        status(TaskState.TASK_STATE_CANCELED);
        return;
      }
      const parts = [
        { content: { $case: 'text', value: 'done' }, mediaType: '', filename: '', metadata: {} },
      ];
      bus.publish(
        AgentEvent.artifactUpdate({
          taskId,
          contextId,
          artifact: { ...artifact, parts, name: '', description: '', metadata: {}, extensions: [] },
          append: false,
          lastChunk: true,
          metadata: {},
        }),
      );
      status(TaskState.TASK_STATE_COMPLETED);
    },
    async cancelTask(taskId) {
      stops.get(taskId)?.();
      stops.delete(taskId);
    },
  };
  const supportedInterfaces = [
    { url: 'http://127.0.0.1/', protocolBinding: 'JSONRPC', tenant: '', protocolVersion: '1.0' },
  ];
  const card = { ...CARD, supportedInterfaces, capabilities: { streaming: true } };
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), executor);
  const userBuilder = UserBuilder.noAuthentication;
  return express().use('/', jsonRpcHandler({ requestHandler, userBuilder }));
}

const server = createServer(whose === 'sdk' ? await sdk() : await ours());
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
process.on('message', () => {
  for (let i = 0; i < 3; i++) globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  process.send({ memory: heapUsed + external });
});
process.on('disconnect', () => process.exit());
