/** A session that shows most of what can become of a call, and the recording of both its sides. */
import { connect, expose } from '../../parts/main/index.js';
import { createRecorder } from '../../packages/inspector/src/recorder.js';

const CAPABILITIES = {
  echo: (params) => params,
  hang: (_params, { signal }) =>
    new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => reject(signal.reason)),
    ),
  outer: async (_params, { call }) => call('hang'),
  steps(_params, { progress }) {
    progress({ progress: 1, total: 4, status: 'a secret step' });
    return 'the secret result';
  },
  fails() {
    throw Object.assign(new Error('a secret failure'), { code: 'OWN', retryable: false });
  },
  async *streams() {
    for (let i = 0; i < 5; i++) yield `a secret chunk ${i}`;
  },
  asks: (_params, { elicit }) => elicit({ method: 'elicitation/confirm', params: 'a secret?' }),
};

/**
 * @param {object} options
 * @param {'frames' | 'none'} [options.upgrade]
 * @param {ConstructorParameters<import('../../packages/inspector/src/recorder.js').Recorder>[0]}
 *   [options.recording]
 * @returns {Promise<import('../../packages/inspector/src/recorder.js').Recorder>}
 */
export async function recordSession({ upgrade = 'frames', recording } = {}) {
  const recorder = createRecorder(recording);
  const { port1, port2 } = new MessageChannel();
  const exposed = expose(
    { app: { id: 'test.recorded', name: 'Recorded', version: '1' }, capabilities: CAPABILITIES },
    { port: port1, recorder, limits: { maxConcurrent: 3, streamChunks: 2 } },
  );
  const client = await connect(port2, {
    agent: { name: 'recorded', version: '1' },
    recorder,
    upgrade,
    limits: { maxCalls: 4 },
    onElicitation: () => true,
  });
  await client.call('echo', { text: 'a secret' });
  await client.call('steps', {}, { onProgress() {} });
  await client.call('streams');
  for await (const chunk of client.stream('streams')) if (chunk.endsWith('4')) break;
  const left = client.stream('streams');
  await left.next();
  await left.return();
  await left.response;
  await client.call('fails');
  await client.call('nothing', 'a secret');
  await client.call('asks', {}, { callId: 'é' });
  await client.call('echo', {}, { callId: '' });

  const controllers = [0, 1, 2, 3].map(() => new AbortController());
  const calls = controllers.map(({ signal }) => client.call('hang', {}, { signal }));
  await client.call('echo'); // one too many
  controllers[3].abort('it waits'); // before its turn has come
  controllers[0].abort('a reason with a \0 in it');
  await calls[0];
  for (const controller of controllers) controller.abort();
  await Promise.all(calls);
  const tree = new AbortController();
  const outer = client.call('outer', {}, { signal: tree.signal });
  await client.call('echo'); // the outer call has made its own by now
  tree.abort();
  await outer;
  await client.call('hang', {}, { timeout: 1 });
  await client.cancel('nobody', 'why not');
  port2.postMessage({ type: 'of/others', payload: { text: 'a secret' } });
  port2.postMessage('a secret');
  await client.call('echo');

  const pending = client.call('hang');
  await client.call('echo');
  client.close();
  await pending;
  while (exposed.sessions.length) await new Promise((resolve) => setTimeout(resolve));
  exposed.close();
  return recorder;
}
