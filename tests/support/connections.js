// How an app of this library is called in Node, for rules that must hold over each of these
// connections alike.
import { expose } from '../../parts/main/index.js';
import { webSocketTransport } from '../../parts/transports/index.js';
import { socketPair } from '../contracts/channels.js';
import { AGENT, APP, openPair } from './pair.js';

const HELLO = {
  agent: AGENT,
  protocolVersion: '0.1',
  features: { notifications: true, progress: true, elicitation: true },
};

async function opened(capabilities, { options, exposeOptions }, way) {
  const pair = await openPair(capabilities, { ...way, agent: options, app: exposeOptions });
  return { ...pair, call: pair.client.call.bind(pair.client), close() {} };
}

const overPort = (capabilities, { upgrade, ...given }) => opened(capabilities, given, { upgrade });

const overSocket = (capabilities, given) =>
  opened(capabilities, given, {
    ends: async () =>
      (await socketPair()).map((socket) => ({
        transport: () => webSocketTransport(socket),
        close: () => socket.terminate(),
      })),
  });

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

/**
 * @type {Record<string, (capabilities: any, given?: { options?: any, exposeOptions?: any })
 *   => Promise<any>>}
 */
export const CONNECTIONS = {
  'a port with frames': (capabilities, given) =>
    overPort(capabilities, { ...given, upgrade: 'frames' }),
  'a port with messages': (capabilities, given) =>
    overPort(capabilities, { ...given, upgrade: 'none' }),
  'a WebSocket': (capabilities, given = {}) => overSocket(capabilities, given),
  'window.abp': (capabilities, given = {}) => inPage(capabilities, given),
  'a call of another handler': within,
};
