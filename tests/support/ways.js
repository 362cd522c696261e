// The ways by which an app of this library is called in Node, for rules that must hold on each of them alike.
import { connect, expose } from '../../js/index.js';
import { webSocketTransport } from '../../js/transports/websocket.js';
import { socketPair } from '../contracts/channels.js';

const APP = { id: 'a.b', name: 'A', version: '1' };
const AGENT = { name: 'a', version: '1' };
const HELLO = {
  agent: AGENT,
  protocolVersion: '0.1',
  features: { notifications: true, progress: true, elicitation: true },
};

async function overPort(capabilities, { upgrade, options, exposeOptions }) {
  const { port1, port2 } = new MessageChannel();
  const exposed = expose({ app: APP, capabilities }, { port: port1, upgrade, ...exposeOptions });
  const client = await connect(port2, { agent: AGENT, upgrade, ...options });
  const close = () => [port1, port2].forEach((port) => port.close());
  return { exposed, client, call: client.call.bind(client), close };
}

async function overSocket(capabilities, { options, exposeOptions }) {
  const [dialled, accepted] = await socketPair();
  const exposed = expose({ app: APP, capabilities }, exposeOptions);
  exposed.accept(webSocketTransport(accepted));
  const client = await connect(() => webSocketTransport(dialled), { agent: AGENT, ...options });
  const close = () => [dialled, accepted].forEach((socket) => socket.terminate());
  return { exposed, client, call: client.call.bind(client), close };
}

async function inPage(capabilities, { options = {}, exposeOptions }) {
  const exposed = expose({ app: APP, capabilities }, { origins: [], ...exposeOptions });
  const { abp } = exposed;
  abp.onElicitation = options.onElicitation;
  await abp.initialize(HELLO);
  return { exposed, client: abp, call: abp.call, close: () => exposed.close() };
}

/** Through a handler that calls another capability and returns its response. */
async function within(capabilities, given) {
  const outer = (params, { call, signal }) => call(params.name, params.params, { signal });
  const pair = await overPort({ ...capabilities, outer }, { ...given, upgrade: 'frames' });
  const call = (name, params, options) => pair.call('outer', { name, params }, options);
  return { ...pair, call };
}

/** @type {Record<string, (capabilities: any, given?: { options?: any, exposeOptions?: any }) => Promise<any>>} */
export const WAYS = {
  'a port with frames': (capabilities, given) =>
    overPort(capabilities, { ...given, upgrade: 'frames' }),
  'a port with messages': (capabilities, given) =>
    overPort(capabilities, { ...given, upgrade: 'none' }),
  'a WebSocket': (capabilities, given = {}) => overSocket(capabilities, given),
  'window.abp': (capabilities, given = {}) => inPage(capabilities, given),
  'a call of another handler': within,
};
