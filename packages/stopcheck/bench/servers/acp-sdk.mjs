/** @agentclientprotocol/sdk 2.x: `session/cancel` is a notification that the agent handles. */
import { Readable, Writable } from 'node:stream';
import { PROTOCOL_VERSION, agent, methods, ndJsonStream } from '@agentclientprotocol/sdk';

const running = new Map();
let sessions = 0;
const app = agent({ name: 'slow' });
app.onRequest(methods.agent.initialize, () => ({ protocolVersion: PROTOCOL_VERSION }));
app.onRequest(methods.agent.session.new, () => ({ sessionId: `session ${++sessions}` }));
app.onNotification(methods.agent.session.cancel, ({ params }) => {
  running.get(params.sessionId)?.abort();
});
app.onRequest(methods.agent.session.prompt, async ({ params, client }) => {
  const { sessionId, prompt } = params;
  const stop = new AbortController();
  running.set(sessionId, stop);
  const { signal } = stop;
  try {
    for (let done = 1; done <= 8; done++) {
      signal.throwIfAborted();
      await (await fetch(prompt[0].text, { signal })).text();
      await new Promise((resolve) => setTimeout(resolve, 250));
      const content = { type: 'text', text: `step ${done}` };
      const update = { sessionUpdate: 'agent_message_chunk', content };
      await client.notify(methods.client.session.update, { sessionId, update });
    }
    return { stopReason: 'end_turn' };
  } catch (error) {
    if (!signal.aborted) throw error;
    return { stopReason: 'cancelled' };
  }
});
app.connect(ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
