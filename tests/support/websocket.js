/** What tests of WebSockets share: servers, and peers by hand that share no code with js/. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { WebSocket, WebSocketServer } from 'ws';
import { connect, expose } from '../../parts/main/index.js';
import { webSocketTransport } from '../../parts/transports/index.js';
import { Peer } from './raw.js';

export const AGENT = { agent: { name: 'test', version: '1' } };

export const APP = { app: { id: 'test.app', name: 'Test', version: '1' } };

/** A handler that runs until its signal fires, and what was seen of it. */
export function hanging() {
  const seen = { running: 0, aborted: [] };
  const waiting = [];
  const hang = (_params, { signal }) =>
    new Promise((_resolve, reject) => {
      seen.running++;
      waiting.splice(0).forEach((told) => told());
      signal.addEventListener('abort', () => {
        seen.aborted.push(signal.reason.message);
        reject(signal.reason);
        waiting.splice(0).forEach((told) => told());
      });
    });
  /** Resolves once something is true of `seen`. */
  const when = async (isTrue) => {
    while (!isTrue(seen)) await new Promise((told) => waiting.push(told));
  };
  return { hang, seen, when };
}

/** Listens for sockets until the test is over. */
export async function listen(t, options = {}) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', ...options });
  await once(server, 'listening');
  t.after(() => {
    for (const socket of server.clients) socket.terminate();
    server.close();
  });
  return { server, url: `ws://127.0.0.1:${server.address().port}` };
}

/** An app that serves every socket. */
export async function serve(
  t,
  capabilities,
  { socket = {}, server: serverOptions, ...options } = {},
) {
  const { server, url } = await listen(t, serverOptions);
  const exposed = expose({ ...APP, capabilities: { echo: (p) => p, ...capabilities } }, options);
  server.on('connection', (accepted) => exposed.accept(webSocketTransport(accepted, socket)));
  return { server, url, exposed };
}

/** Our agent, which dials. */
export async function dial(t, url, { socket = {}, ...options } = {}) {
  const sockets = [];
  const open = () => {
    sockets.push(new WebSocket(url));
    return webSocketTransport(sockets.at(-1), socket);
  };
  const client = await connect(open, { ...AGENT, ...options });
  t.after(() => client.close());
  return { client, sockets };
}

/** A peer by hand: envelopes as JSON text over a bare socket. */
export class Raw extends Peer {
  #asked = false;
  /** Answers a handshake, as an app. */
  #welcome;

  constructor(socket) {
    super();
    this.socket = socket;
    socket.on('message', (data, isBinary) => {
      assert.equal(isBinary, false);
      const message = JSON.parse(data);
      // What took long to answer is asked again.
      const hello = message.type === 'initialize';
      if (hello && this.#asked) return this.#welcome?.(message);
      this.#asked ||= hello;
      this.arrived(message);
    });
    socket.on('error', () => {});
    this.closed = once(socket, 'close').then(([code, reason]) => [code, String(reason)]);
  }

  static async dial(url, options) {
    const socket = new WebSocket(url, options);
    await once(socket, 'open');
    return new Raw(socket);
  }

  send(type, id, payload) {
    this.socket.send(JSON.stringify({ type, id, timestamp: Date.now(), payload }));
  }

  /** Begins a session as an agent. */
  async initialize(features = {}) {
    const { agent } = AGENT;
    return this.ask('initialize', 'hello', { agent, protocolVersion: '0.1', features });
  }

  async call(capability, params, id = 'call') {
    const answer = await this.ask('capabilities/call', id, { capability, params });
    assert.deepEqual([answer.type, answer.id], ['capabilities/call-result', id]);
    return answer.payload;
  }

  /** Waits for a handshake and answers it, as an app. */
  async welcome(features = {}) {
    const { app } = APP;
    const session = { sessionId: 's', protocolVersion: '0.1', app, capabilities: [], features };
    const message = await this.next();
    assert.equal(message.type, 'initialize');
    this.#welcome = ({ id }) => this.send('initialize-result', id, session);
    this.#welcome(message);
  }
}

/** Our agent, and a raw app that it has shaken hands with. */
export async function rawApp(t, { features, ...options } = {}) {
  const { server, url } = await listen(t, options.server);
  const connected = once(server, 'connection');
  const dialled = dial(t, url, options);
  const raw = new Raw((await connected)[0]);
  await raw.welcome(features);
  return { raw, server, url, ...(await dialled) };
}

/** A raw agent, and our app that it has shaken hands with. */
export async function rawAgent(t, capabilities, options = {}) {
  const app = await serve(t, capabilities, options);
  const raw = await Raw.dial(app.url, options.dial);
  await raw.initialize(options.features);
  return { ...app, raw };
}

export function deferred() {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}
