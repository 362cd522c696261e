/**
 * The ways between an agent and an app in Node. Whoever adds one adds a line to TRANSPORTS: the
 * contract of transports is tested over it (tests/node/transports.test.js), and the rules of the
 * protocol are played over it (tests/node/transcripts.test.js).
 */
import { EventEmitter, once } from 'node:events';
import { PassThrough } from 'node:stream';
import { Worker } from 'node:worker_threads';
import { WebSocket, WebSocketServer } from 'ws';
import { connect, expose } from '../../parts/main/index.js';
import {
  portChannel as framePort,
  headerTransport,
  lineTransport,
} from '../../packages/rpc/src/index.js';
import { portTransport } from '../../js/transports/port.js';
import { extensionTransport, webSocketTransport } from '../../parts/transports/index.js';
import { plainAgent, plainApp, portChannel, socketChannel } from '../plain/plain.js';
import { AgentDriver, AppDriver } from '../support/drivers.js';
import { Log } from '../support/transcript.js';

/**
 * @typedef {object} End
 * @property {() => ReturnType<typeof portTransport>} transport ours
 * @property {() => { post: Function, listen: Function }} plain what a plain peer uses in its place
 * @property {() => void} close ends it without a word of ours
 */

/**
 * @typedef {object} Channel
 * @property {string} name
 * @property {boolean} frames whether two of ours agree on frames over it
 * @property {string[]} modes names of those in which it is tried
 * @property {boolean} [isBrief] whether it plays one section, not all
 * @property {(mode: Mode, section: import('../support/sections.js').Section) => Promise<any>} pair
 *   makes both sides, connected, for `play`; and `close`, which ends them
 *
 * @typedef {object} Mode
 * @property {string} name
 * @property {'ours' | 'plain'} agent
 * @property {'ours' | 'plain'} app
 * @property {'frames' | 'none'} upgrade
 */

/**
 * Every transport, a line each: `ends` makes two that are connected. Its contract is tested over
 * each of them (tests/node/transports.test.js), and so are the rules of the protocol.
 * @type {{ name: string, frames: boolean, ends: () => Promise<End[]> }[]}
 */
export const TRANSPORTS = [
  { name: 'MessageChannel', frames: true, ends: ports },
  { name: 'port that is an event emitter', frames: true, ends: emitters },
  { name: 'port to another of ours', frames: false, ends: portChannels },
  { name: 'WebSocket, the agent dials', frames: false, ends: sockets },
  { name: 'WebSocket, the app dials', frames: false, ends: socketsReversed },
  { name: 'port of a browser extension', frames: false, ends: extensionEnds },
  { name: 'lines', frames: false, ends: () => streams(lineTransport) },
  { name: 'Content-Length', frames: false, ends: () => streams(headerTransport) },
];

/**
 * Where plain peers are tried: values by a port, and text by a socket. A transport carries their
 * messages as it carries ours.
 */
const WITH_PLAIN_PEERS = ['MessageChannel', 'WebSocket, the agent dials'];

/**
 * Two of ours agree on frames where the channel carries them, so messages are also tried over one
 * of those.
 * @type {Channel[]}
 */
export const CHANNELS = [
  ...TRANSPORTS.map(({ name, frames, ends }) => ({
    name,
    frames,
    modes: [
      'both ours',
      ...(name === 'MessageChannel' ? ['both ours, messages only'] : []),
      ...(WITH_PLAIN_PEERS.includes(name) ? ['our agent, plain app', 'plain agent, our app'] : []),
    ],
    pair: over(ends),
  })),
  // A thread for each section would take longer than all else, and its port is an event emitter.
  { name: 'worker thread', frames: true, modes: ['both ours'], isBrief: true, pair: inWorker },
];

/** Who is at the ends. @type {Mode[]} */
export const MODES = [
  { name: 'both ours', agent: 'ours', app: 'ours', upgrade: 'frames' },
  { name: 'both ours, messages only', agent: 'ours', app: 'ours', upgrade: 'none' },
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

/**
 * A port in the manner of an event emitter, as Electron's MessagePortMain is: events as an event
 * target has them, nothing before `start`.
 * @param {MessagePort} port
 * @param {string} off what it calls the method that takes a listener away
 */
export function emitterPort(port, off = 'off') {
  const emitter = new EventEmitter();
  port.addEventListener('close', () => emitter.emit('close'));
  const heard = ({ data, ports }) => emitter.emit('message', { data, ports });
  return {
    on: (type, listener) => void emitter.on(type, listener),
    [off]: (type, listener) => void emitter.off(type, listener),
    postMessage: (message, transfer) => port.postMessage(message, transfer),
    start() {
      port.addEventListener('message', heard);
      port.start();
    },
    close: () => port.close(),
  };
}

async function emitters() {
  const { port1, port2 } = new MessageChannel();
  return [
    [port1, 'off'],
    [port2, 'removeListener'],
  ].map(([port, off]) => ({
    transport: () => portTransport(emitterPort(port, off)),
    plain: () => portChannel(port),
    close: () => port.close(),
  }));
}

/** What a plain peer needs of a transport of ours, where the way itself is of our making. */
const plainOver = (transport) => () => ({
  post: (message) => transport.post(message),
  listen: (heard) => (transport.onMessage = heard),
});

async function portChannels() {
  const { port1, port2 } = new MessageChannel();
  return [port1, port2].map((port) => {
    const transport = framePort(port);
    return {
      transport: () => transport,
      plain: plainOver(transport),
      close: () => port.close(),
    };
  });
}

async function streams(open) {
  const [there, back] = [new PassThrough(), new PassThrough()];
  // As a socket or a process would keep the test's process going.
  const alive = setInterval(() => {}, 60_000);
  return [
    { readable: back, writable: there },
    { readable: there, writable: back },
  ].map((ends) => {
    const transport = open(ends);
    return {
      transport: () => transport,
      plain: plainOver(transport),
      close() {
        clearInterval(alive);
        ends.writable.end();
      },
    };
  });
}

/** What a browser's events for extensions are: `tell` has the listeners hear. */
export function extensionEvent() {
  const listeners = new Set();
  return {
    addListener: (heard) => void listeners.add(heard),
    removeListener: (heard) => void listeners.delete(heard),
    tell: (...told) => [...listeners].forEach((heard) => heard(...told)),
  };
}

/**
 * Two ends of a port as browser extensions have them. Only JSON crosses, and an end hears nothing
 * once it has closed.
 */
export function extensionPorts() {
  const { port1, port2 } = new MessageChannel();
  return [port1, port2].map((port) => {
    let isOpen = true;
    const [onMessage, onDisconnect] = [extensionEvent(), extensionEvent()];
    port.on('message', (text) => isOpen && onMessage.tell(JSON.parse(text)));
    port.on('close', () => isOpen && ((isOpen = false), onDisconnect.tell()));
    return {
      name: 'abp-bridge',
      onMessage,
      onDisconnect,
      postMessage(message) {
        if (!isOpen) throw new Error('Attempting to use a disconnected port object');
        port.postMessage(JSON.stringify(message));
      },
      disconnect() {
        isOpen = false;
        port.close();
      },
      /** Both ends hear that the other is gone. */
      lose: () => port.close(),
    };
  });
}

async function extensionEnds() {
  return extensionPorts().map((port) => {
    const transport = extensionTransport(port);
    return {
      transport: () => transport,
      plain: plainOver(transport),
      close: () => port.lose(),
    };
  });
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
