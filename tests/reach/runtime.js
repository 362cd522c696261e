// Run by Bun and by Deno: both sides over a MessageChannel and over a WebSocket.
import './instances.js';
import { once } from 'node:events';
import { connect, expose } from 'abp-bridge';
import { webSocketTransport } from 'abp-bridge/transports';
import { WebSocketServer } from 'ws';
import { app } from './app.js';
import { entries } from './entries.js';
import { exchange } from './exchange.js';
import { smoke } from './smoke.js';

const exposed = expose(app, { origins: [] });
const accept = (socket) => exposed.accept(webSocketTransport(socket));
const address = `ws://127.0.0.1:${await (globalThis.Deno ? serveDeno() : serveWs())}`;
const agent = { name: 'runtime', version: '1' };
const client = await connect(() => webSocketTransport(address), { agent });
const outcome = [await smoke(), await entries(), await exchange(client)].join();
console.log(JSON.stringify({ outcome, instances: globalThis.instances }));
process.exit();

/**
 * Deno's own server.
 * @returns {number} its port
 */
function serveDeno() {
  const { Deno } = globalThis;
  const handle = (request) => {
    const { socket, response } = Deno.upgradeWebSocket(request);
    accept(socket);
    return response;
  };
  return Deno.serve({ port: 0, onListen() {} }, handle).addr.port;
}

/**
 * A server of the package ws.
 * @returns {Promise<number>} its port
 */
async function serveWs() {
  const server = new WebSocketServer({ port: 0 }).on('connection', accept);
  await once(server, 'listening');
  return server.address().port;
}
