/** An app behind a WebSocket, in the test's own process: what it hears is seen at once, and no browser is needed. */
import { once } from 'node:events';
import { expose } from 'abp-bridge';
import { webSocketTransport } from 'abp-bridge/websocket';
import { WebSocketServer } from 'ws';

/** @param {Record<string, any>} capabilities */
export async function startSocketApp(capabilities) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  const app = expose(
    { app: { id: 'ws', name: 'Socket app', version: '1' }, capabilities },
    { origins: [] },
  );
  server.on('connection', (socket) => app.accept(webSocketTransport(socket)));
  return {
    app,
    url: `ws://127.0.0.1:${server.address().port}/`,
    close() {
      app.close();
      server.close();
    },
  };
}
