/**
 * An ACP agent on the official SDK. A text is JSON, as `work` takes it. Its temper is the first
 * argument: `honest` stops and says so, `liar` says so and works on, `silent` never answers.
 */
import { randomUUID } from 'node:crypto';
import { Readable, Writable } from 'node:stream';
import { agent, ndJsonStream } from '@agentclientprotocol/sdk';
import { hear, work } from './work.js';

const temper = process.argv[2] ?? 'honest';
/** @type {Map<string, AbortController>} */
const running = new Map();

const app = agent({ name: 'slow' });
app.onRequest('initialize', () => ({ protocolVersion: 1, agentCapabilities: {} }));
app.onRequest('session/new', () => ({ sessionId: randomUUID() }));
app.onNotification('session/cancel', ({ params }) => {
  hear();
  running.get(params.sessionId)?.abort();
});
app.onRequest('session/prompt', async ({ params, client }) => {
  const { sessionId, prompt } = params;
  const stop = new AbortController();
  running.set(sessionId, stop);
  const how = JSON.parse(prompt[0].text);
  const isHonest = temper === 'honest';
  const onStep = async (done) => {
    const content = { type: 'text', text: `step ${done}` };
    const update = { sessionUpdate: 'agent_message_chunk', content };
    await client.notify('session/update', { sessionId, update });
    if (!how.asks || done !== 3) return;
    const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }];
    const toolCall = { toolCallId: '1', title: 'Go on?' };
    await client.request('session/request_permission', { sessionId, toolCall, options });
  };
  const never = new AbortController();
  const worked = work(how, isHonest ? stop.signal : never.signal, onStep).then(
    () => ({ stopReason: 'end_turn' }),
    () => ({ stopReason: 'cancelled' }),
  );
  if (isHonest) return worked;
  const stopped = new Promise((resolve) => stop.signal.addEventListener('abort', resolve));
  if (temper === 'liar')
    return Promise.race([worked, stopped.then(() => ({ stopReason: 'cancelled' }))]);
  const answer = await worked;
  return stop.signal.aborted ? new Promise(() => {}) : answer;
});

const connection = app.connect(
  ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)),
);
process.stdin.on('end', () => process.exit());
void connection;
