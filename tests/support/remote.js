/**
 * A side in Node for a page at the other end of a WebSocket: it does what the page tells it over a
 * second one, which the bridge does not see.
 */
import { once } from 'node:events';
import { WebSocketServer } from 'ws';
import { connect, expose } from '../../parts/main/index.js';
import { webSocketTransport } from '../../parts/transports/index.js';
import { AgentDriver, AppDriver } from './drivers.js';

/**
 * @returns {Promise<{ url: string, close: () => void }>} where pages dial, with
 *   `?{serial, side, limits}`
 */
export async function remote() {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  /** What takes the socket of the bridge, by serial. */
  const sides = new Map();
  server.on('connection', (socket, { url }) => {
    const { serial, side, limits } = JSON.parse(decodeURIComponent(url.slice(2)));
    const take = sides.get(serial);
    if (take) take(webSocketTransport(socket));
    else sides.set(serial, (side === 'app' ? remoteApp : remoteAgent)(socket, limits));
    if (!take) socket.send('open');
  });
  return {
    url: `ws://127.0.0.1:${server.address().port}/`,
    close() {
      for (const socket of server.clients) socket.terminate();
      server.close();
    },
  };
}

function remoteApp(control, limits) {
  const driver = new AppDriver((line) => control.send(line));
  control.on('message', (words) => driver.do(...JSON.parse(words)));
  const exposed = expose(
    { app: { id: 'test.app', name: 'Test', version: '1' }, capabilities: driver.handlers },
    { limits },
  );
  return (transport) => exposed.accept(transport);
}

function remoteAgent(control, limits) {
  const driver = new AgentDriver((line) => control.send(line));
  control.on('message', async (data) => {
    const words = JSON.parse(data);
    if (words[0] !== 'settle') return void driver.do(...words);
    await driver.client.call('barrier');
    control.send('settled');
  });
  return async (transport) => {
    driver.client = await connect(() => transport, {
      agent: { name: 'test', version: '1' },
      limits,
    });
    control.send('ready');
  };
}
