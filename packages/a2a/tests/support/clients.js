/** Clients of agents whose every answer the test writes. */
import assert from 'node:assert/strict';
import { test as nodeTest } from 'node:test';
import { createTaskClient } from '../../src/index.js';
import { startAgent } from './a2a-agent.js';

/** A test that fails if it takes too long: it may await a message that never arrives. */
export const test = (name, run) => nodeTest(name, { timeout: 60_000 }, run);

/** The remaining events of a stream. */
export async function restOf(stream) {
  const events = [];
  for (;;) {
    const { value, done } = await stream.next();
    if (done) return events;
    events.push(value);
  }
}

/** The state in an event of a client, or the kind of an event that has none. */
export const stateOrKind = (event) => event.status?.state ?? event.task?.status.state ?? event.kind;

export const bytesOf = (text) => new TextEncoder().encode(text);

/** A status update of task `t`. */
export const statusOf = (text, state = 'WORKING') => ({
  taskId: 't',
  contextId: 'c',
  status: {
    state: `TASK_STATE_${state}`,
    message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text }] },
  },
});

/** A JSON-RPC answer, as text. */
export const frameOf = (result) => JSON.stringify({ jsonrpc: '2.0', id: 1, result });

/** A frame with a status of task `t`. */
export const statusFrame = (...status) => frameOf({ statusUpdate: statusOf(...status) });

/** The last event of a stream. */
export const END = `data: ${statusFrame('end', 'COMPLETED')}\n\n`;

/** A stream of an agent that sends these bytes. When it is asked for the task, it has ended. */
export function streamOf(chunks, limits = {}) {
  const answers = [[chunks, 'text/event-stream']];
  const { taskId: id, contextId, status } = statusOf('end', 'COMPLETED');
  const task = frameOf({ id, contextId, status });
  const fetch = async () => {
    const [source, type] = answers.shift() ?? [[bytesOf(task)], 'application/json'];
    return new Response(ReadableStream.from(source), { headers: { 'content-type': type } });
  };
  const options = { version: /** @type {const} */ ('1.0'), fetch, limits: { retry: 1, ...limits } };
  return createTaskClient('http://agent.example/', options).subscribe('go');
}

/** A client of a scripted agent, with a subscription. */
export async function subscribeTo(t, { signal, ...options } = {}) {
  const agent = await startAgent();
  t.after(() => agent.close());
  const client = createTaskClient(agent.url, { version: '1.0', ...options });
  const stream = client.subscribe('go', { signal });
  return { agent, client, stream };
}

/** A subscription whose agent has sent that the task works. */
export async function subscribeToWorking(t, options) {
  const all = await subscribeTo(t, options);
  const first = all.stream.next();
  const gem = options?.version === 'gem';
  const asked = await all.agent.next(gem ? 'tasks/sendSubscribe' : 'SendStreamingMessage');
  asked.open().status('t', 'WORKING');
  assert.equal(stateOrKind((await first).value), 'working');
  return { ...all, asked };
}
