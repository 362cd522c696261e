/** @abp-bridge/rpc as an agent of ACP: `session/cancel` fires the signal of the prompt. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createPeer, lineTransport } from '@abp-bridge/rpc';

const transport = lineTransport({ readable: process.stdin, writable: process.stdout });
const peer = createPeer(transport, { dialect: 'acp' });
let sessions = 0;
peer.handle('initialize', () => ({ protocolVersion: 1 }));
peer.handle('session/new', () => ({ sessionId: `session ${++sessions}` }));
peer.handle('session/prompt', async ({ sessionId, prompt }, { signal, notify }) => {
  try {
    for (let done = 1; done <= 8; done++) {
      await (await fetch(prompt[0].text, { signal })).text();
      await sleep(250, undefined, { signal });
      const content = { type: 'text', text: `step ${done}` };
      notify('session/update', {
        sessionId,
        update: { sessionUpdate: 'agent_message_chunk', content },
      });
    }
    return { stopReason: 'end_turn' };
  } catch (error) {
    if (!signal.aborted) throw error;
    return { stopReason: 'cancelled' };
  }
});
