/** A call from `client.call` to the app's handler and back, over frames, for tests/node/weight.test.js. */
import { connect, expose } from '../../packages/main/src/index.js';

/** @type {ReturnType<typeof open>} A client of a session that goes on. */
let client;

function open() {
  const { port1, port2 } = new MessageChannel();
  const app = { id: 'a.b', name: 'A', version: '1' };
  expose({ app, capabilities: { echo: (params) => params } }, { port: port1 });
  return connect(port2, { agent: { name: 'a', version: '1' } });
}

export async function oneCall() {
  client ??= open();
  const { data } = await (await client).call('echo', { text: 'a' });
  if (data.text !== 'a') throw new Error('no call was made');
}
