/**
 * The ways between an agent and an app in Node, a line each. Whoever adds one adds a line here, and the rules
 * of the protocol are played over it (tests/node/transcripts.test.js).
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { WebSocket, WebSocketServer } from 'ws';
import { connect, expose } from '../../js/index.js';
import { portTransport } from '../../js/transports/port.js';
import { webSocketTransport } from '../../js/transports/websocket.js';
import { plainAgent, plainApp, portChannel, socketChannel } from '../plain/plain.js';
import { AgentDriver, AppDriver } from '../support/drivers.js';
import { Log } from '../support/transcript.js';

/**
 * @typedef {object} Channel
 * @property {string} name
 * @property {boolean} frames whether two of ours agree on frames over it
 * @property {(mode: Mode, section: import('../support/sections.js').Section) => Promise<any>} pair makes both
 *   sides, connected, for `play`; and `close`, which ends them
 *
 * @typedef {{ name: string, agent: 'ours' | 'plain', app: 'ours' | 'plain', upgrade: 'frames' | 'none' }} Mode
 */

/** @type {Channel[]} */
export const CHANNELS = [
  { name: 'MessageChannel', frames: true, pair: over(ports) },
  { name: 'WebSocket, the agent dials', frames: false, pair: over(sockets) },
  { name: 'WebSocket, the app dials', frames: false, pair: over(socketsReversed) },
  { name: 'worker thread', frames: true, pair: inWorker },
];

/** Who is at the ends. @type {Mode[]} */
export const MODES = [
  { name: 'ours, frames', agent: 'ours', app: 'ours', upgrade: 'frames' },
  { name: 'ours, messages', agent: 'ours', app: 'ours', upgrade: 'none' },
  { name: 'our agent, plain app', agent: 'ours', app: 'plain', upgrade: 'frames' },
  { name: 'plain agent, our app', agent: 'plain', app: 'ours', upgrade: 'frames' },
];

/**
 * Pairs both of whose sides live here, at the ends of a channel.
 * @param {() => Promise<{ transport: () => any, plain: () => any, close: () => void }[]>} ends
 */
function over(ends) {
  return async ({ agent, app, upgrade }, { limits }) => {
    const [agentEnd, appEnd] = await ends();
    const log = new Log();
    const agentSide = new AgentDriver((line) => log.add(line));
    const appSide = new AppDriver((line) => log.add(line));
    if (app === 'ours') {
      const definition = { app: { id: 'test.app', name: 'Test', version: '1' } };
      expose({ ...definition, capabilities: appSide.handlers }, { limits: limits.app }).accept(
        appEnd.transport(),
      );
    } else plainApp(appEnd.plain(), appSide.handlers);
    agentSide.client =
      agent === 'ours'
        ? await connect(agentEnd.transport, {
            agent: { name: 'test', version: '1' },
            upgrade,
            limits: limits.agent,
          })
        : await plainAgent(agentEnd.plain(), agentSide);
    return {
      log,
      features: agentSide.client.features,
      do: (side, ...words) => (side === 'agent' ? agentSide : appSide).do(...words),
      // A round trip, so that what should not come has had its chance to come.
      settle: async () => void (await agentSide.client.call('barrier')),
      close: () => [agentEnd, appEnd].forEach((end) => end.close()),
    };
  };
}

let workers = 0;

/** A pair whose app lives in a worker thread, which is told what to do past the bridge. */
async function inWorker({ agent, app, upgrade }, { limits }) {
  const log = new Log();
  const agentSide = new AgentDriver((line) => log.add(line));
  const control = new BroadcastChannel(`transcript-${process.pid}-${++workers}`);
  control.onmessage = ({ data }) => data.log && log.add(data.log);
  const script = app === 'ours' ? 'app.js' : 'plain.js';
  const worker = new Worker(new URL(`../support/workers/${script}`, import.meta.url), {
    workerData: { control: control.name, limits: limits.app },
  });
  const channel = {
    post: (message) => worker.postMessage(message),
    listen: (heard) => worker.on('message', heard),
  };
  agentSide.client =
    agent === 'ours'
      ? await connect(worker, {
          agent: { name: 'test', version: '1' },
          upgrade,
          limits: limits.agent,
        })
      : await plainAgent(channel, agentSide);
  return {
    log,
    features: agentSide.client.features,
    do: (side, ...words) =>
      side === 'agent' ? agentSide.do(...words) : control.postMessage({ do: words }),
    settle: async () => void (await agentSide.client.call('barrier')),
    close() {
      control.close();
      return worker.terminate();
    },
  };
}

async function ports() {
  const { port1, port2 } = new MessageChannel();
  return [port1, port2].map((port) => ({
    transport: () => portTransport(port),
    plain: () => portChannel(port),
    close: () => port.close(),
  }));
}

async function sockets() {
  return (await socketPair()).map((socket) => ({
    transport: () => webSocketTransport(socket),
    plain: () => socketChannel(socket),
    close: () => socket.terminate(),
  }));
}

async function socketsReversed() {
  return (await sockets()).reverse();
}

/** Two ends of a connection: the one that dialled, and the server's. */
export async function socketPair() {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
  await once(server, 'listening');
  const dialled = new WebSocket(`ws://127.0.0.1:${server.address().port}`);
  const [[accepted]] = await Promise.all([once(server, 'connection'), once(dialled, 'open')]);
  server.close();
  return [dialled, accepted];
}
